//! `MetricTemplate`: a query that the checks of several `Canary` objects share, and whom to ask.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A query, and whom to ask.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "flagger.app",
    version = "v1beta1",
    kind = "MetricTemplate",
    plural = "metrictemplates",
    singular = "metrictemplate",
    category = "all",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Provider","type":"string","jsonPath":".spec.provider.type"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MetricTemplateSpec {
    /// Whom to ask
    pub provider: MetricProvider,
    /// What to ask: a text with `{{ name }}`, `{{ namespace }}`, `{{ target }}`, `{{ service }}`, `{{ ingress }}`, `{{ route }}`, `{{ interval }}` and `{{ variables.NAME }}`
    #[serde(default)]
    pub query: String,
}

/// Whom to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricProvider {
    /// What it is; `prometheus` is built
    #[serde(default, rename = "type")]
    pub kind: String,
    /// Where it is
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Headers that are sent along
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// The Secret with `token`, or with `username` and `password`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::canary::plain::<SecretReference>")]
    pub secret_ref: Option<SecretReference>,
    /// A region; of `CloudWatch` only
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Do not verify its certificate
    #[serde(default)]
    pub insecure_skip_verify: bool,
}

/// A Secret of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Its name
    pub name: String,
}

/// Providers that the original knows. All but the first are refused by name.
pub const PROVIDERS: [&str; 11] = [
    "prometheus",
    "influxdb",
    "datadog",
    "externalmetrics",
    "stackdriver",
    "cloudwatch",
    "newrelic",
    "graphite",
    "dynatrace",
    "keptn",
    "splunk",
];

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::lenient(
        MetricTemplate::crd(),
        "A query that checks share, and whom to ask",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::json;

    use super::{MetricTemplate, definition};

    #[test]
    fn names_are_the_originals() {
        let crd = serde_json::to_value(definition()).unwrap();
        assert_eq!(crd["metadata"]["name"], "metrictemplates.flagger.app");
        assert_eq!(crd["spec"]["names"]["categories"], json!(["all"]));
        assert_eq!(crd["spec"]["versions"][0]["name"], "v1beta1");
    }

    #[test]
    fn an_object_is_read_and_written_alike() {
        let object = json!({
            "apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate",
            "metadata": {"name": "errors", "namespace": "shop"},
            "spec": {
                "provider": {
                    "type": "prometheus", "address": "http://prometheus:9090",
                    "headers": {"X-Scope-OrgID": ["a"]}, "secretRef": {"name": "s"},
                    "insecureSkipVerify": true,
                },
                "query": "sum({{ target }})",
            },
        });
        let read: MetricTemplate = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), object);
    }
}
