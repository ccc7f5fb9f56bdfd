//! Everything that installs the operator, as objects. Pure: the same options, the same objects in the same order.
//!
//! The names are those of what is replaced: usually namespace `rollout`, Deployment `rollout-controller`, service account
//! `controller-manager`; those that a capability asks for where the operator runs nothing else.

mod deployment;
mod network;
mod webhooks;

pub(crate) use webhooks::CLUSTER_S_OWN;

use std::time::Duration;

use serde_json::{Value, json};
use slipway_kernel::capability::{Names, OpenRole, PeoplesRole, Profile};
use slipway_kernel::permission::{Grantee, Permission, roles};

/// The operator's Deployment, as it is usually called.
pub(crate) const DEPLOYMENT: &str = "rollout-controller";

/// The names, unless the operator is for one capability alone that has names of its own.
const USUAL: Names = Names {
    deployment: DEPLOYMENT,
    account: "controller-manager",
    role: "rollout-manager-role",
    labels: &[],
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
    /// Which controllers it runs, as they were named.
    pub(crate) controllers: &'a [String],
    /// What is known of them.
    pub(crate) profiles: &'a [&'static Profile],
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
    fn names(&self) -> Names {
        match self.profiles {
            [only] => only.names.unwrap_or(USUAL),
            _ => USUAL,
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
pub(crate) fn registrations(
    profiles: &[&'static Profile],
    namespace: &str,
    watched: &[String],
) -> Vec<Value> {
    let install = Install {
        namespace,
        image: "",
        replicas: 1,
        controllers: &[],
        profiles,
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
        let mut made = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": namespace,
                "labels": {
                    "app.kubernetes.io/part-of": "slipway",
                    "pod-security.kubernetes.io/enforce": "restricted",
                },
            },
        });
        // Where a definition stays when Flux prunes, so does what is in the namespace.
        if let Some(kept) = definitions.iter().find_map(not_pruned)
            && let Some(metadata) = made.pointer_mut("/metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("annotations".to_owned(), kept);
        }
        all.push(made);
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
    let for_people = install.profiles.iter().flat_map(|one| one.peoples_roles);
    all.extend(for_people.map(role_for_people));
    let mut open: Vec<&OpenRole> = install
        .profiles
        .iter()
        .flat_map(|one| one.open_roles)
        .collect();
    open.sort();
    open.dedup();
    all.extend(open.into_iter().flat_map(|role| open_role(role, &to)));
    let selector = selector(&names);
    all.push(deployment::deployment(install, &names, &selector));
    all.push(deployment::budget(install, &names, &selector));
    all.push(network::policy(install, &names, &selector));
    if install.webhooks {
        all.extend(webhooks::webhooks(install, &names, &selector));
    }
    all
}

/// What tells Flux to leave a definition where it is, if it is told so.
fn not_pruned(definition: &Value) -> Option<Value> {
    let (name, value) = slipway_api::crds::NOT_PRUNED;
    let annotations = definition.pointer("/metadata/annotations")?;
    (annotations.get(name)?.as_str() == Some(value)).then(|| json!({name: value}))
}

/// How the operator's pods are found. Nothing else of the namespace may be.
fn selector(names: &Names) -> Value {
    let mut selector = json!({"app.kubernetes.io/name": "slipway", "control-plane": names.account});
    if let Some(labels) = selector.as_object_mut() {
        let more = names.labels.iter();
        labels.extend(more.map(|(key, value)| ((*key).to_owned(), json!(value))));
    }
    selector
}

/// What people get who may view or edit a namespace: our kinds are part of it.
fn role_for_people(role: &PeoplesRole) -> Value {
    let mut labels = labels();
    for to in role.to {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{to}");
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(label, json!("true"));
        }
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": role.name, "labels": labels},
        "rules": [{"apiGroups": [role.group], "resources": role.resources, "verbs": role.verbs}],
    })
}

/// A role of the operator that administrators fill, and its bindings.
fn open_role(role: &OpenRole, to: &Grantee<'_>) -> Vec<Value> {
    const API: &str = "rbac.authorization.k8s.io";
    let version = format!("{API}/v1");
    let mut all = vec![json!({
        "apiVersion": version,
        "kind": "ClusterRole",
        "metadata": {"name": role.name, "labels": labels()},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {role.label: "true"}}]},
        // The API server fills them in.
        "rules": [],
    })];
    // Named after the namespace too: several operators may share the role.
    let name = format!("{}-{}", role.name, to.namespace);
    let binding = |kind: &str, namespace: Option<&String>| {
        let mut binding = json!({
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": name, "labels": labels()},
            "roleRef": {"apiGroup": API, "kind": "ClusterRole", "name": role.name},
            "subjects": [{"kind": "ServiceAccount", "name": to.account, "namespace": to.namespace}],
        });
        if let Some((metadata, namespace)) = binding
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
            .zip(namespace)
        {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        binding
    };
    if to.watched.is_empty() {
        all.push(binding("ClusterRoleBinding", None));
    } else {
        let watched = to.watched.iter();
        all.extend(watched.map(|namespace| binding("RoleBinding", Some(namespace))));
    }
    all
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
