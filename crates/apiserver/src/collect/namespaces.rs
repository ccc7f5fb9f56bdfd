//! The end of a namespace, and the writes that the collector makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Collector, Node};
use crate::cluster::Cluster;
use crate::resource::Resource;
use crate::store::Stored;
use crate::{meta, value};

/// What is left in a namespace that is being deleted.
#[derive(Default)]
struct Left {
    /// How many objects, by `plural.group`.
    objects: BTreeMap<String, usize>,
    /// How many objects, by finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    fn count(&mut self, resource: &Resource, object: &Value) {
        *self
            .objects
            .entry(format!(
                "{}.{}",
                resource.names.plural, resource.names.group
            ))
            .or_default() += 1;
        for finalizer in value::items(object, "metadata.finalizers")
            .iter()
            .filter_map(Value::as_str)
        {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Writes the conditions that tell why the namespace is still there.
    fn report(&self, namespace: &mut Value, now: jiff::Timestamp) {
        let each = |counts: &BTreeMap<String, usize>, word: &str| {
            let texts: Vec<String> = counts
                .iter()
                .map(|(what, n)| format!("{what} {word} {n} resource instances"))
                .collect();
            texts.join(", ")
        };
        let remaining = if self.objects.is_empty() {
            (
                "False",
                "ContentRemoved",
                "All content successfully removed".to_owned(),
            )
        } else {
            (
                "True",
                "SomeResourcesRemain",
                format!(
                    "Some resources are remaining: {}",
                    each(&self.objects, "has")
                ),
            )
        };
        let held = if self.finalizers.is_empty() {
            (
                "False",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            (
                "True",
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    each(&self.finalizers, "in")
                ),
            )
        };
        let fine = |reason, message: &str| ("False", reason, message.to_owned());
        let conditions = [
            (
                "NamespaceDeletionDiscoveryFailure",
                fine(
                    "ResourcesDiscovered",
                    "All resources successfully discovered",
                ),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                fine(
                    "ParsedGroupVersions",
                    "All legacy kube types successfully parsed",
                ),
            ),
            (
                "NamespaceDeletionContentFailure",
                fine(
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                ),
            ),
            ("NamespaceContentRemaining", remaining),
            ("NamespaceFinalizersRemaining", held),
        ];
        let before = value::items(namespace, "status.conditions").to_vec();
        let written: Vec<Value> = conditions
            .into_iter()
            .map(|(kind, (status, reason, message))| {
                let old = before.iter().find(|c| value::text(c, "type") == kind);
                let since = old
                    .filter(|c| value::text(c, "status") == status)
                    .map_or_else(|| meta::timestamp(now), |c| value::text(c, "lastTransitionTime").to_owned());
                json!({
                    "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
                })
            })
            .collect();
        value::put(namespace, "status.conditions", written);
    }
}

impl Collector {
    pub(super) fn is_in_dying_namespace(&self, stored: &Stored) -> bool {
        let namespace = &stored.header.namespace;
        !namespace.is_empty()
            && self
                .cluster
                .store
                .get("/namespaces", "", namespace)
                .is_some_and(|found| found.header.deleting)
    }

    /// Empties a namespace that is being deleted, and lets it go when it is empty.
    pub(super) fn check_namespace(&self, name: &str) {
        let Some(namespace) = self.cluster.store.get("/namespaces", "", name) else {
            return;
        };
        if !namespace.header.deleting {
            return;
        }
        let left = self.empty(name);
        let node = Node::of("/namespaces", &namespace);
        self.change(&node, &namespace, "status", |object| {
            left.report(object, self.cluster.now());
        });
        if left.objects.is_empty()
            && let Some(namespace) = self.current(&node)
        {
            self.change(&node, &namespace, "finalize", |object| {
                let others: Vec<Value> = value::items(object, "spec.finalizers")
                    .iter()
                    .filter(|f| *f != "kubernetes")
                    .cloned()
                    .collect();
                let spec = if others.is_empty() {
                    json!({})
                } else {
                    json!({"finalizers": others})
                };
                value::put(object, "spec", spec);
            });
        }
    }

    /// Deletes what is in a namespace; tells what is left.
    fn empty(&self, name: &str) -> Left {
        let mut left = Left::default();
        for bucket in self.cluster.store.buckets() {
            let Some(resource) = self.resource(&bucket).filter(|r| r.namespaced) else {
                continue;
            };
            for stored in self
                .cluster
                .store
                .list(&resource.bucket(), name, &|_| true)
                .objects
            {
                let node = Node::of(&bucket, &stored);
                if !stored.header.deleting {
                    self.delete(&node, &stored, false);
                }
                if let Some(still) = self.current(&node) {
                    left.count(&resource, &still.decode());
                }
            }
        }
        left
    }

    /// Deletes an object as a client would: grace and finalizers are respected. In the foreground, it waits for its
    /// own dependents.
    pub(super) fn delete(&self, node: &Node, stored: &Arc<Stored>, foreground: bool) {
        let Some(resource) = self.resource(&node.bucket) else {
            return;
        };
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
        let at = now
            .checked_add(std::time::Duration::from_secs(grace.unsigned_abs()))
            .unwrap_or(now);
        value::put(
            &mut object,
            "metadata.deletionTimestamp",
            meta::timestamp(at),
        );
        value::put(&mut object, "metadata.deletionGracePeriodSeconds", grace);
        if let Some(generation) = value::integer(&object, "metadata.generation").filter(|g| *g > 0)
        {
            value::put(&mut object, "metadata.generation", generation + 1);
        }
        self.store(&resource, stored, &object);
    }

    /// Changes an object that must still be as it was seen; if that ends what held it back, it is removed.
    pub(super) fn change(
        &self,
        node: &Node,
        stored: &Arc<Stored>,
        part: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let Some(resource) = self.resource(&node.bucket) else {
            return;
        };
        let old = stored.decode();
        let mut object = old.clone();
        change(&mut object);
        if old != object {
            self.cluster.own(
                &resource,
                "kube-controller-manager",
                part,
                &old,
                &mut object,
            );
        }
        if crate::verbs::is_finished(&resource, &object) {
            self.remove(&resource, stored);
        } else if !stored.same(&object) {
            self.store(&resource, stored, &object);
        }
    }

    fn remove(&self, resource: &Resource, stored: &Stored) {
        let (namespace, name) = (&stored.header.namespace, &stored.header.name);
        // Somebody else was faster: their write comes back as a change, and is judged anew.
        let _ = self
            .cluster
            .store
            .delete(&resource.bucket(), namespace, name, stored.version);
        self.cluster.written(resource);
    }

    fn store(&self, resource: &Resource, stored: &Stored, object: &Value) {
        let (namespace, name) = (&stored.header.namespace, &stored.header.name);
        let _ = self.cluster.store.update(
            &resource.bucket(),
            namespace,
            name,
            stored.version,
            |version| Cluster::encode(resource, object, version),
        );
        self.cluster.written(resource);
    }
}
