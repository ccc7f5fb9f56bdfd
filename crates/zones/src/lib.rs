//! Rollouts of `StatefulSet`s zone by zone, and the webhooks that guard them.
//!
//! ```text
//! StatefulSets with rollout-group ─┐
//! pods, zone-aware budgets ────────┼─ readiness ─► replicas ─► rollout (budget, guard) ─► act ─► report ─► Plan
//! tracker, answers ────────────────┘
//! ```
//!
//! One key for each namespace and rollout group. What holds always, by our doing:
//!
//! - No pod is deleted while a pod of another zone of the group is down; a paused zone counts like any other.
//! - Never more pods of a zone are down than it allows. A pod that is down already may be replaced at any time.
//! - Only pods that a `StatefulSet` of the group controls are deleted, each as it was seen, and only outdated ones.
//! - A group in which something is not as expected (strategy, status, deletion) is left alone, and says why.

pub mod access;
pub mod admit;
pub mod budget;
pub mod capability;
pub mod disruption;
pub mod fence;
pub mod gauges;
mod grammar;
pub mod group;
pub mod guard;
pub mod observe;
pub mod plan;
pub mod readiness;
pub mod reasons;
pub mod render;
pub mod replicas;
pub mod settings;
pub mod show;
pub mod zpdb;

use jiff::Timestamp;
use slipway_api::zones;
use slipway_kernel::admission::Count;
use slipway_kernel::capability::{Gauge, ReconcileMetricNames, Severity, WatchEvent};
use slipway_kernel::interest::Interest;
use slipway_kernel::{ClusterId, Controller, Facts, Fence, Key, Plan, Stores, Target};

pub use capability::{CAPABILITY, Setup};
use observe::World;
use reasons::Reason;
pub use settings::{Replicas, Settings};

/// Names the capability in keys, metrics, logs, events and claims.
pub const NAME: &str = "zones";

/// The planner of zones.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    settings: Settings,
}

impl Zones {
    /// A planner with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Gathers the world of a key: all that its plan depends on.
    pub fn observe(&self, stores: &Stores, facts: &Facts, key: &Key) -> Option<World> {
        observe::world(&self.settings, stores, facts, key)
    }
}

impl Controller for Zones {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        observe::interests(&self.settings)
    }

    fn lease(&self) -> &'static str {
        zones::LEASE
    }

    fn fence(&self) -> Fence {
        Fence::BumpVersions
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        observe::keys(stores)
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let world = self.observe(stores, facts, key)?;
        Some(plan::plan(&self.settings, &world, now))
    }

    fn gauges(&self, stores: &Stores, now: Timestamp) -> Vec<Gauge> {
        let worlds = observe::keys(stores).into_iter().filter_map(|key| {
            let facts = observe::unlisted(stores, &key.cluster);
            observe::world(&self.settings, stores, &facts, &key)
        });
        worlds
            .flat_map(|world| gauges::gauges(&world, now))
            .chain(gauges::failure_policies(stores, &ClusterId::local()))
            .collect()
    }

    fn passes(&self) -> Option<ReconcileMetricNames> {
        Some(gauges::PASSES)
    }

    fn request_prefix(&self) -> Option<&'static str> {
        Some(gauges::PREFIX)
    }

    fn severity(&self, reason: &str) -> Severity {
        Reason::of(reason).map_or(Severity::Expected, Reason::severity)
    }

    fn metric_for(&self, arrival: &WatchEvent<'_>) -> Option<Count> {
        gauges::metric_for(arrival)
    }

    fn objects_to_bump(&self, stores: &Stores, key: &Key) -> Vec<Target> {
        let facts = observe::unlisted(stores, &key.cluster);
        observe::world(&self.settings, stores, &facts, key)
            .map(|world| fence::objects_to_bump(&world))
            .unwrap_or_default()
    }
}
