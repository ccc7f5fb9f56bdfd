//! A world that decisions are carried out in, and whose clusters do as they are told, or not.

use jiff::Timestamp;
use slipway_api::fleet::assemblage::SyncState;
use slipway_fleet::decide;
use slipway_fleet::observe::{Entry, EntryStatus, World};
use slipway_fleet::plan::{self, Decision};

/// Noon.
pub(crate) fn noon() -> Timestamp {
    "2026-03-04T12:00:00Z".parse().unwrap()
}

/// Carries a decision out, as if every write succeeded.
pub(crate) fn carry_out(world: &mut World, decision: &Decision, now: Timestamp) {
    let status = plan::status(world, decision, now);
    write(world, decision, now);
    world.rollout.status = status;
}

/// Writes what a decision says, but for the status.
pub(crate) fn write(world: &mut World, decision: &Decision, now: Timestamp) {
    for assignment in &decision.assign {
        let cluster = world.clusters.get_mut(&assignment.cluster).unwrap();
        let before = cluster.entry.take().unwrap_or_default();
        cluster.entry = Some(Entry {
            is_ours: true,
            revision: Some(assignment.revision.clone()),
            status: before.status,
        });
    }
    for name in &decision.unassign {
        world.clusters.get_mut(name).unwrap().entry = None;
    }
    world
        .revisions
        .extend(decision.make.iter().map(|name| (name.clone(), now)));
    for name in &decision.retire {
        world.revisions.remove(name);
    }
    if decision.word_is_followed {
        world.rollout.confirmed = None;
    }
    world.rollout.confirmed = decision.word_left.or(world.rollout.confirmed);
}

/// Plans and carries it out; the decision.
pub(crate) fn step(world: &mut World, now: Timestamp) -> Decision {
    let decision = decide(world, now);
    carry_out(world, &decision, now);
    decision
}

/// What a cluster says of what it has been assigned.
pub(crate) fn report(world: &mut World, cluster: &str, state: SyncState, now: Timestamp) {
    let cluster = world.clusters.get_mut(cluster).unwrap();
    if let Some(entry) = &mut cluster.entry {
        entry.status = Some(EntryStatus {
            observed: entry.revision.clone(),
            state,
            since: Some(now),
            ..EntryStatus::default()
        });
    }
}

/// Every cluster that can be reached becomes ready with what it has.
pub(crate) fn all_ready(world: &mut World, now: Timestamp) {
    let unready = |world: &World| -> Vec<String> {
        let all = world.clusters.iter();
        let all = all.filter(|(_, cluster)| cluster.is_reachable);
        let all = all.filter(|(_, c)| c.entry.as_ref().is_some_and(|entry| !entry.is_ready()));
        all.map(|(name, _)| name.clone()).collect()
    };
    for name in unready(world) {
        report(world, &name, SyncState::Succeeded, now);
    }
}
