//! What the actors know objects by: kinds with their addresses, keys, and pieces of work.

use std::fmt;

use kube::api::ObjectMeta;

/// The name of an object within its kind. Cluster-wide objects have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self::new(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The kinds that the actors watch or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Revision,
    Pod,
    Node,
    Budget,
    Autoscaler,
    Service,
    Endpoints,
    Slice,
    Secret,
    ConfigMap,
    GitRepository,
    Kustomization,
    HttpRoute,
    VirtualService,
    TrafficSplit,
    Ingress,
    /// What a gateway has taken.
    Taken,
    /// Written, never watched.
    Claim,
}

impl Kind {
    /// The root of its API version, and its plural.
    fn address(self) -> (&'static str, &'static str) {
        match self {
            Self::Deployment => ("/apis/apps/v1", "deployments"),
            Self::ReplicaSet => ("/apis/apps/v1", "replicasets"),
            Self::StatefulSet => ("/apis/apps/v1", "statefulsets"),
            Self::DaemonSet => ("/apis/apps/v1", "daemonsets"),
            Self::Revision => ("/apis/apps/v1", "controllerrevisions"),
            Self::Pod => ("/api/v1", "pods"),
            Self::Node => ("/api/v1", "nodes"),
            Self::Budget => ("/apis/policy/v1", "poddisruptionbudgets"),
            Self::Autoscaler => ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
            Self::Service => ("/api/v1", "services"),
            Self::Endpoints => ("/api/v1", "endpoints"),
            Self::Slice => ("/apis/discovery.k8s.io/v1", "endpointslices"),
            Self::Secret => ("/api/v1", "secrets"),
            Self::ConfigMap => ("/api/v1", "configmaps"),
            Self::GitRepository => ("/apis/source.toolkit.fluxcd.io/v1", "gitrepositories"),
            Self::Kustomization => ("/apis/kustomize.toolkit.fluxcd.io/v1", "kustomizations"),
            Self::HttpRoute => ("/apis/gateway.networking.k8s.io/v1", "httproutes"),
            Self::VirtualService => ("/apis/networking.istio.io/v1beta1", "virtualservices"),
            Self::TrafficSplit => ("/apis/split.smi-spec.io/v1alpha2", "trafficsplits"),
            Self::Ingress => ("/apis/networking.k8s.io/v1", "ingresses"),
            Self::Taken => ("/apis/dataplane.sim.slipway.dev/v1", "taken"),
            Self::Claim => ("/api/v1", "persistentvolumeclaims"),
        }
    }

    /// The path of all its objects, in one namespace or (empty) in all.
    pub(crate) fn collection(self, namespace: &str) -> String {
        let (root, plural) = self.address();
        if namespace.is_empty() {
            format!("{root}/{plural}")
        } else {
            format!("{root}/namespaces/{namespace}/{plural}")
        }
    }

    /// The path of one object, or of a subresource of it.
    pub(crate) fn path(self, key: &Key, subresource: &str) -> String {
        let mut path = self.collection(&key.namespace);
        path.push('/');
        path.push_str(&key.name);
        if !subresource.is_empty() {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }
}

/// Who does a piece of work. The order is the order in which due work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    /// First, so that a set that is scaled down has deleted its pods before another one is scaled up.
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Deployment,
    Autoscaler,
    Scheduler,
    Kubelet,
    Budget,
    Endpoints,
    Source,
    Kustomize,
    /// Takes objects of a kind.
    Gateway(Kind),
}

impl Actor {
    /// What it signs its fields with.
    pub(crate) fn manager(self) -> &'static str {
        match self {
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::Source => "source-controller",
            Self::Kustomize => "kustomize-controller",
            Self::Gateway(_) => "gateway",
            _ => "kube-controller-manager",
        }
    }
}

/// One object that one actor has to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) actor: Actor,
    pub(crate) key: Key,
}
