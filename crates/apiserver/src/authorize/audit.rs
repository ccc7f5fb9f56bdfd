//! What was allowed by which rule, and what was refused: for tests that hold a program's roles against its deeds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::{Attributes, Decision, RuleRef};

/// How many refusals are remembered; older ones are dropped.
const REMEMBERED: usize = 10_000;
/// How many different uses are counted; rules with `*` can allow any text as a resource.
const DISTINCT_USES: usize = 100_000;

/// What a rule was used for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The verb.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The resource, or the path of a request that is not about a resource.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
}

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Who asked.
    pub user: String,
    /// What for.
    pub what: Use,
    /// In which namespace.
    pub namespace: String,
    /// For which object.
    pub name: String,
}

/// The record of all decisions.
#[derive(Debug, Default)]
pub struct Audit {
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    allowed: BTreeMap<RuleRef, BTreeMap<Use, u64>>,
    distinct: usize,
    denied: VecDeque<Denied>,
}

impl Use {
    fn of(asked: &Attributes<'_>) -> Self {
        Self {
            verb: asked.verb.to_owned(),
            group: asked.group.to_owned(),
            resource: asked.path.unwrap_or(asked.resource).to_owned(),
            subresource: asked.subresource.to_owned(),
        }
    }
}

impl Audit {
    /// Writes a decision down. `system:masters` leaves no trace, as no rule was used.
    pub fn note(&self, asked: &Attributes<'_>, decision: &Decision) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if !decision.allowed {
            if record.denied.len() >= REMEMBERED {
                record.denied.pop_front();
            }
            record.denied.push_back(Denied {
                user: asked.user.name.clone(),
                what: Use::of(asked),
                namespace: asked.namespace.to_owned(),
                name: asked.name.to_owned(),
            });
        } else if let Some(rule) = &decision.rule {
            record.count(rule, Use::of(asked));
        }
    }

    /// How often each rule allowed what.
    pub fn allowed(&self) -> BTreeMap<RuleRef, BTreeMap<Use, u64>> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.allowed.clone()
    }

    /// How often the rule at `index` of `role` (`ClusterRole NAME`, `Role NAMESPACE/NAME`) was used, through any
    /// binding.
    pub fn uses(&self, role: &str, index: usize) -> u64 {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record
            .allowed
            .iter()
            .filter(|(rule, _)| rule.role == role && rule.index == index)
            .flat_map(|(_, uses)| uses.values())
            .sum()
    }

    /// The refused requests, oldest first.
    pub fn denied(&self) -> Vec<Denied> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.denied.iter().cloned().collect()
    }
}

impl Record {
    fn count(&mut self, rule: &RuleRef, what: Use) {
        if let Some(count) = self.allowed.get_mut(rule).and_then(|u| u.get_mut(&what)) {
            *count += 1;
        } else if self.distinct < DISTINCT_USES {
            self.distinct += 1;
            self.allowed
                .entry(rule.clone())
                .or_default()
                .insert(what, 1);
        }
    }
}
