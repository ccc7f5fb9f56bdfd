//! Takes in what watches tell.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use slipway_kernel::capability::WatchEvent;
use slipway_kernel::identity::ClusterId;
use slipway_kernel::interest::Need;
use slipway_kernel::store::{Change, Meta, Name, Store, StoreKey};
use tokio::time::Instant;

use super::Engine;
use super::crowd::{fitting, forget};
use super::unseen::{absences, hidden, polled, seen, trust, unseen};
use crate::state::{FAILING, State, Trust, WatchState, reference};
use crate::watch::{Failure, News, WatchKey};

/// A member of which a kind that is needed has failed for this long is not known, whatever else it answers.
const UNREAD: Duration = Duration::from_secs(30);

impl Engine {
    pub(super) fn news(&mut self, key: &WatchKey, run: u64, news: News) {
        let site = self.sites.get(&key.cluster);
        let watched = site.and_then(|site| site.watches.get(key));
        // What a watch tells that has been ended is of another time.
        if watched.is_none_or(|watched| watched.control.run != run) {
            return;
        }
        if self.is_left_out(key, &news) {
            return;
        }
        let recovered = matches!(news, News::Reached);
        let round = match &news {
            News::Listed(_, round) => Some(*round),
            News::Missing(_) | News::Hidden(_) => Some(u64::MAX),
            _ => None,
        };
        if matches!(news, News::Ended) {
            self.doubt(&key.cluster);
            return;
        }
        if let News::Failed(why) = &news
            && (why.is_about_the_server() || why.code() == Some(401))
        {
            self.doubt(&key.cluster);
        }
        if is_about_all(&news) {
            self.suspect(&key.cluster);
        }
        let is_list = matches!(news, News::Listed(..));
        let is_failure = matches!(news, News::Failed(_));
        let is_too_much = matches!(&news, News::Failed(why) if why.is_too_much());
        let (turned, complete) = {
            let shared = self.shared.clone();
            let mut state = shared.lock();
            let history = |state: &State| state.history(&key.cluster);
            let before = (unseen(&state, key), history(&state));
            let mut waited = BTreeSet::new();
            if is_list {
                waited = self.unlisted_for(&state, key);
            }
            self.take_in(&mut state, key, news);
            if !waited.is_empty() {
                let left = self.unlisted_for(&state, key);
                waited.retain(|controller| !left.contains(controller));
            }
            let turned = before != (unseen(&state, key), history(&state));
            (turned, waited)
        };
        self.unsettled.insert(key.cluster.clone());
        if is_failure && is_done_without(&self.shared.lock(), key) {
            // Whoever waits for its list may wait for ever.
            self.relisted(key, u64::MAX);
        }
        if is_too_much {
            self.assess(&key.cluster);
        }
        if let Some(round) = round {
            self.relisted(key, round);
        }
        if recovered {
            self.queue.clear_backoff(&key.cluster);
        }
        if turned {
            self.replan(&key.cluster);
            if !key.cluster.is_local() && !self.started(&key.cluster).is_empty() {
                // Home's plans go by what can be seen of a member, and where there is no object of a kind, none tells that it has come.
                // Until all of it is known, that it is will be told.
                self.tell_of(&key.cluster);
            }
        } else if !complete.is_empty() {
            self.replan_for(&key.cluster, complete);
            if !key.cluster.is_local() {
                self.tell_of(&key.cluster);
            }
        }
        self.shared.notify_observers();
    }

    /// All work in a cluster is looked at again: what is known has changed, and no object has.
    pub(super) fn replan(&mut self, cluster: &ClusterId) {
        self.replan_for(cluster, self.started(cluster));
    }

    fn replan_for(
        &mut self,
        cluster: &ClusterId,
        controllers: impl IntoIterator<Item = &'static str>,
    ) {
        let stores = self.shared.lock().stores.clone();
        let now = Instant::now();
        for controller in controllers {
            for key in self.keys_in(controller, &stores, cluster) {
                self.queue.changed(&key, now);
            }
        }
    }

    /// Who asked at run time for a kind as a whole that has not been listed for them yet, or began without one that could not be.
    /// Nothing waits for such a list, and where there is no object in it, none tells that it is there.
    fn unlisted_for(&self, state: &State, key: &WatchKey) -> BTreeSet<&'static str> {
        let site = self.sites.get(&key.cluster);
        let watched = site.and_then(|site| site.watches.get(key));
        let Some(watched) = watched.filter(|_| key.name.is_none()) else {
            return BTreeSet::new();
        };
        let is_listed = |store: &StoreKey| state.stores.store(store).is_some_and(Store::is_synced);
        let stores = watched.stores.iter().filter(|(one, _)| !is_listed(one));
        let users = stores.flat_map(|(_, users)| users);
        let is_begun = |name: &str| site.is_some_and(|site| site.started.contains(name));
        users
            .filter(|(controller, is_asked)| *is_asked || is_begun(controller))
            .map(|(controller, _)| *controller)
            .collect()
    }

    fn take_in(&mut self, state: &mut State, key: &WatchKey, news: News) {
        match news {
            News::Listing(place) => {
                if let Some(watch) = watch_mut(state, key) {
                    watch.place = place;
                    watch.lists_since = Some(Instant::now());
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
                fitting(state, key);
                hidden(state, key, &why);
                self.sync(state, key);
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
                let watch = watch(state, key);
                // Where a list is waited for, it is known already.
                if watch.is_some_and(|watch| watch.rewound.is_none()) {
                    self.rewound(state, &key.cluster);
                }
            }
            News::Ended => {}
        }
    }

    /// Objects of a list. One that is older than what is known tells of a restore of the API's storage.
    fn page(&mut self, state: &mut State, key: &WatchKey, objects: &[Value]) {
        if !self.has_room_for(state, key, objects.len()) {
            crowd(state, key);
            return;
        }
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
        if !is_deletion && !self.has_room(state, key, &meta) {
            crowd(state, key);
            return;
        }
        let mut is_new = false;
        for store in state.fed_by(key).to_vec() {
            let seen = state.stores.store_mut(&store);
            if seen.is_some_and(|store| observe(store, object) == Change::Changed) {
                state.changes.push((store.as_ref().clone(), meta.clone()));
                is_new = true;
            }
        }
        self.count(key, object, is_deletion, is_new);
        state.caught_up(&reference(key, &meta), &meta);
    }

    /// Counts an arrival, where a capability wants that.
    fn count(&self, key: &WatchKey, object: &Value, is_deletion: bool, is_new: bool) {
        if !key.cluster.is_local() {
            return;
        }
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

    /// All objects have been taken in; others are gone.
    fn listed(&mut self, state: &mut State, key: &WatchKey, names: &BTreeSet<Name>, round: u64) {
        let watch = watch(state, key);
        let place = watch.map_or(0, |watch| watch.place);
        // What we wrote or were told of while the list was made may be missing in it. What we were told is gone is not in
        // the stores any more. After a restore it may be of before, and if it is not, the watch tells of it.
        let is_restored = watch.is_some_and(|watch| watch.rewound.is_some());
        let kept = match state.of(&key.cluster) {
            Some(known) if !is_restored => known.ledger.since(place, &key.kind),
            _ => BTreeSet::new(),
        };
        let single = key.single();
        let is_within = |name: &Name| key.namespace.is_empty() || name.0 == key.namespace;
        let mut is_ahead = false;
        for store in state.fed_by(key).to_vec() {
            let seen = state.stores.store_mut(&store);
            let gone = seen.map(|store| {
                let mut ahead = kept.difference(names).filter(|name| is_within(name));
                is_ahead |= ahead.any(|name| store.get(&name.0, &name.1).is_some());
                match &single {
                    // Others of the store are not in its list.
                    Some(name) if names.contains(name) || kept.contains(name) => Vec::new(),
                    Some(name) => store.observe_unlisted(name).into_iter().collect(),
                    None => store.retain_listed(&key.namespace, names, &kept),
                }
            });
            for meta in gone.unwrap_or_default() {
                state.look_at(&reference(key, &meta));
                state.changes.push((store.as_ref().clone(), meta));
            }
        }
        if !self.fits(state, key) {
            crowd(state, key);
            return;
        }
        fitting(state, key);
        // Only now are those out that the restored storage does not have.
        state.restored(key, round, self.shared.environment.now());
        if let Some(watch) = watch_mut(state, key) {
            if is_ahead {
                watch.control.relist();
            }
            watch.listed = true;
            watch.off = false;
            watch.listed_since = watch.lists_since.take();
        }
        seen(state, key);
        trust(state, key, Trust::Sound);
        absences(state, key);
        self.sync(state, key);
    }

    /// A watch does not get on. What it could forbid waits, once that has lasted.
    fn failed(&mut self, state: &mut State, key: &WatchKey, why: &Failure) {
        let (kind, is_home) = (key.kind.kind.as_ref(), key.cluster.is_local());
        // Of members the state says which one it is: series for each of many would be too many.
        let cluster = if is_home { "local" } else { "members" };
        self.shared.metrics.watch_failed(cluster, kind);
        let server = self.shared.settings.server.as_str();
        let server = if is_home { server } else { "" };
        if let Some(site) = self.sites.get_mut(&key.cluster) {
            site.outages.failed(key, why, server, Instant::now());
        }
        if why.is_too_much() {
            self.too_much(state, key, why);
        }
        let Some(watch) = watch_mut(state, key) else {
            return;
        };
        watch.lists_since = None;
        let since = watch.control.failing().map(|(since, _)| since);
        let has_lasted = |time| since.is_some_and(|since| since.elapsed() >= time);
        let is_unread = !is_home && watch.need != Need::Optional && has_lasted(UNREAD);
        let is_meant = watch.need == Need::RequiredIfServed && watch.listed;
        if has_lasted(FAILING) && is_meant && watch.trust == Trust::Sound {
            trust(state, key, Trust::Failing);
        }
        if let Some(since) = since.filter(|_| is_unread) {
            self.unread(state, key, since);
        }
        if is_done_without(state, key) {
            // What was seen of it before a restore is not what there is.
            if let Some(watch) = watch_mut(state, key)
                && watch.rewound.is_some()
            {
                watch.listed = false;
                self.sync(state, key);
            }
            state.say_what_is_awaited(&key.cluster, self.shared.environment.now());
        }
    }

    /// The API answers that a kind is not there or may not be seen.
    fn turned_away(&mut self, state: &State, key: &WatchKey) {
        if let Some(site) = self.sites.get_mut(&key.cluster) {
            site.outages.refused(key, Instant::now());
        }
        if let Some(watch) = watch(state, key) {
            watch.control.answered();
        }
    }

    /// The API answers again. The beginning of an answer does not say yet what has changed meanwhile (an expired watch is
    /// opened like any other), so what was out of sync is listed first.
    fn reached(&mut self, state: &State, key: &WatchKey) {
        if let Some(site) = self.sites.get_mut(&key.cluster) {
            site.outages.reached(key, Instant::now());
        }
        let watch = watch(state, key);
        if let Some(watch) = watch.filter(|watch| watch.trust == Trust::Failing) {
            watch.control.relist();
        }
    }

    /// A kind is defined now: until it has been listed, there may be anything.
    fn defined(&mut self, state: &mut State, key: &WatchKey) {
        let kind = key.kind.kind.as_ref();
        tracing::info!(kind, "kind is defined now; listing it");
        if let Some(watch) = watch_mut(state, key) {
            watch.off = false;
            watch.listed = false;
        }
        trust(state, key, Trust::Unlisted);
        absences(state, key);
        // The watches of other namespaces need not find out by themselves.
        let known = state.of(&key.cluster).into_iter();
        let others = known.flat_map(|known| known.of_kind(&key.cluster, &key.kind));
        for (_, other) in others.filter(|(_, other)| other.off) {
            other.control.relist();
        }
        self.sync(state, key);
    }

    fn missing(&mut self, state: &mut State, key: &WatchKey, why: &Failure) {
        if let Some(watch) = watch_mut(state, key) {
            watch.off = true;
            watch.listed = false;
            watch.lists_since = None;
        }
        polled(state, key, false);
        seen(state, key);
        trust(state, key, Trust::Sound);
        if absences(state, key) {
            let kind = key.kind.kind.as_ref();
            tracing::warn!(kind, %why, "optional kind cannot be watched; going on without it");
        }
        fitting(state, key);
        forget(state, key);
        state.restored(key, u64::MAX, self.shared.environment.now());
        self.sync(state, key);
    }

    /// A store is complete when all of its watches are. Where a right is missing in one namespace, those of the others are.
    pub(super) fn sync(&mut self, state: &mut State, key: &WatchKey) {
        for store in state.fed_by(key).to_vec() {
            let site = self.sites.get(&key.cluster);
            let feeds = site.and_then(|site| site.feeds.get(&store));
            let Some((feeds, known)) = feeds.zip(state.of(&key.cluster)) else {
                continue;
            };
            let watches = || {
                let watched = feeds.watches.iter();
                watched.filter_map(|key| Some((key, known.watches.get(key)?)))
            };
            let is_without = |key: &WatchKey, watch: &WatchState| {
                watch.off && watch.need == Need::Optional && !known.hidden.contains(key)
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
}

fn watch<'a>(state: &'a State, key: &WatchKey) -> Option<&'a WatchState> {
    state.of(&key.cluster)?.watches.get(key).map(AsRef::as_ref)
}

fn watch_mut<'a>(state: &'a mut State, key: &WatchKey) -> Option<&'a mut WatchState> {
    let known = state.of_mut(&key.cluster)?;
    known.watches.get_mut(key).map(AsMut::as_mut)
}

/// There is no room for what a watch tells.
fn crowd(state: &State, key: &WatchKey) {
    if let Some(watch) = watch(state, key) {
        watch.control.crowd();
    }
}

/// Whether it may be told that objects are gone without a word about each.
fn is_about_all(news: &News) -> bool {
    matches!(
        news,
        News::Listing(_) | News::Listed(..) | News::Missing(_) | News::Hidden(_)
    )
}

/// Whether a kind of a member can be done without, and is for now: it fails, and has for a while. Nobody waits for it then.
fn is_done_without(state: &State, key: &WatchKey) -> bool {
    watch(state, key).is_some_and(|watch| watch.is_done_without(key))
}
