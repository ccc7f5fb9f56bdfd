//! `Flipper`: which workloads are restarted how often.
//!
//! Group, version, kind and the fields `interval`, `match.labels` and `match.namespaces` are those of the controller
//! this replaces. Everything else is optional, and its absence means what the original does.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::waiting::WaitingFor;

/// A policy of periodic restarts.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flipper.io.github.com",
    version = "v1alpha1",
    kind = "Flipper",
    plural = "flippers",
    singular = "flipper",
    namespaced,
    status = "FlipperStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Interval","type":"string","jsonPath":".spec.interval"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Matched","type":"integer","jsonPath":".status.matched"}"#,
    printcolumn = r#"{"name":"Rolling","type":"integer","jsonPath":".status.inProgress"}"#,
    printcolumn = r#"{"name":"Last","type":"date","jsonPath":".status.lastRestart"}"#,
    printcolumn = r#"{"name":"Next","type":"string","jsonPath":".status.nextRestart"}"#,
    printcolumn = r#"{"name":"Waiting-For","type":"string","jsonPath":".status.waitingFor[0].reason"}"#,
    printcolumn = r#"{"name":"Suspended","type":"boolean","jsonPath":".spec.suspend","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.schedule) || !has(self.interval) || self.interval == duration('0s')")
        .message("set interval or schedule, not both")
)]
pub struct FlipperSpec {
    /// How long after its last restart a workload is restarted again: a Go duration (`90m`, `1h30m`) or days and weeks
    /// (`1d`, `2w`). Absent or zero means 10 minutes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub interval: Option<String>,
    /// Which workloads. Absent or empty means all
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Match>,
    /// Kinds of workloads. Absent means Deployments only
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub kinds: Vec<WorkloadKind>,
    /// Restart at the times of a cron expression instead of an interval after the last restart
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Restarts begin within one of these only. Absent means at any time
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub windows: Vec<Window>,
    /// Days (`2026-12-24`) on which no restart begins, in the time zone of the window or schedule, else in UTC
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "dates_schema")]
    pub exclude_dates: Vec<String>,
    /// Spreads restarts: each workload has a fixed offset of less than this after it is due
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub jitter: Option<String>,
    /// How many workloads of this policy may be rolling at once. Absent means any number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrent: Option<i32>,
    /// What to do with a workload that is due in the middle of a rollout. Absent means Wait
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_rollout_in_progress: Option<WhenRolloutInProgress>,
    /// Wait while a pod disruption budget over the workload's pods allows no disruption
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub respect_pod_disruption_budgets: Option<bool>,
    /// Decide and report, and restart nothing
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Restart nothing until this is taken back
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
}

/// Which workloads a policy is about: labels and namespaces must both fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// At least one of these labels is on the workload itself. Empty means any workload
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The workload is in one of these namespaces. Empty means any
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// A kind of workload that can be restarted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum WorkloadKind {
    /// apps/v1 Deployment.
    Deployment,
    /// apps/v1 `StatefulSet`.
    StatefulSet,
    /// apps/v1 `DaemonSet`.
    DaemonSet,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet];
}

/// How many workloads a status names at most; the others are only counted.
pub const MAX_LISTED: usize = 20;

/// When restarts are due, as a cron expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Minute, hour, day of month, month, day of week: `0 3 * * 1-5`, or `@daily` and its like
    #[schemars(length(min = 1, max = 128))]
    pub cron: String,
    /// An IANA name (`Europe/Berlin`). Absent means UTC
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// A time in which restarts may begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When it opens: a cron expression
    #[schemars(length(min = 1, max = 128))]
    pub cron: String,
    /// How long it stays open
    #[schemars(schema_with = "duration_schema")]
    pub duration: String,
    /// An IANA name (`Europe/Berlin`). Absent means UTC
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// What to do with a workload that is due in the middle of a rollout. Absent means Wait
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenRolloutInProgress {
    /// Wait until it is done.
    #[default]
    Wait,
    /// Restart all the same.
    Ignore,
}

/// Observed state of the policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlipperStatus {
    /// The generation of the spec that all of this is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling, Stalled, Progressing, Accepted, Overlaps
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many workloads this policy decides about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<i64>,
    /// The first 20 of them, by kind, namespace and name: `Deployment default/web`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub workloads: Vec<String>,
    /// In a dry run: the first 20 workloads that would be restarted, now or for the first time
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub would_restart: Vec<String>,
    /// Workloads that are due and wait
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<i64>,
    /// Workloads that are rolling now
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<i64>,
    /// Workloads that are left alone: opted out, paused, without replicas, being deleted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<i64>,
    /// When a workload of this policy was last restarted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_restart: Option<Time>,
    /// When the next one is due
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_restart: Option<Time>,
    /// Why workloads that are due wait
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub waiting_for: Vec<WaitingFor>,
    /// The restarts that failed last
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub failures: Vec<Failure>,
}

/// A restart that the API refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// `Kind namespace/name`
    pub workload: String,
    /// The API's reason
    pub reason: String,
    /// What the API said
    pub message: String,
    /// How often it was tried
    pub attempts: i64,
    /// When it is tried again
    pub retry_at: Time,
}

/// What the API server takes as a duration: its own `format`, with the signs and fractions left out that would only be
/// found wrong later.
fn duration_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "format": "duration",
        "maxLength": 64,
        "pattern": DURATION_PATTERN,
    })
}

/// Dates as ISO 8601 writes them.
fn dates_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": 366,
        "items": {"type": "string", "maxLength": 10, "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    })
}

/// A Go duration without sign; days and weeks are whole.
const DURATION_PATTERN: &str = "^(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+) ?(ns|us|µs|μs|ms|s|m|h) ?|[0-9]+ ?(d|w|day|days|week|weeks) ?)+)$";

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    // The original accepts an object without a spec, so this does too.
    let definition = crate::crds::observed(Flipper::crd(), DESCRIPTION);
    crate::crds::lenient(definition, DESCRIPTION)
}

const DESCRIPTION: &str = "Which workloads are restarted how often";

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::panic,
        reason = "tests"
    )]

    use serde_json::{Value, json};

    use super::{Flipper, definition};

    fn schema() -> Value {
        let definition = serde_json::to_value(definition()).unwrap();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    #[test]
    fn names_scope_and_subresource_are_the_originals() {
        let crd = serde_json::to_value(definition()).unwrap();
        assert_eq!(crd["metadata"]["name"], "flippers.flipper.io.github.com");
        assert_eq!(crd["spec"]["group"], "flipper.io.github.com");
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        let names = &crd["spec"]["names"];
        assert_eq!(names["kind"], "Flipper");
        assert_eq!(names["plural"], "flippers");
        assert_eq!(names["singular"], "flipper");
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let [version] = versions.as_slice() else {
            panic!("one version, but {versions:?}");
        };
        assert_eq!(version["name"], "v1alpha1");
        assert_eq!(version["served"], true);
        assert_eq!(version["storage"], true);
        assert_eq!(version["subresources"], json!({"status": {}}));
    }

    #[test]
    fn nothing_is_required_of_what_people_have() {
        let schema = schema();
        assert_eq!(schema["required"], Value::Null);
        let spec = &schema["properties"]["spec"];
        assert_eq!(spec["required"], Value::Null);
        assert_eq!(spec["properties"]["match"]["required"], Value::Null);
        let conditions = &schema["properties"]["status"]["properties"]["conditions"];
        assert_eq!(conditions["x-kubernetes-list-type"], "map");
        assert_eq!(
            schema["properties"]["status"]["default"],
            json!({"observedGeneration": -1})
        );
    }

    #[test]
    fn an_object_of_a_go_client_is_read_and_written_alike() {
        let object = json!({
            "apiVersion": "flipper.io.github.com/v1alpha1", "kind": "Flipper",
            "metadata": {"name": "f", "namespace": "default"},
            "spec": {"interval": "0s", "match": {"labels": {"mesh": "true"}, "namespaces": ["inventory"]}},
        });
        let read: Flipper = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), object);
    }

    #[test]
    fn every_field_tells_what_it_is() {
        fn check(path: &str, schema: &Value) {
            let fields = schema["properties"].as_object();
            for (name, field) in fields.into_iter().flatten() {
                let path = format!("{path}.{name}");
                assert!(
                    field["description"].is_string(),
                    "{path} has no description"
                );
                check(&path, field);
                check(&path, &field["items"]);
            }
        }
        check("spec", &schema()["properties"]["spec"]);
    }
}
