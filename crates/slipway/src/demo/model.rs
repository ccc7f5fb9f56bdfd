//! What the demo's picture shows, as values. Made from snapshots of the clusters by [`super::gather`], drawn by
//! [`super::render`] and told by [`super::changes`]; nothing here looks anywhere.

use jiff::Timestamp;

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

/// One cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cluster {
    /// Its name.
    pub(crate) name: String,
    /// Nodes that are ready, of all.
    pub(crate) nodes: (usize, usize),
    /// Its namespaces with something to show, by name.
    pub(crate) namespaces: Vec<Namespace>,
    /// Why workloads wait, oldest first.
    pub(crate) waiting: Vec<Waiting>,
    /// What was told, oldest first.
    pub(crate) events: Vec<Told>,
}

/// One namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Namespace {
    /// Its name.
    pub(crate) name: String,
    /// Its restart policies, by name.
    pub(crate) policies: Vec<Policy>,
    /// Its rollout groups, by name.
    pub(crate) groups: Vec<Group>,
    /// Its workloads, by kind and name.
    pub(crate) workloads: Vec<Workload>,
}

/// A rollout group: zones that are rolled one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Group {
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) state: State,
    /// In a word.
    pub(crate) word: String,
    /// Pods that are up to date, of all.
    pub(crate) progress: (i64, i64),
    /// What there is to say.
    pub(crate) info: String,
    /// The names of its `StatefulSet`s.
    pub(crate) zones: Vec<String>,
}

impl Group {
    /// Whether a workload is one of its zones.
    pub(crate) fn has(&self, workload: &Workload) -> bool {
        workload.kind == "StatefulSet" && self.zones.contains(&workload.name)
    }
}

/// How something is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// As it should be.
    Good,
    /// Nothing to say.
    #[default]
    Idle,
    /// Held by somebody.
    Paused,
    /// On its way.
    Busy,
    /// Waits for something.
    Waiting,
    /// Somebody should look.
    Warning,
    /// Broken.
    Bad,
}

/// A Flipper, or the default criteria.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Policy {
    /// Its kind; empty for the default criteria.
    pub(crate) kind: &'static str,
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) state: State,
    /// In a word.
    pub(crate) word: String,
    /// How often or when it restarts.
    pub(crate) rhythm: String,
    /// How many workloads it decides about.
    pub(crate) matched: i64,
    /// How many of them are rolling.
    pub(crate) rolling: i64,
    /// How many are due and wait.
    pub(crate) pending: i64,
    /// When the next restart is due.
    pub(crate) next: Option<Timestamp>,
    /// What is wrong with it, if something is.
    pub(crate) problem: String,
    /// Whether it only says what it would do.
    pub(crate) dry_run: bool,
}

/// A Deployment, `StatefulSet` or `DaemonSet`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Workload {
    /// Its kind.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) state: State,
    /// In a word.
    pub(crate) word: String,
    /// Pods of the newest revision that are available, of those wanted.
    pub(crate) progress: (i64, i64),
    /// What there is to say: what a zone waits for.
    pub(crate) info: String,
    /// When it was last restarted.
    pub(crate) restarted: Option<Timestamp>,
    /// Its pods by revision, newest first.
    pub(crate) revisions: Vec<Revision>,
}

/// The pods of one revision of a workload.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Revision {
    /// The `ReplicaSet`'s name, or the revision's.
    pub(crate) name: String,
    /// Its number; 0 if it has none.
    pub(crate) number: i64,
    /// The pods by name.
    pub(crate) pods: Vec<Pod>,
}

/// One pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pod {
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) state: State,
    /// In a word.
    pub(crate) word: String,
    /// How often its containers were restarted.
    pub(crate) restarts: i64,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
}

/// Why something waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    /// Since when.
    pub(crate) since: Timestamp,
    /// Who says so: `Flipper shop/nightly`.
    pub(crate) by: String,
    /// A word that programs match on.
    pub(crate) reason: String,
    /// What is waited for: `Deployment shop/web`.
    pub(crate) object: String,
    /// A sentence.
    pub(crate) message: String,
    /// When it ends by itself.
    pub(crate) until: Option<Timestamp>,
    /// Who or what can end it before.
    pub(crate) unblock: String,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Told {
    /// When.
    pub(crate) at: Timestamp,
    /// About what: `Deployment shop/web`.
    pub(crate) about: String,
    /// A word.
    pub(crate) reason: String,
    /// A sentence.
    pub(crate) note: String,
    /// Whether somebody should look.
    pub(crate) warning: bool,
    /// How often.
    pub(crate) count: i64,
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
