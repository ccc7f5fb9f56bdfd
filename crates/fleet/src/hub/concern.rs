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
use crate::reasons::{Reason, state};
use crate::render::assignment::Layer;

/// What is told of a cluster that cannot be reached.
const AWAY: &str = Reason::Unreachable.as_str();

/// Where somebody assigns.
fn layer_of(kind: &Kind, object: &Value) -> Layer {
    let target = text(object, "/spec/targetKind");
    if *kind == kinds::BOOTSTRAP_MODULE || target == Some(&kinds::BOOTSTRAP_MODULE.kind) {
        Layer::Bootstrap
    } else {
        Layer::Remote
    }
}

/// Whether what an assemblage says of a cluster has been told already by who assigns: it is settled there, or has never had
/// anything to do with it. A module tells of no cluster by name, so nothing has been told there.
pub(super) fn is_told(
    kind: &Kind,
    assigner: &Item<Whole>,
    (layer, cluster): (Layer, &str),
    assemblage: Option<&Value>,
) -> bool {
    let object = assigner.body().object();
    let told = list(object, "/status/clusters");
    let told = told
        .into_iter()
        .find(|told| text(told, "/name") == Some(cluster));
    if layer != layer_of(kind, object) {
        // Only whether the cluster can be reached is of interest in the other layer.
        let is_away = assemblage.is_some_and(is_known_unreachable);
        let was_away = told.and_then(|told| text(told, "/reason")) == Some(AWAY);
        return layer == Layer::Bootstrap || is_away == was_away;
    }
    if *kind != kinds::ROLLOUT || object.pointer("/status/run").is_some() {
        return false;
    }
    let name = &assigner.meta().name;
    let by = format!("{}/{name}", kind.kind);
    let entry = assemblage.and_then(|found| entry(found, name, &by));
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
