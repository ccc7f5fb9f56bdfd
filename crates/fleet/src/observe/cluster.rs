//! The clusters of a fleet: those of Cluster API, and Secrets with a kubeconfig for those without.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_api::fleet::names;
use slipway_api::foreign::cluster::Cluster as ApiCluster;
use slipway_bindings::Given;
use slipway_kernel::fields::{strings, text};

use crate::naming;

/// What stands for a cluster of Cluster API.
pub const CLUSTER: &str = "Cluster";
/// What stands for a cluster without it.
pub const SECRET: &str = "Secret";

/// A cluster that configuration can be assigned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The kind of the object that stands for it.
    pub kind: &'static str,
    /// The uid of that object.
    pub uid: String,
    /// The Secret with its kubeconfig.
    pub kubeconfig: String,
    /// Its labels, by which it is selected.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Whether its control plane has been there.
    pub is_initialized: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether it is a cluster to be assigned something: not so a Secret that has lost its label, which nobody selects any more.
    pub is_listed: bool,
}

impl Registered {
    /// A `Cluster` of Cluster API.
    pub fn of_cluster(object: &Value) -> Option<Self> {
        let (namespace, name) = place(object)?;
        let cluster = ApiCluster::of(object);
        Some(Self {
            kubeconfig: naming::kubeconfig(&name),
            kind: CLUSTER,
            uid: uid(object),
            namespace,
            name,
            labels: cluster.labels,
            annotations: cluster.annotations,
            is_initialized: cluster.is_initialized,
            is_deleting: cluster.is_deleting,
            is_listed: true,
        })
    }

    /// A Secret that is labelled as a cluster. What is in it is not looked at.
    pub fn of_secret(object: &Value) -> Option<Self> {
        Self::of_former(object).filter(|cluster| cluster.is_listed)
    }

    /// A Secret that was labelled as a cluster, and may be no more. It still is the same cluster.
    pub fn of_former(object: &Value) -> Option<Self> {
        let labels = strings(object, "/metadata/labels");
        let is_listed = labels.contains_key(names::CLUSTER);
        let (namespace, name) = place(object)?;
        Some(Self {
            kubeconfig: name.clone(),
            kind: SECRET,
            uid: uid(object),
            namespace,
            name,
            labels,
            annotations: strings(object, "/metadata/annotations"),
            is_initialized: true,
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
            is_listed,
        })
    }

    /// What bindings can mention of it.
    pub fn given(&self) -> Given {
        Given::cluster(&self.namespace, &self.name, &self.labels, &self.annotations)
    }
}

/// All clusters of a namespace by name: a `Cluster` wins over a Secret of its name.
pub fn registered<'a>(
    clusters: impl IntoIterator<Item = &'a Value>,
    secrets: impl IntoIterator<Item = &'a Value>,
) -> BTreeMap<String, Registered> {
    let secrets = secrets.into_iter().filter_map(Registered::of_secret);
    let clusters = clusters.into_iter().filter_map(Registered::of_cluster);
    let all = secrets.chain(clusters);
    all.map(|one| (one.name.clone(), one)).collect()
}

fn uid(object: &Value) -> String {
    let uid = text(object, "/metadata/uid");
    uid.unwrap_or_default().to_owned()
}

fn place(object: &Value) -> Option<(String, String)> {
    let namespace = text(object, "/metadata/namespace")?;
    let name = text(object, "/metadata/name")?;
    Some((namespace.to_owned(), name.to_owned()))
}
