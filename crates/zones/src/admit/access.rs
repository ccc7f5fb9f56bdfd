//! What the webhooks may do to the API besides what zones may, and what for.

use slipway_kernel::permission::{Permission, Scope};

/// Every permission that the webhooks use and zones do not.
pub const PERMISSIONS: &[Permission] = &[
    Permission {
        group: "",
        resource: "configmaps",
        verbs: &["get", "create", "update"],
        names: &[],
        scope: Scope::Watched,
        why: "to lock the group of a downscale, and to record which pods were let go",
    },
    Permission {
        group: "apps",
        resource: "deployments",
        verbs: &["get"],
        names: &[],
        scope: Scope::Watched,
        why: "to know whether a Deployment that is scaled may be scaled down",
    },
    Permission {
        group: "apps",
        resource: "replicasets",
        verbs: &["get"],
        names: &[],
        scope: Scope::Watched,
        why: "to know whether a ReplicaSet that is scaled may be scaled down",
    },
];
