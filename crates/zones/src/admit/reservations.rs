//! Which pods have been let go, for all replicas: a `ConfigMap` per budget, changed only from the version that was read.
//!
//! A pod that was let go is still seen as ready for a while, and another replica does not know. So a verdict that lets a
//! pod go is given only after its uid is in the map; whoever finds the map changed meanwhile looks again. An entry ends by
//! evidence: its pod is gone, or it is found still there by a read that began after the eviction can have been carried
//! out (a minute: the API server's own limit for a request). Where `ConfigMaps` must not be touched, the only replica
//! remembers by itself; of several none lets a pod go.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::purpose::zones as purpose;
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::later;

use super::inquiry::{Failure, Inquiry, Pending};
use crate::observe::{HOLD, RESERVATIONS, keep_later, rollout_pods};

/// An entry counts for this much longer. A review does not last as long, so whatever it has read when the entry does not
/// count any more was read after the pod could go.
const REVIEW: Duration = Duration::from_secs(10);

/// The map of a budget, as read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Map {
    /// There is none yet.
    None,
    /// This one.
    Some(Value),
    /// It must not be touched.
    Forbidden,
}

/// The pods in the map of a budget, and until when their entries count: those that evictions let go, and those that a
/// rollout is about to delete.
pub(super) fn held(map: &Map) -> BTreeMap<String, Timestamp> {
    let Map::Some(object) = map else {
        return BTreeMap::new();
    };
    let rollout = rollout_pods(object).into_iter();
    let evicted = evicted(map).into_iter();
    let mut all = BTreeMap::new();
    // A pod whose eviction did not come about keeps its entry until the next one is recorded: it may be in both.
    keep_later(
        &mut all,
        rollout
            .chain(evicted)
            .map(|(uid, until)| (uid, void(until))),
    );
    all
}

fn void(until: Timestamp) -> Timestamp {
    later(until, REVIEW).unwrap_or(Timestamp::MAX)
}

fn evicted(map: &Map) -> BTreeMap<String, Timestamp> {
    let Map::Some(object) = map else {
        return BTreeMap::new();
    };
    let data = object.get("data").and_then(Value::as_object);
    data.into_iter()
        .flatten()
        .filter_map(|(uid, until)| Some((uid.clone(), until.as_str()?.parse().ok()?)))
        .collect()
}

/// Until when a pod that is let go now may go.
pub(super) fn until(now: Timestamp) -> Timestamp {
    later(now, HOLD).unwrap_or(now)
}

fn name(budget: &str) -> String {
    format!("{RESERVATIONS}{budget}")
}

/// Reads the map of a budget.
pub(super) fn read(
    inquiry: &mut Inquiry<'_>,
    round: u32,
    namespace: &str,
    budget: &str,
) -> Result<Result<Map, Failure>, Pending> {
    let path = format!("{}/{}", kinds::CONFIG_MAP.path(namespace), name(budget));
    let answer = inquiry.api_again(
        (purpose::READ_RESERVATIONS, round),
        "GET",
        &path,
        &Value::Null,
    )?;
    Ok(match answer {
        Ok(object) => Ok(Map::Some(object)),
        Err(Failure {
            code: Some(404), ..
        }) => Ok(Map::None),
        Err(Failure {
            is_no_right: true, ..
        }) => Ok(Map::Forbidden),
        Err(failure) => Err(failure),
    })
}

/// Writes that a pod has been let go. False if somebody else has changed the map meanwhile.
pub(super) fn write(
    inquiry: &mut Inquiry<'_>,
    round: u32,
    place: (&str, &str),
    map: &Map,
    pod: &str,
    now: Timestamp,
) -> Result<Result<bool, Failure>, Pending> {
    let (namespace, budget) = place;
    let mut all = evicted(map);
    all.retain(|_, until| now < void(*until));
    all.insert(pod.to_owned(), until(now));
    let data: BTreeMap<String, String> = all
        .into_iter()
        .map(|(uid, until)| (uid, until.to_string()))
        .collect();
    let collection = kinds::CONFIG_MAP.path(namespace);
    let name = name(budget);
    let (method, path, metadata) = match map {
        Map::Forbidden => return Ok(Ok(true)),
        Map::None => {
            let labels = json!({"app.kubernetes.io/managed-by": "slipway"});
            let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
            ("POST", collection, metadata)
        }
        Map::Some(object) => {
            let mut metadata = object.get("metadata").cloned().unwrap_or_default();
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.remove("managedFields");
            }
            ("PUT", format!("{collection}/{name}"), metadata)
        }
    };
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    Ok(
        match inquiry.api_again((purpose::WRITE_RESERVATION, round), method, &path, &body)? {
            Ok(_) => Ok(true),
            // Where it was deleted between the two, it is made anew.
            Err(Failure {
                code: Some(404 | 409),
                ..
            }) => Ok(false),
            Err(failure) => Err(failure),
        },
    )
}
