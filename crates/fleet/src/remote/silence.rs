//! What is told of a sync while its cluster tells nothing of it: that it is on its way, and after a while that nobody looks at it.

use std::time::Duration;

use jiff::Timestamp;
use slipway_api::fleet::assemblage::{SyncState, SyncStatus};
use slipway_kernel::instant::later;

use super::World;
use crate::reasons::Reason;

/// How long the agent of a cluster may take to look at what it is to have.
const SILENCE: Duration = Duration::from_mins(1);

/// Why nothing is told of a sync yet.
const AWAITED: &str = "Waiting";

/// What is told of a sync of which its cluster tells nothing, whether or not it is there already. One sentence for all of its way: each
/// would be a write.
pub(super) fn awaited(
    world: &World,
    is_there: bool,
    known: Option<&SyncStatus>,
    now: Timestamp,
) -> SyncStatus {
    if !world.is_open() {
        return SyncStatus::default();
    }
    let since = known.filter(|known| known.state == SyncState::Updating);
    let since = since.and_then(|known| known.since.as_ref());
    let until = since.and_then(|since| silent_at(world, since.0));
    let (reason, message) = if is_there && until.is_some_and(|until| until <= now) {
        (
            Reason::AgentSilent.as_str(),
            "the agent in the cluster has not looked at it for more than a minute: see whether it runs there",
        )
    } else {
        let message = "it is on its way: the agent in the cluster has not looked at it yet";
        (AWAITED, message)
    };
    SyncStatus {
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..SyncStatus::default()
    }
}

/// When it is to be looked at again whether somebody looks at the first of these.
pub(super) fn look_at(world: &World, told: &[SyncStatus]) -> Option<Timestamp> {
    let awaited = told.iter();
    let awaited = awaited.filter(|told| told.reason.as_deref() == Some(AWAITED));
    let since = awaited.filter_map(|told| told.since.as_ref());
    silent_at(world, since.map(|since| since.0).min()?)
}

/// When the agent of a cluster counts as silent of what is on its way since then: it may have been told of it only when the cluster could
/// be reached.
fn silent_at(world: &World, since: Timestamp) -> Option<Timestamp> {
    later(since.max(world.reached?), SILENCE)
}
