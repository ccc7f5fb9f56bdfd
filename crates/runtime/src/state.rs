//! What one replica knows, shared between its loop and those who look at it.
//!
//! One lock, never held while waiting. Snapshots of the stores are cheap, and are taken only when somebody asks. What is about
//! one cluster is in a value of its own ([`ClusterState`]).

mod answers;
mod clock;
mod cluster;
mod kinds;
mod lists;
mod membership;
mod shared;
mod watch;

pub(crate) use cluster::{ClusterState, Known};
pub(crate) use lists::reference;
pub(crate) use membership::{Asked, Doubts, Membership};
pub(crate) use shared::Shared;
pub(crate) use watch::{FAILING, WatchState};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::admission::Hold;
use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::Controller;
use slipway_kernel::fact::Refusal;
use slipway_kernel::identity::{ClusterId, Key, ObjectRef};
use slipway_kernel::member::Discovery;
use slipway_kernel::selector::Selector;
use slipway_kernel::store::{Change, Meta, StoreKey, Stores, number};
use tokio::time::Instant;

use crate::lease::Record;
use crate::queue::{LaneId, first_key};
use crate::request::Refused;
use crate::settings::Backoff;

/// Whether this replica acts for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// Another one does, or nobody.
    #[default]
    Following,
    /// It will, when the former one cannot any more.
    Fencing,
    /// It does.
    Acting,
}

/// Where this replica stands with a lease.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    pub(crate) phase: Phase,
    /// The number of the leadership.
    pub(crate) epoch: i64,
    /// The leadership ends here unless it is renewed, by either clock; none if nobody else is expected.
    pub(crate) until: Option<(Instant, Timestamp)>,
    /// The Lease as we last wrote it.
    pub(crate) record: Option<Record>,
}

/// Whether what is known of a kind is all that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Trust {
    /// As far as a watch can tell.
    #[default]
    Sound,
    /// It could not be read; the next list says what has changed meanwhile.
    Failing,
    /// It has to be listed first.
    Unlisted,
}

/// What a store holds of its kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreSelector {
    /// Only objects with these labels; empty for any.
    pub(crate) labels: Selector,
    /// Only objects of some names.
    pub(crate) named: bool,
    /// Only these namespaces; empty for all.
    pub(crate) namespaces: Vec<String>,
}

impl StoreSelector {
    /// Whether an object of the kind surely belongs into it. What is not sure is left to the watch.
    fn holds(&self, value: &Value) -> bool {
        !self.named && self.labels.selects_object(value)
    }
}

/// What is known.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) capabilities: Vec<Arc<dyn Controller>>,
    pub(crate) stores: Stores,
    /// The cluster that this replica runs in.
    pub(crate) home: ClusterState,
    /// The others.
    pub(crate) members: BTreeMap<ClusterId, ClusterState>,
    pub(crate) blockers: BTreeMap<Key, Vec<Blocker>>,
    pub(crate) standings: BTreeMap<&'static str, Standing>,
    pub(crate) progress: Option<Instant>,
    pub(crate) depth: BTreeMap<&'static str, usize>,
    /// How much is under way: watches, writes, elections, and all else that is waited for.
    pub(crate) tasks: usize,
    /// Whether webhooks cannot be served without a certificate.
    pub(crate) certificate_needed: bool,
    /// When the webhook certificate that is shown now ends.
    pub(crate) certificate_ends: Option<Timestamp>,
    /// Addresses at which something is being undone, and by which undoing.
    pub(crate) undoing: BTreeMap<String, u64>,
    /// What clusters serve, each set of kinds once.
    kinds: kinds::Kinds,
    /// How many histories of versions there have been, in all clusters.
    histories: u64,
    /// Changes that our own writes made.
    pub(crate) changes: Vec<(StoreKey, Meta)>,
    clock: clock::Clock,
}

impl State {
    /// What is known of a cluster.
    pub(crate) fn of(&self, cluster: &ClusterId) -> Option<&ClusterState> {
        if cluster.is_local() {
            return Some(&self.home);
        }
        self.members.get(cluster)
    }

    /// The same, to change it.
    pub(crate) fn of_mut(&mut self, cluster: &ClusterId) -> Option<&mut ClusterState> {
        if cluster.is_local() {
            return Some(&mut self.home);
        }
        self.members.get_mut(cluster)
    }

    /// What is known of a member, if it is worked on.
    pub(crate) fn facts_of(&self, member: &ClusterId) -> Option<Known> {
        let known = self.members.get(member)?;
        Some(known.facts.clone())
    }

    /// What is known of a cluster as a member, to change it; none if it is home, or not worked on.
    pub(crate) fn member_mut(&mut self, cluster: &ClusterId) -> Option<&mut Membership> {
        self.of_mut(cluster)?.member.as_mut()
    }

    /// The history of versions that is known of a cluster; none if it is not worked on.
    pub(crate) fn history(&self, cluster: &ClusterId) -> Option<u64> {
        self.of(cluster).map(|known| known.history)
    }

    /// Begins another history of a cluster's versions.
    pub(crate) fn begin_history(&mut self, cluster: &ClusterId) {
        self.histories += 1;
        let number = self.histories;
        if let Some(known) = self.of_mut(cluster) {
            known.history = number;
        }
    }

    /// Takes in an object that the API answered with. Nothing older than what is known is taken in.
    /// Gives whether a store knows it now.
    pub(crate) fn overlay(&mut self, object: &ObjectRef, value: &Value) -> bool {
        let keys: Vec<StoreKey> = self.keys(object);
        let version = Meta::of(value).version;
        let (mut is_known, mut is_past) = (false, false);
        for key in keys {
            let known = self.of(&object.cluster);
            let selector = known.and_then(|known| known.selectors.get(&key));
            let holds = selector.is_none_or(|selector| selector.holds(value));
            let Some(store) = self.stores.store_mut(&key) else {
                continue;
            };
            if !holds && store.get(&object.namespace, &object.name).is_none() {
                continue;
            }
            is_known = true;
            is_past |= store.is_past(&object.namespace, &object.name, &version);
            if store.observe(value) == Change::Changed {
                self.changes.push((key, Meta::of(value)));
            }
        }
        // What was not taken in does not go before a list: after a restore the list is right, and the store is not.
        if !is_past && let Some(known) = self.of_mut(&object.cluster) {
            known.ledger.note(object);
        }
        self.look_at(object);
        is_known
    }

    /// A write of ours under this name has made the object this; gives whether a store knows it now.
    pub(crate) fn wrote(&mut self, object: &ObjectRef, by: &str, value: &Value) -> bool {
        let Some(known) = self.of_mut(&object.cluster) else {
            return false;
        };
        known
            .ledger
            .record(object, number(&Meta::of(value).version));
        known.accept(object, by);
        self.overlay(object, value)
    }

    /// Takes in that there is no such object any more.
    pub(crate) fn overlay_absence(&mut self, object: &ObjectRef, uid: &str) {
        for key in self.keys(object) {
            let Some(store) = self.stores.store_mut(&key) else {
                continue;
            };
            if store.observe_absence(&object.namespace, &object.name, uid) == Change::Changed {
                let meta = Meta {
                    namespace: object.namespace.clone(),
                    name: object.name.clone(),
                    uid: uid.to_owned(),
                    ..Meta::default()
                };
                self.changes.push((key, meta));
            }
        }
        if let Some(known) = self.of_mut(&object.cluster) {
            known.ledger.forget(object);
            known.ledger.note(object);
            known.accept_all(object);
        }
    }

    /// The stores that an object belongs into.
    fn keys(&self, object: &ObjectRef) -> Vec<StoreKey> {
        let known = self.of(&object.cluster);
        let watched = |key: &StoreKey| {
            let selector = known.and_then(|known| known.selectors.get(key));
            selector.is_none_or(|selector| {
                selector.namespaces.is_empty() || selector.namespaces.contains(&object.namespace)
            })
        };
        self.stores
            .of_kind(&object.cluster, &object.kind)
            .map(|(key, _)| key.clone())
            .filter(watched)
            .collect()
    }

    /// The newest version of the object that is known; 0 if none is.
    pub(crate) fn newest(&self, object: &ObjectRef) -> u64 {
        let stores = self.stores.of_kind(&object.cluster, &object.kind);
        let seen = stores.filter_map(|(_, store)| store.get(&object.namespace, &object.name));
        let versions = seen.map(|seen| number(&seen.meta.version));
        versions.max().unwrap_or_default()
    }

    /// How the object looks to people, if any store has it.
    fn mark(&self, object: &ObjectRef) -> Option<u64> {
        self.stores
            .of_kind(&object.cluster, &object.kind)
            .find_map(|(_, store)| store.mark(&object.namespace, &object.name))
    }

    /// The API refused a write to the object under this name; gives how long such a write is left alone: the longer the more
    /// often it was refused, and at least as long as the server asks for.
    pub(crate) fn refuse(
        &mut self,
        (object, by): (&ObjectRef, &str),
        refused: Refused,
        asked: Option<Duration>,
        backoff: Backoff,
        now: Timestamp,
    ) -> Duration {
        self.keep_time(now);
        let mark = self.mark(object);
        // Of a cluster that is gone nothing is remembered.
        let Some(known) = self.of_mut(&object.cluster) else {
            return backoff.after(1).max(asked.unwrap_or_default());
        };
        let before = known.facts.refusal(object, by);
        let attempts = before.map_or(1, |refusal| refusal.attempts.saturating_add(1));
        let since = before.map_or(now, |refusal| refusal.since);
        // A server can ask for more patience than we have, not for less: none at all would be a request after the other.
        let wait = backoff.after(attempts).max(asked.unwrap_or_default());
        let retry_at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        let refusal = Refusal {
            cause: refused.cause(),
            reason: refused.reason.as_str().to_owned(),
            message: refused.message,
            attempts,
            since,
            retry_at,
        };
        known.refuse((object, by), refusal, mark);
        wait
    }

    /// Forgets a refusal if the object looks different now.
    pub(crate) fn look_at(&mut self, object: &ObjectRef) {
        let known = self.of(&object.cluster);
        let before = known.and_then(|known| known.marks.get(object));
        if before.is_some_and(|before| *before != self.mark(object))
            && let Some(known) = self.of_mut(&object.cluster)
        {
            known.accept_all(object);
        }
    }

    /// When a write that was refused under this name may be tried again, if that is later than now.
    pub(crate) fn refused_until(
        &mut self,
        (object, by): (&ObjectRef, &str),
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.keep_time(now);
        let refusal = self.of(&object.cluster)?.facts.refusal(object, by)?;
        (refusal.retry_at > now).then_some(refusal.retry_at)
    }

    /// Remembers that something has been let go at home; none if anything else was since the hold of the number `seen`. Gives
    /// whether it was not remembered before.
    pub(crate) fn hold(&mut self, seen: u64, hold: &Hold) -> Option<bool> {
        let home = &mut self.home;
        if home.holds != seen {
            return None;
        }
        home.holds += 1;
        let (uid, until) = (hold.uid.clone(), hold.until);
        let before = home.facts.evictions_allowed_here.insert(uid, until);
        Some(before.is_none())
    }

    /// Until when something may go that was let go.
    pub(crate) fn held_until(&self, uid: &str) -> Option<Timestamp> {
        self.home.held_until(uid)
    }

    /// Forgets what was let go: a read that began after its time has shown what became of it.
    pub(crate) fn release(&mut self, hold: &Hold) {
        if self.held_until(&hold.uid) != Some(hold.until) {
            return;
        }
        self.home.facts.evictions_allowed_here.remove(&hold.uid);
        let (cluster, within) = (ClusterId::local(), &hold.within);
        let freed = self
            .stores
            .of_kind(&cluster, &within.kind)
            .filter_map(|(key, store)| {
                let mut seen = store.in_namespace(&within.namespace);
                let seen = seen.find(|seen| seen.meta.uid == hold.uid);
                seen.map(|seen| (key.clone(), seen.meta.clone()))
            });
        let freed: Vec<(StoreKey, Meta)> = freed.collect();
        self.changes.extend(freed);
    }

    /// Remembers that an object is about to be deleted, unless anything was let go in its cluster since the hold of the number
    /// `seen`. Gives the number of this one.
    pub(crate) fn hold_deletion(
        &mut self,
        cluster: &ClusterId,
        seen: u64,
        uid: &str,
        now: Timestamp,
    ) -> Option<u64> {
        if self.of(cluster)?.holds != seen {
            return None;
        }
        self.keep_time(now);
        let known = self.of_mut(cluster)?;
        known.holds += 1;
        known.facts.deletions.retain(|_, until| now < *until);
        let uid = uid.to_owned();
        known.facts.deletions.insert(uid, Timestamp::MAX);
        Some(known.holds)
    }

    /// Forgets a deletion of which it is known what became of it. If it may yet be carried out, it counts for as long as the
    /// API server works on a request, from `now`.
    pub(crate) fn release_deletion(
        &mut self,
        cluster: &ClusterId,
        uid: &str,
        now: Option<Timestamp>,
    ) {
        if let Some(now) = now {
            self.keep_time(now);
        }
        if let Some(known) = self.of_mut(cluster) {
            known.end_deletion(uid, now);
        }
    }

    /// Nobody looks any more for what became of the deletions that are in doubt in these lanes of a cluster.
    pub(crate) fn bound_deletions(
        &mut self,
        cluster: &ClusterId,
        now: Timestamp,
        is_meant: impl Fn(&LaneId) -> bool,
    ) {
        let is_any = self.of(cluster).is_some_and(|k| !k.unconfirmed.is_empty());
        if !is_any {
            return;
        }
        self.keep_time(now);
        if let Some(known) = self.of_mut(cluster) {
            known.bound_deletions(now, is_meant);
        }
    }

    /// What clusters serve that some cluster has said already, so that many have it once; or this, which none has.
    pub(crate) fn shared_kinds(&mut self, kinds: Arc<Discovery>) -> Arc<Discovery> {
        self.kinds.shared(kinds)
    }

    /// Forgets all about a member.
    pub(crate) fn drop_member(&mut self, cluster: &ClusterId) {
        self.members.remove(cluster);
        self.home.facts.members.remove(cluster);
        self.stores.drop_cluster(cluster);
        self.changes.retain(|((of, _, _), _)| of != cluster);
        let blockers = self.blockers.range(first_key(cluster)..);
        let blockers = blockers.map(|(key, _)| key);
        let blockers = blockers.take_while(|key| key.cluster == *cluster);
        for key in blockers.cloned().collect::<Vec<Key>>() {
            self.blockers.remove(&key);
        }
    }
}
