//! Cluster API's `Cluster`: one of the clusters of the fleet.

use std::collections::BTreeMap;

use serde_json::Value;

/// The API group.
pub const GROUP: &str = "cluster.x-k8s.io";
/// The versions that we read, the newest first.
pub const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
/// The kind's name.
pub const KIND: &str = "Cluster";

/// What is read of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Its labels, by which it is selected.
    pub labels: BTreeMap<String, String>,
    /// Its annotations, which bindings may mention.
    pub annotations: BTreeMap<String, String>,
    /// Whether its API server has been there: before that nothing can be assigned to it.
    pub is_initialized: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

impl Cluster {
    /// Reads one, of either version: v1beta2 says `initialization.controlPlaneInitialized`, v1beta1 `controlPlaneReady`.
    pub fn of(object: &Value) -> Self {
        let is = |path| object.pointer(path) == Some(&Value::Bool(true));
        Self {
            labels: strings(object, "/metadata/labels"),
            annotations: strings(object, "/metadata/annotations"),
            is_initialized: is("/status/initialization/controlPlaneInitialized")
                || is("/status/controlPlaneReady"),
            is_deleting: object.pointer("/metadata/deletionTimestamp").is_some(),
        }
    }
}

fn strings(object: &Value, path: &str) -> BTreeMap<String, String> {
    let map = object.pointer(path).and_then(Value::as_object);
    let pairs = map.into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
