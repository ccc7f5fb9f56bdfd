//! A capability with a bug.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use slipway_kernel::capability::Gauge;
use slipway_kernel::interest::{Interest, Where};
use slipway_kernel::{
    ClusterId, Controller, Facts, Fence, Key, Lane, Member, Plan, Stores, Target,
};

use super::Bend;

/// A capability that is bent.
pub(super) struct Bent {
    inner: Arc<dyn Controller>,
    bend: Arc<Bend>,
    earlier: Mutex<Option<Stores>>,
}

impl Bent {
    pub(super) fn around(inner: Arc<dyn Controller>, bend: Arc<Bend>) -> Arc<dyn Controller> {
        Arc::new(Self {
            inner,
            bend,
            earlier: Mutex::default(),
        })
    }

    /// The same interests, through other eyes.
    fn bent(&self, mut all: Vec<Interest>) -> Vec<Interest> {
        for interest in &mut all {
            let is_flipper = interest.kind == slipway_restarts::kinds::FLIPPER;
            let is_workload = interest.kind.group == "apps";
            match &*self.bend {
                Bend::Workloads(project) if is_workload => interest.project = *project,
                Bend::Flippers(project) if is_flipper => interest.project = *project,
                Bend::Sees(kind, project) if interest.kind == *kind => {
                    interest.project = *project;
                }
                Bend::Reservations(project) if interest.labels.contains("managed-by") => {
                    interest.project = *project;
                }
                _ => {}
            }
        }
        all
    }
}

impl Controller for Bent {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn interests(&self) -> Vec<Interest> {
        self.bent(self.inner.interests())
    }

    fn lease(&self) -> &'static str {
        self.inner.lease()
    }

    fn fence(&self) -> Fence {
        self.inner.fence()
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        self.inner.keys(stores)
    }

    fn keys_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Key> {
        self.inner.keys_in(stores, cluster)
    }

    fn interests_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Interest> {
        self.bent(self.inner.interests_in(stores, cluster))
    }

    fn members(&self, stores: &Stores) -> Vec<Member> {
        self.inner.members(stores)
    }

    fn member(&self, stores: &Stores, cluster: &ClusterId) -> Option<Member> {
        self.inner.member(stores, cluster)
    }

    fn member_keys(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Key> {
        self.inner.member_keys(stores, cluster)
    }

    fn tells_of(&self, stores: &Stores, key: &Key) -> Option<ClusterId> {
        self.inner.tells_of(stores, key)
    }

    fn discovers(&self) -> Option<Where> {
        self.inner.discovers()
    }

    fn lane(&self, key: &Key) -> Lane {
        self.inner.lane(key)
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        match &*self.bend {
            Bend::Ahead(seconds) => {
                let ahead = now + SignedDuration::from_secs(*seconds);
                self.inner.plan(stores, facts, key, ahead)
            }
            Bend::Facts(change) => {
                let mut facts = facts.clone();
                change(&mut facts);
                self.inner.plan(stores, &facts, key, now)
            }
            Bend::Plans(change) => {
                let mut plan = self.inner.plan(stores, facts, key, now)?;
                change(&mut plan);
                Some(plan)
            }
            Bend::Stale => {
                let fresh = self.inner.plan(stores, facts, key, now)?;
                let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
                let seen = earlier.replace(stores.clone());
                let Some(seen) = seen else {
                    return Some(fresh);
                };
                let mut plan = self.inner.plan(&seen, facts, key, now)?;
                plan.basis = fresh.basis;
                Some(plan)
            }
            _ => self.inner.plan(stores, facts, key, now),
        }
    }

    fn gauges(&self, stores: &Stores, now: Timestamp) -> Vec<Gauge> {
        self.inner.gauges(stores, now)
    }

    fn objects_to_bump(&self, stores: &Stores, key: &Key) -> Vec<Target> {
        if matches!(*self.bend, Bend::NoTouch) {
            return Vec::new();
        }
        self.inner.objects_to_bump(stores, key)
    }
}
