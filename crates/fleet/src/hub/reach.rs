//! Whether clusters can be reached, as it is told on their assemblages: so it is the same for whoever looks, and a new process
//! does not take all of them for lost.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use slipway_api::foreign::condition;
use slipway_kernel::condition::set;
use slipway_kernel::instant::later;
use slipway_kernel::member::{Reach, reasons};
use slipway_kernel::{Blocker, ClusterId, Facts, Member, MemberState};

use super::view::View;
use crate::observe::cluster::Registered;
use crate::observe::seen::Assembled;
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
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether an assemblage says that its cluster cannot be reached.
pub(super) fn is_known_unreachable(assemblage: &Value) -> bool {
    condition(assemblage, REACHABLE).is_some_and(|known| known.status == "False")
}

/// Whether assemblages are defined in a member, and have been listed.
pub(super) fn has_assemblages(view: &View<'_>, member: &ClusterId) -> bool {
    view.stores
        .is_synced::<Assembled>(member, &kinds::ASSEMBLAGE)
}

/// The clusters of these that cannot be reached now, or into which nothing can be written. What is applied from the control
/// plane needs nothing to be there.
pub(super) fn unreachable<'a>(
    view: &View<'_>,
    facts: &Facts,
    layer: Layer,
    clusters: impl IntoIterator<Item = (&'a Registered, bool)>,
) -> BTreeSet<String> {
    let is_away = |(cluster, has_assemblage): &(&Registered, bool)| {
        let remote = view.get(&kinds::REMOTE_ASSEMBLAGE, &cluster.namespace, &cluster.name);
        let told = remote.and_then(|item| condition(item.body().object(), REACHABLE));
        if let Some(told) = told {
            let is_bare = BARE.contains(&told.reason.as_str());
            return told.status == "False" && !(is_bare && layer == Layer::Bootstrap);
        }
        let member = work::member(&cluster.namespace, &cluster.name);
        match facts.members.get(&member).map(|state| &state.reach) {
            Some(Reach::Reached) => layer == Layer::Remote && !has_assemblages(view, &member),
            // One that has an assignment has been reached before.
            None | Some(Reach::Connecting) => !has_assemblage,
            Some(_) => true,
        }
    };
    let away = clusters.into_iter().filter(is_away);
    away.map(|(cluster, _)| cluster.name.clone()).collect()
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
        message: format!("there is no definition of Assemblages in cluster {cluster}"),
        object: member.object.clone(),
        since: state.since,
        until: None,
        unblock: "whoever installs the agent there, or a Rollout of BootstrapModules that does"
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
    let until = later(state.since, PATIENCE).filter(|until| is_new && *until > now);
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
