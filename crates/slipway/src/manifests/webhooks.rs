//! The Service of the webhooks, and their registrations, under the names that the original's manifests have.
//!
//! A webhook that must be asked and does not answer stops what it is asked about. So as little as possible is asked:
//! only in namespaces that were named or labelled for it, never in the cluster's own, in the operator's own only if that
//! was named, and then not about the operator itself; and of whole objects only those with the webhook's label. Scales
//! and evictions do not carry the labels of their workload: of these all are asked about.

use serde_json::{Value, json};
use slipway_api::zones;
use slipway_kernel::capability::{Names, Registration};

use super::{Install, labels};

/// The Service that webhooks are reached by; the certificate is for this name.
pub(super) const SERVICE: &str = "rollout-operator";
/// The namespace that must come up without us.
pub(crate) const CLUSTER_S_OWN: &str = "kube-system";
/// The port of the container.
pub(super) const PORT: u16 = 8443;

/// The Service, and one registration for each webhook.
pub(super) fn webhooks(install: &Install<'_>, names: &Names, selector: &Value) -> Vec<Value> {
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
    let hooks = install.profiles.iter().flat_map(|one| one.registrations);
    all.extend(hooks.map(|hook| registration(hook, install, names)));
    all
}

fn registration(hook: &Registration, install: &Install<'_>, names: &Names) -> Value {
    let namespace = install.namespace;
    let mut labels = labels();
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(zones::INJECT_CA.to_owned(), json!("true"));
        labels.insert(zones::WEBHOOK_NAMESPACE.to_owned(), json!(namespace));
    }
    let mut own = asked(hook, install, hook.name, hook.resources);
    let is_part = hook.resources.iter().all(|name| name.contains('/'));
    if let (true, Some(fields)) = (is_part && install.is_guest(), own.as_object_mut()) {
        fields.insert("matchConditions".to_owned(), spared(install, names));
    }
    let mut all = vec![own];
    if let Some((label, resources)) = hook.labelled {
        let title = format!("{}-objects", hook.name);
        let mut objects = asked(hook, install, &title, resources);
        if let Some(fields) = objects.as_object_mut() {
            let selector = json!({"matchLabels": {label: "true"}});
            fields.insert("objectSelector".to_owned(), selector);
        }
        all.push(objects);
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": hook.kind,
        "metadata": {"name": format!("{}-{namespace}", hook.name), "labels": labels},
        "webhooks": all,
    })
}

/// One entry of a registration.
fn asked(hook: &Registration, install: &Install<'_>, title: &str, resources: &[&str]) -> Value {
    let namespace = install.namespace;
    json!({
        "name": format!("{title}-{namespace}.{}", hook.domain),
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
        "namespaceSelector": places(install),
        "rules": [{
            "apiGroups": hook.groups,
            "apiVersions": ["v1"],
            "operations": hook.operations,
            "resources": resources,
            "scope": "Namespaced",
        }],
        "sideEffects": hook.side_effects,
        "timeoutSeconds": 10,
    })
}

/// Where webhooks are asked.
fn places(install: &Install<'_>) -> Value {
    let key = "kubernetes.io/metadata.name";
    if !install.watched.is_empty() {
        return json!({"matchExpressions": [{"key": key, "operator": "In", "values": install.watched}]});
    }
    let others =
        json!([{"key": key, "operator": "NotIn", "values": [CLUSTER_S_OWN, install.namespace]}]);
    if install.opt_in {
        json!({"matchLabels": {zones::GUARDED: "enabled"}, "matchExpressions": others})
    } else {
        json!({"matchExpressions": others})
    }
}

/// In its own namespace, the operator's Deployment and its pods are left out: while it is down nobody else could let them be
/// repaired.
fn spared(install: &Install<'_>, names: &Names) -> Value {
    let (namespace, name) = (install.namespace, names.deployment);
    let expression = format!(
        "!(request.namespace == '{namespace}' && (request.name == '{name}' || request.name.startsWith('{name}-')))"
    );
    json!([{"name": "not-the-operator-itself", "expression": expression}])
}
