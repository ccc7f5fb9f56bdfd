//! Whether clusters can be reached, as it is told on their assemblages: so it is the same for whoever looks, and a new process
//! does not take all of them for lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use slipway_api::foreign::condition;
use slipway_kernel::condition::{clear, set};
use slipway_kernel::fields::text;
use slipway_kernel::instant::later;
use slipway_kernel::member::{Identity, Reach, reasons};
use slipway_kernel::{Blocker, ClusterId, Facts, Member, MemberState};

use super::members;
use super::remote::Fate;
use super::view::{View, cluster_of};
use crate::observe::cluster::Registered;
use crate::observe::seen::LeafSeen;
use crate::reasons::Reason;
use crate::render::assignment::Layer;
use crate::{kinds, work};

/// Whether the cluster of a `RemoteAssemblage` can be reached.
pub(crate) const REACHABLE: &str = "Reachable";
/// Why it is said to be.
const REACHED: &str = "Reached";

/// Why nothing can be written into a cluster that answers: what it would be is not defined there, or has not been listed. What is
/// applied from the control plane may bring just that.
const BARE: [&str; 2] = [Reason::AgentMissing.as_str(), reasons::NOT_SYNCED];

/// How long what was told before still counts while a cluster is looked at for the first time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Whether something stands for the cluster of an assemblage. Said only where nothing does.
const REGISTERED: &str = "Registered";
/// Why not.
const GONE: &str = "ClusterGone";

/// How long nothing may stand for a cluster before it counts as deleted: whoever replaces an object deletes it first.
const GRACE: Duration = Duration::from_secs(30);

/// Tells whether something stands for a cluster; gives when to look again, if that is not certain yet.
pub(crate) fn tell_fate(
    conditions: &mut Vec<Condition>,
    fate: Fate,
    generation: i64,
    now: Timestamp,
) -> Option<Timestamp> {
    if fate == Fate::Unread {
        return later(now, super::rollout::READING);
    }
    if fate != Fate::Absent {
        clear(conditions, REGISTERED);
        return None;
    }
    let message = "neither a Cluster nor a Secret stands for it any more: what is assigned to it is forgotten soon";
    set(
        conditions, REGISTERED, false, GONE, message, generation, now,
    );
    let since = absent_since(conditions)?;
    later(since, GRACE).filter(|until| *until > now)
}

/// Whether a cluster is gone for certain: another one has taken its name, or nothing has stood for it for a while.
pub(crate) fn is_gone(conditions: &[Condition], fate: Fate, now: Timestamp) -> bool {
    let until = absent_since(conditions).and_then(|since| later(since, GRACE));
    match fate {
        Fate::Here | Fate::Unread => false,
        Fate::Absent => until.is_some_and(|until| until <= now),
        Fate::Replaced => true,
    }
}

/// How far the API's clock may be behind ours.
const SKEW: Duration = Duration::from_secs(5);

/// Whether an assemblage that is being deleted was forgotten by us: nothing had stood for its cluster for so long. Nobody has said then that
/// what the cluster has may go, also if it is there again by now.
pub(crate) fn was_forgotten(conditions: &[Condition], assemblage: &Value) -> bool {
    let deleted = text(assemblage, "/metadata/deletionTimestamp");
    let deleted: Option<Timestamp> = deleted.and_then(|deleted| deleted.parse().ok());
    let gone = absent_since(conditions).and_then(|since| later(since, GRACE.saturating_sub(SKEW)));
    gone.zip(deleted)
        .is_some_and(|(gone, deleted)| gone <= deleted)
}

fn absent_since(conditions: &[Condition]) -> Option<Timestamp> {
    let mut all = conditions.iter();
    let told = all.find(|told| told.type_ == REGISTERED && told.status == "False")?;
    Some(told.last_transition_time.0)
}

/// Whether an assemblage says that its cluster cannot be reached.
pub(super) fn is_known_unreachable(assemblage: &Value) -> bool {
    condition(assemblage, REACHABLE).is_some_and(|known| known.status == "False")
}

/// Whether assemblages are defined in a member, and have been listed.
pub(super) fn has_assemblages(view: &View<'_>, member: &ClusterId) -> bool {
    view.stores
        .is_synced::<LeafSeen>(member, &kinds::ASSEMBLAGE)
}

/// The clusters of these that cannot be reached now, or into which nothing can be written, and why. What is applied from the control
/// plane needs nothing to be there.
pub(super) fn unreachable<'a>(
    view: &View<'_>,
    facts: &Facts,
    layer: Layer,
    clusters: impl IntoIterator<Item = (&'a Registered, bool)>,
) -> BTreeMap<String, String> {
    let away = clusters.into_iter().filter_map(|(cluster, is_assigned)| {
        let why = away(view, facts, layer, (cluster, is_assigned))?;
        Some((cluster.name.clone(), why))
    });
    away.collect()
}

/// Why a cluster cannot be reached, if it cannot.
fn away(
    view: &View<'_>,
    facts: &Facts,
    layer: Layer,
    (cluster, is_assigned): (&Registered, bool),
) -> Option<String> {
    let remote = view.remote(&cluster.namespace, &cluster.name);
    let its = remote.filter(|item| cluster_of(item.body().object()) == cluster.name);
    let told = its.and_then(|item| condition(item.body().object(), REACHABLE));
    if let Some(told) = told {
        let is_bare = BARE.contains(&told.reason.as_str());
        let is_away = told.status == "False" && !(is_bare && layer == Layer::Bootstrap);
        return is_away.then_some(told.message);
    }
    let member = work::member(&cluster.namespace, &cluster.name);
    let state = facts.members.get(&member);
    let is_away = match state.map(|state| &state.reach) {
        Some(Reach::Reached) => layer == Layer::Remote && !has_assemblages(view, &member),
        // One that has an assignment has been reached before.
        None | Some(Reach::Connecting) => !is_assigned,
        Some(_) => true,
    };
    is_away.then(|| {
        let known = members::one(view, &member).zip(state);
        let said = known.and_then(|(member, state)| {
            let blocker = blocker(view, &member, state)?;
            Some(steady(&state.reach, &blocker.message))
        });
        said.unwrap_or_else(|| "it has not been reached yet".to_owned())
    })
}

/// The clusters of these that have not been looked at yet since we began: what is told of them was told before. Not for long, else
/// they cannot be reached.
pub(super) fn unread<'a>(
    facts: &Facts,
    clusters: impl Iterator<Item = &'a Registered>,
    now: Timestamp,
) -> BTreeSet<String> {
    let is_unread = |cluster: &&Registered| {
        let member = work::member(&cluster.namespace, &cluster.name);
        let Some(state) = facts.members.get(&member) else {
            return cluster.is_initialized;
        };
        let is_looked_at = match state.reach {
            Reach::Connecting => false,
            Reach::Reached => state.synced,
            _ => true,
        };
        !is_looked_at && later(state.since, PATIENCE).is_some_and(|until| until > now)
    };
    let unread = clusters.filter(is_unread);
    unread.map(|cluster| cluster.name.clone()).collect()
}

/// Whether a member has been asked which cluster it is and what is in it, and has not answered yet. Not for long, else it does not say so.
pub(super) fn is_asked(state: &MemberState, now: Timestamp) -> bool {
    match state.reach {
        Reach::Connecting => true,
        Reach::Reached if state.identity == Identity::Unread => true,
        Reach::Reached => !state.synced && patience(state).is_some_and(|until| until > now),
        _ => false,
    }
}

/// Until when a member that answers is waited for to be listed: from when it began to answer, or its credentials were read anew.
fn patience(state: &MemberState) -> Option<Timestamp> {
    let since = state.since.max(state.unsynced.unwrap_or(state.since));
    later(since, PATIENCE)
}

/// Whether something can be done in a member, and what is in it has been seen.
pub(super) fn is_open(member: &Member, state: Option<&MemberState>) -> bool {
    state.is_some_and(|state| state.blocker(member).is_none())
}

/// Why nothing is written into a member, if nothing is.
pub(super) fn blocker(view: &View<'_>, member: &Member, state: &MemberState) -> Option<Blocker> {
    let blocker = state.blocker(member);
    if blocker.is_some() || has_assemblages(view, &member.cluster) {
        return blocker;
    }
    let cluster = &member.cluster;
    Some(Blocker {
        reason: Reason::AgentMissing.as_str(),
        message: format!(
            "there is no definition of Assemblages in cluster {cluster}, or our user there has no right to list and watch them"
        ),
        object: member.object.clone(),
        since: state.since,
        until: None,
        unblock: "whoever installs the agent there, or a Rollout of BootstrapModules that does, or who grants that right"
            .to_owned(),
    })
}

/// Tells whether a cluster can be reached; gives when to look again, if that is not known yet. `blocker` is why nothing is
/// written into it, if nothing is.
pub(super) fn tell(
    conditions: &mut Vec<Condition>,
    state: Option<&MemberState>,
    blocker: Option<&Blocker>,
    generation: i64,
    now: Timestamp,
) -> Option<Timestamp> {
    let Some(state) = state else {
        return later(now, PATIENCE);
    };
    let Some(blocker) = blocker else {
        set(
            conditions,
            REACHABLE,
            true,
            REACHED,
            "it answers",
            generation,
            now,
        );
        return None;
    };
    let is_new = [reasons::NOT_SYNCED, reasons::CLUSTER_UNCONFIRMED].contains(&blocker.reason);
    let until = patience(state).filter(|until| is_new && *until > now);
    if until.is_none() {
        let message = steady(&state.reach, &blocker.message);
        set(
            conditions,
            REACHABLE,
            false,
            blocker.reason,
            &message,
            generation,
            now,
        );
    }
    until
}

/// A sentence that does not change with every attempt: else each would be a write.
fn steady(reach: &Reach, message: &str) -> String {
    match reach {
        Reach::Unreachable(_) => "it does not answer".to_owned(),
        _ => message.to_owned(),
    }
}
