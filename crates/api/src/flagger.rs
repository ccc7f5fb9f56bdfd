//! Names that Flagger's users, their other programs and Flagger itself match on.

/// The API group of `Canary`, `MetricTemplate` and `AlertProvider`.
pub const GROUP: &str = "flagger.app";

/// The Lease of canary: the one of the program that it replaces, so that the two exclude each other.
pub const LEASE: &str = "flagger-leader-election";

/// Keeps a Canary until the workload was given back.
pub const FINALIZER: &str = "finalizer.flagger.app";

/// On a `ConfigMap` or Secret: a value that begins with `disable` keeps it from being tracked.
pub const CONFIG_TRACKING: &str = "flagger.app/config-tracking";

/// On a pod template: a change of it restarts the primary's pods.
pub const RESTART_ID: &str = "flagger-id";

/// The node selector by which a `DaemonSet` has no pods.
pub const SCALE_TO_ZERO: &str = "flagger.app/scale-to-zero";

/// On a router's object: what its spec was before.
pub const ORIGINAL_CONFIGURATION: &str = "flagger.kubernetes.io/original-configuration";

/// On objects of ours: Flux leaves them alone.
pub const FLUX_RECONCILE: (&str, &str) = ("kustomize.toolkit.fluxcd.io/reconcile", "disabled");

/// On objects of ours: Helm through Flux leaves them alone.
pub const FLUX_DRIFT: (&str, &str) = ("helm.toolkit.fluxcd.io/driftDetection", "disabled");

/// Where `kubectl apply` keeps what it applied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What the serving copy of something is called.
pub const PRIMARY: &str = "-primary";

/// What a config of the serving copy was before the last promotion is called, so that that can be taken back.
pub const FORMER: &str = "-former";

/// What the new version's Service is called.
pub const CANARY: &str = "-canary";

/// On the primary: the version that its template was made from.
pub const REVISION: &str = "slipway.dev/canary-revision";

/// On the primary: the template that it had before, so that a promotion can be taken back.
pub const FORMER_TEMPLATE: &str = "slipway.dev/canary-former-template";

/// On a Canary: what a person asks for, as JSON: `verb`, `id`, `by`, `reason`.
pub const COMMAND: &str = "slipway.dev/canary-command";

/// On the pods of a workload whose replicas are divided by the weight: the Service that finds both versions by it.
pub const TRAFFIC: &str = "slipway.dev/canary";

/// On the Service that clients know, where it leads to both versions: the weight that the numbers of their pods stand for.
pub const WEIGHT: &str = "slipway.dev/canary-weight";

/// Labels by which a workload selects its pods, in the order in which they are looked for.
pub const SELECTOR_LABELS: [&str; 3] = ["app", "name", "app.kubernetes.io/name"];
