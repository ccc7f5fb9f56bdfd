//! What a run remembers. All of it is in the Canary's status.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_api::canary::Phase;

use super::sight::Weights;

/// A version of a workload: its template, and what it is configured with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revision {
    /// The hash of its template.
    pub template: String,
    /// Checksums of its `ConfigMap`s and Secrets; none where they are not tracked.
    pub configs: Option<BTreeMap<String, String>>,
}

/// What a run remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, which is set and cleared at other times"
)]
pub struct Run {
    /// Where it is.
    pub phase: Phase,
    /// The version that was promoted last.
    pub serving: Option<Revision>,
    /// The version that is tried, or was tried last.
    pub target: Option<Revision>,
    /// How often this version was tried again.
    pub attempt: u32,
    /// How much of the traffic the target is to have, in percent. With a match: of the requests that match.
    pub weight: u8,
    /// Whether that weight is of the requests that match.
    pub matching: bool,
    /// Whether traffic is to be copied to the target.
    pub mirrored: bool,
    /// How many checks have been made, where traffic is not shifted by weight.
    pub iterations: u32,
    /// How many have failed.
    pub failed_checks: u32,
    /// Whether what is asked before any traffic has said yes.
    pub prepared: bool,
    /// Whether the version is promoted without further analysis.
    pub skip: bool,
    /// Whether the end has yet to be told to those who want to know it.
    pub closing: bool,
    /// Whether the target is to be scaled down, which is not fought for once it is done.
    pub draining: bool,
    /// Who has paused it, and why.
    pub paused: Option<String>,
    /// Since when nothing is done because somebody asked for that.
    pub stopped_since: Option<Timestamp>,
    /// What shifts its traffic, by the name that its rules have for it.
    pub router: Option<String>,
    /// What it is about, by the names that its rules have for it.
    pub places: BTreeMap<String, String>,
    /// How many replicas the weight divides, where their numbers are the weights. Kept until the source has as many again.
    pub replicas: Option<u32>,
    /// Since when the target, which is to be scaled down, has no traffic any more.
    pub free_since: Option<Timestamp>,
    /// When the next check is due.
    pub due: Option<Timestamp>,
    /// Since when it is at this step.
    pub step_since: Option<Timestamp>,
    /// Since when it has made no progress.
    pub held_since: Option<Timestamp>,
    /// Since when a measure has had no values.
    pub unmeasured_since: Option<Timestamp>,
    /// The webhook that does not let the weight be raised.
    pub gate: Option<String>,
    /// The command that was followed last.
    pub command: Option<String>,
    /// How many runs there have been of each end, way and kind of analysis: `succeeded/canary/completed`.
    pub ends: BTreeMap<String, u32>,
}

impl Run {
    /// The weights that it asks for.
    pub fn weights(&self) -> Weights {
        Weights {
            target: self.weight.min(100),
            mirrored: self.mirrored,
        }
    }

    /// Whether the target has got requests of any kind, so that there is something to measure.
    pub fn is_exposed(&self) -> bool {
        self.weight > 0 || self.iterations > 0 || self.mirrored
    }

    /// Whether the target is another version than the one that serves.
    pub fn is_new(&self) -> bool {
        self.target.is_some() && self.target != self.serving
    }
}
