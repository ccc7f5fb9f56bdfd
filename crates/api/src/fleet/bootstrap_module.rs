//! `BootstrapModule`: as a `Module`, but applied from the control plane, so that nothing has to run in the cluster yet.

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
use super::sync::Sync;

/// Configuration at an exact version, applied from the control plane.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "fleet.squaremo.dev",
    version = "v1alpha1",
    kind = "BootstrapModule",
    plural = "bootstrapmodules",
    singular = "bootstrapmodule",
    shortname = "fbmod",
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
pub struct BootstrapModuleSpec {
    /// Which clusters it is assigned to, all at once. Absent: none; others may assign it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<ClusterSelector>,
    /// Names for values, evaluated in the control plane for each cluster
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub control_plane_bindings: Vec<Binding>,
    /// What is assigned. There are no bindings in it: all are evaluated in the control plane
    pub sync: Sync,
    /// Nothing of this may be changed any more, as for a `ConfigMap`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::kept(
        BootstrapModule::crd(),
        "Configuration at an exact version, applied to clusters from the control plane",
    )
}
