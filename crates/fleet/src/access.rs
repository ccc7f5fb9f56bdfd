//! What the fleet may do to the API of the control plane, and what for.
//!
//! What bindings may read besides is not here: it comes from a role that administrators add to.

use slipway_api::fleet::GROUP;
use slipway_kernel::permission::{Permission, Scope};

/// Every permission that the fleet uses in the control plane.
pub const PERMISSIONS: &[Permission] = &[
    Permission::watched(
        GROUP,
        "rollouts",
        &["get", "list", "watch", "patch"],
        "to know the rollouts, and to have a say before one goes",
    ),
    Permission::watched(
        GROUP,
        "rollouts/status",
        &["patch"],
        "to report how far a rollout is",
    ),
    Permission::watched(
        GROUP,
        "modules",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to keep the revisions of a rollout",
    ),
    Permission::watched(
        GROUP,
        "modules/status",
        &["patch"],
        "to report where a module is assigned",
    ),
    Permission::watched(
        GROUP,
        "bootstrapmodules",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to keep the revisions of a rollout",
    ),
    Permission::watched(
        GROUP,
        "bootstrapmodules/status",
        &["patch"],
        "to report where a module is assigned",
    ),
    Permission::watched(
        GROUP,
        "remoteassemblages",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to assign configuration to clusters",
    ),
    Permission::watched(
        GROUP,
        "remoteassemblages/status",
        &["patch"],
        "to report how far a cluster is",
    ),
    Permission::watched(
        GROUP,
        "assemblages",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to assign what is applied from here",
    ),
    Permission::watched(
        GROUP,
        "assemblages/status",
        &["patch"],
        "to report how far what is applied from here is",
    ),
    Permission::watched(
        "cluster.x-k8s.io",
        "clusters",
        &["get", "list", "watch"],
        "to know the clusters",
    ),
    Permission::watched(
        "",
        "secrets",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to reach clusters, and for values that are secret",
    ),
    Permission::watched(
        "",
        "configmaps",
        &["list", "watch"],
        "for values that bindings refer to",
    ),
    Permission {
        group: "apiextensions.k8s.io",
        resource: "customresourcedefinitions",
        verbs: &["list", "watch"],
        names: &[],
        scope: Scope::Cluster,
        why: "to know what kinds are called that bindings refer to, and whether our own are going",
    },
    Permission {
        group: "",
        resource: "namespaces",
        verbs: &["get", "list", "watch"],
        names: &["kube-system"],
        scope: Scope::Cluster,
        why: "to tell clusters which control plane they belong to",
    },
    Permission::watched(
        "apps",
        "controllerrevisions",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to keep what a rollout was before",
    ),
    Permission::watched(
        "source.toolkit.fluxcd.io",
        "gitrepositories",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to have what is applied from here fetched",
    ),
    Permission::watched(
        "kustomize.toolkit.fluxcd.io",
        "kustomizations",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to have it applied",
    ),
];
