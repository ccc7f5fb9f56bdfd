//! `AlertProvider`: where people are told what became of a run.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric_template::SecretReference;

/// Where people are told what became of a run.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "flagger.app",
    version = "v1beta1",
    kind = "AlertProvider",
    plural = "alertproviders",
    singular = "alertprovider",
    category = "all",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AlertProviderSpec {
    /// slack, msteams, discord or generic
    #[serde(default, rename = "type")]
    pub kind: String,
    /// The channel. Absent means general
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Who speaks. Absent means flagger
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Where it is
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// A proxy
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proxy: String,
    /// The Secret with `address`, and maybe `token`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::canary::plain::<SecretReference>")]
    pub secret_ref: Option<SecretReference>,
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::lenient(
        AlertProvider::crd(),
        "Where people are told what became of a run",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::json;

    use super::{AlertProvider, definition};

    #[test]
    fn names_are_the_originals() {
        let crd = serde_json::to_value(definition()).unwrap();
        assert_eq!(crd["metadata"]["name"], "alertproviders.flagger.app");
        assert_eq!(crd["spec"]["names"]["kind"], "AlertProvider");
        assert_eq!(crd["spec"]["names"]["categories"], json!(["all"]));
    }

    #[test]
    fn an_object_is_read_and_written_alike() {
        let object = json!({
            "apiVersion": "flagger.app/v1beta1", "kind": "AlertProvider",
            "metadata": {"name": "us", "namespace": "shop"},
            "spec": {"type": "slack", "channel": "c", "username": "u", "address": "https://x", "secretRef": {"name": "s"}},
        });
        let read: AlertProvider = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), object);
    }
}
