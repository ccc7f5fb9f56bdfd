//! Reviews as an API server sends them.

use serde_json::{Value, json};

use crate::zones::{ZONES, zone};

/// A downscale of the first zone from 3 to 1 that is refused.
pub fn downscale(namespace: &str) -> String {
    let set = |replicas: usize| {
        let mut zone = zone(ZONES[0], replicas, "app:1", 1);
        zone["metadata"]["namespace"] = json!(namespace);
        zone["metadata"]["labels"]["grafana.com/no-downscale"] = json!("true");
        zone
    };
    let about = json!({
        "kind": {"group": "apps", "version": "v1", "kind": "StatefulSet"},
        "resource": {"group": "apps", "version": "v1", "resource": "statefulsets"},
        "name": ZONES[0],
        "operation": "UPDATE",
        "object": set(1),
        "oldObject": set(3),
        "dryRun": false,
    });
    review(namespace, about)
}

/// An eviction of a pod.
pub fn eviction(namespace: &str, pod: &str) -> String {
    evicted(namespace, pod, false)
}

/// A dry run of one.
pub fn dry_eviction(namespace: &str, pod: &str) -> String {
    evicted(namespace, pod, true)
}

fn evicted(namespace: &str, pod: &str, dry: bool) -> String {
    let about = json!({
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "name": pod,
        "operation": "CREATE",
        "object": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}},
        "oldObject": null,
        "dryRun": dry,
    });
    review(namespace, about)
}

fn review(namespace: &str, mut request: Value) -> String {
    request["uid"] = json!("0df28fbd-5f5f-11e8-bc74-36e6bb280816");
    request["namespace"] = json!(namespace);
    request["userInfo"] = json!({"username": "admin", "groups": ["system:masters"]});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        .to_string()
}
