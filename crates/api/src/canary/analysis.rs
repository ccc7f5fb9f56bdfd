//! `spec.analysis`: steps, checks and gates.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema;

/// Steps, checks and gates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// How often checks are made. Absent means 60s, and less than 10s means 10s
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::interval")]
    pub interval: Option<String>,
    /// How often checks are made before the version takes over, where traffic is not shifted by weight
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub iterations: Option<i64>,
    /// Copy traffic to the new version before it gets any
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub mirror: Option<bool>,
    /// How much traffic is copied, in percent; of Istio only
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub mirror_weight: Option<i64>,
    /// The weight from which on the version is promoted. Absent means 100, or the last of the steps
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub max_weight: Option<i64>,
    /// By how much the weight is raised at each step
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub step_weight: Option<i64>,
    /// The weight of each step
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::weights")]
    pub step_weights: Vec<i64>,
    /// By how much traffic is given back to the primary at each step of the promotion. Absent means all at once
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub step_weight_promotion: Option<i64>,
    /// How long the version stays at least at each step, in the order of the steps. Absent means one interval
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::intervals")]
    pub step_pauses: Vec<String>,
    /// How many failed checks send the version back
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub threshold: Option<i64>,
    /// How many percent of the primary's pods have to be available. Absent means 100
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub primary_ready_threshold: Option<i64>,
    /// How many percent of the new version's pods have to be available. Absent means 100
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub canary_ready_threshold: Option<i64>,
    /// Whom to tell
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Alert>,
    /// What is measured
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Whom to ask
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<Webhook>,
    /// Which requests the new version gets, where traffic is not shifted by weight
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list")]
    pub matching: Vec<Value>,
    /// Keep a client at the version that it has seen
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<SessionAffinity>")]
    pub session_affinity: Option<SessionAffinity>,
}

/// Whom to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    /// What it is called
    pub name: String,
    /// From which severity on: info, warn or error. Absent means info
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub severity: Option<String>,
    /// The `AlertProvider`
    pub provider_ref: ObjectReference,
}

/// An object, maybe of another namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Its name
    pub name: String,
    /// Its namespace. Absent means the Canary's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub namespace: Option<String>,
}

/// What is measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// What it is called: `request-success-rate` and `request-duration` are known
    pub name: String,
    /// Over which time it is measured. Absent means 1m
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::interval")]
    pub interval: Option<String>,
    /// The former way to say where it is good; `thresholdRange` is better
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub threshold: Option<f64>,
    /// Where it is good
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<ThresholdRange>")]
    pub threshold_range: Option<ThresholdRange>,
    /// A query
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub query: Option<String>,
    /// A `MetricTemplate`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<ObjectReference>")]
    pub template_ref: Option<ObjectReference>,
    /// What the template calls `variables`
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub template_variables: BTreeMap<String, String>,
    /// What is made of it that nothing was measured. Absent means fail
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<NoData>")]
    pub no_data: Option<NoData>,
    /// From how many samples on it counts as measured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<MinimumSamples>")]
    pub minimum_samples: Option<MinimumSamples>,
    /// How far it may be from what the serving version has
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<Baseline>")]
    pub baseline: Option<Baseline>,
    /// Measure and tell, and decide nothing by it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub dry_run: Option<bool>,
}

/// Where a measure is good: from the least to the most, both included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdRange {
    /// The least
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub min: Option<f64>,
    /// The most
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub max: Option<f64>,
}

/// What is made of it that nothing was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NoData {
    /// The version stays where it is, until the progress deadline.
    Hold,
    /// The check has failed.
    #[default]
    Fail,
    /// The check has passed.
    Pass,
}

/// From how many samples on something counts as measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinimumSamples {
    /// How many
    #[schemars(schema_with = "schema::fraction")]
    pub count: f64,
    /// The query that counts them
    pub query: String,
}

/// How far a measure may be from what the serving version has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// How much more it may be, in percent
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub max_increase_percent: Option<f64>,
    /// How much less it may be, in percent
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub max_decrease_percent: Option<f64>,
}

/// Whom to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// When it is asked. Absent means rollout
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub kind: Option<String>,
    /// What it is called
    pub name: String,
    /// Where it is
    pub url: String,
    /// How long it has to answer. Absent means 10s
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub timeout: Option<String>,
    /// How often it is asked again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub retries: Option<i64>,
    /// Do not verify its certificate
    #[serde(
        default,
        rename = "disableTLS",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::boolean")]
    pub disable_tls: Option<bool>,
    /// Send no alert when it refuses
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub mute_alert: Option<bool>,
    /// What is sent along
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// POST or GET. Absent means POST
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub method: Option<String>,
    /// The HTTP codes that mean yes. Absent means 200 to 299
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::codes")]
    pub expected_status: Vec<u16>,
    /// The Secret whose key `key` what is sent is signed with; it has to be in the Canary's own namespace
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<ObjectReference>")]
    pub signing: Option<ObjectReference>,
}

/// When a webhook is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookType {
    /// Before the new version is scaled up.
    ConfirmRollout,
    /// Before it gets traffic.
    PreRollout,
    /// At every check.
    Rollout,
    /// Before its weight is raised.
    ConfirmTrafficIncrease,
    /// Before it is promoted.
    ConfirmPromotion,
    /// After the end.
    PostRollout,
    /// At every check: a yes sends the version back.
    Rollback,
    /// At everything that is told.
    Event,
}

impl HookType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ConfirmRollout,
        Self::PreRollout,
        Self::Rollout,
        Self::ConfirmTrafficIncrease,
        Self::ConfirmPromotion,
        Self::PostRollout,
        Self::Rollback,
        Self::Event,
    ];

    /// As objects spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfirmRollout => "confirm-rollout",
            Self::PreRollout => "pre-rollout",
            Self::Rollout => "rollout",
            Self::ConfirmTrafficIncrease => "confirm-traffic-increase",
            Self::ConfirmPromotion => "confirm-promotion",
            Self::PostRollout => "post-rollout",
            Self::Rollback => "rollback",
            Self::Event => "event",
        }
    }

    /// The type of this name; where none is given, it is `rollout`.
    pub fn of(name: Option<&str>) -> Option<Self> {
        let name = name.filter(|name| !name.is_empty());
        let name = name.unwrap_or(Self::Rollout.as_str());
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Keep a client at the version that it has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAffinity {
    /// The cookie of those who have seen the new version
    pub cookie_name: String,
    /// The cookie of those who have seen the serving one. Absent means that they are not kept there
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub primary_cookie_name: Option<String>,
    /// How long the cookie is kept, in seconds. Absent means a day
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub max_age: Option<i64>,
    /// The cookie's domain
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub domain: Option<String>,
    /// Hide the cookie from scripts
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub http_only: Option<bool>,
    /// Keep the cookie apart for each top-level site
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub partitioned: Option<bool>,
    /// The cookie's path
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub path: Option<String>,
    /// Strict, Lax or None
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub same_site: Option<String>,
    /// Send the cookie over TLS only
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub secure: Option<bool>,
}
