//! Periodic rolling restarts of matching workloads: `Flipper`s, or the default criteria while there is none.
//!
//! ```text
//! Flippers ─► policy ─► precedence ─┐
//!                                   ├─ matching ─► due ─► gates ─► limits ─► render ─► Plan
//! Deployments, StatefulSets, ───────┘              (cron)  (window,  (max-     (stamp, restart,
//! DaemonSets, PodDisruptionBudgets                          rollout)  Concurrent)  status)
//! ```
//!
//! One key per cluster: every change of a watched object leads to one sweep over all workloads, because limits and
//! precedence span them.
//!
//! What holds always:
//!
//! - A workload is never restarted twice within its interval: the stamp is on the workload, written in the same
//!   patch as the restart, which carries the version that was seen.
//! - Never more workloads roll at once by our doing than `maxConcurrent` allows.
//! - The default criteria act only when it is known that there is no Flipper.
//! - What a bad Flipper matches is held, which is reported on it; nobody else is concerned.
//! - A pass in which nothing happened writes nothing and tells nothing.

pub mod access;
pub mod cron;
pub mod due;
pub mod gauges;
pub mod kinds;
pub mod matching;
pub mod observe;
pub mod plan;
pub mod policy;
pub mod precedence;
pub mod reasons;
pub mod render;
pub mod rollout;
pub mod settings;
pub mod stage;
pub mod window;

use jiff::Timestamp;
use slipway_api::names;
use slipway_kernel::capability::Gauge;
use slipway_kernel::interest::Interest;
use slipway_kernel::permission::Permission;
use slipway_kernel::{ClusterId, Controller, Facts, Fence, Key, ObjectRef, Plan, Stores};

use observe::World;
pub use plan::explain::Explanation;
pub use settings::{DefaultCriteria, Scope, Settings};

/// Names the capability in keys, metrics, logs, events and claims.
pub const NAME: &str = "restarts";

/// The planner of restarts.
#[derive(Debug, Clone, Default)]
pub struct Restarts {
    settings: Settings,
}

impl Restarts {
    /// A planner with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Why a workload is, or is not, restarted; none if no policy is about it.
    pub fn explain(
        &self,
        world: &World,
        object: &ObjectRef,
        now: Timestamp,
    ) -> Option<Explanation> {
        plan::explain::explain(&self.settings, world, object, now)
    }

    fn world(&self, stores: &Stores, facts: &Facts, cluster: &ClusterId) -> Option<World> {
        observe::world(
            stores,
            facts,
            cluster,
            self.settings.operator_namespace.as_deref(),
        )
    }
}

impl Controller for Restarts {
    const NAME: &'static str = NAME;
    type World = World;

    fn interests(&self) -> Vec<Interest> {
        observe::interests()
    }

    fn permissions(&self) -> Vec<Permission> {
        access::PERMISSIONS.to_vec()
    }

    fn lease(&self) -> &'static str {
        names::RESTARTS_LEASE
    }

    fn fence(&self) -> Fence {
        // A touch would itself be a change of the workload.
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        observe::clusters(stores)
            .iter()
            .map(observe::sweep)
            .collect()
    }

    fn observe(&self, stores: &Stores, facts: &Facts, key: &Key) -> Option<World> {
        self.world(stores, facts, &key.cluster)
    }

    fn plan(&self, world: &World, now: Timestamp) -> Plan {
        plan::plan(&self.settings, world, now)
    }

    fn gauges(&self, stores: &Stores, now: Timestamp) -> Vec<Gauge> {
        let mut all = Vec::new();
        for cluster in observe::clusters(stores) {
            let facts = Facts {
                missing: observe::unlisted(stores, &cluster),
                ..Facts::default()
            };
            if let Some(world) = self.world(stores, &facts, &cluster) {
                all.extend(gauges::gauges(&self.settings, &world, now));
            }
        }
        all
    }
}
