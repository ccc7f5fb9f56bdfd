//! Labels, annotations and other names that are part of the contract.

/// When restarts last restarted a workload, on the workload's own metadata: RFC 3339, whole seconds.
pub const LAST_RESTART: &str = "flipper.io/rollout-last-restart";

/// What `kubectl rollout restart` writes into the pod template; a change of it restarts the pods.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// On a workload: `"false"` keeps restarts away from it.
pub const RESTARTS_ENABLED: &str = "slipway.dev/restarts";

/// On a workload: no restart before this RFC 3339 time.
pub const RESTART_NOT_BEFORE: &str = "slipway.dev/restart-not-before";

/// On a workload: its own interval, instead of the policy's.
pub const RESTART_INTERVAL: &str = "slipway.dev/restart-interval";

/// On a workload: who disrupts it now, and until when at the latest.
pub const DISRUPTION_CLAIM: &str = "slipway.dev/disruption-claim";

/// On an object that a new leader has to keep a former one from: the number of the leadership.
pub const FENCE: &str = "slipway.dev/fence";

/// On a Lease that was given up: the members, as a list in JSON, in which something of its last holder may still be under way. What is
/// no such list counts as all of them, and home.
pub const UNANSWERED: &str = "slipway.dev/unanswered";

/// On an object that means a cluster: the uid of the `kube-system` namespace of the cluster that a person says it is. Without it
/// another cluster behind the same name is not written to.
pub const CONFIRM_CLUSTER: &str = "slipway.dev/confirm-cluster";

/// The Lease of restarts: the one of the controller that it replaces, so that the two exclude each other.
pub const RESTARTS_LEASE: &str = "d5a9c41d.github.com";

/// The field manager of all our writes.
pub const FIELD_MANAGER: &str = "slipway";
