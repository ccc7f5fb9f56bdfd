//! Workloads that a Canary has left: it is deleted, and no other one is about them.

use serde_json::Value;
use slipway_kernel::fields::text;
use slipway_kernel::{Key, ObjectRef, Stores, Target};

use super::projections::read;
use super::{CanarySeen, Whole, on_object};
use crate::kinds;
use crate::router;

/// Workloads in the namespace of a Canary that is gone, and that no Canary is about; none if it is there, or nobody can tell: of a
/// Canary that cannot be read nobody knows what it is about. Copies go with the Canary that made them.
pub fn abandoned(stores: &Stores, key: &Key) -> Vec<(Target, Value)> {
    let (cluster, namespace) = (&key.cluster, &key.namespace);
    let canaries = stores.typed::<CanarySeen>(cluster, &kinds::CANARY);
    let known = canaries.filter(|known| known.is_synced());
    let is_clear = known.is_some_and(|known| {
        let mut here = known.in_namespace(namespace);
        known.get(namespace, &key.name).is_none() && here.all(|seen| read(seen).is_some())
    });
    if !is_clear {
        return Vec::new();
    }
    let workloads = [kinds::DEPLOYMENT, kinds::DAEMON_SET];
    let all = workloads.iter().flat_map(|kind| {
        let all = stores.list::<Whole>(cluster, kind);
        all.map(move |entry| (kind, entry))
    });
    let here = all.filter(|(_, entry)| entry.meta.namespace == *namespace);
    let left = here.filter(|(_, entry)| on_object(cluster, entry.meta, stores).is_empty());
    let seen = left.map(|(kind, entry)| {
        let object = ObjectRef {
            cluster: cluster.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: entry.meta.name.clone(),
        };
        (Target::seen(object, entry.meta), entry.body.value())
    });
    seen.filter(|(_, object)| !is_copy(object)).collect()
}

/// Whether a Canary controls it.
fn is_copy(object: &Value) -> bool {
    let controller = router::controller(object);
    controller.and_then(|one| text(one, "/kind")) == Some(slipway_api::canary::KIND)
}
