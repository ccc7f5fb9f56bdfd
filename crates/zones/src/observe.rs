//! What zones look at: of each object only what a decision depends on.
//!
//! A pod belongs to the `StatefulSet` that controls it, by uid. A pod that nobody controls, but that has the name and the
//! label `name` of one, is about to be adopted: it counts, and is never deleted. Any other pod with that label is somebody
//! else's: it neither counts nor is it touched.

mod holds;
mod hooks;
mod locks;
mod maps;
mod pod;
mod set;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use slipway_api::{names, zones};
use slipway_kernel::basis::{Basis, basis};
use slipway_kernel::fact::{Answers, Facts, Refusal, Unseen};
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::Written;
use slipway_kernel::interest::Interest;
use slipway_kernel::status_map;
use slipway_kernel::store::{Item, Meta, Projection, Seen};
use slipway_kernel::{ClusterId, Key, Kind, ObjectRef, Stores};

use holds::holds;
pub(crate) use holds::{HOLD, RESERVATIONS, held_here, keep_later};
pub use hooks::Hooks;
pub use locks::Locked;
use locks::locks_of;
pub(crate) use maps::{ALLOWED_PREFIX, locks, rollout_pods, status_map_name, written};
pub use maps::{CoordinationMap, Lock, StatusMap, Tracker, Until};
pub use pod::{Owner, Pod};
pub use set::{Mirror, Scaling, Set, Status};

use crate::settings::Settings;
use crate::zpdb::BudgetSeen;

/// rollout-operator.grafana.com/v1 `ZoneAwarePodDisruptionBudget`.
pub const ZONE_BUDGET: Kind = Kind::namespaced(
    "rollout-operator.grafana.com",
    "v1",
    "ZoneAwarePodDisruptionBudget",
    "zoneawarepoddisruptionbudgets",
);

/// Pods by the uid of the `StatefulSet` that controls them, or by the namespace and name of the one that may adopt them.
pub(crate) const BY_SET: &str = "set";

/// The `ConfigMap` of the locks of downscales, where there is no zone tracker.
pub(crate) const LOCKS: &str = "slipway-downscale-locks";

/// The work of one group.
pub fn key(cluster: &ClusterId, namespace: &str, group: &str) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: crate::NAME,
        namespace: namespace.to_owned(),
        name: group.to_owned(),
    }
}

/// What zones want to see.
pub fn interests(settings: &Settings) -> Vec<Interest> {
    let mut maps = Interest::of::<StatusMap>(kinds::CONFIG_MAP, by_namespace).optional();
    zones::STATUS_LABEL.clone_into(&mut maps.labels);
    let mut reservations =
        Interest::of::<CoordinationMap>(kinds::CONFIG_MAP, by_namespace).optional();
    reservations.labels = format!("app.kubernetes.io/managed-by={}", names::FIELD_MANAGER);
    let mut all = vec![
        // All of them: a budget may be about zones that are in no group.
        Interest::of::<Set>(kinds::STATEFUL_SET, by_namespace),
        Interest::of::<Pod>(kinds::POD, by_pod).indexed(BY_SET, pod_values),
        Interest::of::<BudgetSeen>(ZONE_BUDGET, by_namespace).where_defined(),
        maps,
        Interest::of::<Tracker>(kinds::CONFIG_MAP, by_namespace)
            .named(settings.tracker)
            .optional(),
        reservations,
    ];
    if let Some(selector) = &settings.webhooks {
        all.extend(
            [kinds::VALIDATING_WEBHOOKS, kinds::MUTATING_WEBHOOKS].map(|kind| {
                let mut hooks = Interest::of::<Hooks>(kind, no_work).optional();
                hooks.labels.clone_from(selector);
                hooks
            }),
        );
    }
    all
}

/// What is only shown leads to no work.
fn no_work(_: &ClusterId, _: &Meta, _: &Stores) -> Vec<Key> {
    Vec::new()
}

/// All groups of the namespace: of a `StatefulSet` that is gone or has changed its label nobody knows the group any more.
fn by_namespace(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    keys(stores)
        .into_iter()
        .filter(|key| key.cluster == *cluster && key.namespace == meta.namespace)
        .collect()
}

/// The group of the `StatefulSet` that a pod is named after, which is known also when the pod is gone; and where a budget is
/// about that, all groups of the namespace, which may share it.
fn by_pod(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let set = named_after(&meta.name).and_then(|(set, _)| {
        stores.get::<Set>(cluster, &kinds::STATEFUL_SET, &meta.namespace, set)
    });
    let Some(set) = set else {
        return Vec::new();
    };
    let budgets = stores.typed::<BudgetSeen>(cluster, &ZONE_BUDGET);
    let mut budgets = budgets
        .into_iter()
        .flat_map(|store| store.in_namespace(&meta.namespace))
        .filter_map(Item::<BudgetSeen>::of);
    if budgets.any(|budget| budget.body().concerns(&set.body.labels)) {
        return by_namespace(cluster, meta, stores);
    }
    let group = set.body.group();
    group
        .map(|group| key(cluster, &meta.namespace, group))
        .into_iter()
        .collect()
}

/// The `StatefulSet` and the ordinal that a pod's name speaks of.
pub fn named_after(pod: &str) -> Option<(&str, i64)> {
    let (set, ordinal) = pod.rsplit_once('-')?;
    let digits = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
    Some((set, ordinal.parse().ok().filter(|_| digits)?))
}

fn pod_values(seen: &Seen) -> Vec<String> {
    let body = seen.body.as_ref().ok();
    let Some(pod) = body.and_then(|body| body.downcast_ref::<Pod>()) else {
        return Vec::new();
    };
    match &pod.owner {
        Owner::Set(uid) => vec![uid.clone()],
        Owner::Nobody => named_after(&seen.meta.name)
            .map(|(set, _)| adoptable_index_key(&seen.meta.namespace, set))
            .into_iter()
            .collect(),
        Owner::Other(_) => Vec::new(),
    }
}

pub(crate) fn adoptable_index_key(namespace: &str, set: &str) -> String {
    format!("{namespace}/{set}")
}

/// One zone of a group.
#[derive(Debug, Clone)]
pub struct Zone {
    /// The `StatefulSet`.
    pub set: Item<Set>,
    /// Its pods, by name.
    pub pods: Vec<Item<Pod>>,
}

/// All that the plan of one group depends on.
#[derive(Debug, Clone)]
pub struct World {
    /// The cluster.
    pub cluster: ClusterId,
    /// The namespace.
    pub namespace: String,
    /// The rollout group.
    pub group: String,
    /// The zones, by name.
    pub zones: Vec<Zone>,
    /// Zones of the namespace that are in other groups, or in none, and share a budget with one of the group's.
    pub neighbours: Vec<Zone>,
    /// The zone-aware budgets of the namespace.
    pub budgets: Vec<Item<BudgetSeen>>,
    /// Why there may be budgets that are not known, if there may.
    pub blind: Option<Unseen>,
    /// When zones were last scaled down, by the tracker.
    pub tracker: Tracker,
    /// The `ConfigMap` with the status of the group, if `ConfigMaps` can be seen.
    pub status_map: Option<Option<Item<StatusMap>>>,
    /// Who scales the group down, by a webhook's leave, each with the map that says so.
    pub locks: Vec<Locked>,
    /// The pods that rollouts are about to delete, by budget, and where that is noted; none if `ConfigMaps` cannot be seen.
    pub announced: Option<BTreeMap<String, (Meta, Until)>>,
    /// Whether there is no other replica, which would have to know what is noted.
    pub is_alone: bool,
    /// When zones were last scaled down, by a map whose entries are to be put on them.
    pub downscales: BTreeMap<String, Written>,
    /// Answers to our questions about these zones.
    pub answers: Answers,
    /// Writes that the API refused.
    pub refusals: BTreeMap<ObjectRef, Refusal>,
    /// Pods, by uid, that have been let go, and until when they count as away although they are still seen.
    pub holds: BTreeMap<String, Timestamp>,
    /// The newest version seen of each kind.
    pub basis: Basis,
}

impl World {
    /// A `StatefulSet` of the group.
    pub fn set_ref(&self, zone: &Zone) -> ObjectRef {
        self.object(kinds::STATEFUL_SET, &zone.set.meta().name)
    }

    /// An object of the group's namespace.
    pub fn object(&self, kind: Kind, name: &str) -> ObjectRef {
        ObjectRef {
            cluster: self.cluster.clone(),
            kind,
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// A refusal that still holds.
    pub fn refused(&self, object: &ObjectRef, now: Timestamp) -> Option<&Refusal> {
        self.refusals
            .get(object)
            .filter(|refusal| now < refusal.retry_at)
    }
}

/// Gathers the world of a group. None while a kind that can be seen has not been listed yet, and if there is no such group.
pub fn world(settings: &Settings, stores: &Stores, facts: &Facts, key: &Key) -> Option<World> {
    let cluster = &key.cluster;
    let sets = synced::<Set>(stores, cluster, &kinds::STATEFUL_SET)?;
    if !stores.is_synced::<Pod>(cluster, &kinds::POD) {
        return None;
    }
    let (own, others): (Vec<_>, Vec<_>) = sets
        .filter(|set| set.meta().namespace == key.namespace)
        .partition(|set| set.body().group() == Some(key.name.as_str()));
    let own = own.into_iter();
    let zones: Vec<Zone> = own.map(|set| zone(stores, cluster, set)).collect();
    if zones.is_empty() {
        return None;
    }
    let blind = blind(facts, cluster);
    let budgets = if blind.is_some() || facts.is_absent(cluster, &ZONE_BUDGET) {
        Vec::new()
    } else {
        synced::<BudgetSeen>(stores, cluster, &ZONE_BUDGET)?
            .filter(|budget| budget.meta().namespace == key.namespace)
            .collect()
    };
    let neighbours = others
        .into_iter()
        .filter(|set| is_neighbour(set.body(), &zones, &budgets))
        .map(|set| zone(stores, cluster, set))
        .collect();
    let tracker = stores.get::<Tracker>(
        cluster,
        &kinds::CONFIG_MAP,
        &key.namespace,
        settings.tracker,
    );
    Some(World {
        cluster: cluster.clone(),
        namespace: key.namespace.clone(),
        group: key.name.clone(),
        neighbours,
        budgets,
        blind,
        tracker: tracker.map(|map| map.body.clone()).unwrap_or_default(),
        status_map: status_map::seen(
            stores,
            facts,
            cluster,
            &key.namespace,
            &status_map_name(&key.name),
        ),
        locks: locks_of(settings, stores, key, &zones),
        downscales: downscales(stores, key),
        announced: announced(stores, facts, key),
        is_alone: settings.replicas.is_one(facts),
        answers: facts.answers.clone(),
        refusals: facts.refusals.clone(),
        holds: holds(stores, facts, key),
        basis: basis(stores, cluster),
        zones,
    })
}

/// Whether a budget is about a `StatefulSet` and about pods of the group.
fn is_neighbour(set: &Set, zones: &[Zone], budgets: &[Item<BudgetSeen>]) -> bool {
    let pods = || zones.iter().flat_map(|zone| &zone.pods);
    budgets.iter().any(|budget| {
        let budget = budget.body();
        let is_about = |pod: &Item<Pod>| budget.concerns(&pod.body().labels);
        budget.concerns(&set.labels) && pods().any(is_about)
    })
}

/// When zones were last scaled down, as the webhooks wrote it down to be put on them.
fn downscales(stores: &Stores, key: &Key) -> BTreeMap<String, Written> {
    let maps = &kinds::CONFIG_MAP;
    let kept = stores.get::<CoordinationMap>(&key.cluster, maps, &key.namespace, LOCKS);
    kept.map(|map| map.body.last_downscale.clone())
        .unwrap_or_default()
}

/// What is noted of rollouts beside the evictions of each budget.
fn announced(stores: &Stores, facts: &Facts, key: &Key) -> Option<BTreeMap<String, (Meta, Until)>> {
    if facts.is_absent_in(&key.cluster, &kinds::CONFIG_MAP, &key.namespace) {
        return None;
    }
    let maps = stores.list::<CoordinationMap>(&key.cluster, &kinds::CONFIG_MAP);
    let noted = maps
        .filter(|map| map.meta.namespace == key.namespace)
        .filter_map(|map| {
            let budget = map.meta.name.strip_prefix(RESERVATIONS)?;
            let entry = (map.meta.clone(), map.body.rollout.clone());
            Some((budget.to_owned(), entry))
        })
        .collect();
    Some(noted)
}

fn synced<'a, T: Projection>(
    stores: &'a Stores,
    cluster: &ClusterId,
    kind: &Kind,
) -> Option<impl Iterator<Item = Item<T>> + use<'a, T>> {
    let store = stores.typed::<T>(cluster, kind).filter(|s| s.is_synced())?;
    Some(store.objects().filter_map(Item::of))
}

/// Why there may be budgets that are not known, if there may.
pub(crate) fn blind(facts: &Facts, cluster: &ClusterId) -> Option<Unseen> {
    [Unseen::Forbidden, Unseen::OutOfSync]
        .into_iter()
        .find(|how| facts.is_unseen(*how, cluster, &ZONE_BUDGET))
}

/// What keeps budgets from being seen, and what ends that.
pub(crate) fn blindness(why: Unseen, namespace: &str) -> (String, &'static str) {
    let (plural, group) = (&ZONE_BUDGET.plural, &ZONE_BUDGET.group);
    if why == Unseen::Forbidden {
        let message = format!(
            "zone-aware pod disruption budgets cannot be seen: get, list and watch on {plural}.{group} in namespace {namespace} are not granted"
        );
        return (message, "the right to see them");
    }
    let message = format!(
        "zone-aware pod disruption budgets cannot be read just now: {plural}.{group} are defined and have not been listed yet, or the API fails to list them; try again"
    );
    (message, "a complete list of them")
}

fn zone(stores: &Stores, cluster: &ClusterId, set: Item<Set>) -> Zone {
    let meta = set.meta();
    let store = stores.typed::<Pod>(cluster, &kinds::POD);
    let found = |value: &str| -> Vec<Item<Pod>> {
        stores
            .indexed::<Pod>(cluster, &kinds::POD, BY_SET, value)
            .filter_map(|pod| Item::of(store?.get(&pod.meta.namespace, &pod.meta.name)?))
            .filter(|pod: &Item<Pod>| pod.meta().namespace == meta.namespace)
            .collect()
    };
    let label = set.body().pod_name_label.as_ref();
    let mut pods = found(&meta.uid);
    let orphans = found(&adoptable_index_key(&meta.namespace, &meta.name)).into_iter();
    pods.extend(
        orphans.filter(|pod| label.is_some() && pod.body().labels.get(zones::NAME_LABEL) == label),
    );
    Zone { set, pods }
}

/// What is off, for who has no facts.
pub fn unlisted(stores: &Stores, cluster: &ClusterId) -> Facts {
    Facts::of_listed(stores, cluster, &[ZONE_BUDGET])
}

/// The groups that there are.
pub fn keys(stores: &Stores) -> Vec<Key> {
    let sets = stores.iter().filter(|((_, kind, projection), _)| {
        *kind == kinds::STATEFUL_SET && *projection == std::any::type_name::<Set>()
    });
    let mut all = BTreeSet::new();
    for ((cluster, _, _), store) in sets {
        for set in store.objects().filter_map(Item::<Set>::of) {
            if let Some(group) = set.body().group() {
                all.insert(key(cluster, &set.meta().namespace, group));
            }
        }
    }
    all.into_iter().collect()
}
