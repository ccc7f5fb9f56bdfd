//! The order of lanes: which one is next, with clusters taking turns.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use slipway_kernel::identity::{ClusterId, Key};
use tokio::time::Instant;

/// When a lane is due, and its first key.
type Place = (Instant, Key);

/// Lanes that can be taken, by when they are due. Each has one place at most.
#[derive(Debug, Default)]
pub(super) struct Order {
    all: BTreeSet<Place>,
    /// Those of which nobody has found yet that they are due.
    waiting: BTreeSet<Place>,
    /// The others.
    due: BTreeMap<ClusterId, BTreeSet<Place>>,
}

impl Order {
    pub(super) fn insert(&mut self, place: Place) {
        self.all.insert(place.clone());
        self.waiting.insert(place);
    }

    pub(super) fn remove(&mut self, place: &Place) {
        self.all.remove(place);
        if self.waiting.remove(place) {
            return;
        }
        let cluster = &place.1.cluster;
        if let Some(due) = self.due.get_mut(cluster) {
            due.remove(place);
            if due.is_empty() {
                self.due.remove(cluster);
            }
        }
    }

    /// When the first one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.all.first().map(|(at, _)| *at)
    }

    /// The first key of the next lane that is due: of the cluster after the last one, and of that the one that has been due
    /// for longest. It stays where it is.
    pub(super) fn take(&mut self, now: Instant, last: Option<&ClusterId>) -> Option<Key> {
        while let Some((at, _)) = self.waiting.first()
            && *at <= now
            && let Some(place) = self.waiting.pop_first()
        {
            let due = self.due.entry(place.1.cluster.clone()).or_default();
            due.insert(place);
        }
        let next = last.and_then(|last| {
            let later = (Bound::Excluded(last), Bound::Unbounded);
            self.due.range::<ClusterId, _>(later).next()
        });
        let (_, due) = next.or_else(|| self.due.first_key_value())?;
        due.first().map(|(_, key)| key.clone())
    }
}
