//! `ReplicaTemplate`: a number of replicas that several `StatefulSets` can follow, and an autoscaler can set.
//!
//! Nothing here acts on it: it is one of many kinds with a scale subresource.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many replicas there should be.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "rollout-operator.grafana.com",
    version = "v1",
    kind = "ReplicaTemplate",
    plural = "replicatemplates",
    singular = "replicatemplate",
    category = "all",
    namespaced,
    status = "ReplicaTemplateStatus",
    derive = "Default",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".spec.labelSelector"
    ),
    printcolumn = r#"{"name":"StatusReplicas","type":"string","jsonPath":".status.replicas"}"#,
    printcolumn = r#"{"name":"SpecReplicas","type":"string","jsonPath":".spec.replicas"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaTemplateSpec {
    /// How many replicas there should be
    #[serde(default = "one")]
    #[schemars(schema_with = "replicas")]
    pub replicas: i32,
    /// Which pods an autoscaler measures
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "plain_text")]
    pub label_selector: Option<String>,
}

fn one() -> i32 {
    1
}

fn replicas(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "minimum": 0, "default": 1})
}

fn plain_text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string"})
}

fn count(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer"})
}

/// How many replicas there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaTemplateStatus {
    /// How many replicas there are
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count")]
    pub replicas: Option<i32>,
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::lenient(
        ReplicaTemplate::crd(),
        "A number of replicas that others follow",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::{Value, json};

    use super::definition;

    #[test]
    fn the_definition_is_the_originals() {
        let crd = serde_json::to_value(definition()).unwrap();
        assert_eq!(
            crd["metadata"]["name"],
            "replicatemplates.rollout-operator.grafana.com"
        );
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        let names = &crd["spec"]["names"];
        assert_eq!(names["kind"], "ReplicaTemplate");
        assert_eq!(names["plural"], "replicatemplates");
        assert_eq!(names["singular"], "replicatemplate");
        assert_eq!(names["categories"], json!(["all"]));
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["name"], "v1");
        assert_eq!(
            version["subresources"],
            json!({"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".spec.labelSelector",
            }})
        );
        let columns = version["additionalPrinterColumns"].as_array().unwrap();
        let columns: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
        assert_eq!(columns, ["StatusReplicas", "SpecReplicas"]);
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(
            spec["properties"]["replicas"],
            json!({"type": "integer", "minimum": 0.0, "default": 1, "description": "How many replicas there should be"})
        );
        assert_eq!(spec["required"], Value::Null);
    }
}
