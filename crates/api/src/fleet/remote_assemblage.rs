//! `RemoteAssemblage`: all that is assigned to one cluster, in the control plane. To change what a cluster has is to change
//! this.
//!
//! Its syncs are a map by name, so that each has an owner of its own: whoever applies one sees nobody else's.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LocalReference;
use super::assemblage::AssemblageStatus;
use super::sync::NamedSync;

/// All that is assigned to one cluster.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "fleet.squaremo.dev",
    version = "v1alpha1",
    kind = "RemoteAssemblage",
    plural = "remoteassemblages",
    singular = "remoteassemblage",
    shortname = "frasm",
    category = "fleet",
    namespaced,
    status = "AssemblageStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Total","type":"integer","jsonPath":".status.summary.total"}"#,
    printcolumn = r#"{"name":"Updating","type":"integer","jsonPath":".status.summary.updating"}"#,
    printcolumn = r#"{"name":"Succeeded","type":"integer","jsonPath":".status.summary.succeeded"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.summary.failed"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.clusterName) == has(oldSelf.clusterName) && (!has(self.clusterName) || self.clusterName == oldSelf.clusterName)",
     "message": "clusterName cannot be changed, because what was applied would be left behind: make another RemoteAssemblage"},
]))]
pub struct RemoteAssemblageSpec {
    /// The Secret with the cluster's kubeconfig, in the same namespace
    pub kubeconfig_ref: LocalReference,
    /// The cluster's name. Absent: the name of this object
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_name: Option<String>,
    /// What the cluster is to have
    pub assemblage: AssignedSyncs,
}

/// What a cluster is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignedSyncs {
    /// What is assigned, by name
    #[serde(default)]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub syncs: Vec<NamedSync>,
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::kept(
        RemoteAssemblage::crd(),
        "All that is assigned to one cluster, in the control plane",
    )
}
