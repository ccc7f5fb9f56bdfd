//! Takes the lists of watches into the stores.
//!
//! A watch's list is consistent and was begun after all that is known had been seen, except what we wrote or were told
//! since ([`crate::ledger`]). So it counts, also where it is older: then the API's storage was restored. From then on until
//! every kind has been listed again the stores are a mixture of two histories, on which nothing is decided.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::blocker::Blocker;
use slipway_kernel::identity::{ClusterId, Key, Kind, ObjectRef};
use slipway_kernel::store::{Change, Meta, StoreKey, number};
use tokio::time::Instant;

use super::State;
use crate::watch::WatchKey;

impl State {
    /// The stores that a watch feeds.
    pub(crate) fn fed_by(&self, key: &WatchKey) -> &[Arc<StoreKey>] {
        let known = self.of(&key.cluster);
        let watch = known.and_then(|known| known.watches.get(key));
        watch
            .map(|watch| watch.stores.as_slice())
            .unwrap_or_default()
    }

    /// Takes in an object of the list that a watch makes. Gives whether it is new, and whether it is older than what was
    /// known.
    pub(crate) fn take_listed(&mut self, key: &WatchKey, object: &Value) -> (bool, bool) {
        let known = self.of(&key.cluster);
        let Some((known, watch)) = known.and_then(|k| Some((k, k.watches.get(key)?))) else {
            return (false, false);
        };
        let meta = Meta::of(object);
        let reference = reference(key, &meta);
        let is_overtaken = known.ledger.is_since(watch.place, &reference);
        let is_restored = watch.rewound.is_some();
        let (mut is_new, mut is_older) = (false, false);
        for store in watch.stores.clone() {
            let Some(seen) = self.stores.store_mut(&store) else {
                continue;
            };
            let (change, older) = if is_restored {
                // That it is older is no news, and what was told beside it may be of either history: if it is of this one,
                // the watch tells of it.
                (seen.observe_restored(object), false)
            } else if is_overtaken {
                (seen.observe(object), false)
            } else {
                seen.observe_listed(object)
            };
            is_older |= older;
            if change == Change::Changed {
                self.changes.push((store.as_ref().clone(), meta.clone()));
                is_new = true;
            }
        }
        self.caught_up(&reference, &meta);
        (is_new, is_older)
    }

    /// A watch has shown an object in this version.
    pub(crate) fn caught_up(&mut self, object: &ObjectRef, meta: &Meta) {
        if let Some(known) = self.of_mut(&object.cluster) {
            known.ledger.caught_up(object, number(&meta.version));
        }
        self.look_at(object);
    }

    /// The versions of a cluster have run backwards: what was written and answered before is not of this history, and what
    /// was seen is not known until it has been listed again. Gives how long to wait before that: whatever makes versions
    /// run backwards again and again must not make us list everything as often.
    pub(crate) fn rewind(&mut self, cluster: &ClusterId, now: Timestamp) -> Duration {
        self.begin_history(cluster);
        self.keep_time(now);
        let Some(known) = self.of_mut(cluster) else {
            return Duration::ZERO;
        };
        for watch in known.watches.values_mut() {
            watch.rewound = Some(NOT_ASKED);
        }
        known.ledger.clear();
        known.bound_deletions(now, |_| true);
        known.unconfirmed.clear();
        known.answers.clear();
        known.forget_refusals();
        let before = known.relisted;
        self.say_what_is_awaited(cluster, now);
        before.map_or(Duration::ZERO, |at| TOGETHER.saturating_sub(at.elapsed()))
    }

    /// Everything in a cluster is listed again, and these are the rounds that show what there is after a restore.
    pub(crate) fn await_lists(
        &mut self,
        cluster: &ClusterId,
        rounds: impl IntoIterator<Item = (WatchKey, u64)>,
        now: Timestamp,
    ) {
        if let Some(known) = self.of_mut(cluster) {
            for (key, round) in rounds {
                if let Some(watch) = known.watches.get_mut(&key) {
                    watch.rewound = Some(round);
                }
            }
            known.relisted = Some(Instant::now());
        }
        self.say_what_is_awaited(cluster, now);
    }

    /// Whether a restore has been noticed after which not even a list has been asked for.
    pub(crate) fn is_list_due(&self, cluster: &ClusterId) -> bool {
        let watches = self.of(cluster).into_iter();
        let mut watches = watches.flat_map(|known| known.watches.values());
        watches.any(|watch| watch.rewound == Some(NOT_ASKED))
    }

    /// The history that what is known of a kind is of; none while that is not sure.
    pub(crate) fn history_of(&self, cluster: &ClusterId, kind: &Kind) -> Option<u64> {
        let known = self.of(cluster)?;
        let mut all = known.of_kind(cluster, kind);
        let is_awaited = all.any(|(key, _)| known.is_awaited(key));
        (!is_awaited).then_some(known.history)
    }

    /// A list has come to its end, or there is nothing to be listed. If it was waited for after a restore, what is in the
    /// stores now is what there is, and the versions of before count no more.
    pub(crate) fn restored(&mut self, key: &WatchKey, round: u64, now: Timestamp) {
        let known = self.of_mut(&key.cluster);
        let Some(watch) = known.and_then(|known| known.watches.get_mut(key)) else {
            return;
        };
        if watch.rewound.is_none_or(|wanted| round < wanted) {
            return;
        }
        watch.rewound = None;
        for store in watch.stores.clone() {
            if let Some(store) = self.stores.store_mut(&store) {
                store.rebase();
            }
        }
        self.say_what_is_awaited(&key.cluster, now);
    }

    /// Says why nothing is done, for as long as that is so.
    pub(crate) fn say_what_is_awaited(&mut self, cluster: &ClusterId, now: Timestamp) {
        let key = Key {
            cluster: cluster.clone(),
            controller: "restore",
            namespace: String::new(),
            name: String::new(),
        };
        let mut kinds: Vec<Kind> = Vec::new();
        if let Some(known) = self.of(cluster) {
            for of in known.watches.keys() {
                if known.is_waited_for(of) && !kinds.contains(&of.kind) {
                    kinds.push(of.kind.clone());
                }
            }
        }
        let Some(first) = kinds.first().cloned() else {
            self.blockers.remove(&key);
            return;
        };
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.plural.as_ref()).collect();
        let before = self.blockers.get(&key).and_then(|all| all.first());
        let blocker = Blocker {
            reason: RESTORED,
            message: format!(
                "the API's storage was restored; nothing is done until these have been listed again: {}",
                kinds.join(", ")
            ),
            object: ObjectRef {
                cluster: cluster.clone(),
                kind: first,
                namespace: String::new(),
                name: String::new(),
            },
            since: before.map_or(now, |blocker| blocker.since),
            until: None,
            unblock: "an API server that answers lists; then it goes on by itself".to_owned(),
        };
        self.blockers.insert(key, vec![blocker]);
    }
}

/// Why nothing is done after a restore.
const RESTORED: &str = "StorageRestored";

/// A list is waited for that has not been asked for: no round is as late.
const NOT_ASKED: u64 = u64::MAX;

/// After a restore everything is listed at once, and not again before this time has passed.
const TOGETHER: Duration = Duration::from_mins(1);

/// An object of a watch.
pub(crate) fn reference(key: &WatchKey, meta: &Meta) -> ObjectRef {
    ObjectRef {
        cluster: key.cluster.clone(),
        kind: key.kind.clone(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    }
}
