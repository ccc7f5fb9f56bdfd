//! Clusters that lose a Rollout's configuration: because they are no longer selected, or because the Rollout goes.
//!
//! A wrong selector is the most dangerous change there is, and so are labels that somebody takes off one cluster after the other.
//! So where more than one cluster and more than a tenth of all would lose the configuration within an hour, a person has to say
//! so. That the Rollout itself or a cluster is deleted is such a word.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::names::CONFIRM_UNASSIGN;
use slipway_api::fleet::rollout::status::{MAX_CLUSTERS, Unassigned};
use slipway_kernel::capability::show::count;
use slipway_kernel::instant::later;

use super::survey::{Standing, Survey};
use super::{Decision, Hold};
use crate::observe::World;
use crate::reasons::Reason;

/// Above how many of a hundred a person has to say so.
const USUAL_PERCENT: usize = 10;

/// For how long those that were deselected before count as deselected at once.
const MEMORY: Duration = Duration::from_hours(1);

/// Those that are no longer selected.
pub(super) fn deselected(
    world: &World,
    survey: &Survey<'_>,
    decision: &mut Decision,
    now: Timestamp,
) {
    let leaving: BTreeSet<&str> = survey
        .all()
        .filter(|seen| seen.standing == Standing::Deselected)
        .map(|seen| seen.name)
        .collect();
    let known = remembered(world, survey, now);
    decision.unassigned.clone_from(&known);
    if leaving.is_empty() {
        decision.word_is_followed = world.rollout.confirmed.is_some();
        return;
    }
    let confirmed = world.rollout.confirmed;
    if let Some(most) = confirmed.filter(|most| leaving.len() <= *most) {
        // Who has gone by a person's word is not in it any more: while one cannot go, nobody else goes in the place of the others.
        decision.word_left = (leaving.len() < most).then_some(leaving.len());
        decision.unassign = leaving.into_iter().map(str::to_owned).collect();
        return;
    }
    let is_known = |name: &str| known.iter().any(|one| one.name == name);
    let new: Vec<&str> = leaving
        .iter()
        .copied()
        .filter(|name| !is_known(name))
        .collect();
    // Who was told of before goes: it was few enough then.
    let going = leaving.iter().filter(|name| is_known(name));
    decision.unassign = going.map(|name| (*name).to_owned()).collect();
    if new.is_empty() {
        return;
    }
    let before = known.iter().filter(|one| !leaving.contains(&*one.name));
    let before = before.count();
    let all = survey.all().filter(|seen| seen.entry().is_some());
    let here = all.filter(|seen| seen.standing != Standing::Going).count();
    let (many, assigned) = (leaving.len() + before, here + before);
    let is_usual = |many: usize| many <= 1 || many * 100 <= assigned * USUAL_PERCENT;
    if is_usual(many) && known.len() + new.len() <= MAX_CLUSTERS {
        // The next plan takes it away: first it has to be written down, else nobody knows how many it were.
        let told = new.iter().map(|name| Unassigned {
            name: (*name).to_owned(),
            since: Time(now),
        });
        decision.unassigned.extend(told);
        decision.unassigned.sort_by(|a, b| a.name.cmp(&b.name));
        return;
    }
    let lost = match before {
        0 => String::new(),
        _ => format!(", after {} within the last hour", count(before, "other")),
    };
    let number = leaving.len();
    let message = format!(
        "{number} of {assigned} clusters are no longer selected and would lose this configuration{lost}; nothing is taken away yet"
    );
    let unblock = format!(
        "a person who says so with the annotation {CONFIRM_UNASSIGN}={number}, or mends the selector"
    );
    let forgotten = known.iter().map(|one| later(one.since.0, MEMORY));
    let forgotten = forgotten.min().flatten().filter(|_| is_usual(number));
    if let Some(at) = forgotten {
        decision.wake(at);
    }
    let hold = Hold::new(Reason::MassUnassignment, message, &unblock);
    decision.holds.push(hold.until(forgotten));
}

/// Those that were deselected lately, and have not got it back.
fn remembered(world: &World, survey: &Survey<'_>, now: Timestamp) -> Vec<Unassigned> {
    let is_late = |one: &Unassigned| later(one.since.0, MEMORY).is_some_and(|until| until > now);
    let is_back = |one: &Unassigned| {
        let seen = survey.get(&one.name);
        seen.is_some_and(super::survey::Seen::is_selected)
    };
    let all = world.rollout.status.unassigned.iter();
    all.filter(|one| is_late(one) && !is_back(one))
        .cloned()
        .collect()
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
