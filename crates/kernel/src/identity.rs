//! Names of clusters, kinds, objects and pieces of work.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use slipway_api::waiting::WaitingObject;

/// A cluster that the operator works on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(Arc<str>);

impl ClusterId {
    /// The cluster that the operator itself runs in.
    pub fn local() -> Self {
        Self(Arc::from(""))
    }

    /// A remote cluster.
    pub fn remote(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name; empty for the local one.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the operator itself runs in it: home, and no member.
    pub fn is_local(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "local" } else { &self.0 })
    }
}

/// A kind of object, as it is spoken of and as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: Cow<'static, str>,
    /// The version.
    pub version: Cow<'static, str>,
    /// `Deployment`.
    pub kind: Cow<'static, str>,
    /// `deployments`.
    pub plural: Cow<'static, str>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// A kind whose objects are in namespaces.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self::new([group, version, kind, plural], true)
    }

    /// A kind whose objects are in no namespace.
    pub const fn clustered(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self::new([group, version, kind, plural], false)
    }

    /// A kind that is known only at run time.
    pub fn owned(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
        namespaced: bool,
    ) -> Self {
        Self {
            group: Cow::Owned(group.into()),
            version: Cow::Owned(version.into()),
            kind: Cow::Owned(kind.into()),
            plural: Cow::Owned(plural.into()),
            namespaced,
        }
    }

    const fn new([group, version, kind, plural]: [&'static str; 4], namespaced: bool) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            namespaced,
        }
    }

    /// `apps/v1`, or `v1` for the core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of the collection in a namespace, or of all of them.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if namespace.is_empty() {
            format!("{root}/{}", self.plural)
        } else {
            format!("{root}/namespaces/{namespace}/{}", self.plural)
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// Kinds that capabilities speak of.
pub mod kinds {
    use super::Kind;

    /// apps/v1 Deployment.
    pub const DEPLOYMENT: Kind = Kind::namespaced("apps", "v1", "Deployment", "deployments");
    /// apps/v1 `StatefulSet`.
    pub const STATEFUL_SET: Kind = Kind::namespaced("apps", "v1", "StatefulSet", "statefulsets");
    /// apps/v1 `DaemonSet`.
    pub const DAEMON_SET: Kind = Kind::namespaced("apps", "v1", "DaemonSet", "daemonsets");
    /// v1 Pod.
    pub const POD: Kind = Kind::namespaced("", "v1", "Pod", "pods");
    /// v1 `ConfigMap`.
    pub const CONFIG_MAP: Kind = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
    /// v1 Namespace.
    pub const NAMESPACE: Kind = Kind::clustered("", "v1", "Namespace", "namespaces");
    /// v1 Secret.
    pub const SECRET: Kind = Kind::namespaced("", "v1", "Secret", "secrets");
    /// admissionregistration.k8s.io/v1 `ValidatingWebhookConfiguration`.
    pub const VALIDATING_WEBHOOKS: Kind = Kind::clustered(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    );
    /// admissionregistration.k8s.io/v1 `MutatingWebhookConfiguration`.
    pub const MUTATING_WEBHOOKS: Kind = Kind::clustered(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    );
    /// coordination.k8s.io/v1 Lease.
    pub const LEASE: Kind = Kind::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    /// events.k8s.io/v1 Event.
    pub const EVENT: Kind = Kind::namespaced("events.k8s.io", "v1", "Event", "events");
    /// policy/v1 `PodDisruptionBudget`.
    pub const DISRUPTION_BUDGET: Kind = Kind::namespaced(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
    );
}

/// An object by name, in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Where it is.
    pub cluster: ClusterId,
    /// What it is.
    pub kind: Kind,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectRef {
    /// An object of the local cluster.
    pub fn local(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            cluster: ClusterId::local(),
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// As `status.waitingFor` shows it.
    pub fn waiting(&self) -> WaitingObject {
        WaitingObject {
            cluster: self.cluster.as_str().to_owned(),
            kind: self.kind.kind.to_string(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// A piece of work of one controller: what is planned as one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The cluster that the work is about; the queue is fair across these.
    pub cluster: ClusterId,
    /// The controller's name.
    pub controller: &'static str,
    /// A namespace, or empty.
    pub namespace: String,
    /// A name within the controller, or empty where a cluster is one piece of work.
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}",
            self.controller, self.cluster, self.namespace, self.name
        )
    }
}
