//! `status`: where a run is.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::waiting::WaitingFor;

/// Where a run is. All but `waitingFor`, `run`, `checks` and `observedGeneration` are the original's fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// Where the run is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub phase: Option<String>,
    /// How many checks have failed in this run
    #[serde(default)]
    #[schemars(schema_with = "schema::number")]
    pub failed_checks: i64,
    /// How much of the traffic the new version gets, in percent
    #[serde(default)]
    #[schemars(schema_with = "schema::number")]
    pub canary_weight: i64,
    /// How many checks have been made, where traffic is not shifted by weight
    #[serde(default)]
    #[schemars(schema_with = "schema::number")]
    pub iterations: i64,
    /// The cookie of the run before, which clients are told to forget
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub previous_session_affinity_cookie: Option<String>,
    /// The cookie of those who have seen the new version
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub session_affinity_cookie: Option<String>,
    /// The cookie of those who have seen the serving version
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub primary_session_affinity_cookie: Option<String>,
    /// Checksums of the `ConfigMap`s and Secrets that the version uses: `configmap/NAME`, `secret/NAME`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::texts")]
    pub tracked_configs: Option<BTreeMap<String, String>>,
    /// The version that was tried last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub last_applied_spec: Option<String>,
    /// The version that was promoted last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub last_promoted_spec: Option<String>,
    /// When something changed last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Option<Time>,
    /// Promoted
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<CanaryCondition>,
    /// The generation of the spec that all of this is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub observed_generation: Option<i64>,
    /// Why nothing, or not more, happens
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub waiting_for: Vec<WaitingFor>,
    /// What was measured and answered last
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub checks: Vec<CheckStatus>,
    /// What has yet to be told to those who want to know it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub untold: Vec<Untold>,
    /// What else the run has to remember
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<RunStatus>")]
    pub run: Option<RunStatus>,
}

/// What a run remembers besides the original's fields. Absent, as another program leaves it, means the default of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and people read them by name"
)]
pub struct RunStatus {
    /// How often this version was tried again
    #[serde(default)]
    #[schemars(schema_with = "schema::number")]
    pub attempt: i64,
    /// Whether traffic is copied to the new version
    #[serde(default)]
    pub mirrored: bool,
    /// Whether the weight is of the requests that match
    #[serde(default)]
    pub matching: bool,
    /// Whether what is asked before any traffic has said yes
    #[serde(default)]
    pub prepared: bool,
    /// Whether the version is promoted without further analysis
    #[serde(default)]
    pub skip: bool,
    /// Whether the end has yet to be told to those who want to know it
    #[serde(default)]
    pub closing: bool,
    /// Whether the new version is yet to be scaled down
    #[serde(default)]
    pub draining: bool,
    /// Who has paused the run, and why
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub paused: Option<String>,
    /// Since when nothing is done because somebody asked for that
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub stopped_since: Option<Time>,
    /// What shifts the traffic of the run; a change of spec.provider counts from the next one on
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub provider: Option<String>,
    /// What the run is about, by name: its workload, its Service, a route or Ingress of a person's own; a change of these in the
    /// spec counts from the next run on
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub places: BTreeMap<String, String>,
    /// How many replicas the weight divides, where their numbers are the weights; kept until the serving version has as many again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub replicas: Option<i64>,
    /// Since when the new version, which is to be scaled down, has no traffic any more
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub free_since: Option<Time>,
    /// When the next check is due
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub due: Option<Time>,
    /// When the run began to be at its present step
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub step_since: Option<Time>,
    /// Since when the run has made no progress: the progress deadline counts from here
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub held_since: Option<Time>,
    /// Since when a measure has had no values
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub unmeasured_since: Option<Time>,
    /// Checksums of the `ConfigMap`s and Secrets of the version that was promoted last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::texts")]
    pub promoted_configs: Option<BTreeMap<String, String>>,
    /// The webhook that does not let the weight be raised
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub gate: Option<String>,
    /// The command that was followed last
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub command: Option<String>,
    /// How many runs there have been of each end, way and kind of analysis: `succeeded/canary/completed`
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<String, i64>,
}

/// Something that has yet to be told to alert providers and webhooks of type `event`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Untold {
    /// What happened
    pub text: String,
    /// Whether it is bad
    #[serde(default)]
    pub is_warning: bool,
    /// How loud its alert is: info, warn or error. Absent means that it is worth none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub level: Option<String>,
    /// The phase of the run then
    pub phase: String,
    /// What webhooks know the version by
    pub checksum: String,
    /// When
    #[schemars(schema_with = "schema::time")]
    pub at: Time,
}

/// What a check said last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckStatus {
    /// What it is called
    pub name: String,
    /// Passed, Failed, Held or Reported
    pub verdict: String,
    /// What was measured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub value: Option<f64>,
    /// What there is to say
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub message: Option<String>,
    /// When
    #[schemars(schema_with = "schema::time")]
    pub at: Time,
}

/// A condition as the original writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryCondition {
    /// Promoted
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown
    pub status: String,
    /// When it was last written
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_update_time: Option<Time>,
    /// When its status last changed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Option<Time>,
    /// The phase
    #[serde(default)]
    pub reason: String,
    /// A sentence
    #[serde(default)]
    pub message: String,
}

/// Where a run is, in the original's spelling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// What serves is being made.
    #[default]
    Initializing,
    /// There is a serving version, and nothing to do.
    Initialized,
    /// A new version waits for leave to begin.
    Waiting,
    /// A new version is analysed.
    Progressing,
    /// A new version has done well, and waits for leave to take over.
    WaitingPromotion,
    /// A new version takes over.
    Promoting,
    /// Traffic has moved, and what is not needed any more is put away.
    Finalising,
    /// The new version serves.
    Succeeded,
    /// The new version was sent back.
    Failed,
    /// The object is being deleted, and the workload given back.
    Terminating,
    /// The workload was given back.
    Terminated,
}

impl Phase {
    /// Whether a version is being tried, or takes over.
    pub const fn is_running(self) -> bool {
        matches!(
            self,
            Self::Progressing | Self::WaitingPromotion | Self::Promoting | Self::Finalising
        )
    }

    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Initializing,
        Self::Initialized,
        Self::Waiting,
        Self::Progressing,
        Self::WaitingPromotion,
        Self::Promoting,
        Self::Finalising,
        Self::Succeeded,
        Self::Failed,
        Self::Terminating,
        Self::Terminated,
    ];

    /// As statuses, events and webhooks spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "Initializing",
            Self::Initialized => "Initialized",
            Self::Waiting => "Waiting",
            Self::Progressing => "Progressing",
            Self::WaitingPromotion => "WaitingPromotion",
            Self::Promoting => "Promoting",
            Self::Finalising => "Finalising",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Terminated => "Terminated",
        }
    }

    /// The phase of this name; the first one if there is none.
    pub fn of(name: Option<&str>) -> Self {
        let known = Self::ALL
            .into_iter()
            .find(|phase| Some(phase.as_str()) == name);
        known.unwrap_or_default()
    }

    /// The status of the condition `Promoted` in this phase.
    pub const fn promoted(self) -> &'static str {
        match self {
            Self::Initialized | Self::Succeeded => "True",
            Self::Failed => "False",
            _ => "Unknown",
        }
    }
}
