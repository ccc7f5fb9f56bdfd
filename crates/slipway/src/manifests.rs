//! Everything that installs the operator, as objects. Pure: the same options, the same objects in the same order.
//!
//! The names are those of what is replaced. Restarts: namespace `rollout`, Deployment `rollout-controller`, service
//! account `controller-manager`. Zones alone: Deployment, service account and Service `rollout-operator`.

mod deployment;
mod network;
mod webhooks;

pub(crate) use webhooks::CLUSTER_S_OWN;

use std::time::Duration;

use serde_json::{Value, json};
use slipway_kernel::permission::{Grantee, Permission, roles};

/// The operator's Deployment, unless it is for zones alone.
pub(crate) const DEPLOYMENT: &str = "rollout-controller";

/// What the operator's objects are called.
struct Names {
    deployment: &'static str,
    account: &'static str,
    /// The roles and their bindings.
    role: &'static str,
}

const OF_RESTARTS: Names = Names {
    deployment: DEPLOYMENT,
    account: "controller-manager",
    role: "rollout-manager-role",
};

const OF_ZONES: Names = Names {
    deployment: "rollout-operator",
    account: "rollout-operator",
    role: "rollout-operator-role",
};

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
    /// The namespaces that it looks after; empty for all.
    pub(crate) watched: &'a [String],
    /// Whether it serves webhooks.
    pub(crate) webhooks: bool,
    /// Whether, if all namespaces are looked after, webhooks are asked only in those that are labelled for it.
    pub(crate) opt_in: bool,
    /// Whether the Namespace is left out.
    pub(crate) no_namespace: bool,
    /// How long webhooks are served after the end was told.
    pub(crate) drain: Duration,
    /// More flags of the operator.
    pub(crate) flags: &'a [String],
}

impl Install<'_> {
    fn runs(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }

    fn names(&self) -> Names {
        if self.runs(slipway_zones::NAME) && self.controllers.len() == 1 {
            OF_ZONES
        } else {
            OF_RESTARTS
        }
    }

    /// Whether the operator is in a namespace that it looks after by name: that is somebody's own, and was there before.
    fn is_guest(&self) -> bool {
        self.watched.iter().any(|name| name == self.namespace)
    }

    /// What the program is told.
    pub(crate) fn arguments(&self) -> Vec<String> {
        deployment::arguments(self)
    }
}

/// The Service of the webhooks and their registrations, as [`install`] has them; in all namespaces if none are watched.
pub(crate) fn registrations(namespace: &str, watched: &[String]) -> Vec<Value> {
    let install = Install {
        namespace,
        image: "",
        replicas: 1,
        controllers: &[],
        watched,
        webhooks: true,
        opt_in: false,
        no_namespace: true,
        drain: Duration::ZERO,
        flags: &[],
    };
    webhooks::webhooks(&install, &install.names(), &json!({}))
}

/// The objects, in an order in which they can be applied.
pub(crate) fn install(
    install: &Install<'_>,
    permissions: &[Permission],
    definitions: Vec<Value>,
) -> Vec<Value> {
    let namespace = install.namespace;
    let names = install.names();
    let mut all = Vec::new();
    if !install.is_guest() && !install.no_namespace {
        all.push(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": namespace,
                "labels": {
                    "app.kubernetes.io/part-of": "slipway",
                    "pod-security.kubernetes.io/enforce": "restricted",
                },
            },
        }));
    }
    all.extend(definitions);
    all.push(json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": names.account, "namespace": namespace, "labels": labels()},
    }));
    let to = Grantee {
        role: names.role,
        namespace,
        account: names.account,
        watched: install.watched,
    };
    all.extend(roles(permissions, &to).into_iter().map(labelled));
    if install.runs(slipway_restarts::NAME) {
        all.extend(roles_for_people());
    }
    let selector = selector(&names);
    all.push(deployment::deployment(install, &names, &selector));
    all.push(deployment::budget(install, &names, &selector));
    all.push(network::policy(install, &names, &selector));
    if install.webhooks {
        all.extend(webhooks::webhooks(install, &names, &selector));
    }
    all
}

/// How the operator's pods are found. Nothing else of the namespace may be.
fn selector(names: &Names) -> Value {
    let mut selector = json!({"app.kubernetes.io/name": "slipway", "control-plane": names.account});
    if names.deployment == OF_ZONES.deployment
        && let Some(labels) = selector.as_object_mut()
    {
        // As the Service of the design selects them.
        labels.insert("name".to_owned(), json!(names.deployment));
    }
    selector
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
