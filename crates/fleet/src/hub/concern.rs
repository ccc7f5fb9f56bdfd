//! Whether a change in a cluster's assemblage is news to a Rollout, or to a module.

use serde_json::Value;
use slipway_api::fleet::assemblage::SyncState;
use slipway_kernel::fields::text;
use slipway_kernel::store::Item;
use slipway_kernel::{Key, Kind};

use super::reach::is_known_unreachable;
use super::view::View;
use crate::observe::assemblage::entry;
use crate::observe::kept::Kept;
use crate::observe::seen::Whole;
use crate::reasons::{Reason, state};
use crate::render::assignment::Layer;
use crate::{kinds, work};

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

/// What somebody who assigns tells of a cluster. Clusters are told of by name, so that it is found at once among many.
fn cluster_status<'a>(assigner: &'a Value, cluster: &str) -> Option<&'a Value> {
    let all = assigner.pointer("/status/clusters")?.as_array()?;
    let place = all.binary_search_by(|told| text(told, "/name").unwrap_or_default().cmp(cluster));
    all.get(place.ok()?)
}

/// Whether what an assemblage says of a cluster has been told already by who assigns: it is settled there, or has never had
/// anything to do with it. A module tells of no cluster by name, so nothing has been told there.
pub(super) fn is_told(
    kind: &Kind,
    assigner: &Item<Whole>,
    (layer, cluster): (Layer, &str),
    assemblage: Option<&Kept>,
) -> bool {
    let object = assigner.body().object();
    let told = cluster_status(object, cluster);
    let is_away = || assemblage.is_some_and(|found| is_known_unreachable(found.object()));
    if layer != layer_of(kind, object) {
        // Only whether the cluster can be reached is of interest in the other layer.
        let is_away = is_away();
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
            is_ready && was_ready && !is_away()
        }
        _ => false,
    }
}

/// The modules without a selector that tell of more or fewer assemblages than name them: no assemblage leads to a module that it
/// named before and names no more. One that an assemblage names twice is looked at with each change, which is harmless.
pub(super) fn miscounted(view: &View<'_>, kind: &Kind, namespace: &str) -> Vec<Key> {
    let is_off = |item: &Item<Whole>| {
        let object = item.body().object();
        if object.pointer("/spec/selector").is_some() {
            return false;
        }
        let told = object.pointer("/status/summary/total");
        let told = told.and_then(Value::as_u64);
        let named = view.count_naming(kind, namespace, &item.meta().name);
        told != u64::try_from(named).ok()
    };
    let all = view.all(kind, namespace).into_iter();
    all.filter(is_off)
        .map(|item| work::at_home(kind, namespace, &item.meta().name))
        .collect()
}
