//! `ZoneAwarePodDisruptionBudget`: how many pods of one zone, or of one partition over all zones, may be away at once.
//!
//! Names and fields are those of the operator this replaces. Its schema has no status fields; here it has, all optional:
//! an object of the one is an object of the other.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API group of this kind and of `ReplicaTemplate`.
pub const GROUP: &str = "rollout-operator.grafana.com";

/// The kind's name.
pub const KIND: &str = "ZoneAwarePodDisruptionBudget";

/// A disruption budget that knows of zones.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "rollout-operator.grafana.com",
    version = "v1",
    kind = "ZoneAwarePodDisruptionBudget",
    plural = "zoneawarepoddisruptionbudgets",
    singular = "zoneawarepoddisruptionbudget",
    shortname = "zpdb",
    namespaced,
    status = "ZoneAwarePodDisruptionBudgetStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ZoneAwarePodDisruptionBudgetSpec {
    /// How many pods may be unavailable within a zone, or within a partition. Absent, as the percentage: 1
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable")]
    pub max_unavailable: Option<i64>,
    /// How many percent of a zone's pods may be unavailable; not with a partition
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "percentage")]
    pub max_unavailable_percentage: Option<i64>,
    /// Which pods, and which `StatefulSets` are their zones
    pub selector: Selector,
    /// What of a pod's name is its partition; absent, budgets are counted by zone
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "plain_text")]
    pub pod_name_partition_regex: Option<String>,
    /// Which group of the regular expression is the partition. Absent: the first
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "regex_group")]
    pub pod_name_regex_group: Option<i64>,
    /// How long a pod must have been ready until one of its partition in another zone may go: a Go duration
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "plain_text")]
    pub cross_zone_eviction_delay: Option<String>,
}

/// Which objects a budget is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// All of these labels are on the object. Empty means any object
    pub match_labels: BTreeMap<String, String>,
}

fn max_unavailable(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "minimum": 0})
}

fn percentage(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "minimum": 0, "maximum": 100})
}

fn regex_group(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "minimum": 1})
}

fn plain_text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string"})
}

/// Observed state of the budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZoneAwarePodDisruptionBudgetStatus {
    /// The generation of the spec that all of this is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Accepted: whether the spec makes sense
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::lenient(
        ZoneAwarePodDisruptionBudget::crd(),
        "How many pods of a zone or partition may be away at once",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::{Value, json};

    use super::definition;

    #[test]
    fn the_definition_is_the_originals_with_a_status() {
        let crd = serde_json::to_value(definition()).unwrap();
        assert_eq!(
            crd["metadata"]["name"],
            "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com"
        );
        assert_eq!(crd["spec"]["group"], super::GROUP);
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        let names = &crd["spec"]["names"];
        assert_eq!(names["kind"], super::KIND);
        assert_eq!(names["plural"], "zoneawarepoddisruptionbudgets");
        assert_eq!(names["singular"], "zoneawarepoddisruptionbudget");
        assert_eq!(names["shortNames"], json!(["zpdb"]));
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["name"], "v1");
        assert_eq!(version["subresources"], json!({"status": {}}));
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["required"], json!(["selector"]));
        let field = |name: &str| {
            let mut field = spec["properties"][name].clone();
            assert!(field["description"].is_string(), "{name}");
            field.as_object_mut().unwrap().remove("description");
            field
        };
        assert_eq!(
            field("maxUnavailable"),
            json!({"type": "integer", "minimum": 0.0})
        );
        assert_eq!(
            field("maxUnavailablePercentage"),
            json!({"type": "integer", "minimum": 0.0, "maximum": 100.0})
        );
        assert_eq!(
            field("podNameRegexGroup"),
            json!({"type": "integer", "minimum": 1.0})
        );
        assert_eq!(field("podNamePartitionRegex"), json!({"type": "string"}));
        assert_eq!(field("crossZoneEvictionDelay"), json!({"type": "string"}));
        let selector = field("selector");
        assert_eq!(selector["required"], json!(["matchLabels"]));
        assert_eq!(
            selector["properties"]["matchLabels"]["additionalProperties"],
            json!({"type": "string"})
        );
        assert_eq!(selector["properties"]["matchExpressions"], Value::Null);
    }
}
