//! The controller of a workload cluster: its assemblages are expanded to Flux objects, and what comes of it is told on them.
//!
//! It needs nothing but its own cluster: while the control plane is away it goes on. An assemblage that names a cluster is not
//! its own, but the hub's.

pub mod access;

use jiff::Timestamp;
use slipway_api::fleet::assemblage::SyncState;
use slipway_api::fleet::names::AGENT_LEASE;
use slipway_kernel::capability::{Gauge, Lane, Severity};
use slipway_kernel::interest::Interest;
use slipway_kernel::store::{Item, Meta};
use slipway_kernel::{ClusterId, Controller, Facts, Fence, Key, Plan, Stores};

use crate::assemblage::KustomizationSeen;
use crate::expansion::{Expansion, states};
use crate::hub::interests::{definition, kustomizations, made, namespace, sources, values};
use crate::hub::remote::Fate;
use crate::hub::view::View;
use crate::observe::reference::Place;
use crate::observe::seen::Assembled;
use crate::reasons::Reason;
use crate::{gauges, kinds, work};

/// The planner of a workload cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Agent;

impl Controller for Agent {
    fn name(&self) -> &'static str {
        crate::AGENT
    }

    fn interests(&self) -> Vec<Interest> {
        vec![
            Interest::of::<Assembled>(kinds::ASSEMBLAGE, itself),
            values(by_namespace),
            made(by_namespace),
            sources(by_source),
            kustomizations(by_kustomization),
            definition(&kinds::ASSEMBLAGE, everything),
        ]
    }

    fn interests_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Interest> {
        if !cluster.is_local() {
            return Vec::new();
        }
        let view = View::new(stores);
        let mut all = Vec::new();
        for item in ours(&view) {
            let expansion = expansion(&view, &item);
            let place = Place {
                stores,
                cluster: &view.home,
                namespace: &item.meta().namespace,
                assemblage: Some(&item.meta().name),
            };
            let references = expansion.references();
            all.extend(place.interests(&references, everything, everything));
            let namespaces = expansion.namespaces();
            all.extend(namespaces.iter().map(|name| namespace(name, everything)));
        }
        all
    }

    fn lane(&self, _: &Key) -> Lane {
        Lane::Key
    }

    fn lease(&self) -> &'static str {
        AGENT_LEASE
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        keys(&ours(&View::new(stores)))
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let view = View::new(stores);
        let item = view.assemblage(&key.namespace, &key.name)?;
        if item.body().cluster().is_some() {
            return None;
        }
        Some(expansion(&view, &item).plan(facts, now))
    }

    fn gauges(&self, stores: &Stores, _: Timestamp) -> Vec<Gauge> {
        let mut syncs = std::collections::BTreeMap::from([
            (SyncState::Succeeded, 0),
            (SyncState::Failed, 0),
            (SyncState::Updating, 0),
            (SyncState::Blocked, 0),
        ]);
        for item in ours(&View::new(stores)) {
            for (state, count) in states(item.body().kept()) {
                *syncs.entry(state).or_default() += count;
            }
        }
        gauges::syncs(&syncs)
    }

    fn severity(&self, reason: &str) -> Severity {
        Reason::of(reason).map_or(Severity::Warning, Reason::severity)
    }
}

fn expansion<'a>(view: &'a View<'a>, item: &'a Item<Assembled>) -> Expansion<'a> {
    Expansion {
        view,
        item,
        fate: Fate::Here,
        record: None,
        is_unread: false,
        is_hidden: false,
        objection: None,
    }
}

/// All assemblages that are about the cluster that they are in.
fn ours(view: &View<'_>) -> Vec<Item<Assembled>> {
    let all = view.every_assemblage();
    all.filter(|item| item.body().cluster().is_none()).collect()
}

fn keys(items: &[Item<Assembled>]) -> Vec<Key> {
    let keys = items.iter().map(Item::meta);
    keys.map(|meta| work::of_agent(&meta.namespace, &meta.name))
        .collect()
}

fn itself(_: &ClusterId, meta: &Meta, _: &Stores) -> Vec<Key> {
    vec![work::of_agent(&meta.namespace, &meta.name)]
}

fn those(stores: &Stores, is_meant: impl Fn(&Item<Assembled>) -> bool) -> Vec<Key> {
    let mut all = ours(&View::new(stores));
    all.retain(is_meant);
    keys(&all)
}

fn by_namespace(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    those(stores, |item| item.meta().namespace == meta.namespace)
}

/// A changed value, or another kind: assemblages are few in a cluster.
fn everything(_: &ClusterId, _: &Meta, stores: &Stores) -> Vec<Key> {
    those(stores, |_| true)
}

fn by_source(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    those(stores, |item| {
        item.meta().namespace == meta.namespace && item.body().sources().contains(&meta.name)
    })
}

/// Who wants a Kustomization, who made it, and who waits for it to be gone. One that was applied is also what other modules'
/// objects are found by.
fn by_kustomization(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let store = stores.typed::<KustomizationSeen>(&view.home, &kinds::KUSTOMIZATION);
    let seen = store.and_then(|store| store.get(&meta.namespace, &meta.name));
    let seen = seen.and_then(Item::<KustomizationSeen>::of);
    let made_for = seen.and_then(|seen| seen.body().made_for.clone());
    those(stores, |item| {
        let is_here = item.meta().namespace == meta.namespace;
        let is_wanted = item.body().kustomizations().contains(&meta.name);
        let is_maker = made_for
            .as_ref()
            .is_none_or(|name| item.meta().name == *name);
        is_here && (is_wanted || is_maker)
    })
}
