//! What zone-aware budgets say to the deletion of a pod by a rollout: the same as to an eviction, except that a budget of
//! zero means what the zone itself allows.
//!
//! It knows the zones of one group, and those of others that share a budget with it: a budget is about all zones that its
//! selector selects, whatever group they are in.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_kernel::store::Item;

use crate::disruption::{CountedPod, CountedZone, Scene, budget_of, evict};
use crate::observe::{Pod, World};
use crate::readiness::{Member, Survey};
use crate::zpdb::BudgetSeen;

/// Why a pod may not go, and which budget says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRefusal {
    /// The budget that says so; none if it is not only one.
    pub budget: Option<String>,
    /// In words.
    pub message: String,
    /// When that ends by itself.
    pub until: Option<Timestamp>,
}

/// Asks the budgets, and remembers what they allowed.
#[derive(Debug)]
pub struct Guard<'w> {
    budgets: Vec<(&'w str, &'w BudgetSeen)>,
    zones: Vec<CountedZone<'w>>,
    now: Timestamp,
    held: BTreeMap<String, Timestamp>,
}

fn view(pod: &Item<Pod>) -> CountedPod<'_> {
    CountedPod::of(pod.meta(), pod.body())
}

impl<'w> Guard<'w> {
    /// A guard over the zones of a group and its neighbours.
    pub fn new(world: &'w World, now: Timestamp) -> Self {
        let budgets = world.budgets.iter();
        // Without budgets nobody is asked.
        let all = world.zones.iter().chain(&world.neighbours);
        let zones = all.filter(|_| !world.budgets.is_empty());
        let zones = zones.map(|zone| {
            let pods = zone.pods.iter().map(view).collect();
            CountedZone::of(zone.set.meta(), zone.set.body(), pods)
        });
        Self {
            budgets: budgets
                .map(|budget| (budget.meta().name.as_str(), budget.body()))
                .collect(),
            zones: zones.collect(),
            now,
            held: world.holds.clone(),
        }
    }

    /// Counts a pod as gone without asking.
    pub fn take(&mut self, member: &Member<'w>) {
        let uid = member.pod.meta().uid.clone();
        self.held.insert(uid, Timestamp::MAX);
    }

    /// Asks whether a pod of this zone may go.
    pub fn ask(&mut self, zone: &Survey<'w>, member: &Member<'w>) -> Result<(), BudgetRefusal> {
        let pod = view(member.pod);
        let budget = budget_of(&self.budgets, pod.labels);
        let (name, is_partitioned) = match &budget {
            Ok(Some((name, budget))) => (Some((*name).to_owned()), budget.partition.is_some()),
            _ => (None, false),
        };
        let instead = if is_partitioned {
            1
        } else {
            zone.set().most_unavailable()
        };
        let scene = Scene {
            budgets: &self.budgets,
            zones: &self.zones,
            held: &self.held,
            now: self.now,
        };
        evict(&scene, &pod, Some(instead)).map_err(|denial| BudgetRefusal {
            budget: name,
            message: denial.message,
            until: denial.until,
        })?;
        self.take(member);
        Ok(())
    }
}
