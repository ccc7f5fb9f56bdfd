//! Who scales a group down, and which downscales were let through, as the webhooks keep it.

use std::collections::BTreeMap;

use slipway_kernel::identity::kinds;
use slipway_kernel::store::Meta;
use slipway_kernel::{Key, Stores};

use super::maps::{ALLOWED_PREFIX, CoordinationMap, Lock, Tracker};
use super::{LOCKS, Zone};
use crate::settings::Settings;

/// A lock of a group, or a downscale that was let through, and where it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locked {
    /// What it is kept under: the group, or `allowed/` and the zone.
    pub scope: String,
    /// The lock.
    pub lock: Lock,
    /// The `ConfigMap`.
    pub map: Meta,
    /// All that is kept there.
    pub all: BTreeMap<String, Lock>,
}

impl Locked {
    /// Whether it is a lock: otherwise it only tells of a downscale that was let through.
    pub fn is_lock(&self) -> bool {
        !self.scope.starts_with(ALLOWED_PREFIX)
    }
}

/// The locks of a group, where the webhooks keep them.
pub(super) fn locks_of(
    settings: &Settings,
    stores: &Stores,
    key: &Key,
    zones: &[Zone],
) -> Vec<Locked> {
    let (cluster, maps) = (&key.cluster, &kinds::CONFIG_MAP);
    let kept = stores.get::<CoordinationMap>(cluster, maps, &key.namespace, LOCKS);
    let kept = kept.map(|map| (map.meta, &map.body.locks));
    let tracked = stores.get::<Tracker>(cluster, maps, &key.namespace, settings.tracker);
    let tracked = tracked.map(|map| (map.meta, &map.body.locks));
    let both = kept.into_iter().chain(tracked);
    both.flat_map(|(map, locks)| {
        let ours = locks.iter().filter(|(scope, _)| {
            let passed = scope.strip_prefix(ALLOWED_PREFIX);
            passed.map_or(**scope == key.name, |set| is_ours(zones, set))
        });
        ours.map(|(scope, lock)| Locked {
            scope: scope.clone(),
            lock: lock.clone(),
            map: map.clone(),
            all: locks.clone(),
        })
    })
    .collect()
}

fn is_ours(zones: &[Zone], set: &str) -> bool {
    zones.iter().any(|zone| zone.set.meta().name == set)
}
