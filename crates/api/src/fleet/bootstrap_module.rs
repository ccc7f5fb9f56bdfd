//! `BootstrapModule`: as a `Module`, but applied from the control plane, so that nothing has to run in the cluster yet.

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
use super::sync::Sync;

module_kind! {
    /// Configuration at an exact version, applied from the control plane.
    BootstrapModule("BootstrapModule", "bootstrapmodules", "bootstrapmodule", "fbmod") as BootstrapModuleSpec:
        "Configuration at an exact version, applied to clusters from the control plane";
    /// What is assigned. There are no bindings in it: all are evaluated in the control plane
    Sync
}
