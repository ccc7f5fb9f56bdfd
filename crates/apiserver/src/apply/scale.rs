//! The owners of an object's replicas, seen through its `scale` subresource and back.

use serde_json::Value;

use crate::value;

use super::owners::{Entry, Owners};
use super::set::Set;
use super::step::Step;

/// The version in which every `Scale` is.
const SCALE_VERSION: &str = "autoscaling/v1";

const REPLICAS_IN_SCALE: &str = "spec.replicas";

fn steps(path: &str) -> Vec<Step> {
    path.split('.').map(Step::field).collect()
}

/// Gives a `Scale` the entries of its object that own the replicas, which stand at `replicas` in the object.
pub fn entries_into_scale(object: &Value, replicas: &str, scale: &mut Value) {
    let mut owners = Owners::decode(object).unwrap_or_default();
    let path = steps(replicas);
    owners.0.retain(|_, entry| entry.fields.has(&path));
    for entry in owners.0.values_mut() {
        SCALE_VERSION.clone_into(&mut entry.api_version);
        entry.fields = Set::of_paths([REPLICAS_IN_SCALE]);
    }
    owners.encode(scale);
}

/// Gives an object the entries of its written `Scale`; `api_version` is the object's. As in the real server entries
/// that come from a `Scale` have no time, and those of updates never count as the object's own.
pub fn entries_from_scale(object: &mut Value, replicas: &str, scale: &Value, api_version: &str) {
    let mut owners = Owners::decode(object).unwrap_or_default();
    let mut scaled = Owners::decode(scale).unwrap_or_default();
    let (path, set) = (steps(replicas), Set::of_paths([replicas]));
    for (identity, entry) in &mut owners.0 {
        if entry.fields.has(&path) && scaled.0.remove(identity).is_none() {
            entry.fields = entry.fields.difference(&set);
        }
    }
    let times: Vec<_> = scaled
        .0
        .keys()
        .map(|identity| owners.0.get(identity).and_then(|entry| entry.time))
        .collect();
    for ((identity, entry), time) in scaled.0.into_iter().zip(times) {
        if entry.fields.has(&steps(REPLICAS_IN_SCALE)) {
            let entry = Entry {
                api_version: api_version.to_owned(),
                time,
                fields: set.clone(),
            };
            owners.0.insert(identity, entry);
        }
    }
    owners.drop_empty();
    value::take(object, "metadata.managedFields");
    owners.encode(object);
}
