//! What restarts look at: of each object only what a decision depends on.
//!
//! No projection fails: what is wrong with an object is kept beside the rest of it, so that it is reported on that
//! object and stops no other.

mod budget;
mod flipper;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use slipway_api::flipper::WorkloadKind;
use slipway_kernel::fact::{Facts, Refusal, Unseen};
use slipway_kernel::interest::Interest;
use slipway_kernel::plan::Basis;
use slipway_kernel::store::{Meta, Projection, Store};
use slipway_kernel::{ClusterId, Key, Kind, ObjectRef, Stores};

use crate::kinds;
use slipway_kernel::fields::{integer, strings, text};
pub use slipway_kernel::store::Item;

pub use budget::Budget;
pub use flipper::{Flipper, StatusMap};
pub use workload::{Status, Workload};

/// The `ConfigMap` that carries the status of the default criteria.
pub const STATUS_MAP: &str = "slipway-restarts";

/// The kinds that can be restarted.
pub const WORKLOADS: [(WorkloadKind, Kind); 3] = [
    (WorkloadKind::Deployment, kinds::DEPLOYMENT),
    (WorkloadKind::StatefulSet, kinds::STATEFUL_SET),
    (WorkloadKind::DaemonSet, kinds::DAEMON_SET),
];

/// The one piece of work of a cluster: limits and precedence span all its workloads.
pub fn sweep(cluster: &ClusterId) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: crate::NAME,
        namespace: String::new(),
        name: String::new(),
    }
}

fn triggers(cluster: &ClusterId, _: &Meta, _: &Stores) -> Vec<Key> {
    vec![sweep(cluster)]
}

/// What restarts want to see.
pub fn interests() -> Vec<Interest> {
    let mut all = vec![
        Interest::of::<Flipper>(kinds::FLIPPER, triggers).where_defined(),
        Interest::of::<Workload>(kinds::DEPLOYMENT, triggers),
        Interest::of::<Workload>(kinds::STATEFUL_SET, triggers).optional(),
        Interest::of::<Workload>(kinds::DAEMON_SET, triggers).optional(),
        Interest::of::<Budget>(kinds::DISRUPTION_BUDGET, triggers).optional(),
    ];
    all.push(
        Interest::of::<StatusMap>(kinds::CONFIG_MAP, triggers)
            .own(STATUS_MAP)
            .optional(),
    );
    all
}

/// All that a sweep depends on.
#[derive(Debug, Clone)]
pub struct World {
    /// The cluster.
    pub cluster: ClusterId,
    /// Whether there may be Flippers that are not known: nothing is decided until that is clear.
    pub is_blind: bool,
    /// All Flippers, by namespace and name.
    pub flippers: Vec<Item<Flipper>>,
    /// Whether these are surely all: then, if there is none, nobody has said what is to be restarted.
    pub knows_all_flippers: bool,
    /// All workloads, by kind, namespace and name.
    pub workloads: Vec<(WorkloadKind, Item<Workload>)>,
    /// Pod disruption budgets by namespace; none if they cannot be seen.
    pub budgets: Option<BTreeMap<String, Vec<Item<Budget>>>>,
    /// The `ConfigMap` with the status of the default criteria, if `ConfigMaps` can be seen.
    pub status_map: Option<Option<Item<StatusMap>>>,
    /// Writes that the API refused.
    pub refusals: BTreeMap<ObjectRef, Refusal>,
    /// The newest version seen of each kind.
    pub basis: Basis,
}

/// Gathers the world of a cluster. None while a kind that can be seen has not been listed yet: so the default criteria never
/// act before the Flippers are known, and no limit is applied to a part of the workloads.
pub fn world(
    stores: &Stores,
    facts: &Facts,
    cluster: &ClusterId,
    operator_namespace: Option<&str>,
) -> Option<World> {
    let is_blind = facts.is_blind_to(&kinds::FLIPPER);
    let flippers = if is_blind {
        None
    } else {
        all::<Flipper>(stores, facts, cluster, &kinds::FLIPPER)?
    };
    let mut workloads = Vec::new();
    for (kind, of) in WORKLOADS {
        let items = all::<Workload>(stores, facts, cluster, &of)?.unwrap_or_default();
        workloads.extend(items.into_iter().map(|item| (kind, item)));
    }
    let budgets = all::<Budget>(stores, facts, cluster, &kinds::DISRUPTION_BUDGET)?;
    let basis = stores
        .iter()
        .filter(|((of, _, _), _)| of == cluster)
        .map(|((of, kind, _), store)| ((of.clone(), kind.clone()), store.version()))
        .collect();
    let mut unread = stores.undecodable::<Flipper>(cluster, &kinds::FLIPPER);
    Some(World {
        cluster: cluster.clone(),
        knows_all_flippers: unread.next().is_none(),
        is_blind,
        flippers: flippers.unwrap_or_default(),
        workloads,
        budgets: budgets.map(by_namespace),
        status_map: status_map(stores, facts, cluster, operator_namespace),
        refusals: facts.refusals.clone(),
        basis,
    })
}

/// All objects of a kind; `Some(None)` if the kind cannot be seen, none if it has not been listed yet.
#[expect(clippy::option_option, reason = "not yet and never are different")]
fn all<T: Projection>(
    stores: &Stores,
    facts: &Facts,
    cluster: &ClusterId,
    kind: &Kind,
) -> Option<Option<Vec<Item<T>>>> {
    // What is in the store of a kind that cannot be seen any more is not to be believed.
    if is_missing(facts, kind) {
        return Some(None);
    }
    let store = stores.typed::<T>(cluster, kind).filter(|s| s.is_synced())?;
    Some(Some(store.objects().filter_map(Item::of).collect()))
}

fn is_missing(facts: &Facts, kind: &Kind) -> bool {
    facts.is_unseen(Unseen::Absent, kind)
}

fn by_namespace(budgets: Vec<Item<Budget>>) -> BTreeMap<String, Vec<Item<Budget>>> {
    let mut all: BTreeMap<String, Vec<Item<Budget>>> = BTreeMap::new();
    for budget in budgets {
        all.entry(budget.meta().namespace.clone())
            .or_default()
            .push(budget);
    }
    all
}

#[expect(
    clippy::option_option,
    reason = "not there and not visible are different"
)]
fn status_map(
    stores: &Stores,
    facts: &Facts,
    cluster: &ClusterId,
    namespace: Option<&str>,
) -> Option<Option<Item<StatusMap>>> {
    let store = stores
        .typed::<StatusMap>(cluster, &kinds::CONFIG_MAP)
        .filter(|store: &&Store| store.is_synced() && !is_missing(facts, &kinds::CONFIG_MAP))?;
    Some(store.get(namespace?, STATUS_MAP).and_then(Item::of))
}

/// The clusters that are looked at.
pub(crate) fn clusters(stores: &Stores) -> BTreeSet<ClusterId> {
    let deployments = stores.iter().filter(|((_, kind, projection), _)| {
        *kind == kinds::DEPLOYMENT && *projection == std::any::type_name::<Workload>()
    });
    deployments
        .map(|((cluster, _, _), _)| cluster.clone())
        .collect()
}

/// The optional kinds that have not been listed, as `facts` would speak of them, for who has no facts.
pub(crate) fn unlisted(stores: &Stores, cluster: &ClusterId) -> BTreeSet<String> {
    let listed = |kind: &Kind| stores.of_kind(cluster, kind).any(|(_, s)| s.is_synced());
    [
        kinds::FLIPPER,
        kinds::STATEFUL_SET,
        kinds::DAEMON_SET,
        kinds::DISRUPTION_BUDGET,
    ]
    .iter()
    .filter(|kind| !listed(kind))
    .map(|kind| Unseen::Absent.feature(kind))
    .collect()
}
