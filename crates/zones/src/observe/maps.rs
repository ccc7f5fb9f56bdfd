//! `ConfigMap`s: the status of a group, when each zone was last scaled down, and which pods were let go.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
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

/// When each zone was last scaled down, by the name of its `StatefulSet`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracker {
    /// The times.
    pub last_downscale: BTreeMap<String, Written>,
}

impl Projection for Tracker {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entries = strings(object, "/data").into_iter();
        Ok(Self {
            last_downscale: entries
                .map(|(zone, entry)| (zone, written(&entry)))
                .collect(),
        })
    }
}

/// Pods that an eviction was allowed for, by uid, and until when that counts; see [`crate::admit::reservations`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reservations {
    /// The moments.
    pub until: BTreeMap<String, Timestamp>,
}

impl Projection for Reservations {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entries = strings(object, "/data").into_iter();
        Ok(Self {
            until: entries
                .filter_map(|(uid, until)| Some((uid, until.parse().ok()?)))
                .collect(),
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
