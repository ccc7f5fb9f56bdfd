//! `ConfigMap`s: the status of a group, when each zone was last scaled down, and which pods were let go.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slipway_api::zones;
use slipway_kernel::fields::strings;
use slipway_kernel::instant::{Written, later};
use slipway_kernel::parts::Parts;
use slipway_kernel::status_map;
use slipway_kernel::store::{Projection, Undecodable};

/// What the status in a `ConfigMap` is about.
#[derive(Debug, Clone)]
pub enum Group {}

/// What is kept of the `ConfigMap` that carries the status of a group.
pub type StatusMap = status_map::StatusMap<Group>;

/// The name of the `ConfigMap` with the status of a group: the group's own name where it can be part of one, otherwise
/// with a digest, so that no two groups share one.
pub(crate) fn status_map_name(group: &str) -> String {
    const PREFIX: &str = "slipway-zones";
    if group.is_empty() {
        return PREFIX.to_owned();
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = group.chars().all(|c| plain(c) || c == '-')
        && group.starts_with(plain)
        && group.ends_with(plain)
        && group.len() <= 63;
    if fits {
        return format!("{PREFIX}-{group}");
    }
    // FNV-1a: the name must be the same in every version of the operator.
    let digest = group.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let readable: String = group
        .to_ascii_lowercase()
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(63)
        .collect();
    format!("{PREFIX}-{readable}-{digest:016x}")
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
    /// When its holder gave no sign of life any more, if the planner has taken it over to tell the pods that they stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Timestamp>,
}

impl Lock {
    /// How long a lock holds without being given back: longer than any webhook may take, and what it leaves to be undone.
    pub const HOLDS: Duration = Duration::from_mins(1);

    /// For how long a lock that is void is left to the planner.
    const GRACE: Duration = Duration::from_mins(1);

    /// Whether nobody else may take it. Of one that is void the planner sees to the pods first; where there is no planner
    /// it is free after a while.
    pub fn is_taken(&self, now: Timestamp) -> bool {
        later(self.until, Self::GRACE).is_none_or(|free| now < free)
    }
}

/// How the names of entries begin that lock nothing: of downscales that were let through, by `StatefulSet`.
pub(crate) const ALLOWED_PREFIX: &str = "allowed/";

/// Locks by group, as a map carries them. What cannot be read locks nobody: it would lock for ever.
pub(crate) fn locks(map: &Value) -> BTreeMap<String, Lock> {
    annotated(map, zones::DOWNSCALE_LOCKS)
}

/// What an annotation says as JSON; nothing if it cannot be read.
fn annotated<T: DeserializeOwned + Default>(map: &Value, name: &str) -> T {
    let annotations = map.pointer("/metadata/annotations");
    let text = annotations.and_then(|all| all.get(name)?.as_str());
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
    const READS: Parts = Parts::NONE;

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

/// Pods, by uid, and until when something counts of them.
pub type Until = BTreeMap<String, Timestamp>;

/// The pods that a rollout is about to delete, as a map of reservations carries them.
pub(crate) fn rollout_pods(map: &Value) -> Until {
    annotated(map, zones::ROLLOUT_PODS)
}

/// What replicas note for one another in maps of ours. One watch brings them all, so one reading serves them all: a map
/// of reservations (see `admit/reservations.rs`) has pods, the map of downscales has locks and times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoordinationMap {
    /// Pods that an eviction was allowed for, by uid, and until when that counts.
    pub until: Until,
    /// The same for pods that a rollout is about to delete.
    pub rollout: Until,
    /// Who scales which group down.
    pub locks: BTreeMap<String, Lock>,
    /// When each zone was last scaled down.
    pub last_downscale: BTreeMap<String, Written>,
}

impl Projection for CoordinationMap {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entries = strings(object, "/data");
        let zones = entries.iter().filter(|(_, entry)| entry.starts_with('{'));
        Ok(Self {
            last_downscale: zones
                .map(|(zone, entry)| (zone.clone(), written(entry)))
                .collect(),
            until: entries
                .into_iter()
                .filter_map(|(uid, until)| Some((uid, until.parse().ok()?)))
                .collect(),
            rollout: rollout_pods(object),
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

#[cfg(test)]
mod tests {
    use super::status_map_name;

    #[test]
    fn every_group_has_a_name_of_its_own_that_the_api_takes() {
        assert_eq!(status_map_name("ingester"), "slipway-zones-ingester");
        assert_eq!(status_map_name(""), "slipway-zones");
        let odd = [
            status_map_name("A.b_c"),
            status_map_name("a.b_c"),
            status_map_name("a-b-c"),
        ];
        assert!(odd[0] != odd[1] && odd[1] != odd[2]);
        for name in odd {
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
        }
    }
}
