//! Names that are there without being bound: what is known of the cluster that a value is for.

use std::collections::BTreeMap;

/// The cluster's name.
pub const CLUSTER_NAME: &str = "CLUSTER_NAME";
/// The namespace of its object in the control plane.
pub const CLUSTER_NAMESPACE: &str = "CLUSTER_NAMESPACE";
/// One of its labels: `CLUSTER_LABEL[topology.kubernetes.io/region]`.
pub const CLUSTER_LABEL: &str = "CLUSTER_LABEL[";
/// One of its annotations.
pub const CLUSTER_ANNOTATION: &str = "CLUSTER_ANNOTATION[";

/// Names that are given. In the control plane they are about the cluster; in the cluster itself there are none, unless they
/// are exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    values: BTreeMap<String, String>,
    is_cluster: bool,
}

impl Given {
    /// No names at all.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// What is known of a cluster.
    pub fn cluster(
        namespace: &str,
        name: &str,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Self {
        let named = |prefix: &'static str| {
            move |(key, value): (&String, &String)| (format!("{prefix}{key}]"), value.clone())
        };
        let mut values: BTreeMap<String, String> =
            labels.iter().map(named(CLUSTER_LABEL)).collect();
        values.extend(annotations.iter().map(named(CLUSTER_ANNOTATION)));
        values.insert(CLUSTER_NAME.to_owned(), name.to_owned());
        values.insert(CLUSTER_NAMESPACE.to_owned(), namespace.to_owned());
        Self {
            values,
            is_cluster: true,
        }
    }

    /// The value of a name, if it is given.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Whether a name is of those that cannot be bound to something else.
    pub fn reserves(&self, name: &str) -> bool {
        let is_ours = name == CLUSTER_NAME
            || name == CLUSTER_NAMESPACE
            || name.starts_with(CLUSTER_LABEL)
            || name.starts_with(CLUSTER_ANNOTATION);
        self.is_cluster && is_ours
    }
}
