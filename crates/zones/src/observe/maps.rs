//! `ConfigMap`s: the status of a group, when each zone was last scaled down, and which pods were let go.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_api::zones;
use slipway_kernel::fields::strings;
use slipway_kernel::instant::Written;
use slipway_kernel::store::{Projection, Undecodable};

/// What is kept of the `ConfigMap` that carries the status of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusMap {
    /// Its contents.
    pub data: BTreeMap<String, String>,
}

impl Projection for StatusMap {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            data: strings(object, "/data"),
        })
    }
}

/// Who scales a group down now, by the prepare-downscale webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The uid of the review.
    pub holder: String,
    /// The zone.
    pub statefulset: String,
    /// From how many replicas.
    pub from: i64,
    /// To how many.
    pub to: i64,
    /// When it is void.
    pub until: Timestamp,
}

/// How the names of entries begin that lock nothing: of downscales that were let through, by `StatefulSet`.
pub(crate) const PASSED: &str = "allowed/";

/// Locks by group, as a map carries them. What cannot be read locks nobody: it would lock for ever.
pub(crate) fn locks(map: &Value) -> BTreeMap<String, Lock> {
    let annotations = map.pointer("/metadata/annotations");
    let text = annotations.and_then(|all| all.get(zones::DOWNSCALE_LOCKS)?.as_str());
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// When each zone was last scaled down, by the name of its `StatefulSet`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracker {
    /// The times.
    pub last_downscale: BTreeMap<String, Written>,
    /// Who scales which group down.
    pub locks: BTreeMap<String, Lock>,
}

impl Projection for Tracker {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entries = strings(object, "/data").into_iter();
        Ok(Self {
            last_downscale: entries
                .map(|(zone, entry)| (zone, written(&entry)))
                .collect(),
            locks: locks(object),
        })
    }
}

/// Pods that an eviction was allowed for, by uid, and until when that counts; see [`crate::admit::reservations`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reservations {
    /// The moments.
    pub until: BTreeMap<String, Timestamp>,
    /// Who scales which group down, if this is the map of such locks.
    pub locks: BTreeMap<String, Lock>,
}

impl Projection for Reservations {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entries = strings(object, "/data").into_iter();
        Ok(Self {
            until: entries
                .filter_map(|(uid, until)| Some((uid, until.parse().ok()?)))
                .collect(),
            locks: locks(object),
        })
    }
}

/// `{"lastDownscaled": "…"}`, with the name in any case, as the original reads it.
pub(crate) fn written(entry: &str) -> Written {
    let parsed: Option<Value> = serde_json::from_str(entry).ok();
    let Some(Value::Object(fields)) = parsed else {
        return Written::Unreadable(entry.to_owned());
    };
    let at = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("lastDownscaled"))
        .and_then(|(_, at)| at.as_str());
    Written::read(at)
}
