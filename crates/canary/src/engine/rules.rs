//! What a person asked for, as numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_api::canary::{HookType, Phase};

use super::judge::Measure;

/// How a version proves itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// It gets more and more of the traffic: canary. Each weight is higher than the one before, the last is where it is
    /// promoted; there is at least one.
    Weights(Vec<u8>),
    /// It gets all requests of a kind for so many checks: A/B.
    Matching(u32),
    /// It is checked so often beside the traffic, then gets all of it where traffic can be shifted: Blue/Green.
    Switch(u32),
}

/// Which of these strategies it is, whatever else is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// [`Strategy::Weights`].
    Weights,
    /// [`Strategy::Matching`].
    Matching,
    /// [`Strategy::Switch`].
    Switch,
}

impl Way {
    /// As metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weights => "canary",
            Self::Matching => "ab-testing",
            Self::Switch => "blue-green",
        }
    }
}

impl Strategy {
    /// Which one it is.
    pub fn way(&self) -> Way {
        match self {
            Self::Weights(_) => Way::Weights,
            Self::Matching(_) => Way::Matching,
            Self::Switch(_) => Way::Switch,
        }
    }

    /// As metrics name it.
    pub fn as_str(&self) -> &'static str {
        self.way().as_str()
    }
}

/// What shifts traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// Nothing does: the target never has live traffic.
    Nothing,
    /// A router.
    Router,
    /// The numbers of replicas: the weight divides as many as the source had when the run began.
    Replicas,
}

/// How a version takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The source becomes what the target is, and gets the traffic back.
    IntoSource,
    /// The target keeps the traffic, and the source goes to zero.
    OntoTarget,
}

/// A webhook that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// What it is called.
    pub name: String,
    /// When it is asked.
    pub kind: HookType,
    /// Whether its refusal is worth no alert.
    pub mute: bool,
}

/// All that a person asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// How often checks are made.
    pub interval: Duration,
    /// How long all questions of one check may take together.
    pub patience: Duration,
    /// How many failed checks send the version back; at least one.
    pub threshold: u32,
    /// For how long a run may make no progress.
    pub deadline: Duration,
    /// How the version proves itself.
    pub strategy: Strategy,
    /// Whether it gets copies of the traffic first.
    pub mirror: bool,
    /// By how much the weight goes back at each step of the promotion; 0 for all at once.
    pub promotion_step: u8,
    /// How long each step lasts at least, in their order.
    pub pauses: Vec<Duration>,
    /// Whether there is no analysis.
    pub skip: bool,
    /// Whether nothing is done.
    pub suspend: bool,
    /// Whom to ask.
    pub hooks: Vec<Hook>,
    /// What is measured.
    pub metrics: Vec<Measure>,
    /// What shifts traffic.
    pub shift: Shift,
    /// What that is called: a run remembers it.
    pub router: String,
    /// What a run is about, by name: a run remembers it.
    pub places: BTreeMap<String, String>,
    /// How long a data plane that says nothing has to take weights before pods go that had a share.
    pub grace: Duration,
    /// How long those who call the Service itself have to be led to what serves, when that is made.
    pub first_grace: Duration,
    /// How the version takes over.
    pub finish: Finish,
}

impl Rules {
    /// Whether there is a webhook of this type.
    pub fn has(&self, kind: HookType) -> bool {
        self.hooks.iter().any(|hook| hook.kind == kind)
    }

    /// Whether the target gets those requests that match, and no others.
    pub fn is_matching(&self) -> bool {
        matches!(self.strategy, Strategy::Matching(_))
    }

    /// How long to wait in a phase before a target without traffic is scaled down. Where it never has any, that is only
    /// where it had all of it before.
    pub fn grace_in(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Initializing => self.grace.max(self.first_grace),
            _ if self.is_live() => self.grace,
            _ => Duration::ZERO,
        }
    }

    /// Whether the target can get live traffic.
    pub fn is_live(&self) -> bool {
        self.shift != Shift::Nothing
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(1),
            patience: Duration::ZERO,
            threshold: 1,
            deadline: Duration::from_mins(10),
            strategy: Strategy::Weights(vec![100]),
            mirror: false,
            promotion_step: 0,
            pauses: Vec::new(),
            skip: false,
            suspend: false,
            hooks: Vec::new(),
            metrics: Vec::new(),
            shift: Shift::Router,
            router: String::new(),
            places: BTreeMap::new(),
            grace: Duration::ZERO,
            first_grace: Duration::ZERO,
            finish: Finish::IntoSource,
        }
    }
}
