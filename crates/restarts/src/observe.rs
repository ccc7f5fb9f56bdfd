//! What restarts look at: of each object only what a decision depends on.
//!
//! No projection fails: what is wrong with an object is kept beside the rest of it, so that it is reported on that
//! object and stops no other.

mod flipper;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use slipway_api::flipper::WorkloadKind;
use slipway_kernel::basis::{Basis, basis};
use slipway_kernel::disruption_budget::DisruptionBudget;
use slipway_kernel::fact::{Facts, Refusal};
use slipway_kernel::interest::Interest;
use slipway_kernel::status_map;
use slipway_kernel::store::{Meta, Projection};
use slipway_kernel::{ClusterId, Key, Kind, ObjectRef, Stores};

use crate::kinds;
use slipway_kernel::fields::{integer, strings, text};
pub use slipway_kernel::store::Item;

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

/// A workload by name.
pub fn reference(cluster: &ClusterId, kind: WorkloadKind, item: &Item<Workload>) -> ObjectRef {
    let [deployment, stateful, daemon] = WORKLOADS;
    let (_, of) = match kind {
        WorkloadKind::Deployment => deployment,
        WorkloadKind::StatefulSet => stateful,
        WorkloadKind::DaemonSet => daemon,
    };
    ObjectRef {
        cluster: cluster.clone(),
        kind: of,
        namespace: item.meta().namespace.clone(),
        name: item.meta().name.clone(),
    }
}

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
        Interest::of::<DisruptionBudget>(kinds::DISRUPTION_BUDGET, triggers).optional(),
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
    /// Pod disruption budgets by namespace.
    pub budgets: BTreeMap<String, Vec<Item<DisruptionBudget>>>,
    /// Namespaces with workloads in which budgets cannot be seen.
    pub without_budgets: BTreeSet<String>,
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
    let is_blind = facts.is_blind_to(cluster, &kinds::FLIPPER);
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
    let budgets = all::<DisruptionBudget>(stores, facts, cluster, &kinds::DISRUPTION_BUDGET)?;
    let namespaces = workloads.iter().map(|(_, item)| &item.meta().namespace);
    let is_hidden =
        |namespace: &&String| facts.is_hidden_in(cluster, &kinds::DISRUPTION_BUDGET, namespace);
    let without_budgets = namespaces.filter(is_hidden).cloned().collect();
    let mut unread = stores.undecodable::<Flipper>(cluster, &kinds::FLIPPER);
    Some(World {
        cluster: cluster.clone(),
        knows_all_flippers: unread.next().is_none(),
        is_blind,
        flippers: flippers.unwrap_or_default(),
        workloads,
        budgets: by_namespace(budgets.unwrap_or_default()),
        without_budgets,
        status_map: operator_namespace
            .and_then(|namespace| status_map::seen(stores, facts, cluster, namespace, STATUS_MAP)),
        refusals: facts.refusals.clone(),
        basis: basis(stores, cluster),
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
    if facts.is_absent(cluster, kind) {
        return Some(None);
    }
    let store = stores.typed::<T>(cluster, kind).filter(|s| s.is_synced())?;
    Some(Some(store.objects().filter_map(Item::of).collect()))
}

fn by_namespace(
    budgets: Vec<Item<DisruptionBudget>>,
) -> BTreeMap<String, Vec<Item<DisruptionBudget>>> {
    let mut all: BTreeMap<String, Vec<Item<DisruptionBudget>>> = BTreeMap::new();
    for budget in budgets {
        all.entry(budget.meta().namespace.clone())
            .or_default()
            .push(budget);
    }
    all
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

/// The kinds that can be done without.
const OPTIONAL: [Kind; 4] = [
    kinds::FLIPPER,
    kinds::STATEFUL_SET,
    kinds::DAEMON_SET,
    kinds::DISRUPTION_BUDGET,
];

/// What is off, for who has no facts.
pub(crate) fn unlisted(stores: &Stores, cluster: &ClusterId) -> Facts {
    Facts::of_listed(stores, cluster, &OPTIONAL)
}
