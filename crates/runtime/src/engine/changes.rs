//! What follows from changes: which work they are, who may begin, which clusters and kinds are wanted now.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::interest::Need;
use slipway_kernel::store::{StoreKey, Stores};
use tokio::time::Instant;

use super::Engine;
use crate::queue::first_key;
use crate::state::State;
use crate::watch::WatchKey;

/// What a planner makes of a change; nothing if it panics.
fn survived<T>(of: impl FnOnce() -> Vec<T>, (cluster, kind, _): &StoreKey) -> Vec<T> {
    catch_unwind(AssertUnwindSafe(of)).unwrap_or_else(|_| {
        let kind = kind.kind.as_ref();
        tracing::error!(%cluster, kind, "planner panicked when told of a change; it is looked at with the next heartbeat");
        Vec::new()
    })
}

impl Engine {
    /// Lets those begin to work whose stores are complete now.
    pub(super) fn release_lanes(&mut self) {
        while let Some(cluster) = self.unsettled.pop_first() {
            self.settle(&cluster);
        }
    }

    fn settle(&mut self, cluster: &ClusterId) {
        let now = Instant::now();
        let Some(site) = self.sites.get(cluster) else {
            return;
        };
        let waiting: Vec<&'static str> = self
            .controllers_of(cluster)
            .into_iter()
            .filter(|name| !site.started.contains(name))
            .collect();
        let mut is_any = false;
        for controller in waiting {
            let stores = {
                let state = self.shared.lock();
                if !self.is_complete(&state, cluster, controller) {
                    continue;
                }
                state.stores.clone()
            };
            is_any = true;
            if let Some(site) = self.sites.get_mut(cluster) {
                site.started.insert(controller);
            }
            self.queue.hold(&(cluster.clone(), controller), false);
            if cluster.is_local() {
                tracing::info!(controller, "all objects listed");
            } else {
                tracing::info!(controller, %cluster, "all objects listed");
            }
            for key in self.keys_in(controller, &stores, cluster) {
                self.queue.at_once(&key, now);
            }
            if cluster.is_local() {
                self.name_members(controller, &stores);
            }
            drop(stores);
            self.look_for_interests(cluster, controller);
        }
        if !cluster.is_local() && (is_any || self.is_said_otherwise(cluster)) {
            self.assess(cluster);
        }
    }

    /// Whether it is said of a member that all of it is known, and it is not, or the other way round: home's plans go by that.
    fn is_said_otherwise(&self, cluster: &ClusterId) -> bool {
        let is_synced = self.is_synced(cluster);
        let state = self.shared.lock();
        let known = state.of(cluster).and_then(|known| known.member.as_ref());
        known.is_some_and(|member| member.state.synced != is_synced)
    }

    /// Whether all that is needed of a member is known to those who work on it.
    pub(super) fn is_synced(&self, cluster: &ClusterId) -> bool {
        let controllers = self.controllers_of(cluster);
        let site = self.sites.get(cluster);
        let is_started = |name: &&str| site.is_some_and(|site| site.started.contains(*name));
        !controllers.is_empty() && controllers.iter().all(is_started)
    }

    /// Whether all that a controller needs of a cluster is known.
    pub(super) fn is_complete(
        &self,
        state: &State,
        cluster: &ClusterId,
        controller: &'static str,
    ) -> bool {
        let (Some(site), Some(known)) = (self.sites.get(cluster), state.of(cluster)) else {
            return false;
        };
        let is_reached = known.member.as_ref().is_none_or(|member| {
            let is_open = site.link.as_ref().is_some_and(|link| link.is_open);
            is_open && member.state.is_reached() && !member.is_distrusted()
        });
        let needs = site.needs.get(controller);
        let is_known = |key: &WatchKey| {
            let Some(watch) = known.watches.get(key) else {
                return false;
            };
            // Of a member that was out of contact nothing is decided before its watches go on.
            let is_failing = !cluster.is_local()
                && watch.need != Need::Optional
                && watch.control.failing().is_some();
            let is_listed = watch.listed || watch.off;
            let is_awaited = known.is_waited_for(key) || site.returning.contains_key(key);
            watch.is_done_without(key) || (is_listed && !is_awaited && !is_failing)
        };
        is_reached && needs.into_iter().flatten().all(is_known)
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
        let mut changed: BTreeSet<ClusterId> = BTreeSet::new();
        let mut meant: BTreeSet<(ClusterId, &'static str)> = BTreeSet::new();
        for (store, meta) in changes {
            let site = self.sites.get(&store.0);
            let Some(feeds) = site.and_then(|site| site.feeds.get(&store)) else {
                continue;
            };
            // Objects are anybody's: one that a planner stumbles over keeps no other waiting.
            for triggers in feeds.triggers.values().flatten() {
                let keys = || triggers(&store.0, &meta, &stores);
                for key in survived(keys, &store) {
                    self.queue.changed(&key, now);
                }
            }
            for (controller, means) in &feeds.means {
                let clusters = survived(|| means(&meta, &stores), &store);
                meant.extend(clusters.into_iter().map(|cluster| (cluster, *controller)));
            }
            changed.insert(store.0);
        }
        for cluster in &changed {
            self.requeue_vanished_keys(cluster, &stores, now);
        }
        for (cluster, controller) in &meant {
            self.name_member(cluster, controller, &stores);
        }
        drop(stores);
        changed.extend(meant.into_iter().map(|(cluster, _)| cluster));
        for cluster in &changed {
            for controller in self.started(cluster) {
                self.look_for_interests(cluster, controller);
            }
        }
        self.release_lanes();
    }

    /// Work that is none any more is looked at once more, so that nothing goes on telling of it: no object that is left
    /// leads to it.
    fn requeue_vanished_keys(&mut self, cluster: &ClusterId, stores: &Stores, now: Instant) {
        let shown = self.shown_in(cluster);
        let controllers: BTreeSet<&'static str> = shown.iter().map(|k| k.controller).collect();
        for controller in controllers {
            let keys = self.keys_in(controller, stores, cluster);
            let keys: BTreeSet<Key> = keys.into_iter().collect();
            let gone = shown.iter().filter(|key| key.controller == controller);
            for key in gone.filter(|key| !keys.contains(key)) {
                self.queue.changed(key, now);
            }
        }
    }

    /// Work in a cluster of which passes are shown.
    pub(super) fn shown_in(&self, cluster: &ClusterId) -> Vec<Key> {
        let shown = self.shown.range(first_key(cluster)..);
        let shown = shown.take_while(|key| key.cluster == *cluster);
        shown.cloned().collect()
    }

    /// Opens and closes what a controller wants to see of a cluster now.
    pub(super) fn look_for_interests(&mut self, cluster: &ClusterId, controller: &'static str) {
        let Some(capability) = self.capabilities.get(controller).cloned() else {
            return;
        };
        let stores = self.shared.lock().stores.clone();
        let wanted = || capability.interests_in(&stores, cluster);
        let Ok(wanted) = catch_unwind(AssertUnwindSafe(wanted)) else {
            tracing::error!(controller, %cluster, "planner panicked when asked for its interests; they stay as they are");
            return;
        };
        drop(stores);
        self.ask_to_see(cluster, controller, &wanted);
    }
}
