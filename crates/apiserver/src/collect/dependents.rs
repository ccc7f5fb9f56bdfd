//! Who depends on whom, learned from the changes of the store.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::{Change, ChangeKind, Stored};

/// An object, as the graph knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node {
    pub(super) bucket: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
}

impl Node {
    pub(super) fn of(bucket: &str, stored: &Stored) -> Self {
        Self {
            bucket: bucket.into(),
            namespace: stored.header.namespace.clone(),
            name: stored.header.name.clone(),
            uid: stored.header.uid.clone(),
        }
    }
}

/// Dependents by the uid of their owner, and the other way round.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: BTreeMap<Box<str>, BTreeSet<Node>>,
    owners: BTreeMap<Box<str>, Box<[Box<str>]>>,
    nodes: BTreeMap<Box<str>, Node>,
}

impl Graph {
    pub(super) fn learn(&mut self, bucket: &str, change: &Change) {
        let node = Node::of(bucket, &change.object);
        if change.kind == ChangeKind::Deleted {
            // Kept until the collector has acted on it: it asks who the owners were.
            return;
        }
        let owners = &change.object.header.owners;
        if let Some(before) = self.owners.get(&node.uid)
            && before != owners
        {
            for owner in before.clone() {
                self.unlink(&owner, &node);
            }
        }
        for owner in owners {
            self.dependents
                .entry(owner.clone())
                .or_default()
                .insert(node.clone());
        }
        if owners.is_empty() {
            self.owners.remove(&node.uid);
        } else {
            self.owners.insert(node.uid.clone(), owners.clone());
        }
        self.nodes.insert(node.uid.clone(), node);
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Node> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    pub(super) fn owners_of(&self, uid: &str) -> Vec<Node> {
        self.owners
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|owner| self.nodes.get(owner))
            .cloned()
            .collect()
    }

    pub(super) fn forget(&mut self, uid: &str) {
        let Some(node) = self.nodes.remove(uid) else {
            return;
        };
        for owner in self.owners.remove(uid).unwrap_or_default() {
            self.unlink(&owner, &node);
        }
    }

    fn unlink(&mut self, owner: &str, node: &Node) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(node);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}
