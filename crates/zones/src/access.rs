//! What zones may do to the API, and what for.

use slipway_kernel::permission::Permission;

/// Every permission that zones use. Patches of pods fence a former leader; those of `StatefulSet`s scale and claim.
pub const PERMISSIONS: &[Permission] = &[
    Permission::watched(
        "",
        "pods",
        &["get", "list", "watch", "patch", "delete"],
        "to replace pods, zone by zone",
    ),
    Permission::watched(
        "apps",
        "statefulsets",
        &["get", "list", "watch", "patch"],
        "to know the zones, to claim them, and to scale them",
    ),
    Permission::watched(
        "apps",
        "statefulsets/status",
        &["update", "patch"],
        "to say that a zone is up to date",
    ),
    Permission::watched(
        "rollout-operator.grafana.com",
        "zoneawarepoddisruptionbudgets",
        &["get", "list", "watch"],
        "to respect zone-aware budgets",
    ),
    Permission::watched(
        "rollout-operator.grafana.com",
        "replicatemplates/scale",
        &["get"],
        "to mirror the replicas of a template",
    ),
    Permission::watched(
        "rollout-operator.grafana.com",
        "replicatemplates/status",
        &["patch"],
        "to write replicas back to the template that they mirror",
    ),
    Permission::watched(
        "",
        "configmaps",
        &["get", "list", "watch", "create", "patch"],
        "to report what a group came to, and to know when zones were scaled down",
    ),
];
