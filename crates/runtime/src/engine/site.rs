//! One cluster as the loop works on it: its watches, what hangs on them, and who waits for what.
//!
//! Watches are shared by all interests that select the same objects, and stores by all that keep the same of them. Both are
//! given up with the last interest.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, abortable};
use slipway_kernel::identity::ClusterId;
use slipway_kernel::interest::{Interest, Means, Need, Triggers};
use slipway_kernel::parts::Parts;
use slipway_kernel::selector::Selector;
use slipway_kernel::store::StoreKey;

use super::Engine;
use super::fence::Fencing;
use super::members::Link;
use super::outage::Outages;
use crate::clusters::Cluster;
use crate::message::Message;
use crate::state::{StoreSelector, Trust, WatchState};
use crate::watch::{Bounds, Control, Listener, Times, Wanted, Watch, WatchKey};

/// How long one page of a list may take.
const LIST_PATIENCE: Duration = Duration::from_secs(30);

/// Who is interested, and whether that is known only at run time.
pub(super) type User = (&'static str, bool);

/// One watch, and what hangs on it.
pub(super) struct Watched {
    pub(super) control: Arc<Control>,
    /// What is fed by it, and for whom.
    pub(super) stores: BTreeMap<Arc<StoreKey>, BTreeSet<User>>,
    /// What some projection of its objects reads, and what is read of them.
    reads: Parts,
    is_read: Parts,
    need: Need,
    /// Ends it.
    end: Option<AbortHandle>,
}

/// What a store's changes lead to.
#[derive(Default)]
pub(super) struct Feeds {
    pub(super) triggers: BTreeMap<User, Vec<Triggers>>,
    /// Which members the objects mean, for whom.
    pub(super) means: Vec<(&'static str, Means)>,
    /// All watches that feed it.
    pub(super) watches: BTreeSet<WatchKey>,
    /// Which objects it has.
    selection: String,
}

/// One cluster. A node of a map has room for eleven, and most clusters have one or two of each: so what is large is beside it.
#[derive(Default)]
pub(super) struct Site {
    pub(super) watches: BTreeMap<WatchKey, Box<Watched>>,
    pub(super) feeds: BTreeMap<Arc<StoreKey>, Box<Feeds>>,
    /// What each controller cannot do without, and all that it sees, as far as that is known from the start.
    pub(super) needs: BTreeMap<&'static str, BTreeSet<WatchKey>>,
    /// What each controller has asked to see at run time.
    asked: BTreeMap<&'static str, BTreeSet<(StoreKey, WatchKey)>>,
    /// Who has begun to work: all that it needs has been listed.
    pub(super) started: BTreeSet<&'static str>,
    pub(super) fences: BTreeMap<&'static str, Fencing>,
    pub(super) outages: Outages,
    /// Lists that are waited for since the cluster answers again, by their numbers.
    pub(super) returning: BTreeMap<WatchKey, u64>,
    /// Of a member: how it is reached.
    pub(super) link: Option<Link>,
}

impl Site {
    /// A member that is reached in this way.
    pub(super) fn of_member(link: Link) -> Self {
        Self {
            link: Some(link),
            ..Self::default()
        }
    }
}

impl Engine {
    /// Opens what a controller wants to see of a cluster from the start; gives the watches with how much they are needed.
    pub(super) fn open_all(
        &mut self,
        cluster: &ClusterId,
        controllers: &[&'static str],
    ) -> BTreeSet<WatchKey> {
        let mut opened = BTreeSet::new();
        for &name in controllers {
            let Some(capability) = self.capabilities.get(name).cloned() else {
                continue;
            };
            for interest in capability.interests() {
                if !interest.at.holds(cluster) {
                    continue;
                }
                for key in self.open(cluster, (name, false), &interest) {
                    if let Some(site) = self.sites.get_mut(cluster) {
                        site.needs.entry(name).or_default().insert(key.clone());
                    }
                    opened.insert(key);
                }
            }
        }
        opened
    }

    /// Makes room for an interest; gives the watches that it needs.
    fn open(&mut self, cluster: &ClusterId, user: User, interest: &Interest) -> Vec<WatchKey> {
        let (namespaces, keys) = self.watch_keys(cluster, interest);
        let store = {
            let mut state = self.shared.lock();
            let store = Arc::new(state.stores.open(cluster, interest));
            let selector = StoreSelector {
                labels: Selector::parse(&interest.labels),
                named: keys.iter().any(|key| key.name.is_some()),
                namespaces,
            };
            if let Some(known) = state.of_mut(cluster) {
                known.selectors.insert(store.clone(), Box::new(selector));
            }
            store
        };
        let Some(site) = self.sites.get_mut(cluster) else {
            return Vec::new();
        };
        let feeds = site.feeds.entry(store.clone()).or_default();
        feeds.selection = interest.selection();
        let triggers = feeds.triggers.entry(user).or_default();
        let is_same = |known: &Triggers| std::ptr::fn_addr_eq(*known, interest.triggers);
        // What is asked for at run time may be many objects of one store.
        if !(user.1 && triggers.iter().any(is_same)) {
            triggers.push(interest.triggers);
        }
        let is_known = |means: &Means| {
            let mut known = feeds.means.iter();
            known.any(|(name, known)| *name == user.0 && std::ptr::fn_addr_eq(*known, *means))
        };
        let means = interest.means.filter(|means| !is_known(means));
        feeds.means.extend(means.map(|means| (user.0, means)));
        for key in &keys {
            feeds.watches.insert(key.clone());
            let run = self.runs;
            let watched = site.watches.entry(key.clone()).or_insert_with(|| {
                Box::new(Watched {
                    control: Arc::new(Control::new(run)),
                    stores: BTreeMap::new(),
                    reads: Parts::NONE,
                    is_read: Parts::NONE,
                    need: Need::Optional,
                    end: None,
                })
            });
            self.runs += 1;
            watched
                .stores
                .entry(store.clone())
                .or_default()
                .insert(user);
            watched.reads = watched.reads.or(interest.reads);
            watched.need = watched.need.max(interest.need);
        }
        keys
    }

    /// The namespaces that an interest is limited to, and its watches.
    fn watch_keys(&self, cluster: &ClusterId, interest: &Interest) -> (Vec<String>, Vec<WatchKey>) {
        let settings = &self.shared.settings;
        let (namespaces, places) = match (&interest.only, &interest.own) {
            // Several of these share a store, so it is limited by its watches alone.
            (Some((namespace, _)), _) => (Vec::new(), vec![namespace.clone()]),
            (None, Some(_)) => (
                vec![settings.namespace.clone()],
                vec![settings.namespace.clone()],
            ),
            (None, None) if interest.kind.namespaced && !settings.namespaces.is_empty() => {
                (settings.namespaces.clone(), settings.namespaces.clone())
            }
            (None, None) => (Vec::new(), vec![String::new()]),
        };
        let only = interest.only.as_ref().map(|(_, name)| name.as_str());
        let own = interest.own.as_ref().or(interest.named.as_ref());
        let name: Option<Arc<str>> = only.or(own.map(Cow::as_ref)).map(Arc::from);
        let keys = places.into_iter().map(|namespace| {
            WatchKey::from(Wanted {
                cluster: cluster.clone(),
                kind: interest.kind.clone(),
                labels: interest.labels.clone(),
                namespace,
                name: name.clone(),
            })
        });
        (namespaces, keys.collect())
    }

    /// Begins watches that have been opened.
    pub(super) fn watch_all(&mut self, cluster: &ClusterId, keys: BTreeSet<WatchKey>, at: Trust) {
        let Some(reached) = self.clusters.get(cluster) else {
            return;
        };
        for key in keys {
            self.watch(key, &reached, at);
        }
    }

    fn watch(&mut self, key: WatchKey, reached: &Cluster, trust: Trust) {
        let cluster = key.cluster.clone();
        let quiet = self.quiet_of(&cluster);
        let watched = self.sites.get_mut(&cluster);
        let Some(watched) = watched.and_then(|site| site.watches.get_mut(&key)) else {
            return;
        };
        let (need, control) = (watched.need, watched.control.clone());
        control.begin_quiet(quiet);
        let state = WatchState {
            need,
            listed: false,
            off: false,
            trust,
            control: control.clone(),
            stores: watched.stores.keys().cloned().collect(),
            place: 0,
            rewound: None,
            lists_since: None,
            listed_since: None,
        };
        let places = {
            let mut all = self.shared.lock();
            let Some(known) = all.of_mut(&cluster) else {
                return;
            };
            known.watches.insert(key.clone(), Box::new(state));
            known.ledger.places()
        };
        let plain = reached.client.clone();
        let (news, ear) = (self.sender.clone(), control.clone());
        let listener = Listener::new(plain.clone(), key.clone(), ear, news);
        let settings = &self.shared.settings;
        let watch = Watch {
            rights: reached.rights.clone(),
            listener,
            plain,
            need,
            reads: watched.reads,
            times: Times {
                answer: LIST_PATIENCE,
                missing: settings.heartbeat,
                relist: settings.relist_of(&cluster),
                poll: settings.poll,
                // Whether a member answers is asked once for all of its watches.
                silence: cluster.is_local().then_some(settings.silence),
            },
            control,
            places,
            news: self.sender.clone(),
            room: (!cluster.is_local()).then(|| reached.news.clone()),
            bounds: Bounds::of(settings.bound_of(&cluster)),
            key,
        };
        let (watching, end) = abortable(watch.run());
        watched.end = Some(end);
        watched.is_read = watched.reads;
        self.start(async move {
            let _ = watching.await;
            Message::Ended
        });
    }

    /// Opens and closes what a controller asks to see of a cluster at run time.
    pub(super) fn ask_to_see(
        &mut self,
        cluster: &ClusterId,
        controller: &'static str,
        all: &[Interest],
    ) {
        let user = (controller, true);
        let mut wanted: BTreeSet<(StoreKey, WatchKey)> = BTreeSet::new();
        let all = self.agreeing(cluster, controller, all);
        for interest in &all {
            let (_, keys) = self.watch_keys(cluster, interest);
            let store = interest.store(cluster);
            wanted.extend(keys.into_iter().map(|key| (store.clone(), key)));
        }
        let Some(site) = self.sites.get_mut(cluster) else {
            return;
        };
        let before = site.asked.remove(controller).unwrap_or_default();
        if before.is_empty() && wanted.is_empty() {
            return;
        }
        for (store, key) in before.difference(&wanted) {
            self.close(user, store, key);
            let site = self.sites.get_mut(cluster);
            let feeds = site.and_then(|site| site.feeds.get_mut(store));
            if let Some(feeds) = feeds.filter(|_| wanted.iter().all(|(other, _)| other != store)) {
                feeds.triggers.remove(&user);
            }
        }
        let mut fresh = BTreeSet::new();
        for interest in all {
            let store = interest.store(cluster);
            let (_, keys) = self.watch_keys(cluster, interest);
            let is_new = |key: &WatchKey| !before.contains(&(store.clone(), key.clone()));
            if keys.iter().any(is_new) {
                self.open(cluster, user, interest);
                fresh.extend(keys.into_iter().filter(is_new));
            }
        }
        if let Some(site) = self.sites.get_mut(cluster) {
            site.asked.insert(controller, wanted);
        }
        let begun = self.begin_asked(fresh);
        self.watch_all(cluster, begun, Trust::Unlisted);
    }

    /// Those interests that do not want to see other objects in a store than somebody else who shares it.
    fn agreeing<'a>(
        &self,
        cluster: &ClusterId,
        controller: &'static str,
        all: &'a [Interest],
    ) -> Vec<&'a Interest> {
        let mut selections: BTreeMap<StoreKey, String> = BTreeMap::new();
        let feeds = self.sites.get(cluster).map(|site| &site.feeds);
        let mut agreeing = Vec::new();
        for interest in all {
            let store = interest.store(cluster);
            let known = feeds.and_then(|feeds| feeds.get(&store));
            let is_other = |user: &User| *user != (controller, true);
            let known = known.filter(|feeds| feeds.triggers.keys().any(is_other));
            let known = known.map(|feeds| feeds.selection.clone());
            let one = selections
                .entry(store)
                .or_insert_with(|| known.unwrap_or_else(|| interest.selection()));
            let other = interest.selection();
            if *one == other {
                agreeing.push(interest);
            } else {
                let kind = interest.kind.kind.as_ref();
                tracing::error!(controller, %cluster, kind, one, other, "interests that share a store select different objects; the later one is left out, and should have a slot of its own");
            }
        }
        agreeing
    }

    /// Of watches that somebody asked for, those that are not under way as they have to be.
    fn begin_asked(&mut self, fresh: BTreeSet<WatchKey>) -> BTreeSet<WatchKey> {
        let mut state = self.shared.lock();
        let mut begun = BTreeSet::new();
        for key in fresh {
            let site = self.sites.get_mut(&key.cluster);
            let Some(watched) = site.and_then(|site| site.watches.get_mut(&key)) else {
                continue;
            };
            let known = state.of_mut(&key.cluster);
            let Some(under_way) = known.and_then(|known| known.watches.get_mut(&key)) else {
                begun.insert(key);
                continue;
            };
            if watched.reads != watched.is_read {
                // It leaves out what somebody reads now.
                if let Some(end) = watched.end.take() {
                    end.abort();
                }
                self.runs += 1;
                watched.control = Arc::new(watched.control.anew(self.runs));
                begun.insert(key);
                continue;
            }
            // One more store is fed by it, which has to see everything once.
            under_way.stores = watched.stores.keys().cloned().collect();
            watched.control.relist();
        }
        begun
    }

    /// Somebody is not interested any more.
    fn close(&mut self, user: User, store: &StoreKey, key: &WatchKey) {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        let Some(site) = self.sites.get_mut(&key.cluster) else {
            return;
        };
        let Some(watched) = site.watches.get_mut(key) else {
            return;
        };
        if let Some(users) = watched.stores.get_mut(store) {
            users.remove(&user);
            if !users.is_empty() {
                return;
            }
            watched.stores.remove(store);
        }
        let is_idle = watched.stores.is_empty();
        let feeds = site.feeds.get_mut(store);
        let is_unfed = feeds.is_some_and(|feeds| {
            feeds.watches.remove(key);
            feeds.watches.is_empty()
        });
        if is_unfed {
            site.feeds.remove(store);
            state.stores.close(store);
        } else if let Some(store) = state.stores.store_mut(store) {
            match key.single() {
                Some(name) => drop(store.forget(&name)),
                None => drop(store.forget_extent(&key.namespace)),
            }
        }
        let Some(known) = state.of_mut(&key.cluster) else {
            return;
        };
        if is_unfed {
            known.selectors.remove(store);
        }
        if is_idle {
            if let Some(end) = watched.end.take() {
                end.abort();
            }
            site.watches.remove(key);
            site.returning.remove(key);
            known.forget_watch(key);
            // It may have been the last one whose list was waited for.
            state.say_what_is_awaited(&key.cluster, shared.environment.now());
        } else if let Some(watch) = known.watches.get_mut(key) {
            watch.stores.retain(|known| **known != *store);
        }
    }

    /// Ends all watches of a cluster. What they have seen stays where it is, and is not known to be so any more.
    pub(super) fn end_watches(&mut self, cluster: &ClusterId) {
        let Some(site) = self.sites.get_mut(cluster) else {
            return;
        };
        for watched in std::mem::take(&mut site.watches).into_values() {
            if let Some(end) = watched.end {
                end.abort();
            }
        }
        let feeds = std::mem::take(&mut site.feeds);
        site.needs.clear();
        site.asked.clear();
        site.returning.clear();
        let mut state = self.shared.lock();
        // What was asked for at run time may not be when it goes on.
        let is_asked = |feeds: &Feeds| feeds.triggers.keys().all(|(_, is_asked)| *is_asked);
        for (store, _) in feeds.iter().filter(|(_, feeds)| is_asked(feeds)) {
            state.stores.close(store);
            if let Some(known) = state.of_mut(cluster) {
                known.selectors.remove(store);
            }
        }
        let Some(known) = state.of_mut(cluster) else {
            return;
        };
        known.forget_watches();
        let stores: Vec<Arc<StoreKey>> = known.selectors.keys().cloned().collect();
        // Whatever begins anew is listed anew.
        state.say_what_is_awaited(cluster, self.shared.environment.now());
        for store in stores {
            if let Some(store) = state.stores.store_mut(&store) {
                store.set_synced(false);
            }
        }
    }
}
