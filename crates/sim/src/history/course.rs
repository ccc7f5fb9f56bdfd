//! What happened in one cluster, and how its objects were at which version.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Image, Log, Object};

/// What happened in a cluster besides home.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// The version that everything began with there.
    pub base: u64,
    /// All changes of objects there, in order.
    pub changes: Log,
}

impl Course {
    /// How an object was at a version of this cluster.
    pub fn state(&self, object: &Object, version: u64) -> Option<&Arc<Image>> {
        self.changes.state(object, version)
    }

    /// The objects of the end, of all resources.
    pub fn last(&self) -> BTreeMap<&Object, &Arc<Image>> {
        self.changes.ends()
    }

    /// The uid by which the cluster is known: that of its namespace `kube-system`.
    pub fn uid(&self) -> Option<&str> {
        let system: Object = ("/namespaces".into(), "".into(), "kube-system".into());
        self.state(&system, u64::MAX)?.text("/metadata/uid")
    }
}
