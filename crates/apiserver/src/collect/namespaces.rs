//! The end of a namespace, and the writes that the collector makes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Collector, Node};
use crate::cluster::Cluster;
use crate::resource::Resource;
use crate::store::Stored;
use crate::{meta, value};

impl Collector {
    pub(super) fn is_in_dying_namespace(&self, stored: &Stored) -> bool {
        let namespace = &stored.header.namespace;
        !namespace.is_empty()
            && self.cluster.store.get("/namespaces", "", namespace).is_some_and(|found| found.header.deleting)
    }

    /// Empties a namespace that is being deleted, and lets it go when it is empty.
    pub(super) fn check_namespace(&self, name: &str) {
        let Some(namespace) = self.cluster.store.get("/namespaces", "", name) else { return };
        if !namespace.header.deleting {
            return;
        }
        let mut left = 0;
        for bucket in self.cluster.store.buckets() {
            let Some(resource) = self.resource(&bucket).filter(|r| r.namespaced) else { continue };
            for stored in self.cluster.store.list(&resource.bucket(), name, &|_| true).objects {
                let node = Node::of(&bucket, &stored);
                if !stored.header.deleting {
                    self.delete(&node, &stored, false);
                }
                left += usize::from(self.current(&node).is_some());
            }
        }
        if left == 0 {
            let node = Node::of("/namespaces", &namespace);
            self.change(&node, &namespace, |object| {
                value::put(object, "spec", json!({}));
            });
        }
    }

    /// Deletes an object as a client would: grace and finalizers are respected. In the foreground, it waits for its
    /// own dependents.
    pub(super) fn delete(&self, node: &Node, stored: &Arc<Stored>, foreground: bool) {
        let Some(resource) = self.resource(&node.bucket) else { return };
        let mut object = stored.decode();
        if foreground {
            let mut finalizers = value::items(&object, "metadata.finalizers").to_vec();
            if !finalizers.iter().any(|f| f == "foregroundDeletion") {
                finalizers.push(json!("foregroundDeletion"));
            }
            value::put(&mut object, "metadata.finalizers", finalizers);
        }
        let grace = resource.strategy.grace_seconds(&object, None);
        let held = grace > 0 || !value::items(&object, "metadata.finalizers").is_empty();
        if !held {
            self.remove(&resource, stored);
            return;
        }
        let now = self.cluster.now();
        let at = now.checked_add(std::time::Duration::from_secs(grace.unsigned_abs())).unwrap_or(now);
        value::put(&mut object, "metadata.deletionTimestamp", meta::timestamp(at));
        value::put(&mut object, "metadata.deletionGracePeriodSeconds", grace);
        if let Some(generation) = value::integer(&object, "metadata.generation").filter(|g| *g > 0) {
            value::put(&mut object, "metadata.generation", generation + 1);
        }
        self.store(&resource, stored, &object);
    }

    /// Changes an object that must still be as it was seen; if that ends what held it back, it is removed.
    pub(super) fn change(&self, node: &Node, stored: &Arc<Stored>, change: impl FnOnce(&mut Value)) {
        let Some(resource) = self.resource(&node.bucket) else { return };
        let mut object = stored.decode();
        change(&mut object);
        if crate::verbs::is_finished(&resource, &object) {
            self.remove(&resource, stored);
        } else if !stored.same(&object) {
            self.store(&resource, stored, &object);
        }
    }

    fn remove(&self, resource: &Resource, stored: &Stored) {
        let (namespace, name) = (&stored.header.namespace, &stored.header.name);
        // Somebody else was faster: their write comes back as a change, and is judged anew.
        let _ = self.cluster.store.delete(&resource.bucket(), namespace, name, stored.version);
        self.cluster.written(resource);
    }

    fn store(&self, resource: &Resource, stored: &Stored, object: &Value) {
        let (namespace, name) = (&stored.header.namespace, &stored.header.name);
        let _ = self.cluster.store.update(&resource.bucket(), namespace, name, stored.version, |version| {
            Cluster::encode(resource, object, version)
        });
        self.cluster.written(resource);
    }
}
