//! What zones read and write on objects of others, by name, and the status that they keep for each rollout group.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use crate::waiting::WaitingFor;

/// Label of a `StatefulSet`: the rollout group that it belongs to. The empty group is a group.
pub const ROLLOUT_GROUP: &str = "rollout-group";

/// Annotation of a `StatefulSet`: how many of its pods may be unavailable, as a number or as a percentage.
pub const MAX_UNAVAILABLE: &str = "rollout-max-unavailable";

/// Label of a pod template: how the original finds the pods of a `StatefulSet`.
pub const NAME_LABEL: &str = "name";

/// Label of a pod: the revision of the template that it was made from.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// Annotation: the `StatefulSet` of the same group whose replicas are followed.
pub const DOWNSCALE_LEADER: &str = "grafana.com/rollout-downscale-leader";

/// Annotation: `true` scales a follower up only when its leader is ready.
pub const UPSCALE_ONLY_WHEN_LEADER_READY: &str =
    "grafana.com/rollout-upscale-only-when-leader-ready";

/// Label: the least time between downscales of different zones, a Go duration.
pub const MIN_TIME_BETWEEN_DOWNSCALES: &str = "grafana.com/min-time-between-zones-downscale";

/// Annotation: when a zone was last scaled down, RFC 3339.
pub const LAST_DOWNSCALE: &str = "grafana.com/last-downscale";

/// Label: `true` refuses downscales.
pub const NO_DOWNSCALE: &str = "grafana.com/no-downscale";

/// Label: `true` has pods prepared before a downscale.
pub const PREPARE_DOWNSCALE: &str = "grafana.com/prepare-downscale";

/// Annotation: the path of a pod's endpoint that prepares it.
pub const PREPARE_DOWNSCALE_PATH: &str = "grafana.com/prepare-downscale-http-path";

/// Annotation: the port of a pod's endpoint that prepares it.
pub const PREPARE_DOWNSCALE_PORT: &str = "grafana.com/prepare-downscale-http-port";

/// Annotation: the name of the resource whose replicas are mirrored.
pub const MIRROR_NAME: &str = "grafana.com/rollout-mirror-replicas-from-resource-name";

/// Annotation: the kind of the resource whose replicas are mirrored.
pub const MIRROR_KIND: &str = "grafana.com/rollout-mirror-replicas-from-resource-kind";

/// Annotation: the API version of the resource whose replicas are mirrored; only its group counts.
pub const MIRROR_API_VERSION: &str =
    "grafana.com/rollout-mirror-replicas-from-resource-api-version";

/// Annotation: whether the replicas are written back into the resource's status.
pub const MIRROR_WRITE_BACK: &str = "grafana.com/rollout-mirror-replicas-from-resource-write-back";

/// Annotation: how long pods must have been prepared before they are scaled away, a Prometheus duration.
pub const DELAYED_DOWNSCALE: &str = "grafana.com/rollout-delayed-downscale";

/// Annotation: the endpoint that prepares a pod for a delayed downscale.
pub const PREPARE_DELAYED_DOWNSCALE_URL: &str = "grafana.com/rollout-prepare-delayed-downscale-url";

/// Annotation: replicas that override the leader's, or the mirrored resource's.
pub const FORCE_REPLICAS: &str = "grafana.com/rollout-force-replicas";

/// Annotation: `true` deletes no pods of this `StatefulSet`.
pub const PAUSED: &str = "grafana.com/rollout-paused";

/// Annotation of a pod: when the original first saw it ready, RFC 3339.
pub const READY_TIME: &str = "grafana.com/ready-time";

/// Label of a webhook configuration: `true` has the CA bundle injected.
pub const INJECT_CA: &str = "grafana.com/inject-rollout-operator-ca";

/// Label of a webhook configuration: the namespace of the operator that it is for.
pub const WEBHOOK_NAMESPACE: &str = "grafana.com/namespace";

/// The webhook configurations that get the CA bundle: those that are labelled for it, and for one of these namespaces;
/// for any if there are none.
pub fn injected(namespaces: &[String]) -> String {
    let labelled = format!("{INJECT_CA}=true");
    if namespaces.is_empty() {
        return labelled;
    }
    let all = namespaces.join(",");
    format!("{labelled},{WEBHOOK_NAMESPACE} in ({all})")
}

/// Label of a namespace: `enabled` has webhooks asked there, where an operator looks after all namespaces.
pub const GUARDED: &str = "slipway.dev/webhooks";

/// The `ConfigMap` that tells when each zone was last scaled down, by default.
pub const ZONE_TRACKER: &str = "rollout-operator-zone-tracker";

/// Annotation of the `ConfigMap` that guards downscales: who is at it, by rollout group.
pub const DOWNSCALE_LOCKS: &str = "slipway.dev/downscale-locks";

/// Annotation of a `ConfigMap` of reservations: the pods that a rollout is about to delete, by uid, and until when that
/// counts.
pub const ROLLOUT_PODS: &str = "slipway.dev/rollout-pods";

/// The Lease of zones. The original has none: it must not run beside this operator.
pub const LEASE: &str = "slipway-zones";

/// Label of the `ConfigMap` that carries the status of a rollout group.
pub const STATUS_LABEL: &str = "slipway.dev/zones-status";

/// What a rollout group came to, as JSON in its `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupStatus {
    /// The rollout group.
    pub group: String,
    /// `Ready`, `Progressing`, and while they are true `Reconciling` and `Stalled`.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// Each zone, by name.
    #[serde(default)]
    pub zones: Vec<ZoneStatus>,
    /// Why nothing, or not more, is done.
    #[serde(default)]
    pub waiting_for: Vec<WaitingFor>,
}

/// What is seen of one zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneStatus {
    /// The `StatefulSet`.
    pub name: String,
    /// How many pods it should have.
    pub replicas: i64,
    /// How many of them are missing, terminating or not ready.
    pub unavailable: i64,
    /// How many of its pods are of another revision than its template.
    pub outdated: i64,
    /// How many may be unavailable.
    pub max_unavailable: i64,
    /// Whether its pods are left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_of_the_design_select_what_gets_the_ca() {
        assert_eq!(
            injected(&["default".to_owned()]),
            "grafana.com/inject-rollout-operator-ca=true,grafana.com/namespace in (default)"
        );
        assert_eq!(injected(&[]), "grafana.com/inject-rollout-operator-ca=true");
    }
}
