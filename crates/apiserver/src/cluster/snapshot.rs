//! A cluster's objects at a moment, with which any number of clusters can begin.

use std::sync::{Arc, PoisonError};

use super::Cluster;
use crate::authorize::Policy;
use crate::registry::Registry;
use crate::store::{Named, Stored};

/// All objects of a cluster at a moment. Cheap to clone; clusters that begin with it share them until they change.
#[derive(Debug, Clone)]
pub struct Snapshot {
    objects: Arc<Vec<Named<Arc<Stored>>>>,
    version: u64,
    registry: Registry,
    policy: Arc<Policy>,
}

impl Cluster {
    /// All objects at this moment.
    pub fn snapshot(&self) -> Snapshot {
        let (objects, version) = self.everything();
        Snapshot {
            objects: Arc::new(objects),
            version,
            registry: self.registry(),
            policy: self.policy(),
        }
    }

    /// Puts everything back to a moment of the past, also the versions, as a restore of etcd does: whatever happened since
    /// has never been, and its versions are given again. Watches that are open say nothing of it; whoever serves has to
    /// end them.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.store
            .reset(snapshot.version, snapshot.objects.iter().cloned());
        *self
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner) = snapshot.registry.clone();
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.policy.clone());
    }

    /// Begins with the objects of another cluster.
    pub(super) fn begin_with(&self, snapshot: &Snapshot) {
        for (bucket, object) in snapshot.objects.iter() {
            self.store.restore(bucket, [object.clone()]);
        }
        *self
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner) = snapshot.registry.clone();
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.policy.clone());
        self.store.compact();
    }
}
