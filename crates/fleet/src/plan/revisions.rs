//! Which revisions of a Rollout are kept: those that are in use, and so many of the others.

use std::collections::BTreeSet;

use slipway_bindings::revision::template_of;

use super::Decision;
use crate::observe::{Wanted, World};

pub(super) fn decide(world: &World, wanted: &Wanted, decision: &mut Decision) {
    if !world.revisions.contains_key(&wanted.target) {
        decision.make = Some(wanted.target.clone());
    }
    let assigned = world
        .clusters
        .values()
        .filter_map(|cluster| cluster.entry.as_ref());
    let assigned = assigned.filter_map(|entry| entry.revision.as_deref().map(template_of));
    let mut used: BTreeSet<&str> = assigned.collect();
    used.insert(&wanted.target);
    used.extend(world.named.iter().map(String::as_str));
    used.extend(decision.assign.iter().map(|one| template_of(&one.revision)));
    used.extend(decision.stable.as_deref());
    used.extend(world.rollout.status.stable_revision.as_deref());
    let unused = world
        .revisions
        .iter()
        .filter(|(name, _)| !used.contains(name.as_str()));
    let mut unused: Vec<_> = unused.map(|(name, made)| (made, name)).collect();
    unused.sort();
    let many = unused.len().saturating_sub(wanted.history_limit);
    decision.retire = unused
        .into_iter()
        .take(many)
        .map(|(_, name)| name.clone())
        .collect();
}
