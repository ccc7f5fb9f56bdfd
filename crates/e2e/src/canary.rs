//! Workloads, and the Canaries that look after them, as a user of Flagger writes them.

use serde_json::{Value, json};

/// Where Canaries are in the API.
pub const CANARIES: &str = "canaries.flagger.app";

/// A Deployment whose pods are found by the label `app`, and end at once.
pub fn deployment(name: &str, replicas: usize, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "app", "image": image, "ports": [{"containerPort": 8080}]}],
                },
            },
        },
    })
}

/// A Canary of the Deployment with this name.
pub fn canary(name: &str, provider: &str, analysis: &Value) -> Value {
    json!({
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": name},
        "spec": {
            "provider": provider,
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "progressDeadlineSeconds": 300,
            "service": {"port": 80, "targetPort": 8080},
            "analysis": analysis,
        },
    })
}

/// The phase that a Canary says it is in.
pub fn phase(canary: &Value) -> &str {
    let phase = canary.pointer("/status/phase").and_then(Value::as_str);
    phase.unwrap_or_default()
}

/// The share of the new version that a Canary shows.
pub fn weight(canary: &Value) -> i64 {
    let weight = canary
        .pointer("/status/canaryWeight")
        .and_then(Value::as_i64);
    weight.unwrap_or_default()
}

/// A workload's image.
pub fn image(workload: &Value) -> &str {
    let image = workload
        .pointer("/spec/template/spec/containers/0/image")
        .and_then(Value::as_str);
    image.unwrap_or_default()
}
