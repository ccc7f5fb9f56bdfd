//! What a Rollout's status says: how each cluster is, how many are how far, what is waited for, what has been.

mod cases;
mod conditions;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::rollout::status::{
    ClusterStatus, MAX_CLUSTERS, MAX_HISTORY, RolloutStatus,
};
use slipway_api::waiting::{MAX_WAITING, WaitingFor};
use slipway_kernel::blocker::waiting_for;
use slipway_kernel::capability::show::count;
use slipway_kernel::{Blocker, ObjectRef};

use super::survey::Survey;
use super::{Decision, Hold};
use crate::assemblage::state::begun;
use crate::kinds;
use crate::observe::World;
use crate::observe::rollout::Asked;
use crate::reasons::state;

pub(super) use cases::{Case, cases, counts};

/// More clusters than this are many.
const MANY: usize = 100;
/// How long is what is told of one of many clusters, in characters: a status that is too large is not stored at all, and then nothing goes
/// on.
const BRIEF: usize = 160;
/// The same of one of few.
const LONGEST: usize = 1_536;

/// The status of a Rollout after a decision. Where nothing has changed, it is what is stored.
pub fn status(world: &World, decision: &Decision, now: Timestamp) -> RolloutStatus {
    let before = &world.rollout.status;
    let mut status = RolloutStatus {
        observed_generation: Some(world.rollout.generation),
        conditions: before.conditions.clone(),
        stable_revision: decision.stable.clone(),
        run: decision.run.clone(),
        unassigned: decision.unassigned.clone(),
        joined: decision.joined.clone(),
        waiting_for: waiting(world, decision, now),
        ..before.clone()
    };
    let ended = decision.ended.iter().rev().chain(&before.history);
    status.history = ended.take(MAX_HISTORY).cloned().collect();
    if let Asked::For(wanted) = &world.rollout.wanted {
        let survey = Survey::of(world, wanted, now);
        let all = cases(world, &survey, decision.run.as_ref());
        status.target_revision = Some(wanted.target.clone());
        status.counts = Some(counts(&all));
        status.clusters = listed(all, &before.clusters, now);
    }
    conditions::set(world, decision, &mut status, now);
    status
}

/// What a status says is waited for: what stops the Rollout first, and of what is about single clusters one for each reason. There
/// is room for few, and a hundred clusters that are away must not hide what a person has to do.
fn waiting(world: &World, decision: &Decision, now: Timestamp) -> Vec<WaitingFor> {
    let mut holds = condensed(&decision.holds);
    holds.sort_by_key(conditions::rank);
    holds.truncate(MAX_WAITING);
    let before = &world.rollout.status.waiting_for;
    let mut all = waiting_for(&blockers(world, &holds, now), before);
    let rank = |one: &WaitingFor| {
        let like = holds.iter().filter(|hold| hold.reason == one.reason);
        like.map(conditions::rank).min()
    };
    all.sort_by_key(rank);
    all
}

/// Holds, with those that are about single clusters as one for each reason.
fn condensed(holds: &[Hold]) -> Vec<Hold> {
    let mut besides: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<Hold> = Vec::new();
    for hold in holds {
        if !conditions::is_aside(hold) {
            all.push(hold.clone());
        } else if let Some(more) = besides.get_mut(hold.reason) {
            *more += 1;
        } else {
            besides.insert(hold.reason, 0);
            all.push(hold.clone());
        }
    }
    for hold in &mut all {
        let more = besides.get(hold.reason).copied().unwrap_or_default();
        if more > 0 && conditions::is_aside(hold) {
            hold.message = format!("{}; {} besides", hold.message, count(more, "cluster"));
        }
    }
    all
}

/// The clusters that a status names: since when each is as it is, and of too many those that are not as they should be.
fn listed(cases: Vec<Case>, before: &[ClusterStatus], now: Timestamp) -> Vec<ClusterStatus> {
    let mut all: Vec<ClusterStatus> = cases.into_iter().map(|case| case.status).collect();
    let longest = if all.len() > MANY { BRIEF } else { LONGEST };
    for status in &mut all {
        if let Some(message) = &mut status.message {
            *message = begun(message, longest);
        }
        let known = before.binary_search_by(|known| known.name.cmp(&status.name));
        let known = known.ok().and_then(|place| before.get(place));
        let is_same = |known: &&ClusterStatus| {
            known.state == status.state && known.revision == status.revision
        };
        let since = known.filter(is_same).and_then(|known| known.since.clone());
        status.since = Some(since.unwrap_or(Time(now)));
    }
    if all.len() > MAX_CLUSTERS {
        all.sort_by_key(|status| status.state == state::READY);
        all.truncate(MAX_CLUSTERS);
        all.sort_by(|a, b| a.name.cmp(&b.name));
    }
    all
}

/// The holds of a decision, on the objects that they are about.
pub fn blockers(world: &World, holds: &[Hold], now: Timestamp) -> Vec<Blocker> {
    let (namespace, name) = world.rollout.name.split_once('/').unwrap_or_default();
    holds
        .iter()
        .map(|hold| Blocker {
            reason: hold.reason,
            message: hold.message.clone(),
            object: match &hold.cluster {
                Some(cluster) => ObjectRef::local(kinds::CLUSTER, namespace, cluster),
                None => ObjectRef::local(kinds::ROLLOUT, namespace, name),
            },
            since: now,
            until: hold.until,
            unblock: hold.unblock.clone(),
        })
        .collect()
}
