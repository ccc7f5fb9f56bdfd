//! Progressive delivery of a workload: a new version proves itself on part of the traffic, then takes over, or goes back.
//!
//! ```text
//! Canary, workloads, Services, routes ─► observe ─► World ─► standalone::scene ─► engine::advance ─► status (the intent)
//!                                                   │                          └► engine::deeds ─► render ─► writes
//! answers of webhooks and Prometheus ◄─ questions ◄─┘
//! ```
//!
//! The [`engine`] decides, over plain values; what it says of traffic becomes objects in the routers, and what it says of
//! versions and replicas becomes objects in a mode. None of them reads a clock or asks anybody: questions are values.
//!
//! One key for each Canary, and a lane for each: no Canary waits for another.

pub mod access;
pub mod alerts;
pub mod capability;
pub mod claims;
pub mod engine;
pub mod gauges;
pub mod kinds;
pub mod measures;
pub mod observe;
pub mod places;
pub mod plan;
pub mod provider;
pub mod questions;
pub mod reasons;
pub mod render;
pub mod router;
pub mod settings;
pub mod show;
pub mod spec;
pub mod stage;
pub mod standalone;
pub mod webhooks;

use jiff::Timestamp;
use slipway_kernel::capability::{Gauge, Severity};
use slipway_kernel::interest::Interest;
use slipway_kernel::{ClusterId, Controller, Facts, Fence, Key, Lane, Plan, Stores};

pub use capability::CAPABILITY;
use observe::{CanarySeen, World};
use reasons::Reason;
pub use settings::Settings;

/// Names the capability in keys, metrics, logs, events and claims.
pub const NAME: &str = "canary";

/// The planner of Canaries.
#[derive(Debug, Clone, Default)]
pub struct Canaries {
    settings: Settings,
}

impl Canaries {
    /// A planner with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Gathers the world of a key: all that its plan depends on.
    pub fn observe(&self, stores: &Stores, facts: &Facts, key: &Key) -> Option<World> {
        observe::world(&self.settings, stores, facts, key)
    }
}

impl Controller for Canaries {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        observe::interests()
    }

    fn interests_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Interest> {
        observe::interests_in(&self.settings, stores, cluster)
    }

    fn lane(&self, _: &Key) -> Lane {
        Lane::Key
    }

    fn lease(&self) -> &'static str {
        slipway_api::flagger::LEASE
    }

    fn fence(&self) -> Fence {
        // A touch of a workload would itself be a change that others look at.
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let clusters: Vec<_> = stores.clusters().cloned().collect();
        let each = clusters.iter().flat_map(|cluster| {
            let all = stores.list::<CanarySeen>(cluster, &kinds::CANARY);
            all.map(move |entry| observe::key(cluster, entry.meta))
        });
        each.collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let Some(world) = self.observe(stores, facts, key) else {
            return claims::end_abandoned(stores, key, now);
        };
        Some(plan::plan(&self.settings, &world, now))
    }

    fn gauges(&self, stores: &Stores, _: Timestamp) -> Vec<Gauge> {
        let clusters: Vec<_> = stores.clusters().cloned().collect();
        let canaries = clusters.iter().flat_map(|cluster| {
            let all = stores.list::<CanarySeen>(cluster, &kinds::CANARY);
            all.filter_map(|entry| entry.body.read.as_ref().ok())
        });
        let mut all = gauges::gauges(canaries);
        all.push(gauges::about(self.settings.provider));
        all
    }

    fn severity(&self, reason: &str) -> Severity {
        Reason::of(reason).map_or(Severity::Expected, Reason::severity)
    }
}
