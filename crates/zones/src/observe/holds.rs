//! Pods that were let go, by this replica and by others: they count as away until it is known what became of them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::fact::Facts;
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::later;
use slipway_kernel::{Key, Stores};

use super::maps::{CoordinationMap, Until};

/// How the names of the `ConfigMap`s begin in which the eviction webhook notes whom it let go.
pub(crate) const RESERVATIONS: &str = "slipway-zpdb-";

/// For how long a pod that another replica let go counts as away after it could go: a watch that is silent is noticed within
/// that time, so whoever then still sees the pod sees it as it is.
const UNSEEN: Duration = Duration::from_mins(1);

/// For how long an eviction that was let through may yet be carried out.
pub(crate) const HOLD: Duration = Duration::from_mins(1);

/// The pods that this replica has let go, or is deleting, and until when that counts. What was let go is taken out of the
/// facts when it is known what became of it.
pub(crate) fn held_here(facts: &Facts) -> BTreeMap<String, Timestamp> {
    let mut all = facts.deletions.clone();
    let holds = facts.evictions_allowed_here.keys();
    keep_later(&mut all, holds.map(|uid| (uid.clone(), Timestamp::MAX)));
    all
}

/// Adds pods to those that count as away: of one that is known from several places, the later end counts.
pub(crate) fn keep_later(all: &mut Until, more: impl IntoIterator<Item = (String, Timestamp)>) {
    for (uid, until) in more {
        let known = all.entry(uid).or_insert(until);
        *known = (*known).max(until);
    }
}

/// Whom this replica let go, and whom the others did, by the `ConfigMap`s in which they note it.
pub(super) fn holds(stores: &Stores, facts: &Facts, key: &Key) -> BTreeMap<String, Timestamp> {
    let mut all = held_here(facts);
    let maps = stores
        .list::<CoordinationMap>(&key.cluster, &kinds::CONFIG_MAP)
        .filter(|map| map.meta.namespace == key.namespace)
        .filter(|map| map.meta.name.starts_with(RESERVATIONS));
    let noted = maps.flat_map(|map| &map.body.until).map(|(uid, until)| {
        let until = later(*until, UNSEEN).unwrap_or(Timestamp::MAX);
        (uid.clone(), until)
    });
    keep_later(&mut all, noted);
    all
}
