//! What zone-aware budgets say to the deletion of a pod by a rollout: what they say to an eviction ([`disruption`]), except
//! that a budget of zero means what the zone itself allows, and one in partitions.
//!
//! It knows the zones of one group. A budget whose selector spans several groups is judged on the group's own zones.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::instant::later;
use slipway_kernel::store::Item;

use crate::admit::disruption::{self, Owner, Scene, Zone};
use crate::admit::zpdb::BudgetSeen;
use crate::readiness::{Member, Survey};

/// Why a pod may not go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
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
    zones: Vec<Zone<'w>>,
    held: BTreeMap<String, Timestamp>,
    now: Timestamp,
}

impl<'w> Guard<'w> {
    /// A guard over the zones of a group.
    pub fn new(budgets: &'w [Item<BudgetSeen>], surveys: &[Survey<'w>], now: Timestamp) -> Self {
        let zones = if budgets.is_empty() {
            Vec::new()
        } else {
            surveys.iter().map(zone).collect()
        };
        Self {
            budgets: budgets
                .iter()
                .map(|budget| (budget.meta().name.as_str(), budget.body()))
                .collect(),
            zones,
            held: BTreeMap::new(),
            now,
        }
    }

    /// Counts a pod as gone without asking.
    pub fn take(&mut self, member: &Member<'w>) {
        if !self.budgets.is_empty() {
            let uid = member.pod.meta().uid.clone();
            self.held.insert(uid, Timestamp::MAX);
        }
    }

    /// Asks whether a pod of this zone may go.
    pub fn ask(&mut self, survey: &Survey<'w>, member: &Member<'w>) -> Result<(), Denial> {
        let denial = |budget: Option<&str>, denial: disruption::Denial| Denial {
            budget: budget.map(str::to_owned),
            message: denial.message,
            // It is not enough that the moment has come: it must have passed.
            until: denial
                .until
                .and_then(|until| later(until, Duration::from_millis(1))),
        };
        let labels = &member.pod.body().labels;
        let found = disruption::budget_of(&self.budgets, labels);
        let Some((name, budget)) = found.map_err(|why| denial(None, why))? else {
            return Ok(());
        };
        let instead_of_zero = match budget.partition {
            Some(_) => 1,
            None => survey.set().most_unavailable(),
        };
        let scene = Scene {
            budgets: self.budgets.clone(),
            zones: self.zones.clone(),
            held: &self.held,
            now: self.now,
        };
        disruption::evict(&scene, &pod(survey, member), Some(instead_of_zero))
            .map_err(|why| denial(Some(name), why))?;
        self.take(member);
        Ok(())
    }
}

fn zone<'w>(survey: &Survey<'w>) -> Zone<'w> {
    let set = survey.set();
    Zone {
        name: survey.name(),
        uid: &survey.zone.set.meta().uid,
        labels: &set.labels,
        asked: set.desired(),
        are: set.status.replicas,
        pods: survey.members.iter().map(|m| pod(survey, m)).collect(),
    }
}

fn pod<'w>(survey: &Survey<'w>, member: &Member<'w>) -> disruption::Pod<'w> {
    let (meta, body) = (member.pod.meta(), member.pod.body());
    disruption::Pod {
        name: &meta.name,
        uid: &meta.uid,
        labels: &body.labels,
        owner: Owner::Set {
            name: survey.name(),
            uid: &survey.zone.set.meta().uid,
        },
        is_idle: body.is_idle || body.is_deleting,
        is_ready: member.health.is_ready(),
        ready_since: body.ready_since,
    }
}
