//! What the conditions of a Rollout say, so that kstatus, Helm and people understand it.

use jiff::Timestamp;
use slipway_api::fleet::rollout::status::RolloutStatus;
use slipway_kernel::capability::Severity;
use slipway_kernel::condition::{PROGRESSING, READY, STALLED, clear, set as put};

use crate::conditions::reconciling;
use crate::observe::World;
use crate::plan::{Decision, Hold};
use crate::reasons::{Reason, condition};

pub(super) fn set(world: &World, decision: &Decision, status: &mut RolloutStatus, now: Timestamp) {
    let generation = world.rollout.generation;
    let is_stalling = |hold: &&Hold| Reason::of(hold.reason).is_some_and(Reason::is_stalled);
    let stalling = decision.holds.iter().find(is_stalling);
    let is_at_work =
        decision.run.is_some() || world.rollout.is_deleting || is_moving(world, decision);
    let (is_ready, reason, message) = readiness(world, decision, status, stalling);
    let conditions = &mut status.conditions;
    put(
        conditions, READY, is_ready, reason, &message, generation, now,
    );
    let moves =
        !decision.assign.is_empty() || !decision.unassign.is_empty() || decision.tells_first(world);
    let waits = decision.holds.iter().any(is_in_the_way);
    let is_going_on = is_at_work && (moves || !waits);
    put(
        conditions,
        PROGRESSING,
        is_going_on,
        reason,
        &message,
        generation,
        now,
    );
    let is_moving_on = is_at_work && stalling.is_none();
    let why = is_moving_on.then_some((reason, message.as_str()));
    reconciling(conditions, why, generation, now);
    match stalling {
        Some(hold) => put(
            conditions,
            STALLED,
            true,
            hold.reason,
            &hold.message,
            generation,
            now,
        ),
        None => clear(conditions, STALLED),
    }
}

/// Whether something is written now, or as soon as the status says so.
fn is_moving(world: &World, decision: &Decision) -> bool {
    !decision.is_idle() || decision.tells_first(world)
}

/// Whether nothing more is done because of it: what is waited for in every rollout is part of it, and what is about one cluster
/// stops no other.
fn is_in_the_way(hold: &Hold) -> bool {
    Reason::of(hold.reason)
        .is_none_or(|reason| reason.severity() != Severity::Expected && !is_aside(hold))
}

/// How soon people want to hear of it: what only a person can end, then what stops all, then the rest.
pub(super) fn rank(hold: &Hold) -> usize {
    let is_stalled = Reason::of(hold.reason).is_some_and(Reason::is_stalled);
    match (is_stalled, is_in_the_way(hold)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

/// Whether it is about one cluster, and the others go on. Of the Rollout itself nothing is aside.
pub(super) fn is_aside(hold: &Hold) -> bool {
    hold.cluster.is_some() && Reason::of(hold.reason).is_some_and(Reason::is_aside)
}

fn readiness(
    world: &World,
    decision: &Decision,
    status: &RolloutStatus,
    stalling: Option<&Hold>,
) -> (bool, &'static str, String) {
    if let Some(hold) = stalling {
        return (false, hold.reason, hold.message.clone());
    }
    let counts = status.counts.unwrap_or_default();
    let progress = format!("{} of {} clusters are ready", counts.ready, counts.total);
    if world.rollout.is_deleting {
        let left = decision.unassign.len();
        return (
            false,
            condition::UNASSIGNING,
            format!("{left} clusters still have it"),
        );
    }
    let waits = |hold: &Hold| {
        let place = hold.cluster.as_ref().map(|name| format!("{name}: "));
        let place = place.unwrap_or_default();
        (
            false,
            condition::WAITING,
            format!("{progress}; {place}{}", hold.message),
        )
    };
    if let Some(hold) = decision.holds.iter().find(|hold| is_in_the_way(hold)) {
        return waits(hold);
    }
    if decision.run.is_some() || is_moving(world, decision) {
        return (false, condition::ROLLING_OUT, progress);
    }
    if let Some(hold) = decision.holds.first() {
        return waits(hold);
    }
    if counts.ready < counts.total {
        return (false, condition::ROLLING_OUT, progress);
    }
    (true, condition::UP_TO_DATE, progress)
}
