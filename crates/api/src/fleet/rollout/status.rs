//! What a Rollout came to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::waiting::WaitingFor;

/// How many clusters a status names at most: those that are not as they should be first.
pub const MAX_CLUSTERS: usize = 1_000;
/// How many changes a status remembers.
pub const MAX_HISTORY: usize = 10;

/// Observed state of a Rollout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The generation of the spec that all of this is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling, Stalled, Progressing
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The revision of the template
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_revision: Option<String>,
    /// The last revision that proved itself: what newly selected clusters get while the target has not
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_revision: Option<String>,
    /// The change that is going on
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The clusters that came while a change was tried elsewhere: they got what had proved itself, and do not count before they are ready
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "set"))]
    pub joined: Vec<String>,
    /// How many clusters are how far
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// The clusters, by name. Of more than 1,000, those first that are not as they should be
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub clusters: Vec<ClusterStatus>,
    /// The clusters that were deselected within the last hour without a person's word: many of them are many at once
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub unassigned: Vec<Unassigned>,
    /// Why not more is done
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub waiting_for: Vec<WaitingFor>,
    /// The changes before, the latest first
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub history: Vec<PastRun>,
}

/// A cluster that was deselected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unassigned {
    /// Its name
    pub name: String,
    /// Since when
    pub since: Time,
}

/// A change that is going on: from when the template was changed until every cluster has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The revision of the template
    pub revision: String,
    /// When it began
    pub started: Time,
    /// The cluster that gets it first
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<String>,
    /// When that one was ready with it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_passed: Option<Time>,
    /// The clusters that were unready or unreachable when it began: they are left for later, and do not count
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub skipped: Vec<String>,
}

/// How many clusters are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All that are selected
    pub total: i64,
    /// Those whose assignment is of the target revision
    pub updated: i64,
    /// Those that are ready with it
    pub ready: i64,
    /// Those that count against `maxUnreadyClusters`
    pub unready: i64,
    /// Those where it failed
    pub failed: i64,
    /// Those that are left for later
    pub skipped: i64,
    /// Those that cannot get it: a binding has no value, or somebody else has taken the assignment over
    pub blocked: i64,
}

/// How far one cluster is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Its name
    pub name: String,
    /// Pending, Updating, Ready, Failed, Unready, Skipped, Blocked or Unassigning
    pub state: String,
    /// The revision that is assigned to it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// A word that programs can match on
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence for people
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when it is so
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// A change that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRun {
    /// The revision of the template
    pub revision: String,
    /// When it began
    pub started: Time,
    /// When it was over
    pub finished: Time,
    /// Succeeded, or Superseded by another change
    pub outcome: String,
    /// How many clusters were how far
    pub counts: Counts,
}
