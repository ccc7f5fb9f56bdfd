//! Everything that installs the operator, as objects. Pure: the same options, the same objects in the same order.
//!
//! The names are those of the controller that restarts replace: namespace `rollout`, Deployment `rollout-controller`,
//! service account `controller-manager`.

use serde_json::{Value, json};
use slipway_kernel::permission::{Grantee, Permission, roles};

/// The operator's Deployment.
pub(crate) const DEPLOYMENT: &str = "rollout-controller";
/// Its service account.
const ACCOUNT: &str = "controller-manager";
/// Its roles and their bindings.
const ROLE: &str = "rollout-manager-role";
/// Where kubelet asks.
const PORT: u16 = 8001;
/// The user of distroless images, which is nobody's.
const USER: u32 = 65_532;

/// How it is installed.
#[derive(Debug, Clone)]
pub(crate) struct Install<'a> {
    /// The namespace.
    pub(crate) namespace: &'a str,
    /// The image.
    pub(crate) image: &'a str,
    /// How many replicas.
    pub(crate) replicas: u16,
    /// Which controllers it runs.
    pub(crate) controllers: &'a [String],
}

/// The objects, in an order in which they can be applied.
pub(crate) fn install(
    install: &Install<'_>,
    permissions: &[Permission],
    definitions: Vec<Value>,
) -> Vec<Value> {
    let namespace = install.namespace;
    let mut all = vec![json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace,
            "labels": {
                "app.kubernetes.io/part-of": "slipway",
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    })];
    all.extend(definitions);
    all.push(json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": namespace, "labels": labels()},
    }));
    let to = Grantee {
        role: ROLE,
        namespace,
        account: ACCOUNT,
        watched: &[],
    };
    all.extend(roles(permissions, &to).into_iter().map(labelled));
    all.extend(roles_for_people());
    all.push(deployment(install));
    all
}

/// What people get who may view or edit a namespace: our kinds are part of it.
fn roles_for_people() -> [Value; 2] {
    let role = |name: &str, to: &[&str], verbs: &[&str]| {
        let mut labels = labels();
        for role in to {
            let label = format!("rbac.authorization.k8s.io/aggregate-to-{role}");
            if let Some(labels) = labels.as_object_mut() {
                labels.insert(label, json!("true"));
            }
        }
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels},
            "rules": [{"apiGroups": ["flipper.io.github.com"], "resources": ["flippers"], "verbs": verbs}],
        })
    };
    let reading = ["get", "list", "watch"];
    let writing = ["create", "update", "patch", "delete", "deletecollection"];
    [
        role(
            "rollout-flipper-viewer-role",
            &["view", "edit", "admin"],
            &reading,
        ),
        role("rollout-flipper-editor-role", &["edit", "admin"], &writing),
    ]
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": "slipway", "app.kubernetes.io/part-of": "slipway"})
}

fn labelled(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("labels".to_owned(), labels());
    }
    object
}

fn deployment(install: &Install<'_>) -> Value {
    let selector =
        json!({"app.kubernetes.io/name": "slipway", "control-plane": "controller-manager"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": install.namespace, "labels": labels()},
        "spec": {
            "replicas": install.replicas,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {
                    "serviceAccountName": ACCOUNT,
                    "terminationGracePeriodSeconds": 30,
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

fn container(install: &Install<'_>) -> Value {
    let from = |field: &str| json!({"fieldRef": {"fieldPath": field}});
    let probe = |path: &str, period: u32| {
        json!({
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        })
    };
    json!({
        "name": "manager",
        "image": install.image,
        "args": ["run", "--controllers", install.controllers.join(","), "--port", PORT.to_string()],
        "env": [
            {"name": "POD_NAME", "valueFrom": from("metadata.name")},
            {"name": "POD_NAMESPACE", "valueFrom": from("metadata.namespace")},
        ],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
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
    })
}
