//! `Module`: configuration at an exact version, to be assigned to clusters.
//!
//! One without a selector is only there to be assigned, by a Rollout or by somebody else. One with a selector assigns itself
//! to all clusters that it selects, at once.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::ModuleStatus;
use super::binding::Binding;
use super::modules::module_kind;
use super::selector::ClusterSelector;
use super::sync::BoundSync;

module_kind! {
    /// Configuration at an exact version.
    Module("Module", "modules", "module", "fmod") as ModuleSpec:
        "Configuration at an exact version, to be assigned to clusters";
    /// What is assigned
    BoundSync
}
