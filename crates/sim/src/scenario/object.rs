//! Objects as scenarios name them: `Deployment shop/cart`, `Node node-1`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_kernel::identity::{Kind, ObjectRef, kinds};

/// What is meant by the name of a kind that every cluster has.
const KNOWN: &[Kind] = &[
    kinds::DEPLOYMENT,
    kinds::STATEFUL_SET,
    kinds::DAEMON_SET,
    Kind::namespaced("apps", "v1", "ReplicaSet", "replicasets"),
    kinds::POD,
    kinds::CONFIG_MAP,
    Kind::namespaced("", "v1", "Secret", "secrets"),
    Kind::namespaced("", "v1", "Service", "services"),
    Kind::namespaced("", "v1", "ServiceAccount", "serviceaccounts"),
    kinds::LEASE,
    Kind::namespaced(
        "source.toolkit.fluxcd.io",
        "v1",
        "GitRepository",
        "gitrepositories",
    ),
    Kind::namespaced(
        "kustomize.toolkit.fluxcd.io",
        "v1",
        "Kustomization",
        "kustomizations",
    ),
    Kind::namespaced("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"),
    Kind::namespaced("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"),
    Kind::namespaced(
        "networking.istio.io",
        "v1beta1",
        "VirtualService",
        "virtualservices",
    ),
    Kind::namespaced(
        "split.smi-spec.io",
        "v1alpha2",
        "TrafficSplit",
        "trafficsplits",
    ),
    Kind::namespaced("networking.k8s.io", "v1", "Ingress", "ingresses"),
    Kind::namespaced("dataplane.sim.slipway.dev", "v1", "Taken", "taken"),
    kinds::EVENT,
    kinds::DISRUPTION_BUDGET,
    Kind::namespaced(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    ),
    cluster_wide("", "v1", "Namespace", "namespaces"),
    cluster_wide("", "v1", "Node", "nodes"),
    kinds::VALIDATING_WEBHOOKS,
    kinds::MUTATING_WEBHOOKS,
    cluster_wide(RBAC, "v1", "ClusterRole", "clusterroles"),
    cluster_wide(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"),
    Kind::namespaced(RBAC, "v1", "Role", "roles"),
    Kind::namespaced(RBAC, "v1", "RoleBinding", "rolebindings"),
    cluster_wide(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    ),
];

/// Our own kinds, as they are defined.
static OWN: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kinds = slipway_api::crds::crds()
        .into_iter()
        .filter_map(|definition| {
            let spec = definition.spec;
            Some(Kind {
                group: spec.group.into(),
                version: spec.versions.into_iter().next()?.name.into(),
                kind: spec.names.kind.into(),
                plural: spec.names.plural.into(),
                namespaced: spec.scope == "Namespaced",
            })
        });
    kinds.collect()
});

const RBAC: &str = "rbac.authorization.k8s.io";

const fn cluster_wide(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Kind {
    let mut made = Kind::namespaced(group, version, kind, plural);
    made.namespaced = false;
    made
}

/// An object by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Named(pub ObjectRef);

/// Why a text or a manifest names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownKind {
    /// It is not of this form.
    #[error("{0:?} names no object; write `Deployment namespace/name`")]
    Form(String),
    /// Nobody knows the kind.
    #[error("{0:?} is no kind that scenarios know: {known}", known = all())]
    Kind(String),
    /// A name is missing, or a namespace is missing or too much.
    #[error("{0}")]
    Place(String),
}

fn all() -> String {
    let names: Vec<&str> = KNOWN
        .iter()
        .chain(&*OWN)
        .map(|kind| kind.kind.as_ref())
        .collect();
    names.join(", ")
}

fn known(name: &str) -> Result<Kind, UnknownKind> {
    KNOWN
        .iter()
        .chain(&*OWN)
        .find(|kind| kind.kind == name)
        .cloned()
        .ok_or_else(|| UnknownKind::Kind(name.to_owned()))
}

impl Named {
    /// The object that a manifest describes.
    pub fn of(manifest: &Value) -> Result<Self, UnknownKind> {
        let text = |path: &str| {
            manifest
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let kind = known(text("/kind"))?;
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        if name.is_empty() {
            return Err(UnknownKind::Place(format!("a {kind} without a name")));
        }
        Self::placed(kind, namespace, name)
    }

    fn placed(kind: Kind, namespace: &str, name: &str) -> Result<Self, UnknownKind> {
        if kind.namespaced == namespace.is_empty() {
            let what = if kind.namespaced { "needs a" } else { "has no" };
            let problem = format!("{kind} {name}: a {kind} {what} namespace");
            return Err(UnknownKind::Place(problem));
        }
        Ok(Self(ObjectRef::local(kind, namespace, name)))
    }

    /// The path of the object.
    pub fn path(&self) -> String {
        let Self(object) = self;
        format!("{}/{}", object.kind.path(&object.namespace), object.name)
    }

    /// `group/plural`, as traces and histories name resources.
    pub fn resource(&self) -> String {
        format!("{}/{}", self.0.kind.group, self.0.kind.plural)
    }
}

impl FromStr for Named {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let form = || UnknownKind::Form(text.to_owned());
        let (kind, place) = text.trim().split_once(' ').ok_or_else(form)?;
        let kind = known(kind)?;
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        if name.is_empty() || name.contains([' ', '/']) {
            return Err(form());
        }
        Self::placed(kind, namespace, name)
    }
}

impl TryFrom<String> for Named {
    type Error = UnknownKind;

    fn try_from(text: String) -> Result<Self, UnknownKind> {
        text.parse()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Workloads and objects, after the namespaces that they and what is `applied` later are in.
pub(super) fn with_namespaces<'a>(
    workloads: &[Value],
    objects: &'a [Value],
    applied: impl Iterator<Item = &'a Value>,
) -> Vec<Value> {
    let rest: Vec<&Value> = workloads.iter().chain(objects).collect();
    let mut all = namespaces(&rest, applied);
    all.extend(rest.into_iter().cloned());
    all
}

/// Manifests of all namespaces that objects are in, except those of every cluster and those that are described.
fn namespaces<'a>(manifests: &[&Value], applied: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let described: BTreeSet<&str> = manifests
        .iter()
        .filter(|m| m.get("kind").and_then(Value::as_str) == Some("Namespace"))
        .filter_map(|m| m.pointer("/metadata/name").and_then(Value::as_str))
        .collect();
    let applied: Vec<&Value> = applied.collect();
    let spoken_of: BTreeSet<&str> = manifests
        .iter()
        .chain(&applied)
        .filter_map(|m| m.pointer("/metadata/namespace").and_then(Value::as_str))
        .filter(|name| !name.starts_with("kube-") && *name != "default" && !name.is_empty())
        .filter(|name| !described.contains(name))
        .collect();
    spoken_of
        .into_iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .collect()
}
