//! Takes the lists of watches into the stores.
//!
//! A watch's list is consistent and was begun after all that is known had been seen, except what we wrote or were told
//! since ([`crate::ledger`]). So it counts, also where it is older: then the API's storage was restored.

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::identity::{ClusterId, ObjectRef};
use slipway_kernel::store::{Change, Meta, number};
use tokio::time::Instant;

use super::State;
use crate::watch::WatchKey;

impl State {
    /// Takes in an object of the list that a watch makes. Gives whether it is new, and whether it is older than what was
    /// known.
    pub(crate) fn take_listed(&mut self, key: &WatchKey, object: &Value) -> (bool, bool) {
        let Some(watch) = self.watches.get(key) else {
            return (false, false);
        };
        let meta = Meta::of(object);
        let reference = reference(key, &meta);
        let is_overtaken = self.ledger.is_since(watch.place, &reference);
        let (mut is_new, mut is_older) = (false, false);
        for store in watch.stores.clone() {
            let Some(seen) = self.stores.store_mut(&store) else {
                continue;
            };
            let (change, older) = if is_overtaken {
                (seen.observe(object), false)
            } else {
                seen.observe_listed(object)
            };
            is_older |= older;
            if change == Change::Changed {
                self.changes.push((store, meta.clone()));
                is_new = true;
            }
        }
        self.ledger.caught_up(&reference, number(&meta.version));
        self.look_at(&reference);
        (is_new, is_older)
    }

    /// The versions of a cluster have run backwards: what was written and answered before is not of this history.
    /// Gives whether that is new.
    pub(crate) fn rewind(&mut self, cluster: &ClusterId, now: Timestamp) -> bool {
        self.history += 1;
        for (_, watch) in self
            .watches
            .iter_mut()
            .filter(|(of, _)| of.cluster == *cluster)
        {
            watch.rewound = true;
        }
        self.ledger.clear(cluster);
        self.bound_deletions(now, |(of, _)| of == cluster);
        self.doubts.retain(|(of, _), _| of != cluster);
        self.facts.answers.clear();
        let refused: Vec<ObjectRef> = self.facts.refusals.keys().cloned().collect();
        for object in refused.iter().filter(|object| object.cluster == *cluster) {
            self.accept(object);
        }
        let before = self.rewound.replace(Instant::now());
        before.is_none_or(|before| before.elapsed() > TOGETHER)
    }
}

/// Kinds that are found to be older within this time are so for one reason.
const TOGETHER: std::time::Duration = std::time::Duration::from_mins(1);

/// An object of a watch.
pub(crate) fn reference(key: &WatchKey, meta: &Meta) -> ObjectRef {
    ObjectRef {
        cluster: key.cluster.clone(),
        kind: key.kind.clone(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    }
}
