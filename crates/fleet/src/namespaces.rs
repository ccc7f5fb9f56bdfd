//! Namespaces that something is to be in: made where they are missing.

use serde_json::json;
use slipway_kernel::{ClusterId, Facts, ObjectRef, Stores};

use crate::hub::interests::namespace_slot;
use crate::kinds;
use crate::observe::seen::Bare;
use crate::render::Applied;

/// Whether a namespace is there; none while that has not been seen. Where it may not be seen, it is taken to be there: if it
/// is not, the API says so.
pub(crate) fn has_namespace(
    stores: &Stores,
    facts: &Facts,
    cluster: &ClusterId,
    namespace: &str,
) -> Option<bool> {
    if facts.is_absent(cluster, &kinds::NAMESPACE) {
        return Some(true);
    }
    let store = stores.slot::<Bare>(cluster, &kinds::NAMESPACE, &namespace_slot(namespace))?;
    let is_there = store.get("", namespace).is_some();
    (is_there || store.is_synced()).then_some(is_there)
}

/// A namespace, as it is made where it is missing.
pub(crate) fn namespace(name: &str) -> Applied {
    Applied {
        object: ObjectRef::local(kinds::NAMESPACE, "", name),
        manager: slipway_api::names::FIELD_MANAGER.to_owned(),
        force: true,
        body: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
    }
}
