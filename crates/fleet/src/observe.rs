//! What a rollout depends on, as plain values: the Rollout, its revisions, and every cluster that it selects or has
//! assigned something to.
//!
//! Nothing here fails: what is wrong with an object is kept beside the rest of it, so that it is told on that object and
//! stops no other.

pub mod assemblage;
pub mod cluster;
pub mod elements;
pub mod gather;
pub mod kept;
pub mod reference;
pub mod rollout;
pub mod seen;
pub mod spelled;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use slipway_api::fleet::assemblage::SyncState;

pub use rollout::{Rollout, Strategy, Wanted};

/// All that the plan of one Rollout depends on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct World {
    /// The Rollout.
    pub rollout: Rollout,
    /// The revisions of it that are kept, by name: when each was made.
    #[serde(default)]
    pub revisions: BTreeMap<String, Timestamp>,
    /// The clusters that are selected, or have an assignment of this Rollout's name, by name.
    #[serde(default)]
    pub clusters: BTreeMap<String, Cluster>,
    /// The revisions of it that are named elsewhere, by whomever: they are not retired.
    #[serde(default)]
    pub named: BTreeSet<String>,
    /// Whether there may be clusters that we have no right to see.
    #[serde(default)]
    pub is_blind: bool,
    /// Whether the API does not keep who came lately, because the definition of Rollouts is older than that.
    #[serde(default)]
    pub forgets_who_came: bool,
}

/// A cluster, as far as one Rollout is concerned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Cluster {
    /// Whether the Rollout selects it.
    pub is_selected: bool,
    /// Whether it is being deleted: all that is assigned to it goes with it.
    pub is_deleting: bool,
    /// Whether its control plane has been there: before that nothing is assigned to it.
    pub is_initialized: bool,
    /// Whether it can be reached now.
    pub is_reachable: bool,
    /// Why not, as far as that is known.
    pub away: Option<String>,
    /// Whether it has been looked at since we began: before, what is known of it is what was told then.
    pub is_seen: bool,
    /// The revision of the assignment that it should have: of the template and of its values.
    pub wanted: Revision,
    /// The same for the last template that proved itself, where that is another one.
    pub stable: Option<Revision>,
    /// What is assigned to it under the Rollout's name.
    pub entry: Option<Entry>,
    /// Why the API does not let us write its assignments, if it does not.
    pub refused: Option<Refused>,
}

/// What the API said when it refused to have an assignment written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refused {
    /// What it said.
    pub message: String,
    /// When it is tried again.
    pub retry_at: Timestamp,
}

impl Cluster {
    /// Why it cannot be reached, to be put after that it cannot.
    pub(crate) fn because(&self) -> String {
        let away = self.away.as_ref().filter(|away| !away.is_empty());
        away.map(|away| format!(" ({away})")).unwrap_or_default()
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            is_selected: true,
            is_deleting: false,
            is_initialized: true,
            is_reachable: true,
            away: None,
            is_seen: true,
            wanted: Revision::Known(String::new()),
            stable: None,
            entry: None,
            refused: None,
        }
    }
}

/// A revision of an assignment, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Revision {
    /// This one.
    Known(String),
    /// It cannot be computed for this cluster.
    Blocked {
        /// A word that programs can match on; see [`crate::reasons::Reason`].
        reason: String,
        /// A sentence for people.
        message: String,
    },
}

impl Revision {
    /// The revision, if it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(revision) => Some(revision),
            Self::Blocked { .. } => None,
        }
    }
}

/// An assignment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Whether this Rollout made it: what others made is left alone.
    #[serde(default = "yes")]
    pub is_ours: bool,
    /// Its revision.
    #[serde(default)]
    pub revision: Option<String>,
    /// How far the cluster is with it.
    #[serde(default)]
    pub status: Option<EntryStatus>,
}

fn yes() -> bool {
    true
}

/// How far a cluster is with an assignment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryStatus {
    /// The revision that this is about.
    #[serde(default)]
    pub observed: Option<String>,
    /// How far it is.
    pub state: SyncState,
    /// A word that programs can match on.
    #[serde(default)]
    pub reason: Option<String>,
    /// A sentence for people.
    #[serde(default)]
    pub message: Option<String>,
    /// Since when it is so.
    #[serde(default)]
    pub since: Option<Timestamp>,
}

impl Entry {
    /// Whether the cluster has exactly this, and it is healthy.
    pub fn is_ready(&self) -> bool {
        self.ready_since().is_some()
    }

    /// Since when the cluster has exactly this, and it is healthy: at a time that nobody knows, since ever.
    pub fn ready_since(&self) -> Option<Timestamp> {
        let status = self.status.as_ref()?;
        let is_this = self.revision.is_some() && status.observed == self.revision;
        let is_ready = is_this && status.state == SyncState::Succeeded;
        is_ready.then(|| status.since.unwrap_or(Timestamp::MIN))
    }

    /// Whether the cluster has exactly this, and it failed.
    pub fn has_failed(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| {
            status.observed == self.revision
                && matches!(status.state, SyncState::Failed | SyncState::Blocked)
        })
    }
}
