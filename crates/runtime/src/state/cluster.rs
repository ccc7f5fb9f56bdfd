//! What is known of one cluster and done in it, apart from its objects.
//!
//! A cluster is the unit of watching, waiting, rights and failure: nothing in here is shared with another one, so nothing that
//! goes wrong in one keeps another one waiting. Home is one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use jiff::Timestamp;
use slipway_api::names::FIELD_MANAGER;
use slipway_kernel::fact::{Facts, Missing, Refusal, Right};
use slipway_kernel::identity::{ClusterId, Kind, ObjectRef};
use slipway_kernel::interest::Need;
use slipway_kernel::store::StoreKey;
use tokio::time::Instant;

use super::answers::Kept;
use super::membership::Membership;
use super::{StoreSelector, WatchState};
use crate::execute::{LATE, Throttle, UnconfirmedWrite};
use crate::ledger::Ledger;
use crate::queue::LaneId;
use crate::status::Statuses;
use crate::watch::WatchKey;

/// Facts of which a snapshot costs nothing: whoever changes them while somebody looks changes a copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Arc<Facts>);

impl Deref for Known {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl DerefMut for Known {
    fn deref_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.0)
    }
}

/// One cluster.
#[derive(Default)]
pub(crate) struct ClusterState {
    pub(crate) facts: Known,
    /// Answers to the questions of keys.
    pub(crate) answers: Kept,
    pub(crate) selectors: BTreeMap<Arc<StoreKey>, Box<StoreSelector>>,
    /// How refused objects looked.
    pub(super) marks: BTreeMap<ObjectRef, Option<u64>>,
    pub(crate) ledger: Ledger,
    pub(crate) statuses: Statuses,
    pub(crate) watches: BTreeMap<WatchKey, Box<WatchState>>,
    /// What is there and may not be seen.
    pub(crate) hidden: BTreeSet<WatchKey>,
    /// What is listed again and again instead.
    pub(crate) polled: BTreeSet<WatchKey>,
    /// Objects that we may or may not have changed.
    pub(crate) unconfirmed: BTreeMap<LaneId, BTreeMap<ObjectRef, UnconfirmedWrite>>,
    /// What a busy server has kept each controller from.
    pub(crate) throttles: BTreeMap<&'static str, Throttle>,
    /// Kinds whose statuses are replaced, because patching them is forbidden, until it is tried again.
    pub(crate) replaced: BTreeMap<Missing, Instant>,
    /// How many holds there have been.
    pub(crate) holds: u64,
    /// Which history of versions this is: another one since they have run backwards, or since the cluster is another one. What
    /// was decided before is not acted on. No two clusters have the same.
    pub(crate) history: u64,
    /// When everything was last listed again because of that.
    pub(super) relisted: Option<Instant>,
    /// Of a member: who it is.
    pub(crate) member: Option<Membership>,
}

impl ClusterState {
    /// A member of which nothing else is known.
    pub(crate) fn of_member(member: Option<Membership>) -> Self {
        Self {
            member,
            ..Self::default()
        }
    }

    /// The watches of the kind of one.
    pub(crate) fn of_kind<'a>(
        &'a self,
        cluster: &ClusterId,
        kind: &'a Kind,
    ) -> impl Iterator<Item = (&'a WatchKey, &'a WatchState)> + use<'a> {
        let all = self.watches.range(WatchKey::first(cluster, kind)..);
        let all = all.map(|(key, watch)| (key, watch.as_ref()));
        all.take_while(move |(other, _)| other.kind == *kind)
    }

    /// Whether watches of the kind differ about whether it is defined: it is in all namespaces or in none, so some are late.
    pub(crate) fn is_disputed(&self, key: &WatchKey) -> bool {
        let is_any = |is_off: bool| {
            let mut all = self.of_kind(&key.cluster, &key.kind);
            all.any(|(other, watch)| {
                let is_meant = watch.need == Need::RequiredIfServed;
                is_meant && watch.off == is_off && !self.hidden.contains(other)
            })
        };
        is_any(true) && is_any(false)
    }

    /// Whether what is known of a watch's kind may be of before a restore. What may not be seen any more is not waited for:
    /// whoever plans knows that it is old.
    pub(crate) fn is_awaited(&self, key: &WatchKey) -> bool {
        let watch = self.watches.get(key);
        watch.is_some_and(|watch| watch.rewound.is_some()) && !self.hidden.contains(key)
    }

    /// The same, and somebody waits for its list: not where it is done without for now.
    pub(crate) fn is_waited_for(&self, key: &WatchKey) -> bool {
        let watch = self.watches.get(key);
        let is_left_out = watch.is_some_and(|watch| watch.is_done_without(key));
        self.is_awaited(key) && !is_left_out
    }

    /// Nothing is watched there any more, so nothing is said about it either.
    pub(crate) fn forget_watch(&mut self, key: &WatchKey) {
        self.watches.remove(key);
        self.hidden.remove(key);
        self.polled.remove(key);
        if let Some(member) = &mut self.member {
            member.excess.remove(key);
        }
        if self.of_kind(&key.cluster, &key.kind).next().is_none() {
            let (cluster, kind) = (&key.cluster, &key.kind);
            let is_seen = |one: &Missing| one.cluster == *cluster && one.kind == *kind;
            let sees = |one: &Missing| matches!(one.right, Right::See(_));
            self.facts
                .missing
                .retain(|one| !(is_seen(one) && sees(one)));
        }
    }

    /// Nothing at all is watched there any more. Where a list was waited for after a restore it is not made: whoever begins anew
    /// notices that restore once more, and is not to wait for another turn to list because of the one that came to nothing.
    pub(crate) fn forget_watches(&mut self) {
        if self.watches.keys().any(|key| self.is_awaited(key)) {
            self.relisted = None;
        }
        let keys: Vec<WatchKey> = self.watches.keys().cloned().collect();
        for key in &keys {
            self.forget_watch(key);
        }
    }

    /// A write to the object under this name was refused, when it looked like this.
    pub(super) fn refuse(
        &mut self,
        (object, by): (&ObjectRef, &str),
        refusal: Refusal,
        mark: Option<u64>,
    ) {
        self.marks.insert(object.clone(), mark);
        if by == FIELD_MANAGER {
            self.facts.refusals.insert(object.clone(), refusal);
        } else {
            let part = (object.clone(), by.to_owned());
            self.facts.refused_parts.insert(part, refusal);
        }
    }

    /// A write to the object under this name succeeded: what was refused to it is forgotten.
    pub(crate) fn accept(&mut self, object: &ObjectRef, by: &str) {
        if self.facts.refusal(object, by).is_none() {
            return;
        }
        if by == FIELD_MANAGER {
            self.facts.refusals.remove(object);
        } else {
            let part = (object.clone(), by.to_owned());
            self.facts.refused_parts.remove(&part);
        }
        let is_left = self.facts.refused().any(|(one, _)| one == object);
        if !is_left {
            self.marks.remove(object);
        }
    }

    /// The object is gone, or another one: all that was refused of it is forgotten.
    pub(crate) fn accept_all(&mut self, object: &ObjectRef) {
        if self.marks.remove(object).is_some() {
            self.facts.refusals.remove(object);
            self.facts.refused_parts.retain(|(one, _), _| one != object);
        }
    }

    /// Nothing that was refused is known to be refused any more.
    pub(super) fn forget_refusals(&mut self) {
        self.marks.clear();
        self.facts.refusals.clear();
        self.facts.refused_parts.clear();
    }

    /// Until when something may go that was let go.
    pub(crate) fn held_until(&self, uid: &str) -> Option<Timestamp> {
        self.facts.evictions_allowed_here.get(uid).copied()
    }

    /// Forgets a deletion of which it is known what became of it. If it may yet be carried out, it counts for as long as the
    /// API server works on a request, from `now`.
    pub(super) fn end_deletion(&mut self, uid: &str, now: Option<Timestamp>) {
        if !self.facts.deletions.contains_key(uid) {
            return;
        }
        let until = now.map(|now| now.checked_add(LATE).unwrap_or(Timestamp::MAX));
        match (until, self.facts.deletions.get_mut(uid)) {
            (Some(until), Some(known)) => *known = until,
            _ => {
                self.facts.deletions.remove(uid);
            }
        }
    }

    /// Nobody looks any more for what became of the deletions that are in doubt in these lanes: each may yet be carried out
    /// for as long as the API server works on a request, and counts as gone no longer than that.
    pub(super) fn bound_deletions(&mut self, now: Timestamp, is_meant: impl Fn(&LaneId) -> bool) {
        let unconfirmed = self.unconfirmed.iter().filter(|(lane, _)| is_meant(lane));
        let uids: Vec<String> = unconfirmed
            .flat_map(|(_, unconfirmed)| unconfirmed.values())
            .filter(|unconfirmed| unconfirmed.is_deletion())
            .map(|unconfirmed| unconfirmed.uid.clone())
            .collect();
        for uid in uids {
            if self.facts.deletions.get(&uid) == Some(&Timestamp::MAX) {
                self.end_deletion(&uid, Some(now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slipway_kernel::identity::kinds;

    use super::super::State;
    use super::*;
    use crate::request::Refused;
    use crate::settings::Backoff;

    /// Several have their part in one object, and so has its status.
    #[tokio::test(start_paused = true)]
    async fn what_is_refused_to_one_who_applies_keeps_nobody_else_from_the_object() {
        let (mut state, now) = (State::default(), Timestamp::UNIX_EPOCH);
        let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "shared");
        let backoff = Backoff {
            first: Duration::from_secs(1),
            most: Duration::from_mins(5),
        };
        let refused = || Refused::new("Conflict", "conflict with \"pipeline\"");
        for _ in 0..5 {
            state.refuse((&object, "one"), refused(), None, backoff, now);
        }
        state.refuse((&object, "two"), refused(), None, backoff, now);
        let until = |state: &mut State, by| state.refused_until((&object, by), now);
        assert_eq!(until(&mut state, FIELD_MANAGER), None);
        assert_eq!(until(&mut state, "three"), None);
        let waits = until(&mut state, "one");
        assert!(waits > until(&mut state, "two"));
        // What another one has written, or a status, ends it for nobody else, and does not make it begin anew.
        for by in [FIELD_MANAGER, "two"] {
            state.home.accept(&object, by);
            assert_eq!(until(&mut state, by), None);
            assert_eq!(until(&mut state, "one"), waits);
        }
        state.refuse((&object, FIELD_MANAGER), refused(), None, backoff, now);
        assert!(until(&mut state, FIELD_MANAGER).is_some());
        // It is gone.
        state.overlay_absence(&object, "");
        assert_eq!(state.home.facts.refused().count(), 0);
        assert!(state.home.marks.is_empty());
    }
}
