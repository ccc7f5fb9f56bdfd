//! What a capability is: a pure planner with declared interests.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::action::Target;
use crate::fact::Facts;
use crate::identity::Key;
use crate::interest::Interest;
use crate::permission::Permission;
use crate::plan::Plan;
use crate::store::Stores;

/// How a new leader makes sure that the old one no longer acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// It changes every object that the old one could still act on ([`Controller::touches`]), so that the old one's
    /// preconditions fail. Where it may not, it waits.
    Touch,
    /// It waits until every request of the old one must have ended.
    WaitOut,
}

/// A number to be shown at `/metrics`, computed when asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// The metric's name, with its unit.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// Labels.
    pub labels: BTreeMap<&'static str, String>,
    /// The value.
    pub value: f64,
}

/// One planner: observes a world, answers with a plan. Both are total and pure.
pub trait Controller: Send + Sync + 'static {
    /// Names it in keys, metrics, logs and events.
    const NAME: &'static str;
    /// All that a plan depends on.
    type World;

    /// What it wants to see.
    fn interests(&self) -> Vec<Interest>;
    /// What it may do.
    fn permissions(&self) -> Vec<Permission>;
    /// The Lease that its replicas and predecessors share.
    fn lease(&self) -> &'static str;
    /// How a new leader fences the old one.
    fn fence(&self) -> Fence;
    /// Work there is when everything has been listed, whatever objects there are.
    fn keys(&self, stores: &Stores) -> Vec<Key>;
    /// Gathers the world of a key.
    fn observe(&self, stores: &Stores, facts: &Facts, key: &Key) -> Option<Self::World>;
    /// Decides.
    fn plan(&self, world: &Self::World, now: Timestamp) -> Plan;
    /// Numbers about objects, computed when they are asked for.
    fn gauges(&self, stores: &Stores, now: Timestamp) -> Vec<Gauge>;
    /// With [`Fence::Touch`]: all that a former leader may be about to change or delete for this key.
    fn touches(&self, _stores: &Stores, _key: &Key) -> Vec<Target> {
        Vec::new()
    }
}

/// A [`Controller`] whose world nobody needs to know.
pub trait Capability: Send + Sync + 'static {
    /// See [`Controller::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Controller::interests`].
    fn interests(&self) -> Vec<Interest>;
    /// See [`Controller::permissions`].
    fn permissions(&self) -> Vec<Permission>;
    /// See [`Controller::lease`].
    fn lease(&self) -> &'static str;
    /// See [`Controller::fence`].
    fn fence(&self) -> Fence;
    /// See [`Controller::keys`].
    fn keys(&self, stores: &Stores) -> Vec<Key>;
    /// Observes and plans; no plan if there is nothing to plan for.
    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan>;
    /// See [`Controller::gauges`].
    fn gauges(&self, stores: &Stores, now: Timestamp) -> Vec<Gauge>;
    /// See [`Controller::touches`].
    fn touches(&self, stores: &Stores, key: &Key) -> Vec<Target>;
}

impl<C: Controller> Capability for C {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn interests(&self) -> Vec<Interest> {
        Controller::interests(self)
    }

    fn permissions(&self) -> Vec<Permission> {
        Controller::permissions(self)
    }

    fn lease(&self) -> &'static str {
        Controller::lease(self)
    }

    fn fence(&self) -> Fence {
        Controller::fence(self)
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        Controller::keys(self, stores)
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let world = self.observe(stores, facts, key)?;
        Some(Controller::plan(self, &world, now))
    }

    fn gauges(&self, stores: &Stores, now: Timestamp) -> Vec<Gauge> {
        Controller::gauges(self, stores, now)
    }

    fn touches(&self, stores: &Stores, key: &Key) -> Vec<Target> {
        Controller::touches(self, stores, key)
    }
}
