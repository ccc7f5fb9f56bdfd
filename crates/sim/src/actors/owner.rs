//! Owners: controller references, and the adoption and release of dependents by selector.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::api::ObjectMeta;
use serde_json::json;
use slipway_apiserver::selector;

use super::key::Key;
use super::world::{Watched, World};
use super::write::{Write, as_json};

/// The reference to the one owner that controls an object.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = meta.owner_references.as_ref()?;
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The reference that a controller puts on what it creates.
pub(crate) fn reference(api_version: &str, kind: &str, owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: owner.name.clone().unwrap_or_default(),
        uid: owner.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A selector, ready to match. One that cannot be read, or is absent, matches nothing.
pub(crate) fn selector(selector: Option<&LabelSelector>) -> selector::LabelSelector {
    selector
        .and_then(|s| selector::LabelSelector::from_object(Some(&as_json(s))).ok())
        .unwrap_or_else(selector::LabelSelector::nothing)
}

/// Whether the labels of an object match.
pub(crate) fn matches(selector: &selector::LabelSelector, meta: &ObjectMeta) -> bool {
    let labels = meta.labels.as_ref();
    selector.matches(|key| labels?.get(key).map(String::as_str))
}

/// The dependents of one owner, and the writes that adopt or release some.
pub(crate) struct Claimed<K> {
    pub(crate) objects: Vec<Arc<K>>,
    pub(crate) writes: Vec<Write>,
}

/// Everything of one kind that `owner` controls and selects. Orphans that match and pass `fits` are adopted, dependents
/// that no longer match are released; both show in the objects once they are written.
pub(crate) fn claim<K: Watched>(
    world: &World,
    owner: &ObjectMeta,
    reference: &OwnerReference,
    selector: &selector::LabelSelector,
    fits: impl Fn(&K) -> bool,
) -> Claimed<K> {
    let namespace = owner.namespace.as_deref().unwrap_or_default();
    let mut claimed = Claimed {
        objects: Vec::new(),
        writes: Vec::new(),
    };
    let deleting = owner.deletion_timestamp.is_some();
    for object in world.owned_by::<K>(owner) {
        if matches(selector, object.meta()) {
            claimed.objects.push(object);
        } else if !deleting {
            let left = others(object.meta(), &reference.uid);
            claimed.writes.push(set_owners::<K>(object.meta(), &left));
        }
    }
    if deleting {
        return claimed;
    }
    for orphan in world.orphans::<K>(namespace) {
        let meta = orphan.meta();
        if meta.deletion_timestamp.is_none() && matches(selector, meta) && fits(&orphan) {
            let mut owners = meta.owner_references.clone().unwrap_or_default();
            owners.push(reference.clone());
            claimed.writes.push(set_owners::<K>(meta, &owners));
        }
    }
    claimed
}

fn others(meta: &ObjectMeta, uid: &str) -> Vec<OwnerReference> {
    let owners = meta.owner_references.iter().flatten();
    owners.filter(|owner| owner.uid != uid).cloned().collect()
}

fn set_owners<K: Watched>(meta: &ObjectMeta, owners: &[OwnerReference]) -> Write {
    Write::Patch {
        kind: K::KIND,
        key: Key::of(meta),
        subresource: "",
        body: json!({"metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid, "ownerReferences": owners}}),
    }
}
