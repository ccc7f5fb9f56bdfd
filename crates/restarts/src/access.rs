//! What restarts may do to the API, and what for.

use slipway_kernel::permission::{Permission, Scope};

use crate::observe::STATUS_MAP;

/// Every permission that restarts use.
pub const PERMISSIONS: &[Permission] = &[
    Permission {
        group: "flipper.io.github.com",
        resource: "flippers",
        verbs: &["get", "list", "watch"],
        names: &[],
        scope: Scope::Watched,
        why: "to know the policies",
    },
    Permission {
        group: "flipper.io.github.com",
        resource: "flippers/status",
        verbs: &["patch"],
        names: &[],
        scope: Scope::Watched,
        why: "to report what a policy came to",
    },
    Permission {
        group: "apps",
        resource: "deployments",
        verbs: &["get", "list", "watch", "patch"],
        names: &[],
        scope: Scope::Watched,
        why: "to stamp and restart Deployments",
    },
    Permission {
        group: "apps",
        resource: "statefulsets",
        verbs: &["get", "list", "watch", "patch"],
        names: &[],
        scope: Scope::Watched,
        why: "to stamp and restart StatefulSets, where a policy names that kind",
    },
    Permission {
        group: "apps",
        resource: "daemonsets",
        verbs: &["get", "list", "watch", "patch"],
        names: &[],
        scope: Scope::Watched,
        why: "to stamp and restart DaemonSets, where a policy names that kind",
    },
    Permission {
        group: "policy",
        resource: "poddisruptionbudgets",
        verbs: &["list", "watch"],
        names: &[],
        scope: Scope::Watched,
        why: "to wait for pod disruption budgets, where a policy respects them",
    },
    Permission {
        group: "",
        resource: "configmaps",
        verbs: &["get", "list", "watch", "patch"],
        names: &[STATUS_MAP],
        scope: Scope::Own,
        why: "to report what the default criteria came to",
    },
    Permission {
        group: "",
        resource: "configmaps",
        verbs: &["create"],
        names: &[],
        scope: Scope::Own,
        why: "to make the ConfigMap that reports what the default criteria came to",
    },
];
