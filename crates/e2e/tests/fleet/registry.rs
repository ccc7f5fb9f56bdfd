//! How leaves are known in the hub: most by Cluster API's `Cluster`, the last one by a Secret.

use anyhow::Result;
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;

use crate::leaf::Leaf;
use crate::stage::PLACE;

/// The label by which a Secret is a cluster.
pub(crate) const CLUSTER: &str = "fleet.squaremo.dev/cluster";
/// Of leaves that Cluster API knows.
pub(crate) const BY_CLUSTER_API: &str = "by-cluster-api";
const CLUSTERS: &str = "clusters.cluster.x-k8s.io";

/// How a leaf is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// By a `Cluster`, whose kubeconfig is in a Secret beside it.
    ByClusterApi,
    /// By a Secret that stands for it.
    BySecret,
}

impl Known {
    /// The Secret with the kubeconfig of the leaf of this name.
    pub(crate) fn secret(self, leaf: &str) -> String {
        match self {
            Self::ByClusterApi => format!("{leaf}-kubeconfig"),
            Self::BySecret => leaf.to_owned(),
        }
    }
}

/// Installs Cluster API's kind, with as little of it as is needed.
pub(crate) fn define(hub: &Cluster) -> Result<()> {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": CLUSTERS},
        "spec": {
            "group": "cluster.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "Cluster", "plural": "clusters", "singular": "cluster", "listKind": "ClusterList"},
            "versions": [version("v1beta2", true), version("v1beta1", false)],
        },
    });
    hub.apply(&definition.to_string())?;
    let definition = format!("crd/{CLUSTERS}");
    hub.kubectl(&["wait", "--for=condition=Established", &definition])?;
    Ok(())
}

/// Makes a leaf a cluster of the fleet.
pub(crate) fn register(hub: &Cluster, leaf: &Leaf) -> Result<()> {
    let kubeconfig = leaf.cluster().inline_kubeconfig(None)?;
    let mut labels = json!({"env": "prod", "leaf": leaf.name});
    match leaf.known {
        Known::BySecret => {
            labels[CLUSTER] = json!("");
            hub.apply(&secret(&leaf.secret(), &labels, &kubeconfig.to_string()))?;
        }
        Known::ByClusterApi => {
            labels[BY_CLUSTER_API] = json!("yes");
            let of = json!({"cluster.x-k8s.io/cluster-name": leaf.name});
            hub.apply(&secret(&leaf.secret(), &of, &kubeconfig.to_string()))?;
            let cluster = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {"name": leaf.name, "namespace": PLACE, "labels": labels},
                "spec": {"controlPlaneEndpoint": {"host": host(leaf), "port": 6443}},
            });
            hub.apply(&cluster.to_string())?;
            initialized(hub, leaf)?;
        }
    }
    Ok(())
}

/// What Cluster API says of a cluster whose API server is there.
fn initialized(hub: &Cluster, leaf: &Leaf) -> Result<()> {
    let status =
        json!({"status": {"initialization": {"controlPlaneInitialized": true}}}).to_string();
    let patch = ["patch", CLUSTERS, &leaf.name, "-n", PLACE];
    let patch = [
        &patch[..],
        &["--subresource=status", "--type=merge", "-p", &status],
    ]
    .concat();
    hub.kubectl(&patch)?;
    Ok(())
}

/// Where the control plane of a leaf is said to be.
pub(crate) fn host(leaf: &Leaf) -> String {
    format!("{}.example", leaf.name)
}

/// A Secret with a kubeconfig.
pub(crate) fn secret(name: &str, labels: &Value, kubeconfig: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": PLACE, "labels": labels},
        "stringData": {"value": kubeconfig},
    })
    .to_string()
}
