//! `Module`: configuration at an exact version, to be assigned to clusters.
//!
//! One without a selector is only there to be assigned, by a Rollout or by somebody else. One with a selector assigns itself
//! to all clusters that it selects, at once.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ModuleStatus;
use super::binding::Binding;
use super::selector::ClusterSelector;
use super::sync::BoundSync;

/// Configuration at an exact version.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "fleet.squaremo.dev",
    version = "v1alpha1",
    kind = "Module",
    plural = "modules",
    singular = "module",
    shortname = "fmod",
    category = "fleet",
    namespaced,
    status = "ModuleStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Total","type":"integer","jsonPath":".status.summary.total"}"#,
    printcolumn = r#"{"name":"Updating","type":"integer","jsonPath":".status.summary.updating"}"#,
    printcolumn = r#"{"name":"Succeeded","type":"integer","jsonPath":".status.summary.succeeded"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.summary.failed"}"#,
    printcolumn = r#"{"name":"Revision","type":"string","jsonPath":".status.revision","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(oldSelf.immutable) || !oldSelf.immutable || self == oldSelf",
    "message": "this is one revision of a Rollout, and stays as it is: change the Rollout's template",
}]))]
pub struct ModuleSpec {
    /// Which clusters it is assigned to, all at once. Absent: none; others may assign it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<ClusterSelector>,
    /// Names for values, evaluated in the control plane for each cluster
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub control_plane_bindings: Vec<Binding>,
    /// What is assigned
    pub sync: BoundSync,
    /// Nothing of this may be changed any more, as for a `ConfigMap`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::kept(
        Module::crd(),
        "Configuration at an exact version, to be assigned to clusters",
    )
}
