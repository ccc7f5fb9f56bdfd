//! What happened in one cluster, and how its objects were at which version.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Change, Image, Object};

/// What happened in a cluster besides home.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// The version that everything began with there.
    pub base: u64,
    /// All changes of objects there, in order.
    pub changes: Vec<Change>,
}

impl Course {
    /// How an object was at a version of this cluster.
    pub fn state(&self, object: &Object, version: u64) -> Option<&Arc<Image>> {
        state(&self.changes, object, version)
    }

    /// The objects of the end, of all resources.
    pub fn last(&self) -> BTreeMap<&Object, &Arc<Image>> {
        last(&self.changes)
    }

    /// The uid by which the cluster is known: that of its namespace `kube-system`.
    pub fn uid(&self) -> Option<&str> {
        let system: Object = ("/namespaces".into(), "".into(), "kube-system".into());
        self.state(&system, u64::MAX)?.text("/metadata/uid")
    }
}

/// How an object was at a version.
pub(super) fn state<'a>(
    changes: &'a [Change],
    object: &Object,
    version: u64,
) -> Option<&'a Arc<Image>> {
    changes
        .iter()
        .take_while(|change| change.version <= version)
        .filter(|change| change.object == *object)
        .last()?
        .after
        .as_ref()
}

/// All objects of a resource as they were at a version.
pub(super) fn states<'a>(
    changes: &'a [Change],
    resource: &str,
    version: u64,
) -> BTreeMap<&'a Object, &'a Arc<Image>> {
    let until = changes.iter().take_while(|c| c.version <= version);
    after(until.filter(|change| &*change.object.0 == resource))
}

/// The objects of the end, of all resources.
pub(super) fn last(changes: &[Change]) -> BTreeMap<&Object, &Arc<Image>> {
    after(changes.iter())
}

fn after<'a>(changes: impl Iterator<Item = &'a Change>) -> BTreeMap<&'a Object, &'a Arc<Image>> {
    let mut all = BTreeMap::new();
    for change in changes {
        match &change.after {
            Some(image) => all.insert(&change.object, image),
            None => all.remove(&change.object),
        };
    }
    all
}
