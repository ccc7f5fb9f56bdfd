//! Notes in which way a kind is not seen as it is, as facts.

use std::collections::BTreeSet;

use slipway_kernel::fact::{Missing, Unseen};
use slipway_kernel::interest::Need;

use crate::state::{ClusterState, State, Trust};
use crate::watch::{Failure, WatchKey};

/// A kind is there and may not be seen, or not any more. What was under way when it was last seen still counts against
/// budgets, so nothing is forgotten; if it was never seen, the rest goes on without. Of a member it counts as never seen: what was is
/// kept to be shown, and a cluster that tells nothing any more is not one in which all is well.
pub(super) fn hidden(state: &mut State, key: &WatchKey, why: &Failure) {
    let Some(known) = state.of_mut(&key.cluster) else {
        return;
    };
    if let Some(watch) = known.watches.get_mut(key) {
        watch.listed &= key.cluster.is_local() || watch.need == Need::Optional;
        watch.off = !watch.listed;
        watch.lists_since = None;
    }
    known.hidden.insert(key.clone());
    let missing = unseen_as(Unseen::Forbidden, key);
    if known.facts.missing.insert(missing) {
        let kind = key.kind.kind.as_ref();
        tracing::warn!(kind, %why, "no right to see this kind; what was seen last counts until there is");
    }
}

/// A kind can be seen, or is not there.
pub(super) fn seen(state: &mut State, key: &WatchKey) {
    let Some(known) = state.of_mut(&key.cluster) else {
        return;
    };
    known.hidden.remove(key);
    if !holds_kind(&known.hidden, key) {
        let missing = unseen_as(Unseen::Forbidden, key);
        known.facts.missing.remove(&missing);
    }
}

/// Whether one of these watches is about the kind of another one.
fn holds_kind(watches: &BTreeSet<WatchKey>, key: &WatchKey) -> bool {
    let mut all = watches.range(WatchKey::first(&key.cluster, &key.kind)..);
    all.next().is_some_and(|other| other.shares_kind(key))
}

/// Notes whether a kind is seen, but late; gives whether that is new.
pub(super) fn polled(state: &mut State, key: &WatchKey, is_polled: bool) -> bool {
    let Some(known) = state.of_mut(&key.cluster) else {
        return false;
    };
    if is_polled {
        known.polled.insert(key.clone());
    } else {
        known.polled.remove(key);
    }
    let missing = unseen_as(Unseen::Late, key);
    if holds_kind(&known.polled, key) {
        return known.facts.missing.insert(missing);
    }
    known.facts.missing.remove(&missing);
    false
}

/// Notes whether what is known of a kind is all that there is.
pub(super) fn trust(state: &mut State, key: &WatchKey, trust: Trust) {
    let Some(known) = state.of_mut(&key.cluster) else {
        return;
    };
    if let Some(watch) = known.watches.get_mut(key) {
        watch.trust = trust;
    }
    let missing = unseen_as(Unseen::OutOfSync, key);
    let is_doubted = {
        let mut all = known.of_kind(&key.cluster, &key.kind);
        all.any(|(_, watch)| watch.trust != Trust::Sound)
    };
    if is_doubted || known.is_disputed(key) {
        known.facts.missing.insert(missing);
    } else {
        known.facts.missing.remove(&missing);
    }
}

/// Notes where a kind is done without; gives whether anything was added to that.
pub(super) fn absences(state: &mut State, key: &WatchKey) -> bool {
    let Some(state) = state.of_mut(&key.cluster) else {
        return false;
    };
    let absent = absent(state, key);
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

/// Where a kind is done without.
fn absent(known: &ClusterState, key: &WatchKey) -> BTreeSet<Missing> {
    let missing = unseen_as(Unseen::Absent, key);
    let mut absent: BTreeSet<Missing> = BTreeSet::new();
    if !known.is_disputed(key) {
        let (mut off, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (other, watch) in known.of_kind(&key.cluster, &key.kind) {
            all.insert(&other.namespace);
            if watch.off && !known.hidden.contains(other) {
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
    absent
}

fn unseen_as(how: Unseen, key: &WatchKey) -> Missing {
    Missing::unseen(how, &key.cluster, &key.kind)
}

/// How a kind is not seen as it is: whoever plans has to know of a change in this.
pub(super) fn unseen(state: &State, key: &WatchKey) -> Vec<Missing> {
    let ways = [Unseen::Absent, Unseen::Forbidden, Unseen::OutOfSync];
    let Some(known) = state.of(&key.cluster) else {
        return Vec::new();
    };
    let unseen = |how| known.facts.unseen(how, &key.cluster, &key.kind);
    ways.into_iter().flat_map(unseen).cloned().collect()
}
