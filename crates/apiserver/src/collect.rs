//! What a real cluster leaves to its controller manager: garbage collection by owner reference, the end of
//! namespaces, the end of volumes and claims that nobody uses, and the removal of custom objects with their definition.
//!
//! The collector watches the store and acts on it as the user `system:kube-controller-manager`, with preconditions,
//! one step after the other; so a run is a function of the writes before it.

mod dependents;
mod namespaces;
mod protection;

use std::sync::Arc;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::resource::Resource;
use crate::store::{Change, ChangeKind, Stored};
use crate::value;

use dependents::{Graph, Node};

/// Collects garbage in `cluster` until it shuts down. Spawn it where the cluster's requests run.
pub async fn run(cluster: Arc<Cluster>) {
    let drained = cluster.drained();
    tokio::pin!(drained);
    let mut collector = Collector {
        cluster: cluster.clone(),
        graph: Graph::default(),
        seen: 0,
    };
    loop {
        let written = cluster.store.written();
        collector.catch_up();
        tokio::select! {
            biased;
            () = &mut drained => return,
            () = written => {}
        }
    }
}

struct Collector {
    cluster: Arc<Cluster>,
    graph: Graph,
    seen: u64,
}

impl Collector {
    /// Works off everything that happened since the last time.
    fn catch_up(&mut self) {
        loop {
            let (changes, version) = self.changes();
            self.seen = version;
            if changes.is_empty() {
                return;
            }
            for (bucket, change) in &changes {
                self.graph.learn(bucket, change);
            }
            for (bucket, change) in changes {
                self.act(&bucket, &change);
            }
        }
    }

    /// What happened since the last time, in order; after a compaction, everything there is.
    fn changes(&self) -> (Vec<(Box<str>, Change)>, u64) {
        let store = &self.cluster.store;
        store.all_changes(self.seen).unwrap_or_else(|_| {
            let (objects, version) = store.everything();
            let as_change = |object: Arc<Stored>| Change {
                version: object.version,
                kind: ChangeKind::Added,
                object,
                before: None,
            };
            let changes = objects
                .into_iter()
                .map(|(bucket, object)| (bucket, as_change(object)));
            (changes.collect(), version)
        })
    }

    fn act(&mut self, bucket: &str, change: &Change) {
        let node = Node::of(bucket, &change.object);
        if bucket == protection::PODS {
            self.pod_changed(&change.object);
        }
        if change.kind == ChangeKind::Deleted {
            self.owner_gone(&node);
            if bucket != "/namespaces" {
                self.check_namespace(&change.object.header.namespace);
            }
            return;
        }
        let Some(stored) = self.current(&node) else {
            return;
        };
        if bucket == "/namespaces" {
            self.check_namespace(&stored.header.name);
        }
        if !stored.header.owners.is_empty() && !stored.header.deleting {
            self.check_owners(&node, &stored);
        }
        if stored.header.deleting {
            self.deleting(&node, &stored);
            self.release(&node);
        } else if self.is_in_dying_namespace(&stored) {
            self.delete(&node, &stored, false);
        }
    }

    fn current(&self, node: &Node) -> Option<Arc<Stored>> {
        let stored = self
            .cluster
            .store
            .get(&node.bucket, &node.namespace, &node.name)?;
        (stored.header.uid == node.uid).then_some(stored)
    }

    fn resource(&self, bucket: &str) -> Option<Arc<Resource>> {
        let (group, plural) = bucket.split_once('/')?;
        self.cluster.registry().find(group, plural).cloned()
    }

    /// An owner is gone: its dependents go too, or lose this owner if they have others.
    fn owner_gone(&mut self, owner: &Node) {
        for dependent in self.graph.dependents(&owner.uid) {
            if let Some(stored) = self.current(&dependent)
                && !stored.header.deleting
            {
                self.check_owners(&dependent, &stored);
            }
            // A dependent in its last steps may have been what a foreground deletion further up waits for.
        }
        for waiting in self.graph.owners_of(&owner.uid) {
            if let Some(stored) = self.current(&waiting)
                && stored.header.deleting
            {
                self.deleting(&waiting, &stored);
            }
        }
        self.graph.forget(&owner.uid);
    }

    /// Deletes an object none of whose owners is there; drops references to owners that are not, if others are.
    fn check_owners(&self, node: &Node, stored: &Arc<Stored>) {
        let ties = stored.ties();
        let (mut solid, mut waiting, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        for reference in ties.owners() {
            match self.owner(reference, &stored.header.namespace) {
                // An owner of a kind that nobody serves cannot be judged.
                Owner::Unknown => return,
                Owner::There(owner)
                    if is_waiting_for_dependents(&owner)
                        && value::flag(reference, "blockOwnerDeletion") =>
                {
                    waiting.push(reference.clone());
                }
                Owner::There(_) => solid.push(reference.clone()),
                Owner::Absent => absent.push(reference.clone()),
            }
        }
        if !solid.is_empty() {
            if !absent.is_empty() || !waiting.is_empty() {
                self.change(node, stored, "", |object| {
                    value::put(object, "metadata.ownerReferences", solid);
                });
            }
        } else if !waiting.is_empty() {
            let has_own = !self.graph.dependents(&node.uid).is_empty();
            self.delete(node, stored, has_own);
        } else {
            self.delete(node, stored, false);
        }
    }

    fn owner(&self, reference: &Value, namespace: &str) -> Owner {
        let api_version = value::text(reference, "apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let registry = self.cluster.registry();
        let Some(resource) = registry.by_kind(group, value::text(reference, "kind")) else {
            return Owner::Unknown;
        };
        let namespace = if resource.namespaced { namespace } else { "" };
        match self.cluster.store.get(
            &resource.bucket(),
            namespace,
            value::text(reference, "name"),
        ) {
            Some(owner) if *owner.header.uid == *value::text(reference, "uid") => {
                Owner::There(owner)
            }
            _ => Owner::Absent,
        }
    }

    /// An object that is being deleted and waits for us: to orphan its dependents, or to delete them first.
    fn deleting(&self, node: &Node, stored: &Arc<Stored>) {
        let ties = stored.ties();
        if ties.has_finalizer("orphan") {
            for dependent in self.graph.dependents(&node.uid) {
                if let Some(stored) = self.current(&dependent) {
                    self.change(&dependent, &stored, "", |object| {
                        drop_owner(object, &node.uid);
                    });
                }
            }
            self.change(node, stored, "", |object| drop_finalizer(object, "orphan"));
        } else if ties.has_finalizer("foregroundDeletion") {
            let mut blocked = false;
            for dependent in self.graph.dependents(&node.uid) {
                if let Some(stored) = self.current(&dependent) {
                    if !stored.header.deleting {
                        self.check_owners(&dependent, &stored);
                    }
                    blocked |= self
                        .current(&dependent)
                        .is_some_and(|still| blocks(&still, &node.uid));
                }
            }
            if !blocked {
                self.change(node, stored, "", |object| {
                    drop_finalizer(object, "foregroundDeletion");
                });
            }
        }
    }
}

enum Owner {
    There(Arc<Stored>),
    Absent,
    Unknown,
}

fn is_waiting_for_dependents(owner: &Stored) -> bool {
    owner.header.deleting && owner.ties().has_finalizer("foregroundDeletion")
}

/// Whether a dependent holds up the foreground deletion of its owner.
fn blocks(dependent: &Stored, owner: &str) -> bool {
    let ties = dependent.ties();
    ties.owners()
        .iter()
        .any(|r| value::text(r, "uid") == owner && value::flag(r, "blockOwnerDeletion"))
}

fn drop_owner(object: &mut Value, uid: &str) {
    let left: Vec<Value> = value::items(object, "metadata.ownerReferences")
        .iter()
        .filter(|r| value::text(r, "uid") != uid)
        .cloned()
        .collect();
    if left.is_empty() {
        value::take(object, "metadata.ownerReferences");
    } else {
        value::put(object, "metadata.ownerReferences", left);
    }
}

fn drop_finalizer(object: &mut Value, name: &str) {
    let left: Vec<Value> = value::items(object, "metadata.finalizers")
        .iter()
        .filter(|f| *f != name)
        .cloned()
        .collect();
    if left.is_empty() {
        value::take(object, "metadata.finalizers");
    } else {
        value::put(object, "metadata.finalizers", left);
    }
}
