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
use slipway_kernel::{Facts, Member, MemberState};

use super::view::View;
use crate::observe::cluster::Registered;
use crate::render::assignment::Layer;
use crate::{kinds, work};

/// Whether the cluster of a `RemoteAssemblage` can be reached.
pub(crate) const REACHABLE: &str = "Reachable";
/// Why it is said to be.
const REACHED: &str = "Reached";

/// How long what was told before still counts while a cluster is looked at for the first time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether an assemblage says that its cluster cannot be reached.
pub(super) fn is_known_unreachable(assemblage: &Value) -> bool {
    condition(assemblage, REACHABLE).is_some_and(|known| known.status == "False")
}

/// The clusters of these that cannot be reached now. What is applied from the control plane needs nothing to be there yet: so
/// it can bring what is missing.
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
            let is_bare = layer == Layer::Bootstrap && told.reason == reasons::NOT_SYNCED;
            return told.status == "False" && !is_bare;
        }
        let member = work::member(&cluster.namespace, &cluster.name);
        match facts.members.get(&member).map(|state| &state.reach) {
            Some(Reach::Reached) => false,
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

/// Tells whether a cluster can be reached; gives when to look again, if that is not known yet.
pub(super) fn tell(
    conditions: &mut Vec<Condition>,
    member: &Member,
    state: Option<&MemberState>,
    generation: i64,
    now: Timestamp,
) -> Option<Timestamp> {
    let Some(state) = state else {
        return later(now, PATIENCE);
    };
    let Some(blocker) = state.blocker(member) else {
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
