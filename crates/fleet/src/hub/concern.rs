//! Whether a change in a cluster's assemblage is news to a Rollout.

use serde_json::Value;
use slipway_api::fleet::assemblage::SyncState;
use slipway_kernel::Kind;
use slipway_kernel::fields::{list, text};
use slipway_kernel::store::Item;

use super::reach::is_known_unreachable;
use crate::kinds;
use crate::observe::assemblage::entry;
use crate::observe::seen::Whole;
use crate::reasons::state;

/// Whether what an assemblage says of a cluster has been told by a Rollout already: it is settled there, or has never had
/// anything to do with it. A module tells of no cluster by name, so nothing has been told there.
pub(super) fn is_told(
    kind: &Kind,
    assigner: &Item<Whole>,
    cluster: &str,
    assemblage: Option<&Value>,
) -> bool {
    let name = &assigner.meta().name;
    let by = format!("{}/{name}", kind.kind);
    let entry = assemblage.and_then(|found| entry(found, name, &by));
    if *kind != kinds::ROLLOUT {
        return false;
    }
    let object = assigner.body().object();
    if object.pointer("/status/run").is_some() {
        return false;
    }
    let mut told = list(object, "/status/clusters");
    let told = told.find(|told| text(told, "/name") == Some(cluster));
    match (told, entry) {
        (None, None) => true,
        (Some(told), Some(entry)) => {
            let status = entry.status.as_ref();
            let is_ready = status.is_some_and(|status| {
                status.state == SyncState::Succeeded && status.observed == entry.revision
            });
            let was_ready = text(told, "/state") == Some(state::READY)
                && text(told, "/revision") == entry.revision.as_deref();
            is_ready && was_ready && !assemblage.is_some_and(is_known_unreachable)
        }
        _ => false,
    }
}
