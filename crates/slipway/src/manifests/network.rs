//! Who may reach the operator over the network.

use serde_json::{Value, json};
use slipway_kernel::capability::Names;

use super::{Install, deployment, labels, webhooks};

/// Nothing but the ports that are served. From where depends on the cluster: API servers have addresses of their own.
pub(super) fn policy(install: &Install<'_>, names: &Names, selector: &Value) -> Value {
    let mut ports = vec![deployment::PORT];
    if install.webhooks {
        ports.push(webhooks::PORT);
    }
    let ports: Vec<Value> = ports
        .into_iter()
        .map(|port| json!({"port": port, "protocol": "TCP"}))
        .collect();
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": names.deployment, "namespace": install.namespace, "labels": labels()},
        "spec": {
            "podSelector": {"matchLabels": selector},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": ports}],
        },
    })
}
