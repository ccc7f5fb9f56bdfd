//! Clusters that lose a Rollout's configuration: because they are no longer selected, or because the Rollout goes.
//!
//! A wrong selector is the most dangerous change there is. So where more than one cluster and more than a tenth of all would
//! lose the configuration at once, a person has to say so. That the Rollout itself or a cluster is deleted is such a word.

use slipway_api::fleet::names::CONFIRM_UNASSIGN;

use super::survey::{Standing, Survey};
use super::{Decision, Hold};
use crate::observe::World;
use crate::reasons::Reason;

/// Above how many of a hundred a person has to say so.
const USUAL_PERCENT: usize = 10;

/// Those that are no longer selected.
pub(super) fn deselected(world: &World, survey: &Survey<'_>, decision: &mut Decision) {
    let leaving: Vec<&str> = survey
        .all()
        .filter(|seen| seen.standing == Standing::Deselected)
        .map(|seen| seen.name)
        .collect();
    if leaving.is_empty() {
        decision.word_is_followed = world.rollout.confirmed.is_some();
        return;
    }
    let all = survey.all().filter(|seen| seen.entry().is_some());
    let assigned = all.filter(|seen| seen.standing != Standing::Going).count();
    let many = leaving.len();
    let is_usual = many <= 1 || many * 100 <= assigned * USUAL_PERCENT;
    let is_confirmed = world.rollout.confirmed.is_some_and(|most| many <= most);
    if is_usual || is_confirmed {
        decision.unassign = leaving.into_iter().map(str::to_owned).collect();
        return;
    }
    let message = format!(
        "{many} of {assigned} clusters are no longer selected and would lose this configuration; nothing is taken away yet"
    );
    let unblock = format!(
        "a person who says so with the annotation {CONFIRM_UNASSIGN}={many}, or mends the selector"
    );
    decision
        .holds
        .push(Hold::new(Reason::MassUnassignment, message, &unblock));
}

/// All of them, because the Rollout is being deleted. Also of clusters that are going, or cannot be seen: who is not there any
/// more to take an entry away leaves it for ever.
pub(super) fn all(world: &World, decision: &mut Decision) {
    let ours = world
        .clusters
        .iter()
        .filter(|(_, cluster)| cluster.entry.as_ref().is_some_and(|entry| entry.is_ours));
    decision.run = None;
    decision.unassign = ours.map(|(name, _)| name.clone()).collect();
    decision.is_released = decision.unassign.is_empty();
}
