//! The kinds of `fleet.squaremo.dev`: versioned configuration, rolled out over clusters and specialised to each.
//!
//! ```text
//! Rollout ─ makes ─► Module            ─ assigned in ─► RemoteAssemblage ─ applied as ─► Assemblage (in the cluster)
//!         ─ or ────► BootstrapModule   ─ assigned in ─► Assemblage (that names a cluster)
//! ```
//!
//! Group, version and names are those of the earlier implementation, and so are the fields that it had. Fields are read as
//! leniently as they may have been stored; what the schemas refuse is refused by the API server and not by these types.

pub mod assemblage;
pub mod binding;
pub mod bootstrap_module;
pub mod module;
pub mod names;
pub mod remote_assemblage;
pub mod rollout;
pub mod selector;
pub mod sync;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API group of all kinds here.
pub const GROUP: &str = "fleet.squaremo.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";

/// How many syncs one assemblage has at most: an object has to fit into the API server's storage.
pub const MAX_SYNCS: usize = 1_000;
/// How many bindings one sync has at most.
pub const MAX_BINDINGS: usize = 128;

/// The definitions of all kinds, ordered by name.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        assemblage::definition(),
        bootstrap_module::definition(),
        module::definition(),
        remote_assemblage::definition(),
        rollout::definition(),
    ]
}

/// An object of the same namespace, by name.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct LocalReference {
    /// Its name
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How many clusters a module is assigned to, by how far they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncSummary {
    /// All clusters that it is assigned to
    pub total: i64,
    /// Those that are not there yet
    pub updating: i64,
    /// Those where it failed
    pub failed: i64,
    /// Those where it is applied and healthy
    pub succeeded: i64,
}

/// Observed state of a module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleStatus {
    /// The generation of the spec that all of this is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling, Stalled
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The revision of the spec: what assignments of it carry
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The git tag or commit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it is assigned
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SyncSummary>,
    /// The clusters that were deselected within the last hour without a person's word: many of them are many at once
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub unassigned: Vec<rollout::status::Unassigned>,
}
