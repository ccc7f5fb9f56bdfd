//! What the demo's picture shows, as values: the clusters ([`crate::model`]), and the world around them. Drawn by
//! [`super::render`] and told by [`super::changes`]; nothing here looks anywhere.

use jiff::Timestamp;

use crate::model::{Cluster, State};

/// Everything that one frame shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Model {
    /// The time in the simulated world.
    pub(crate) now: Timestamp,
    /// When that world began.
    pub(crate) began: Timestamp,
    /// How its time goes by.
    pub(crate) pace: Pace,
    /// The scenario's name.
    pub(crate) scenario: String,
    /// What it is about.
    pub(crate) about: String,
    /// The random seed.
    pub(crate) seed: u64,
    /// What to set KUBECONFIG to.
    pub(crate) kubeconfig: String,
    /// The clusters, in the scenario's order.
    pub(crate) clusters: Vec<Cluster>,
    /// What the scenario's people will do next, and when.
    pub(crate) next_action: Option<(Timestamp, String)>,
    /// When the scenario is over; after that the world goes on.
    pub(crate) ends: Option<Timestamp>,
    /// What the oracles say, if they have been asked.
    pub(crate) verdicts: Vec<Verdict>,
}

/// How virtual time goes by.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pace {
    /// Virtual seconds a second.
    pub(crate) speed: f64,
    /// Whether the speed follows what happens.
    pub(crate) automatic: bool,
    /// Whether it stands still.
    pub(crate) paused: bool,
}

/// What an oracle says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Its short name.
    pub(crate) oracle: String,
    /// What must be true.
    pub(crate) what: String,
    /// How often there was something to look at.
    pub(crate) checked: u64,
    /// When and how it was not true.
    pub(crate) violations: Vec<String>,
}

impl Verdict {
    /// Whether there was anything to judge: an oracle about zones has nothing to say of a run without.
    pub(crate) fn is_asked(&self) -> bool {
        self.checked > 0 || !self.violations.is_empty()
    }
}

impl From<&slipway_sim::oracles::Verdict> for Verdict {
    fn from(verdict: &slipway_sim::oracles::Verdict) -> Self {
        let violations = verdict.findings.violations.iter();
        Self {
            oracle: verdict.id.to_owned(),
            what: verdict.what.to_owned(),
            checked: verdict.findings.checked,
            violations: violations
                .map(|violation| format!("{} {}", violation.at, violation.text))
                .collect(),
        }
    }
}

impl Model {
    /// Whether something moves that one wants to watch.
    pub(crate) fn is_lively(&self) -> bool {
        self.clusters
            .iter()
            .flat_map(|cluster| &cluster.namespaces)
            .flat_map(|namespace| &namespace.workloads)
            .any(|workload| workload.state == State::Busy)
    }
}
