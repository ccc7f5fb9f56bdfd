//! Which of several policies decides about a workload that all of them match.
//!
//! One that acts comes before one that only reports. Then the more specific one: labels and namespaces before one of
//! them before neither. Then the shorter interval, any interval before a schedule; then the older Flipper, then namespace and name.
//! The winner alone decides: its interval, windows, limits and suspension hold as if there were no other, so an
//! overlap never brings a restart earlier than the winner alone would.
//!
//! A policy that cannot be followed keeps its place, and holds what it matches: a mistake in a Flipper never hands its
//! workloads to one that restarts them more often, nor to the default criteria.

use std::time::Duration;

use jiff::Timestamp;

use crate::due::Cadence;
use crate::policy::{Invalid, Policy};

/// The place of a policy: the smallest wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    is_a_guess: bool,
    only_reports: bool,
    vagueness: usize,
    interval: Duration,
    created: Option<Timestamp>,
    namespace: String,
    name: String,
}

impl Rank {
    /// The place of the policy of the Flipper with this age and name.
    pub fn of(policy: &Policy, created: Option<Timestamp>, namespace: &str, name: &str) -> Self {
        Self {
            is_a_guess: false,
            only_reports: policy.dry_run,
            vagueness: usize::from(policy.labels.is_empty())
                + usize::from(policy.namespaces.is_empty()),
            interval: match policy.cadence {
                Cadence::Every(interval) => interval,
                Cadence::At(_) => Duration::MAX,
            },
            created,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The place of a policy that cannot be followed and only holds: as far to the front as what can be read of it may
    /// have been, but behind all others if nobody knows what it matches.
    pub fn of_invalid(
        invalid: &Invalid,
        created: Option<Timestamp>,
        namespace: &str,
        name: &str,
    ) -> Self {
        let mut rank = Self::of(&invalid.policy, created, namespace, name);
        if !invalid.is_cadence_known {
            rank.interval = Duration::ZERO;
        }
        rank.is_a_guess = !invalid.is_match_known;
        rank
    }
}
