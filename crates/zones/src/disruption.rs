//! Whether a pod may go: what zone-aware budgets say, for evictions and for the rollout alike.
//!
//! It promises that a pod is let go only if, by what is seen and what has been let go before, no pod of another zone is
//! away and fewer of its own than the budget allows; or, where partitions are counted, fewer of its partition in other
//! zones. Whatever is not known counts against it. It looks at nothing but its [`Scene`].

pub mod outcome;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::instant::later;
use slipway_kernel::store::Meta;

use crate::observe::{Owner, Pod, Set, named_after};
use crate::zpdb::{Budget, BudgetSeen, Partition};
use outcome::Outcome;

/// What counts of a pod.
#[derive(Debug, Clone, Copy)]
pub struct CountedPod<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Whose it is.
    pub owner: &'a Owner,
    /// Whether it is being deleted, or its phase is one in which it does no work.
    pub is_idle: bool,
    /// Whether it is running and ready, and not being deleted.
    pub is_ready: bool,
    /// Since when it is ready, if that is known.
    pub ready_since: Option<Timestamp>,
}

impl<'a> CountedPod<'a> {
    /// What counts of a pod that has been seen.
    pub fn of(meta: &'a Meta, seen: &'a Pod) -> Self {
        Self {
            name: &meta.name,
            uid: &meta.uid,
            labels: &seen.labels,
            owner: &seen.owner,
            is_idle: seen.is_idle || seen.is_deleting,
            is_ready: seen.is_ready && !seen.is_deleting,
            ready_since: seen.ready_since,
        }
    }
}

/// What counts of a zone.
#[derive(Debug, Clone)]
pub struct CountedZone<'a> {
    /// The name of its `StatefulSet`.
    pub name: &'a str,
    /// The uid.
    pub uid: &'a str,
    /// The labels.
    pub labels: &'a BTreeMap<String, String>,
    /// How many pods it should have.
    pub asked: i64,
    /// How many pods its controller says it has.
    pub are: i64,
    /// Its pods.
    pub pods: Vec<CountedPod<'a>>,
}

impl<'a> CountedZone<'a> {
    /// What counts of a zone that has been seen, with these pods.
    pub fn of(meta: &'a Meta, set: &'a Set, pods: Vec<CountedPod<'a>>) -> Self {
        Self {
            name: &meta.name,
            uid: &meta.uid,
            labels: &set.labels,
            asked: set.desired(),
            are: set.status.replicas,
            pods,
        }
    }
}

/// What is seen of a namespace.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// Its budgets, by name.
    pub budgets: &'a [(&'a str, &'a BudgetSeen)],
    /// Its zones, by name.
    pub zones: &'a [CountedZone<'a>],
    /// Pods, by uid, that have been let go or are being deleted, and until when that counts.
    pub held: &'a BTreeMap<String, Timestamp>,
    /// Now.
    pub now: Timestamp,
}

/// Why a pod may not go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// How it is counted, with the code.
    pub outcome: Outcome,
    /// In words.
    pub message: String,
    /// When that may end by itself: a pod has then been ready for long enough.
    pub until: Option<Timestamp>,
    /// The pods that count as away.
    pub away: Vec<String>,
}

impl Denial {
    /// Whether clients try again: it may be over soon.
    pub fn is_passing(&self) -> bool {
        self.outcome.pair().1 == 429
    }

    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            outcome,
            message: message.into(),
            until: None,
            away: Vec::new(),
        }
    }
}

/// The one budget that is about a pod; none if there is none.
pub fn budget_of<'a>(
    budgets: &[(&'a str, &'a BudgetSeen)],
    labels: &BTreeMap<String, String>,
) -> Result<Option<(&'a str, &'a Budget)>, Denial> {
    let mut all = budgets.iter().filter(|(_, seen)| seen.concerns(labels));
    let Some((name, seen)) = all.next() else {
        return Ok(None);
    };
    let denial = |message: String| Denial::new(Outcome::ConfigNotFound, message);
    if all.next().is_some() {
        return Err(denial(
            "multiple zoned pod disruption budgets found for pod".to_owned(),
        ));
    }
    match &seen.budget {
        Ok(budget) => Ok(Some((name, budget))),
        Err(error) => Err(denial(format!(
            "zoned pod disruption budget {name} makes no sense: {error}"
        ))),
    }
}

/// Whether a pod may go now. `instead_of_zero` is what a budget of zero means to the caller, if it means anything.
pub fn evict(
    scene: &Scene<'_>,
    pod: &CountedPod<'_>,
    instead_of_zero: Option<i64>,
) -> Result<(), Denial> {
    if pod.is_idle {
        return Ok(());
    }
    match budget_of(scene.budgets, pod.labels)? {
        Some((_, budget)) => judge(scene, budget, pod, instead_of_zero),
        None => Ok(()),
    }
}

fn judge(
    scene: &Scene<'_>,
    budget: &Budget,
    pod: &CountedPod<'_>,
    instead_of_zero: Option<i64>,
) -> Result<(), Denial> {
    let own = own_zone(scene, pod)?;
    let most = match (budget.max_unavailable(own.asked, own.are), instead_of_zero) {
        (0, Some(instead)) => instead,
        (most, _) => most,
    };
    if most <= 0 {
        let message = "max unavailable = 0";
        return Err(Denial::new(Outcome::MaxUnavailableZero, message));
    }
    let is_covered = |zone: &&CountedZone<'_>| budget.selects(zone.labels);
    if scene.zones.iter().filter(is_covered).count() <= 1 {
        let message = "minimum number of StatefulSets not found";
        return Err(Denial::new(Outcome::TooFewSets, message));
    }
    // The pod's own zone counts whether or not the budget's selector finds it.
    let zones = scene
        .zones
        .iter()
        .filter(|zone| zone.uid == own.uid || budget.selects(zone.labels));
    match &budget.partition {
        None => judge_zones(scene, zones, own, pod, most),
        Some(partition) => {
            let others = zones.filter(|zone| zone.uid != own.uid);
            judge_partition(scene, others, budget, partition, pod, most)
        }
    }
}

fn own_zone<'a>(scene: &Scene<'a>, pod: &CountedPod<'_>) -> Result<&'a CountedZone<'a>, Denial> {
    let denial = |message: String| Denial::new(Outcome::SetNotFound, message);
    let uid = match pod.owner {
        Owner::Set(uid) => uid,
        Owner::Nobody => {
            return Err(denial("unable to find a StatefulSet pod owner".to_owned()));
        }
        Owner::Other(owner) => {
            return Err(denial(format!(
                "pod owner is not a StatefulSet - {} has owner {owner}",
                pod.name
            )));
        }
    };
    let mut zones = scene.zones.iter();
    zones.find(|zone| zone.uid == uid).ok_or_else(|| {
        let name = named_after(pod.name).map_or("", |(set, _)| set);
        denial(format!(
            "unable to find StatefulSet {name} by name: statefulsets.apps \"{name}\" not found"
        ))
    })
}

fn judge_zones<'s, 'a: 's>(
    scene: &Scene<'_>,
    zones: impl Iterator<Item = &'s CountedZone<'a>>,
    own: &CountedZone<'_>,
    pod: &CountedPod<'_>,
    most: i64,
) -> Result<(), Denial> {
    for zone in zones {
        let mut tally = Tally::of(zone);
        for other in zone.pods.iter().filter(|other| other.uid != pod.uid) {
            if !other.is_ready || scene.holds(other) {
                tally.away.push(other.name);
            }
        }
        let limit = if zone.uid == own.uid { most } else { 1 };
        tally.limited(limit, zone.name)?;
    }
    Ok(())
}

fn judge_partition<'s, 'a: 's>(
    scene: &Scene<'_>,
    others: impl Iterator<Item = &'s CountedZone<'a>>,
    budget: &Budget,
    partition: &Partition,
    pod: &CountedPod<'_>,
    most: i64,
) -> Result<(), Denial> {
    let own = partition.of(pod.name).ok_or_else(|| {
        Denial::new(
            Outcome::PartitionNotIdentified,
            "failed to extract partition from pod Name regular expression",
        )
    })?;
    let mut sum = Tally::default();
    for zone in others {
        let mut tally = Tally::of(zone);
        let mut is_empty = true;
        let peers = zone.pods.iter().filter(|peer| peer.uid != pod.uid);
        for peer in peers.filter(|peer| partition.of(peer.name) == Some(own)) {
            is_empty = false;
            let is_away = !peer.is_ready || scene.holds(peer);
            let rests = resting(peer, budget, scene.now);
            if is_away || rests.is_some() {
                sum.away.push(peer.name);
            }
            if !is_away {
                sum.wait(rests.flatten());
            }
        }
        if is_empty && tally.unknown == 0 {
            tally.unknown = 1;
        }
        sum.unknown += tally.unknown;
    }
    sum.limited(most, &format!("partition {own}"))
}

/// Whether a ready pod has not been so for long enough, and when it will have been, if that is known.
#[expect(clippy::option_option, reason = "resting, and until when")]
fn resting(pod: &CountedPod<'_>, budget: &Budget, now: Timestamp) -> Option<Option<Timestamp>> {
    if budget.delay.is_zero() {
        return None;
    }
    // It is not enough that the moment has come: it must have passed.
    let past = budget.delay.saturating_add(Duration::from_millis(1));
    let free = pod.ready_since.and_then(|since| later(since, past));
    let is_free = free.is_some_and(|free| free <= now);
    (!is_free).then_some(free)
}

impl Scene<'_> {
    /// Whether a pod that is still seen has been let go.
    fn holds(&self, pod: &CountedPod<'_>) -> bool {
        let until = self.held.get(pod.uid);
        until.is_some_and(|until| self.now < *until)
    }
}

/// Pods that are away, or not known.
#[derive(Debug, Default)]
struct Tally<'a> {
    away: Vec<&'a str>,
    unknown: i64,
    until: Option<Timestamp>,
}

impl Tally<'_> {
    fn of(zone: &CountedZone<'_>) -> Self {
        let listed = i64::try_from(zone.pods.len()).unwrap_or(i64::MAX);
        Self {
            unknown: (zone.asked.max(zone.are) - listed).max(0),
            ..Self::default()
        }
    }

    fn wait(&mut self, until: Option<Timestamp>) {
        self.until = match (self.until, until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn limited(self, limit: i64, place: &str) -> Result<(), Denial> {
        let not_ready = i64::try_from(self.away.len()).unwrap_or(i64::MAX);
        if not_ready.saturating_add(self.unknown) < limit {
            return Ok(());
        }
        let of = |number: i64, what: &str| match number {
            0 => None,
            1 => Some(format!("1 pod {what}")),
            _ => Some(format!("{number} pods {what}")),
        };
        let parts = [of(not_ready, "not ready"), of(self.unknown, "unknown")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        Err(Denial {
            until: self.until,
            away: self.away.iter().map(|name| (*name).to_owned()).collect(),
            ..Denial::new(Outcome::Denied, format!("{} in {place}", parts.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests;
