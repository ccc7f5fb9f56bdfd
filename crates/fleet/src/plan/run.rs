//! One change on its way: from when it begins until every cluster that can have it has it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::rollout::status::{PastRun, Run};

use super::survey::{Seen, Standing, Survey};
use super::{Decision, report};
use crate::observe::World;
use crate::reasons::outcome;

/// The run of an incremental rollout that begins now; none if there is nothing that could be done.
///
/// Who is unready or unreachable now is left for later. Not so who became unready by a revision of this Rollout that did not
/// prove itself: those go first, else what mends them could never reach them.
pub(super) fn begin(
    world: &World,
    survey: &Survey<'_>,
    stable: Option<&str>,
    now: Timestamp,
) -> Option<Run> {
    let before = world.rollout.status.run.as_ref();
    let is_ours_to_mend = |seen: &Seen<'_>| {
        let was_ready = before.is_some_and(|run| !run.skipped.iter().any(|name| name == seen.name));
        seen.template() != stable || was_ready
    };
    let is_left = |seen: &Seen<'_>| match seen.standing {
        Standing::New => seen.cluster.is_initialized && !seen.cluster.is_reachable,
        Standing::Outdated => {
            !seen.cluster.is_reachable || (!seen.is_ready() && !is_ours_to_mend(seen))
        }
        Standing::Current => {
            let is_mended = seen.cluster.is_reachable && is_ours_to_mend(seen);
            !seen.is_settled() && !is_mended
        }
        Standing::Going | Standing::Deselected | Standing::Foreign => false,
    };
    let skipped: BTreeSet<&str> = survey
        .selected()
        .filter(|seen| is_left(seen))
        .map(|seen| seen.name)
        .collect();
    let can = |seen: &&Seen<'_>| {
        seen.can_move() && seen.cluster.is_reachable && !skipped.contains(seen.name)
    };
    survey.selected().find(can)?;
    // Where only clusters that have nothing yet get what has proved itself, there is nothing to be tried first.
    let is_a_switch = |seen: &Seen<'_>| seen.standing == Standing::Outdated && can(&seen);
    let is_tried = stable != Some(survey.target()) || survey.selected().any(is_a_switch);
    let mut run = Run {
        revision: survey.target().to_owned(),
        started: Time(now),
        canary: None,
        canary_passed: (!is_tried).then_some(Time(now)),
        skipped: skipped.iter().map(|name| (*name).to_owned()).collect(),
    };
    if is_tried {
        run.canary = canary(survey, &run, stable);
    }
    Some(run)
}

/// Who goes first: who has the change already, though it has not proved itself (it was taken back and came again); else of
/// those that this Rollout made unready one, else whose turn it is. Nobody new who cannot be reached.
pub(super) fn canary(survey: &Survey<'_>, run: &Run, stable: Option<&str>) -> Option<String> {
    let target = Some(survey.target());
    let has_it = |seen: &Seen<'_>| stable != target && seen.template() == target;
    let holders = survey.in_order(has_it);
    let ready = holders.iter().find(|seen| seen.is_settled());
    if let Some(holder) = ready.or_else(|| holders.first()) {
        return Some(holder.name.to_owned());
    }
    let candidates = survey.in_order(|seen| is_candidate(survey, seen, run, stable));
    let broken = candidates.iter().find(|seen| seen.is_unready());
    let first = broken.or_else(|| candidates.first())?;
    Some(first.name.to_owned())
}

/// Whether a cluster could go first. One without an assignment gets what has proved itself, if there is such a thing.
pub(super) fn is_candidate(
    survey: &Survey<'_>,
    seen: &Seen<'_>,
    run: &Run,
    stable: Option<&str>,
) -> bool {
    let proved = stable.and_then(|stable| seen.proved(stable, survey.target()));
    let is_served = seen.standing == Standing::New && proved.is_some();
    seen.can_move() && seen.cluster.is_reachable && !is_served && !is_skipped(run, seen)
}

/// Whether a cluster is left for later.
pub(super) fn is_skipped(run: &Run, seen: &Seen<'_>) -> bool {
    run.skipped.iter().any(|name| name == seen.name)
}

/// Who is still left for later: whoever has come back is not.
pub(super) fn still_skipped(survey: &Survey<'_>, run: &Run) -> Vec<String> {
    let is_away = |name: &&String| survey.get(name).is_some_and(is_away);
    run.skipped.iter().filter(is_away).cloned().collect()
}

fn is_away(seen: &Seen<'_>) -> bool {
    match seen.standing {
        Standing::Current => !seen.is_settled(),
        Standing::New | Standing::Outdated => !seen.is_ready(),
        Standing::Going | Standing::Deselected | Standing::Foreign => false,
    }
}

/// Ends the run that goes on, if there is one.
pub(super) fn end(
    world: &World,
    survey: &Survey<'_>,
    how: &str,
    decision: &mut Decision,
    now: Timestamp,
) {
    let Some(run) = decision.run.take() else {
        return;
    };
    // What takes its place counts by another revision: of one that was superseded, the last that was told is known.
    let counts = if how == outcome::SUPERSEDED {
        world.rollout.status.counts.unwrap_or_default()
    } else {
        report::counts(&report::cases(world, survey, &run.skipped))
    };
    decision.ended.push(PastRun {
        revision: run.revision,
        started: run.started,
        finished: Time(now),
        outcome: how.to_owned(),
        counts,
    });
}

/// Ends the run that goes on because another change takes its place, if one does.
pub(super) fn supersede(
    world: &World,
    survey: &Survey<'_>,
    decision: &mut Decision,
    now: Timestamp,
) -> bool {
    let run = decision.run.as_ref();
    let is_other = run.is_some_and(|run| run.revision != survey.target());
    if is_other {
        end(world, survey, outcome::SUPERSEDED, decision, now);
    }
    is_other
}
