//! Which policies are about a workload, found without trying each of them.
//!
//! Labels: at least one pair of the policy is on the workload itself, value and all; none in the policy fits any
//! workload. Namespaces: one of them; none fits any. Both must fit, and the kind.

use std::collections::{BTreeMap, BTreeSet};

use slipway_api::flipper::WorkloadKind;

use crate::policy::Policy;

/// Policies by label, each by its place in the order of precedence.
#[derive(Debug, Default)]
struct Labelled<'a> {
    any: Vec<usize>,
    by_label: BTreeMap<&'a str, BTreeMap<&'a str, Vec<usize>>>,
}

impl<'a> Labelled<'a> {
    fn insert(&mut self, place: usize, labels: &'a BTreeMap<String, String>) {
        if labels.is_empty() {
            self.any.push(place);
        }
        for (key, value) in labels {
            self.by_label
                .entry(key)
                .or_default()
                .entry(value)
                .or_default()
                .push(place);
        }
    }

    fn find(&self, labels: &BTreeMap<String, String>, found: &mut Vec<usize>) {
        found.extend(&self.any);
        if self.by_label.is_empty() {
            return;
        }
        for (key, value) in labels {
            let places = self
                .by_label
                .get(key.as_str())
                .and_then(|values| values.get(value.as_str()));
            found.extend(places.into_iter().flatten());
        }
    }
}

/// All policies, ready to be asked.
#[derive(Debug, Default)]
pub struct Matcher<'a> {
    anywhere: Labelled<'a>,
    by_namespace: BTreeMap<&'a str, Labelled<'a>>,
    kinds: Vec<&'a BTreeSet<WorkloadKind>>,
    protected: BTreeSet<&'a str>,
}

impl<'a> Matcher<'a> {
    /// A matcher over policies in order of precedence, each with the namespaces that it reaches (none for all).
    pub fn new(
        policies: impl IntoIterator<Item = (&'a Policy, Option<&'a BTreeSet<String>>)>,
        protected: &'a BTreeSet<String>,
    ) -> Self {
        let mut matcher = Self {
            protected: protected.iter().map(String::as_str).collect(),
            ..Self::default()
        };
        for (place, (policy, namespaces)) in policies.into_iter().enumerate() {
            matcher.kinds.push(&policy.kinds);
            match namespaces {
                None => matcher.anywhere.insert(place, &policy.labels),
                Some(namespaces) => {
                    for namespace in namespaces {
                        matcher
                            .by_namespace
                            .entry(namespace)
                            .or_default()
                            .insert(place, &policy.labels);
                    }
                }
            }
        }
        matcher
    }

    /// The places of the policies that match, the winner first. `found` is overwritten.
    pub fn find(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        found: &mut Vec<usize>,
    ) {
        found.clear();
        if let Some(labelled) = self.by_namespace.get(namespace) {
            labelled.find(labels, found);
        }
        if !self.protected.contains(namespace) {
            self.anywhere.find(labels, found);
        }
        found.retain(|place| self.kinds.get(*place).is_some_and(|k| k.contains(&kind)));
        found.sort_unstable();
        found.dedup();
    }
}
