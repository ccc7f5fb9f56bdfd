//! What is seen of the two sides and of the routing between them.

use jiff::Timestamp;

use super::commands::Command;
use super::run::Revision;

/// How traffic is divided: the target has so much, the source the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weights {
    /// The target's share, in percent.
    pub target: u8,
    /// Whether the target gets copies of the traffic.
    pub mirrored: bool,
}

impl Weights {
    /// All to the source.
    pub const SOURCE: Self = Self {
        target: 0,
        mirrored: false,
    };

    /// The target has so much.
    pub const fn to_target(target: u8) -> Self {
        Self {
            target,
            mirrored: false,
        }
    }

    /// The source's share.
    pub fn source(self) -> u8 {
        100_u8.saturating_sub(self.target)
    }

    /// Whether it has more for the target than another one.
    pub fn exposes_more_than(self, other: Self) -> bool {
        self.target > other.target || (self.mirrored && !other.mirrored)
    }
}

/// How ready one side is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Readiness {
    /// As many of its pods are available as have to be.
    Ready,
    /// Some are available, not enough, for this reason.
    Partly(String),
    /// None is, for this reason.
    Down(String),
    /// It does not get ready any more, for this reason: its deadline is over. None of its pods is available.
    Stuck(String),
    /// The same, where some are available.
    Stalled(String),
    /// It is not there.
    #[default]
    Missing,
}

impl Readiness {
    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// Whether none of its pods is available.
    pub fn is_down(&self) -> bool {
        matches!(self, Self::Down(_) | Self::Stuck(_) | Self::Missing)
    }

    /// Why it does not get ready any more, if it does not.
    pub fn given_up(&self) -> Option<&str> {
        match self {
            Self::Stuck(why) | Self::Stalled(why) => Some(why),
            _ => None,
        }
    }

    /// Why it is not ready.
    pub fn why(&self) -> &str {
        match self {
            Self::Ready => "it is ready",
            Self::Partly(why) | Self::Down(why) | Self::Stuck(why) | Self::Stalled(why) => why,
            Self::Missing => "it does not exist",
        }
    }
}

/// One side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// The version that its template is of; none if it is not there or nobody knows.
    pub revision: Option<Revision>,
    /// At which attempt it became of that version, where that is known to be the last one.
    pub attempt: Option<u32>,
    /// How many replicas are asked for now.
    pub size: u32,
    /// How many it has at least when it is not at zero.
    pub full: u32,
    /// How many it may have, where somebody sets bounds.
    pub most: Option<u32>,
    /// How ready it is.
    pub readiness: Readiness,
}

impl Side {
    /// This many, but no more than it may have.
    pub fn bounded(&self, size: u32) -> u32 {
        self.most.map_or(size, |most| size.min(most))
    }

    /// How ready it is to serve: without replicas nobody serves, whatever its controller says.
    pub fn state(&self) -> Readiness {
        let is_empty = self.size == 0 && self.readiness != Readiness::Missing;
        if is_empty {
            Readiness::Down("it has no replicas".to_owned())
        } else {
            self.readiness.clone()
        }
    }

    /// Whether it is ready and of this version.
    pub fn serves(&self, revision: Option<&Revision>) -> bool {
        let is_meant = self.revision.is_some() && self.revision.as_ref() == revision;
        is_meant && self.state().is_ready()
    }
}

/// What the routing object says, and what the data plane makes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// The weights in the object; none if it is not there, or not as it has to be.
    pub weights: Option<Weights>,
    /// Why the data plane has not taken them yet; none if it has.
    pub pending: Option<String>,
}

impl Routing {
    /// Whether traffic is divided so.
    pub fn is_at(&self, weights: Weights) -> bool {
        self.weights == Some(weights) && self.pending.is_none()
    }
}

/// All that is seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// What serves.
    pub source: Side,
    /// What is new. Its revision is what a person wants.
    pub target: Side,
    /// How traffic is divided.
    pub routing: Routing,
    /// What a person asked for last.
    pub command: Option<Command>,
    /// Since when the API refuses to make the source what it is to become.
    pub refused_since: Option<Timestamp>,
}
