//! What the agent may do to the API of its cluster, and what for.
//!
//! What bindings may read besides is not here: it comes from a role that administrators add to.

use slipway_api::fleet::GROUP;
use slipway_kernel::permission::{Permission, Scope};

/// Every permission that the agent uses.
pub const PERMISSIONS: &[Permission] = &[
    Permission::watched(
        GROUP,
        "assemblages",
        &["get", "list", "watch", "patch"],
        "to know what the cluster is to have, and to have a say before one goes",
    ),
    Permission::watched(
        GROUP,
        "assemblages/status",
        &["patch"],
        "to report how far the cluster is",
    ),
    Permission::watched(
        "source.toolkit.fluxcd.io",
        "gitrepositories",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to have configuration fetched",
    ),
    Permission::watched(
        "kustomize.toolkit.fluxcd.io",
        "kustomizations",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to have it applied",
    ),
    Permission::watched(
        "",
        "secrets",
        &["get", "list", "watch", "create", "patch", "delete"],
        "for values that are secret",
    ),
    Permission::watched(
        "",
        "configmaps",
        &["list", "watch"],
        "for values that bindings refer to",
    ),
    Permission {
        group: "",
        resource: "namespaces",
        verbs: &["get", "list", "watch", "create", "patch"],
        names: &[],
        scope: Scope::Cluster,
        why: "to make the namespace that configuration is to be in, where it is missing",
    },
    Permission {
        group: "apiextensions.k8s.io",
        resource: "customresourcedefinitions",
        verbs: &["list", "watch"],
        names: &[],
        scope: Scope::Cluster,
        why: "to know what kinds are called that bindings refer to, and whether our own are going",
    },
];
