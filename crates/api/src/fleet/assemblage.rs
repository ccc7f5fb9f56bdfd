//! `Assemblage`: all that one cluster has, expanded to Flux objects where it is.
//!
//! One that names a cluster is in the control plane, and what it is expanded to is applied to that cluster from there; one
//! that names none is about the cluster that it is in.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sync::NamedSync;
use super::{LocalReference, SyncSummary};

/// All that one cluster has.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "fleet.squaremo.dev",
    version = "v1alpha1",
    kind = "Assemblage",
    plural = "assemblages",
    singular = "assemblage",
    shortname = "fasm",
    category = "fleet",
    namespaced,
    status = "AssemblageStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Cluster","type":"string","jsonPath":".spec.clusterName"}"#,
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
    {"rule": "has(self.clusterName) == has(self.kubeconfigRef)",
     "message": "an Assemblage for another cluster has both clusterName and kubeconfigRef, one for its own cluster neither"},
    {"rule": "has(self.clusterName) == has(oldSelf.clusterName) && (!has(self.clusterName) || self.clusterName == oldSelf.clusterName)",
     "message": "clusterName cannot be changed, because what was applied would be left behind: make another Assemblage"},
]))]
pub struct AssemblageSpec {
    /// What the cluster is to have, by name
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub syncs: Vec<NamedSync>,
    /// The cluster that it is for. Absent: the one that it is in
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_name: Option<String>,
    /// The Secret with that cluster's kubeconfig, in the same namespace
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_ref: Option<LocalReference>,
}

/// Observed state of an assemblage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssemblageStatus {
    /// The generation of the spec that all of this is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling, Stalled, Reachable
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Which cluster it is about, as it was seen first
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRecord>,
    /// How many syncs there are, by how far they are
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SyncSummary>,
    /// How far each sync is
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub syncs: Vec<SyncStatus>,
}

/// Which cluster an assemblage is about. Another cluster under the same name is another cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRecord {
    /// The uid of its `kube-system` namespace: nothing is written into a cluster that has another one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Cluster, or Secret for one without Cluster API. Absent: no object in the control plane stands for it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The uid of that object: when it is gone, so is what is assigned to the cluster
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_uid: Option<String>,
}

/// How far one sync is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncStatus {
    /// Which one
    pub name: String,
    /// The revision that the rest is about: that of the sync as it was seen
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_revision: Option<String>,
    /// In a workload cluster: a hash of the sync as it was seen. What was changed beside a revision that stayed the same is another
    /// sync
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub observed_sync: Option<String>,
    /// How far it is
    #[serde(default)]
    pub state: SyncState,
    /// A word that programs can match on
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence for people; values out of Secrets are not in it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when it is so
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// How far a sync is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SyncState {
    /// It is applied and healthy.
    Succeeded,
    /// It could not be applied, or is not healthy after its time.
    Failed,
    /// It is on its way.
    #[default]
    Updating,
    /// It cannot be expanded; what was applied before stays.
    Blocked,
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::kept(
        Assemblage::crd(),
        "All that one cluster has, expanded to Flux objects",
    )
}
