//! The scene of a namespace, out of what zones keep of its objects.

use jiff::Timestamp;
use slipway_kernel::identity::kinds;
use slipway_kernel::store::Projection;
use slipway_kernel::{ClusterId, Facts, Kind, Stores};

use crate::disruption::{CountedPod, CountedZone};
use crate::observe::{
    BY_SET, CoordinationMap, Owner, Pod, RESERVATIONS, Set, ZONE_BUDGET, adoptable_index_key,
    held_here,
};
use crate::zpdb::{Budget, BudgetSeen};

/// What cannot be said yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} have not been listed yet; try again")]
pub(super) struct Unlisted(&'static str);

impl Unlisted {
    pub(super) const BUDGETS: Self = Self("zone-aware pod disruption budgets");
}

/// What the stores are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// They hold what has been seen, if that has been listed.
    Seen,
    /// They hold the namespace as it was read for the review.
    Read,
}

impl Basis {
    fn listed<T: Projection>(
        self,
        stores: &Stores,
        kind: &Kind,
        unlisted: Unlisted,
    ) -> Result<(), Unlisted> {
        let is_known = self == Self::Read || stores.is_synced::<T>(&ClusterId::local(), kind);
        is_known.then_some(()).ok_or(unlisted)
    }
}

/// The budgets of a namespace. None where the kind is not defined.
pub(super) fn budgets<'a>(
    stores: &'a Stores,
    facts: &Facts,
    namespace: &str,
    basis: Basis,
) -> Result<Vec<(&'a str, &'a BudgetSeen)>, Unlisted> {
    if basis == Basis::Seen && facts.is_absent(&ClusterId::local(), &ZONE_BUDGET) {
        return Ok(Vec::new());
    }
    if basis == Basis::Seen && facts.is_blind_to(&ClusterId::local(), &ZONE_BUDGET) {
        return Err(Unlisted::BUDGETS);
    }
    basis.listed::<BudgetSeen>(stores, &ZONE_BUDGET, Unlisted::BUDGETS)?;
    let all = stores.list::<BudgetSeen>(&ClusterId::local(), &ZONE_BUDGET);
    let all = all.filter(|entry| entry.meta.namespace == namespace);
    Ok(all
        .map(|entry| (entry.meta.name.as_str(), entry.body))
        .collect())
}

/// Whether no budget of a namespace has been seen.
pub(super) fn has_no_budget(stores: &Stores, namespace: &str) -> bool {
    let store = stores.typed::<BudgetSeen>(&ClusterId::local(), &ZONE_BUDGET);
    store.is_none_or(|store| store.in_namespace(namespace).next().is_none())
}

/// Whether there is a map of reservations for a budget, as far as has been seen.
pub(super) fn is_kept(stores: &Stores, namespace: &str, budget: &str) -> bool {
    let name = format!("{RESERVATIONS}{budget}");
    let (cluster, maps) = (ClusterId::local(), kinds::CONFIG_MAP);
    stores
        .get::<CoordinationMap>(&cluster, &maps, namespace, &name)
        .is_some()
}

/// A pod of a namespace.
pub(super) fn pod_of<'a>(
    stores: &'a Stores,
    namespace: &str,
    name: &str,
    basis: Basis,
) -> Result<Option<CountedPod<'a>>, Unlisted> {
    let cluster = ClusterId::local();
    basis.listed::<Pod>(stores, &kinds::POD, Unlisted("pods"))?;
    let found = stores.get::<Pod>(&cluster, &kinds::POD, namespace, name);
    Ok(found.map(|entry| CountedPod::of(entry.meta, entry.body)))
}

/// How many pods of a `StatefulSet` are running and ready, and have not been let go.
pub(super) fn ready_pods(
    stores: &Stores,
    facts: &Facts,
    namespace: &str,
    set: (&str, &str),
    label: Option<&str>,
    now: Timestamp,
) -> i64 {
    let mut held = held_here(facts);
    held.retain(|_, until| now < *until);
    let pods = members(stores, namespace, set, label);
    let is_there = |pod: &&CountedPod<'_>| pod.is_ready && !held.contains_key(pod.uid);
    let ready = pods.iter().filter(is_there).count();
    i64::try_from(ready).unwrap_or(i64::MAX)
}

/// The pods that the `StatefulSet` of this name and uid controls, and those that it is about to adopt.
fn members<'a>(
    stores: &'a Stores,
    namespace: &str,
    (name, uid): (&str, &str),
    label: Option<&str>,
) -> Vec<CountedPod<'a>> {
    let cluster = ClusterId::local();
    let found = |value: &str| {
        let pods = stores.indexed::<Pod>(&cluster, &kinds::POD, BY_SET, value);
        pods.filter(|entry| entry.meta.namespace == namespace)
            .map(|entry| CountedPod::of(entry.meta, entry.body))
    };
    let mut pods: Vec<CountedPod<'a>> = found(uid).collect();
    if let Some(label) = label {
        let is_meant = |pod: &CountedPod<'_>| {
            let own = pod.labels.get(slipway_api::zones::NAME_LABEL);
            own.is_some_and(|own| own == label)
        };
        pods.extend(found(&adoptable_index_key(namespace, name)).filter(is_meant));
    }
    pods
}

/// The zones of a budget, and the one that a pod is of.
pub(super) fn zones<'a>(
    stores: &'a Stores,
    namespace: &str,
    budget: &Budget,
    of: &CountedPod<'_>,
    basis: Basis,
) -> Result<Vec<CountedZone<'a>>, Unlisted> {
    let cluster = ClusterId::local();
    basis.listed::<Set>(stores, &kinds::STATEFUL_SET, Unlisted("StatefulSets"))?;
    basis.listed::<Pod>(stores, &kinds::POD, Unlisted("pods"))?;
    let is_own = |uid: &str| matches!(of.owner, Owner::Set(own) if own == uid);
    let sets = stores
        .list::<Set>(&cluster, &kinds::STATEFUL_SET)
        .filter(|set| set.meta.namespace == namespace)
        .filter(|set| budget.selects(&set.body.labels) || is_own(&set.meta.uid));
    let zones = sets.map(|set| {
        let names = (set.meta.name.as_str(), set.meta.uid.as_str());
        let label = set.body.pod_name_label.as_deref();
        let pods = members(stores, namespace, names, label);
        CountedZone::of(set.meta, set.body, pods)
    });
    Ok(zones.collect())
}
