//! The operator's Deployment: its pods, what they are told, and how many of them go at once.

use serde_json::{Value, json};
use slipway_kernel::capability::Names;

use super::{Install, labels, webhooks};

/// Where kubelet asks.
pub(super) const PORT: u16 = 8001;
/// The user of distroless images, which is nobody's.
const USER: u32 = 65_532;
/// From the beginning of the end of a pod until the program is told: most API servers have heard by then that requests
/// go elsewhere.
const PAUSE_SECONDS: u64 = 5;
/// For requests and writes under way at the end, and then some.
const GRACE_SECONDS: u64 = 30;

/// The Deployment.
pub(super) fn deployment(install: &Install<'_>, names: &Names, selector: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names.deployment, "namespace": install.namespace, "labels": labels()},
        "spec": {
            "replicas": install.replicas,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {
                    "serviceAccountName": names.account,
                    "terminationGracePeriodSeconds": grace(install),
                    "topologySpreadConstraints": apart(selector),
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container(install)],
                },
            },
        },
    })
}

/// How long a pod has to end.
fn grace(install: &Install<'_>) -> u64 {
    if install.webhooks {
        PAUSE_SECONDS + install.drain.as_secs() + GRACE_SECONDS
    } else {
        GRACE_SECONDS
    }
}

/// Replicas are on different machines, and in different zones, where there are some.
fn apart(selector: &Value) -> Value {
    let over = |key: &str| {
        json!({
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector},
        })
    };
    json!([
        over("kubernetes.io/hostname"),
        over("topology.kubernetes.io/zone")
    ])
}

/// One replica goes at a time; one that is not ready is in nobody's way.
pub(super) fn budget(install: &Install<'_>, names: &Names, selector: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": names.deployment, "namespace": install.namespace, "labels": labels()},
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    })
}

/// What the program is told.
pub(super) fn arguments(install: &Install<'_>) -> Vec<String> {
    let port = PORT.to_string();
    let controllers = install.controllers.join(",");
    let mut all = ["run", "--controllers", &controllers, "--port", &port]
        .map(str::to_owned)
        .to_vec();
    if !install.watched.is_empty() {
        all.extend(["--namespace".to_owned(), install.watched.join(",")]);
    }
    if install.webhooks {
        all.push("--webhooks".to_owned());
        all.extend(["--webhooks-port".to_owned(), webhooks::PORT.to_string()]);
    }
    all.extend(install.flags.iter().cloned());
    all
}

fn container(install: &Install<'_>) -> Value {
    let mut ports = vec![json!({"name": "http", "containerPort": PORT, "protocol": "TCP"})];
    if install.webhooks {
        ports.push(json!({"name": "https", "containerPort": webhooks::PORT, "protocol": "TCP"}));
    }
    let from = |field: &str| json!({"fieldRef": {"fieldPath": field}});
    let probe = |path: &str, period: u32| {
        json!({
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        })
    };
    let mut container = json!({
        "name": "manager",
        "image": install.image,
        "args": arguments(install),
        "env": [
            {"name": "POD_NAME", "valueFrom": from("metadata.name")},
            {"name": "POD_NAMESPACE", "valueFrom": from("metadata.namespace")},
        ],
        "ports": ports,
        "livenessProbe": probe("/healthz", 20),
        "readinessProbe": probe("/ready", 10),
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"cpu": "500m", "memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    if let (true, Some(fields)) = (install.webhooks, container.as_object_mut()) {
        let pause = json!({"preStop": {"sleep": {"seconds": PAUSE_SECONDS}}});
        fields.insert("lifecycle".to_owned(), pause);
    }
    container
}
