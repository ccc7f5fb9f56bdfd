//! The Service of the webhooks, and their registrations, under the names that the original's manifests have.

use serde_json::{Value, json};
use slipway_api::zones;

use super::{Install, labels};

/// The Service that webhooks are reached by; the certificate is for this name.
pub(super) const SERVICE: &str = "rollout-operator";
/// The port of the container.
pub(super) const PORT: u16 = 8443;

/// One webhook, as it is registered.
struct Hook {
    /// `no-downscale`: part of the path and of the names.
    name: &'static str,
    kind: &'static str,
    side_effects: &'static str,
    groups: &'static [&'static str],
    operations: &'static [&'static str],
    resources: &'static [&'static str],
}

const HOOKS: &[Hook] = &[
    Hook {
        name: "no-downscale",
        kind: "ValidatingWebhookConfiguration",
        side_effects: "None",
        groups: &["apps"],
        operations: &["UPDATE"],
        resources: &[
            "statefulsets",
            "deployments",
            "replicasets",
            "statefulsets/scale",
            "deployments/scale",
            "replicasets/scale",
        ],
    },
    Hook {
        name: "prepare-downscale",
        kind: "MutatingWebhookConfiguration",
        side_effects: "NoneOnDryRun",
        groups: &["apps"],
        operations: &["UPDATE"],
        resources: &["statefulsets", "statefulsets/scale"],
    },
    Hook {
        name: "pod-eviction",
        kind: "ValidatingWebhookConfiguration",
        // Whom it lets go is recorded, except in a dry run.
        side_effects: "NoneOnDryRun",
        groups: &[""],
        operations: &["CREATE"],
        resources: &["pods/eviction"],
    },
    Hook {
        name: "zpdb-validation",
        kind: "ValidatingWebhookConfiguration",
        side_effects: "None",
        groups: &["rollout-operator.grafana.com"],
        operations: &["CREATE", "UPDATE"],
        resources: &["zoneawarepoddisruptionbudgets"],
    },
];

/// The Service, and one registration for each webhook.
pub(super) fn webhooks(install: &Install<'_>, selector: &Value) -> Vec<Value> {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": install.namespace, "labels": labels()},
        "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": PORT}],
        },
    });
    let mut all = vec![service];
    all.extend(HOOKS.iter().map(|hook| registration(hook, install)));
    all
}

fn registration(hook: &Hook, install: &Install<'_>) -> Value {
    let namespace = install.namespace;
    let name = format!("{}-{namespace}", hook.name);
    let mut labels = labels();
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(zones::INJECT_CA.to_owned(), json!("true"));
        labels.insert(zones::WEBHOOK_NAMESPACE.to_owned(), json!(namespace));
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": hook.kind,
        "metadata": {"name": name, "labels": labels},
        "webhooks": [{
            "name": format!("{name}.grafana.com"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {
                    "name": SERVICE,
                    "namespace": namespace,
                    "path": format!("/admission/{}", hook.name),
                    "port": 443,
                },
            },
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [places(install.watched)]},
            "rules": [{
                "apiGroups": hook.groups,
                "apiVersions": ["v1"],
                "operations": hook.operations,
                "resources": hook.resources,
                "scope": "Namespaced",
            }],
            "sideEffects": hook.side_effects,
            "timeoutSeconds": 10,
        }],
    })
}

/// Where webhooks are asked: in the namespaces that are looked after. If those are all, the cluster's own is left out, so
/// that it can come up without us.
fn places(watched: &[String]) -> Value {
    let key = "kubernetes.io/metadata.name";
    if watched.is_empty() {
        json!({"key": key, "operator": "NotIn", "values": ["kube-system"]})
    } else {
        json!({"key": key, "operator": "In", "values": watched})
    }
}
