//! What zone-aware budgets say to the deletion of a pod by a rollout: the same questions as for an eviction, except that a
//! budget of zero means what the zone itself allows.
//!
//! It knows the zones of one group. A budget whose selector spans several groups is judged on the group's own zones.

use std::collections::BTreeSet;

use jiff::Timestamp;
use slipway_kernel::instant::later;
use slipway_kernel::store::Item;

use crate::observe::{Most, Partitions, Set, Terms, ZoneBudget};
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

/// Pods that are not ready, or not known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    not_ready: i64,
    unknown: i64,
    /// When the first of those that only need time has had it.
    until: Option<Timestamp>,
}

/// Asks the budgets, and remembers what they allowed.
#[derive(Debug)]
pub struct Guard<'a, 'w> {
    budgets: &'w [Item<ZoneBudget>],
    surveys: &'a [Survey<'w>],
    now: Timestamp,
    taken: BTreeSet<&'w str>,
}

impl<'a, 'w> Guard<'a, 'w> {
    /// A guard over the zones of a group.
    pub fn new(budgets: &'w [Item<ZoneBudget>], surveys: &'a [Survey<'w>], now: Timestamp) -> Self {
        Self {
            budgets,
            surveys,
            now,
            taken: BTreeSet::new(),
        }
    }

    /// Counts a pod as gone without asking.
    pub fn take(&mut self, member: &Member<'w>) {
        self.taken.insert(&member.pod.meta().uid);
    }

    /// Asks whether a pod of this zone may go.
    pub fn ask(&mut self, zone: &Survey<'w>, member: &Member<'w>) -> Result<(), Denial> {
        let labels = &member.pod.body().labels;
        let mut all = self.budgets.iter().filter(|b| b.body().selects(labels));
        let Some(budget) = all.next() else {
            return Ok(());
        };
        if all.next().is_some() {
            return Err(Denial {
                budget: None,
                message: "multiple zoned pod disruption budgets found for pod".to_owned(),
                until: None,
            });
        }
        self.judge(budget.body(), zone, member)
            .map_err(|(message, until)| Denial {
                budget: Some(budget.meta().name.clone()),
                message,
                until,
            })?;
        self.take(member);
        Ok(())
    }

    fn judge(
        &self,
        budget: &ZoneBudget,
        zone: &Survey<'w>,
        member: &Member<'w>,
    ) -> Result<(), (String, Option<Timestamp>)> {
        let plain = |message: String| (message, None);
        let terms = budget
            .terms
            .as_ref()
            .map_err(|problem| plain(format!("the budget is invalid: {problem}")))?;
        let most = most(terms, zone.set());
        let is_covered = |survey: &&Survey<'w>| budget.selects(&survey.set().labels);
        if self.surveys.iter().filter(is_covered).count() <= 1 {
            return Err(plain("minimum number of StatefulSets not found".to_owned()));
        }
        let others = || {
            let own = zone.name();
            let covered = self.surveys.iter().filter(is_covered);
            covered.filter(move |survey| survey.name() != own)
        };
        let Some(partitions) = &terms.partitions else {
            for other in others() {
                let count = self.zone_count(other, member);
                if count.not_ready + count.unknown > 0 {
                    return Err(count.denial(other.name()));
                }
            }
            let own = self.zone_count(zone, member);
            return own.limited(most, zone.name());
        };
        let partition = partitions.of(&member.pod.meta().name).ok_or_else(|| {
            plain("failed to extract partition from pod Name regular expression".to_owned())
        })?;
        let mut sum = Count::default();
        for other in others() {
            sum.add(self.partition_count(other, terms, partitions, partition));
        }
        sum.limited(most, &format!("partition {partition}"))
    }

    /// What is wrong in a whole zone, the pod in question aside.
    fn zone_count(&self, zone: &Survey<'w>, but: &Member<'w>) -> Count {
        let uid = &but.pod.meta().uid;
        let others = zone.members.iter().filter(|m| m.pod.meta().uid != *uid);
        let bad = others.filter(|m| !m.health.is_ready() || self.is_taken(m));
        Count {
            not_ready: i64::try_from(bad.count()).unwrap_or(i64::MAX),
            unknown: unknown(zone),
            until: None,
        }
    }

    /// What is wrong in one partition of another zone.
    fn partition_count(
        &self,
        zone: &Survey<'w>,
        terms: &Terms,
        partitions: &Partitions,
        partition: &str,
    ) -> Count {
        let mut count = Count {
            unknown: unknown(zone),
            ..Count::default()
        };
        let mut found = false;
        for member in &zone.members {
            if partitions.of(&member.pod.meta().name) != Some(partition) {
                continue;
            }
            found = true;
            let free = member.pod.body().ready_since;
            let free = free.and_then(|since| later(since, terms.delay));
            let rests = !terms.delay.is_zero() && free.is_none_or(|free| self.now <= free);
            if !member.health.is_ready() || self.is_taken(member) {
                count.not_ready += 1;
            } else if rests {
                count.not_ready += 1;
                // It is not enough that the moment has come: it must have passed.
                let past = free.and_then(|free| later(free, std::time::Duration::from_millis(1)));
                count.until = earliest(count.until, past);
            }
        }
        if !found && count.unknown == 0 {
            count.unknown = 1;
        }
        count
    }

    fn is_taken(&self, member: &Member<'_>) -> bool {
        self.taken.contains(member.pod.meta().uid.as_str())
    }
}

impl Count {
    fn add(&mut self, other: Self) {
        self.not_ready += other.not_ready;
        self.unknown += other.unknown;
        self.until = earliest(self.until, other.until);
    }

    fn limited(self, most: i64, place: &str) -> Result<(), (String, Option<Timestamp>)> {
        if self.not_ready + self.unknown >= most {
            Err(self.denial(place))
        } else {
            Ok(())
        }
    }

    /// `2 pods not ready, 1 pod unknown in X`.
    fn denial(self, place: &str) -> (String, Option<Timestamp>) {
        let of = |number: i64, what: &str| match number {
            0 => None,
            1 => Some(format!("1 pod {what}")),
            _ => Some(format!("{number} pods {what}")),
        };
        let parts = [of(self.not_ready, "not ready"), of(self.unknown, "unknown")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let parts = if parts.is_empty() {
            "max unavailable = 0".to_owned()
        } else {
            parts.join(", ")
        };
        (format!("{parts} in {place}"), self.until)
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Pods of a zone that should be there and have not been seen.
fn unknown(zone: &Survey<'_>) -> i64 {
    let set = zone.set();
    let members = i64::try_from(zone.members.len()).unwrap_or(i64::MAX);
    (set.status.replicas.max(set.desired()) - members).max(0)
}

/// How many pods may be unavailable; where a budget says none, a rollout goes by the zone, and by one in partitions.
fn most(terms: &Terms, set: &Set) -> i64 {
    let most = match terms.most {
        Most::Pods(pods) => pods,
        Most::Percent(percent) => {
            let replicas = set.desired().min(set.status.replicas);
            if percent == 0 || replicas == 0 {
                0
            } else {
                (percent * replicas / 100).max(1)
            }
        }
    };
    match (most, &terms.partitions) {
        (0, Some(_)) => 1,
        (0, None) => set.most_unavailable(),
        _ => most,
    }
}
