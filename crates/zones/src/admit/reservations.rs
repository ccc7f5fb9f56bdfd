//! Which pods have been let go, for all replicas: a `ConfigMap` per budget, changed only from the version that was read.
//!
//! A pod that was let go is still seen as ready for a while, and another replica does not know. So a verdict that lets a
//! pod go is given only after its uid is in the map; whoever finds the map changed meanwhile looks again. An entry is
//! void after a minute (by then the API server has given up on the eviction, or the watch
//! has shown what became of it), or when its pod is gone. Where `ConfigMaps` must not be touched there is one replica, which
//! remembers by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::later;

use super::inquiry::{Failure, Inquiry, Pending};
use crate::observe::{RESERVATIONS, rollout_pods};

/// How long a pod that was let go counts as away although it is still seen.
pub(crate) const HOLD: Duration = Duration::from_mins(1);

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

/// The pods in the map of a budget whose entries still count: those that evictions let go, and those that a rollout is
/// about to delete.
pub(super) fn held(map: &Map, now: Timestamp) -> BTreeMap<String, Timestamp> {
    let mut all = evicted(map, now);
    if let Map::Some(object) = map {
        let rollout = rollout_pods(object).into_iter();
        all.extend(rollout.filter(|(_, until)| now < *until));
    }
    all
}

fn evicted(map: &Map, now: Timestamp) -> BTreeMap<String, Timestamp> {
    let Map::Some(object) = map else {
        return BTreeMap::new();
    };
    let data = object.get("data").and_then(Value::as_object);
    data.into_iter()
        .flatten()
        .filter_map(|(uid, until)| Some((uid.clone(), until.as_str()?.parse().ok()?)))
        .filter(|(_, until)| now < *until)
        .collect()
}

/// Until when a pod that is let go now counts as away.
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
    let answer = inquiry.api_again(("read-reservations", round), "GET", &path, &Value::Null)?;
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
    let mut all = evicted(map, now);
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
        match inquiry.api_again(("write-reservation", round), method, &path, &body)? {
            Ok(_) => Ok(true),
            // Where it must not be written there is one replica, which remembers by itself. A map that is there was
            // written by somebody: then this is an accident, and others would not know. What a quota forbids is not
            // written either, but it is no right that is missing: it is not let go.
            Err(Failure {
                is_no_right: true, ..
            }) if *map == Map::None => Ok(true),
            // Where it was deleted between the two, it is made anew.
            Err(Failure {
                code: Some(404 | 409),
                ..
            }) => Ok(false),
            Err(failure) => Err(failure),
        },
    )
}
