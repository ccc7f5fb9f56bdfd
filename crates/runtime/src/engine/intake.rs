//! Takes in what watches tell.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::Value;
use slipway_kernel::capability::WatchEvent;
use slipway_kernel::fact::{Missing, Unseen};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::interest::Need;
use slipway_kernel::store::{Change, Meta, Name, Store, StoreKey, Stores, number};
use tokio::time::Instant;

use super::Engine;
use crate::state::{State, Trust, WatchState, reference};
use crate::watch::{Failure, News, WatchKey};

/// A kind that has failed for this long is out of sync: a stream that breaks now and then is none.
const FAILING: Duration = Duration::from_secs(5);

impl Engine {
    pub(super) fn news(&mut self, key: &WatchKey, news: News) {
        let recovered = matches!(news, News::Reached);
        let round = match &news {
            News::Listed(_, round) => Some(*round),
            News::Missing(_) | News::Hidden(_) => Some(u64::MAX),
            _ => None,
        };
        let turned = {
            let shared = self.shared.clone();
            let mut state = shared.lock();
            let before = (unseen(&state, key), state.history);
            self.take_in(&mut state, key, news);
            before != (unseen(&state, key), state.history)
        };
        if let Some(round) = round {
            self.relisted(key, round);
        }
        if recovered {
            self.queue.clear_backoff();
        }
        if turned {
            self.replan();
        }
        self.shared.notify_observers();
    }

    /// All work is looked at again: what is known has changed, and no object has.
    fn replan(&mut self) {
        let stores = self.shared.lock().stores.clone();
        let now = Instant::now();
        let lanes: Vec<&'static str> = self.started.iter().map(|(_, name)| *name).collect();
        for controller in lanes {
            for key in self.keys_of(controller, &stores) {
                self.queue.changed(&key, now);
            }
        }
    }

    fn take_in(&mut self, state: &mut State, key: &WatchKey, news: News) {
        match news {
            News::Listing(place) => {
                if let Some(watch) = state.watches.get_mut(key) {
                    watch.place = place;
                }
            }
            News::Page(objects) => self.page(state, key, &objects),
            News::Listed(names, round) => self.listed(state, key, &names, round),
            News::Applied(object) => self.object(state, key, &object, false),
            News::Deleted(object) => self.object(state, key, &object, true),
            News::Missing(why) => {
                self.turned_away(state, key);
                self.missing(state, key, &why);
            }
            News::Doubtful => trust(state, key, Trust::Unlisted),
            News::Defined => self.defined(state, key),
            News::Hidden(why) => {
                self.turned_away(state, key);
                hidden(state, key, &why);
                state.say_what_is_awaited(&key.cluster, self.shared.environment.now());
            }
            News::Polled(why) => {
                if polled(state, key, true) {
                    let kind = key.kind.kind.as_ref();
                    tracing::warn!(
                        kind,
                        why,
                        "kind cannot be watched; it is listed again and again"
                    );
                }
            }
            News::Streamed => {
                polled(state, key, false);
            }
            News::Failed(why) => self.failed(state, key, &why),
            News::Reached => self.reached(state, key),
            News::Rewound => {
                let watch = state.watches.get(key);
                // Where a list is waited for, it is known already.
                if watch.is_some_and(|watch| watch.rewound.is_none()) {
                    self.rewound(state, &key.cluster);
                }
            }
        }
    }

    /// Objects of a list. One that is older than what is known tells of a restore of the API's storage.
    fn page(&mut self, state: &mut State, key: &WatchKey, objects: &[Value]) {
        let mut is_rewound = false;
        for object in objects {
            let (is_new, is_older) = state.take_listed(key, object);
            self.count(key, object, false, is_new);
            is_rewound |= is_older;
        }
        if is_rewound {
            self.rewound(state, &key.cluster);
        }
    }

    /// One object has changed or is gone.
    fn object(&self, state: &mut State, key: &WatchKey, object: &Value, is_deletion: bool) {
        let observe: fn(&mut Store, &Value) -> Change = if is_deletion {
            Store::observe_deletion
        } else {
            Store::observe
        };
        let meta = Meta::of(object);
        let mut is_new = false;
        for store in self.stores(key) {
            let seen = state.stores.store_mut(&store);
            if seen.is_some_and(|store| observe(store, object) == Change::Changed) {
                state.changes.push((store, meta.clone()));
                is_new = true;
            }
        }
        self.count(key, object, is_deletion, is_new);
        let object = reference(key, &meta);
        state.ledger.caught_up(&object, number(&meta.version));
        state.look_at(&object);
    }

    /// Counts an arrival, where a capability wants that.
    fn count(&self, key: &WatchKey, object: &Value, is_deletion: bool, is_new: bool) {
        let arrival = WatchEvent {
            kind: &key.kind,
            object,
            is_deletion,
            is_new,
        };
        for capability in self.capabilities.values() {
            if let Some(count) = capability.metric_for(&arrival) {
                self.shared.metrics.traffic.count(&count);
            }
        }
    }

    fn stores(&self, key: &WatchKey) -> Vec<StoreKey> {
        let watched = self.watches.get(key);
        watched.map_or_else(Vec::new, |w| w.stores.iter().cloned().collect())
    }

    /// All objects have been taken in; others are gone.
    fn listed(&mut self, state: &mut State, key: &WatchKey, names: &BTreeSet<Name>, round: u64) {
        let watch = state.watches.get(key);
        let place = watch.map_or(0, |watch| watch.place);
        // What we wrote or were told of while the list was made may be missing in it. What we were told is gone is not in
        // the stores any more. After a restore it may be of before, and if it is not, the watch tells of it.
        let kept = if watch.is_some_and(|watch| watch.rewound.is_some()) {
            BTreeSet::new()
        } else {
            state.ledger.since(place, &key.cluster, &key.kind)
        };
        let is_within = |name: &Name| key.namespace.is_empty() || name.0 == key.namespace;
        let mut is_ahead = false;
        for store in self.stores(key) {
            let seen = state.stores.store_mut(&store);
            let gone = seen.map(|store| {
                let mut ahead = kept.difference(names).filter(|name| is_within(name));
                is_ahead |= ahead.any(|name| store.get(&name.0, &name.1).is_some());
                store.retain_listed(&key.namespace, names, &kept)
            });
            for meta in gone.unwrap_or_default() {
                state.look_at(&reference(key, &meta));
                state.changes.push((store.clone(), meta));
            }
        }
        // Only now are those out that the restored storage does not have.
        state.restored(key, round, self.shared.environment.now());
        if is_ahead && let Some(watched) = self.watches.get(key) {
            watched.control.relist();
        }
        if let Some(watch) = state.watches.get_mut(key) {
            watch.listed = true;
            watch.off = false;
        }
        seen(state, key);
        trust(state, key, Trust::Sound);
        absences(state, key);
        self.sync(state, key);
    }

    /// A watch does not get on. What it could forbid waits, once that has lasted.
    fn failed(&mut self, state: &mut State, key: &WatchKey, why: &Failure) {
        let (cluster, kind) = (key.cluster.to_string(), key.kind.kind.as_ref());
        self.shared.metrics.watch_failed(&cluster, kind);
        self.outages
            .failed(key, why, &self.shared.settings.server, Instant::now());
        let Some(watch) = state.watches.get(key) else {
            return;
        };
        let since = watch.control.failing().map(|(since, _)| since);
        let has_lasted = since.is_some_and(|since| since.elapsed() >= FAILING);
        let is_meant = watch.need == Need::RequiredIfServed && watch.listed;
        if has_lasted && is_meant && watch.trust == Trust::Sound {
            trust(state, key, Trust::Failing);
        }
    }

    /// The API answers that a kind is not there or may not be seen.
    fn turned_away(&mut self, state: &State, key: &WatchKey) {
        self.outages.refused(key, Instant::now());
        if let Some(watch) = state.watches.get(key) {
            watch.control.answered();
        }
    }

    /// The API answers again. The beginning of an answer does not say yet what has changed meanwhile (an expired watch is
    /// opened like any other), so what was out of sync is listed first.
    fn reached(&mut self, state: &State, key: &WatchKey) {
        self.outages.reached(key, Instant::now());
        let watch = state.watches.get(key);
        if let Some(watch) = watch.filter(|watch| watch.trust == Trust::Failing) {
            watch.control.relist();
        }
    }

    /// A kind is defined now: until it has been listed, there may be anything.
    fn defined(&mut self, state: &mut State, key: &WatchKey) {
        let kind = key.kind.kind.as_ref();
        tracing::info!(kind, "kind is defined now; listing it");
        if let Some(watch) = state.watches.get_mut(key) {
            watch.off = false;
            watch.listed = false;
        }
        trust(state, key, Trust::Unlisted);
        absences(state, key);
        // The watches of other namespaces need not find out by themselves.
        let others = state.watches.iter();
        for (_, other) in others.filter(|(of, other)| of.shares_kind(key) && other.off) {
            other.control.relist();
        }
        self.sync(state, key);
    }

    fn missing(&mut self, state: &mut State, key: &WatchKey, why: &Failure) {
        if let Some(watch) = state.watches.get_mut(key) {
            watch.off = true;
            watch.listed = false;
        }
        polled(state, key, false);
        seen(state, key);
        trust(state, key, Trust::Sound);
        if absences(state, key) {
            let kind = key.kind.kind.as_ref();
            tracing::warn!(kind, %why, "optional kind cannot be watched; going on without it");
        }
        for store in self.stores(key) {
            let seen = state.stores.store_mut(&store);
            let gone = seen.map(|store| store.forget_extent(&key.namespace));
            for meta in gone.unwrap_or_default() {
                state.changes.push((store.clone(), meta));
            }
        }
        state.restored(key, u64::MAX, self.shared.environment.now());
        self.sync(state, key);
    }

    /// A store is complete when all of its watches are. Where a right is missing in one namespace, those of the others are.
    fn sync(&mut self, state: &mut State, key: &WatchKey) {
        for store in self.stores(key) {
            let watches = || {
                let watched = self.watches.iter();
                let watched = watched.filter(|(_, watched)| watched.stores.contains(&store));
                watched.filter_map(|(key, _)| Some((key, state.watches.get(key)?)))
            };
            let is_without = |key: &WatchKey, watch: &WatchState| {
                watch.off && watch.need == Need::Optional && !state.hidden.contains(key)
            };
            let complete = watches().any(|(_, watch)| watch.listed)
                && watches().all(|(key, watch)| watch.listed || is_without(key, watch));
            if let Some(store) = state.stores.store_mut(&store)
                && store.is_synced() != complete
            {
                store.set_synced(complete);
            }
        }
    }

    /// Lets the lanes go whose stores are complete now.
    pub(super) fn release_lanes(&mut self) {
        let now = Instant::now();
        let controllers: Vec<&'static str> = self.capabilities.keys().copied().collect();
        for controller in controllers {
            let cluster = ClusterId::local();
            let lane = (cluster, controller);
            if self.started.contains(&lane) {
                continue;
            }
            let (complete, stores) = {
                let state = self.shared.lock();
                let needs = self.needs.get(controller);
                let complete = needs.into_iter().flatten().all(|key| {
                    let watch = state.watches.get(key);
                    watch.is_some_and(|w| w.listed || w.off) && !state.is_awaited(key)
                });
                (complete, state.stores.clone())
            };
            if !complete {
                continue;
            }
            self.started.insert(lane.clone());
            self.queue.hold(&lane, false);
            tracing::info!(controller, "all objects listed");
            for key in self.keys_of(controller, &stores) {
                self.queue.at_once(&key, now);
            }
        }
    }

    pub(super) fn keys_of(&self, controller: &'static str, stores: &Stores) -> Vec<Key> {
        let Some(capability) = self.capabilities.get(controller) else {
            return Vec::new();
        };
        catch_unwind(AssertUnwindSafe(|| capability.keys(stores))).unwrap_or_default()
    }

    /// Queues the work that changes of stores are.
    pub(super) fn take_changes(&mut self) {
        let (changes, stores) = {
            let mut state = self.shared.lock();
            let changes = std::mem::take(&mut state.changes);
            // A snapshot makes the next change of a store a copy, so none is taken without need.
            let stores = (!changes.is_empty()).then(|| state.stores.clone());
            (changes, stores.unwrap_or_default())
        };
        let now = Instant::now();
        let is_quiet = changes.is_empty();
        for (store, meta) in changes {
            let Some(feeds) = self.feeds.get(&store) else {
                continue;
            };
            for triggers in &feeds.triggers {
                for key in triggers(&store.0, &meta, &stores) {
                    self.queue.changed(&key, now);
                }
            }
        }
        if !is_quiet {
            self.requeue_vanished_keys(&stores, now);
        }
        drop(stores);
        self.release_lanes();
    }

    /// Work that is none any more is looked at once more, so that nothing goes on telling of it: no object that is left
    /// leads to it.
    fn requeue_vanished_keys(&mut self, stores: &Stores, now: Instant) {
        let controllers: BTreeSet<&'static str> = self.shown.iter().map(|k| k.controller).collect();
        for controller in controllers {
            let keys: BTreeSet<Key> = self.keys_of(controller, stores).into_iter().collect();
            let gone = self.shown.iter().filter(|key| key.controller == controller);
            for key in gone.filter(|key| !keys.contains(key)) {
                self.queue.changed(key, now);
            }
        }
    }
}

/// A kind is there and may not be seen, or not any more. What was under way when it was last seen still counts against
/// budgets, so nothing is forgotten; if it was never seen, the rest goes on without.
fn hidden(state: &mut State, key: &WatchKey, why: &Failure) {
    if let Some(watch) = state.watches.get_mut(key) {
        watch.off = !watch.listed;
    }
    state.hidden.insert(key.clone());
    let missing = unseen_as(Unseen::Forbidden, key);
    if state.facts.missing.insert(missing) {
        let kind = key.kind.kind.as_ref();
        tracing::warn!(kind, %why, "no right to see this kind; what was seen last counts until there is");
    }
}

/// A kind can be seen, or is not there.
fn seen(state: &mut State, key: &WatchKey) {
    state.hidden.remove(key);
    if !state.hidden.iter().any(|other| other.shares_kind(key)) {
        let missing = unseen_as(Unseen::Forbidden, key);
        state.facts.missing.remove(&missing);
    }
}

/// Notes whether a kind is seen, but late; gives whether that is new.
fn polled(state: &mut State, key: &WatchKey, is_polled: bool) -> bool {
    if is_polled {
        state.polled.insert(key.clone());
    } else {
        state.polled.remove(key);
    }
    let missing = unseen_as(Unseen::Late, key);
    if state.polled.iter().any(|other| other.shares_kind(key)) {
        return state.facts.missing.insert(missing);
    }
    state.facts.missing.remove(&missing);
    false
}

/// Notes whether what is known of a kind is all that there is.
fn trust(state: &mut State, key: &WatchKey, trust: Trust) {
    if let Some(watch) = state.watches.get_mut(key) {
        watch.trust = trust;
    }
    let missing = unseen_as(Unseen::OutOfSync, key);
    let mut all = state.watches.iter();
    let is_doubted =
        all.any(|(other, watch)| other.shares_kind(key) && watch.trust != Trust::Sound);
    if is_doubted || state.is_disputed(key) {
        state.facts.missing.insert(missing);
    } else {
        state.facts.missing.remove(&missing);
    }
}

/// Notes where a kind is done without; gives whether anything was added to that.
fn absences(state: &mut State, key: &WatchKey) -> bool {
    let missing = unseen_as(Unseen::Absent, key);
    let mut absent: BTreeSet<Missing> = BTreeSet::new();
    if !state.is_disputed(key) {
        let (mut off, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (other, watch) in &state.watches {
            if !other.shares_kind(key) {
                continue;
            }
            all.insert(&other.namespace);
            if watch.off && !state.hidden.contains(other) {
                off.insert(&other.namespace);
            }
        }
        if !off.is_empty() && (off == all || off.iter().any(|namespace| namespace.is_empty())) {
            absent.insert(missing.clone());
        } else {
            absent.extend(
                off.iter()
                    .map(|namespace| missing.clone().within(namespace)),
            );
        }
    }
    let known = state.facts.unseen(Unseen::Absent, &key.cluster, &key.kind);
    let known: BTreeSet<Missing> = known.cloned().collect();
    if known == absent {
        return false;
    }
    let facts = &mut state.facts.missing;
    facts.retain(|one| !known.contains(one));
    facts.extend(absent.iter().cloned());
    !absent.is_subset(&known)
}

fn unseen_as(how: Unseen, key: &WatchKey) -> Missing {
    Missing::unseen(how, &key.cluster, &key.kind)
}

/// How a kind is not seen as it is: whoever plans has to know of a change in this.
fn unseen(state: &State, key: &WatchKey) -> Vec<Missing> {
    let ways = [Unseen::Absent, Unseen::Forbidden, Unseen::OutOfSync];
    let unseen = |how| state.facts.unseen(how, &key.cluster, &key.kind);
    ways.into_iter().flat_map(unseen).cloned().collect()
}
