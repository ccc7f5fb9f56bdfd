//! What is looked up of a cluster for each of hundreds of syncs.

use std::collections::BTreeMap;

use slipway_api::fleet::assemblage::SyncStatus;

use super::{Leaf, World};
use crate::observe::spelled::Spelled;

/// What is known of syncs, by their names.
pub(super) struct Looked<'a> {
    leaf: Option<&'a Leaf>,
    there: BTreeMap<&'a str, &'a Spelled>,
    told: BTreeMap<(&'a str, Option<&'a str>), &'a SyncStatus>,
    before: BTreeMap<&'a str, &'a SyncStatus>,
}

impl<'a> Looked<'a> {
    pub(super) fn of(world: &'a World) -> Self {
        let leaf = world.leaf.as_ref();
        let there = leaf.into_iter().flat_map(|leaf| &leaf.syncs);
        let told = leaf.into_iter().flat_map(|leaf| &leaf.status.syncs);
        let revision = |told: &'a SyncStatus| told.observed_revision.as_deref();
        Self {
            leaf,
            there: first(there.map(|sync| (sync.name(), sync))),
            told: first(told.map(|told| ((told.name.as_str(), revision(told)), told))),
            before: first(
                world
                    .before
                    .syncs
                    .iter()
                    .map(|one| (one.name.as_str(), one)),
            ),
        }
    }

    /// The sync of this name in the cluster.
    pub(super) fn there(&self, name: &str) -> Option<&'a Spelled> {
        self.there.get(name).copied()
    }

    /// What was told of the sync of this name here.
    pub(super) fn before(&self, name: &str) -> Option<&'a SyncStatus> {
        self.before.get(name).copied()
    }

    /// Whether exactly this sync is in the cluster.
    pub(super) fn has(&self, sync: &Spelled) -> bool {
        self.there
            .get(sync.name())
            .is_some_and(|there| *there == sync)
    }

    /// What the cluster tells of exactly this sync. A revision is a word that somebody chose: what was told while something else was
    /// under it does not count.
    pub(super) fn told(&self, sync: &Spelled) -> Option<&'a SyncStatus> {
        let told = *self.told.get(&(sync.name(), sync.revision()))?;
        let observed = told.observed_sync.as_deref();
        let is_of_this = observed.is_none_or(|hash| {
            let leaf = self.leaf.and_then(|leaf| leaf.hash_of(sync.name()));
            leaf == Some(hash)
        });
        (self.has(sync) && is_of_this).then_some(told)
    }
}

/// Of several with one name, the first.
fn first<K: Ord, T>(all: impl Iterator<Item = (K, T)>) -> BTreeMap<K, T> {
    let mut found = BTreeMap::new();
    for (name, one) in all {
        found.entry(name).or_insert(one);
    }
    found
}
