//! `Rollout`: one configuration for a set of clusters, and how a change of it reaches them.
//!
//! It is declared state and not a command: clusters that come to be selected get the configuration, those that cease to be
//! lose it, and every change of the template is brought to all of them by the strategy.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

pub mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::binding::{Binding, Literal};
use super::selector::ClusterSelector;
use super::sync::BoundSync;
use status::RolloutStatus;

/// How many earlier revisions are kept where a Rollout does not say.
pub const DEFAULT_HISTORY: u32 = 10;

/// One configuration for a set of clusters.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "fleet.squaremo.dev",
    version = "v1alpha1",
    kind = "Rollout",
    plural = "rollouts",
    singular = "rollout",
    shortname = "fro",
    shortname = "fleetrollout",
    category = "fleet",
    namespaced,
    status = "RolloutStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Strategy","type":"string","jsonPath":".spec.strategy"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Total","type":"integer","jsonPath":".status.counts.total"}"#,
    printcolumn = r#"{"name":"Updated","type":"integer","jsonPath":".status.counts.updated"}"#,
    printcolumn = r#"{"name":"Clusters-Ready","type":"integer","jsonPath":".status.counts.ready"}"#,
    printcolumn = r#"{"name":"Revision","type":"string","jsonPath":".status.targetRevision"}"#,
    printcolumn = r#"{"name":"Waiting-For","type":"string","jsonPath":".status.waitingFor[0].reason"}"#,
    printcolumn = r#"{"name":"Paused","type":"boolean","jsonPath":".spec.paused","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.targetKind) || self.targetKind != 'BootstrapModule' || !has(self.template.spec.sync.bindings)",
     "message": "a BootstrapModule has no bindings in its sync: all of its bindings are controlPlaneBindings"},
    {"rule": "(has(self.targetKind) ? self.targetKind : 'Module') == (has(oldSelf.targetKind) ? oldSelf.targetKind : 'Module')",
     "message": "targetKind cannot be changed: make another Rollout"},
]))]
pub struct RolloutSpec {
    /// Which clusters. Absent: none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<ClusterSelector>,
    /// What it makes: Modules, which are applied in the clusters, or `BootstrapModules`, which are applied from the control plane
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Module", "BootstrapModule"], "default" = "Module"))]
    pub target_kind: Option<String>,
    /// How a change reaches the clusters: Replace (all at once), Incremental (one, then so many at a time) or External (by
    /// somebody else)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Replace", "Incremental", "External"], "default" = "Incremental"))]
    pub strategy: Option<String>,
    /// How far Incremental goes at a time
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Pace>,
    /// Change nothing until this is taken back
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// How many revisions are kept that no cluster has any more
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100), extend("default" = 10))]
    pub revision_history_limit: Option<i32>,
    /// The configuration
    pub template: Template,
}

/// How far an incremental rollout goes at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// How many clusters may be unready because of a change: a number, or a percentage of all, rounded down, but at least 1.
    /// Absent: 10%
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "some_of_all")]
    pub max_unready_clusters: Option<Literal>,
    /// How many clusters that were unready or unreachable before a change are left for later: a number, or a percentage of
    /// all, rounded down, but at least 1. With more than that, the change waits. Absent: 10%
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "some_or_none_of_all")]
    pub max_unreachable: Option<Literal>,
    /// How long a cluster must have been ready to count as such
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub min_ready_seconds: Option<i32>,
}

/// What modules are made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// Labels and annotations of the modules
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What the modules say
    pub spec: TemplateSpec,
}

/// Labels and annotations of modules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What modules say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Names for values, evaluated in the control plane for each cluster
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub control_plane_bindings: Vec<Binding>,
    /// What is assigned
    pub sync: BoundSync,
}

/// A number of at least one, or a percentage of more than none.
fn some_of_all(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 1,
        "pattern": "^([1-9][0-9]?|100)%$",
    })
}

/// A number, or a percentage.
fn some_or_none_of_all(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "pattern": "^([1-9]?[0-9]|100)%$",
    })
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    crate::crds::kept(
        Rollout::crd(),
        "One configuration for a set of clusters, and how a change of it reaches them",
    )
}
