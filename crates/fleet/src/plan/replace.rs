//! Replace: every cluster gets a change at once.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::rollout::status::Run;

use super::Decision;
use super::run;
use super::survey::{Seen, Standing, Survey};
use crate::observe::{Wanted, World};
use crate::reasons::outcome;

pub(super) fn decide(
    world: &World,
    wanted: &Wanted,
    survey: &Survey<'_>,
    decision: &mut Decision,
    now: Timestamp,
) {
    run::supersede(world, survey, decision, now);
    let moved = survey.in_order(Seen::can_move);
    decision
        .assign
        .extend(moved.into_iter().filter_map(Seen::wanted));
    if !decision.assign.is_empty() && decision.run.is_none() {
        decision.run = Some(Run {
            revision: wanted.target.clone(),
            started: Time(now),
            canary: None,
            canary_passed: Some(Time(now)),
            skipped: Vec::new(),
        });
    }
    // What the API refused is tried again: it is not over before.
    let is_done = |seen: &Seen<'_>| match seen.standing {
        Standing::Current => seen.is_settled() || !seen.cluster.is_reachable,
        _ => seen.refused().is_none(),
    };
    let has_ended = decision.assign.is_empty() && survey.selected().all(is_done);
    if !has_ended || decision.run.is_none() || survey.unresolved().is_some() {
        return;
    }
    // What nobody is ready with has not proved itself.
    if survey.selected().any(Seen::is_settled) {
        run::end(world, survey, outcome::SUCCEEDED, decision, now);
        decision.stable = Some(wanted.target.clone());
    } else {
        run::end(world, survey, outcome::ABANDONED, decision, now);
    }
}
