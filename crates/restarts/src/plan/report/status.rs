//! The status of a policy, as kstatus, Helm and people read it.
//!
//! `Ready` says that the policy is followed and nothing is wrong; that workloads wait for their turn is not wrong.
//! `Reconciling` and `Stalled` are there only while they are true. Lists are short and in the order of names, so that
//! nothing is written when nothing has changed.

mod invalid;

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::flipper::{Failure, FlipperStatus, MAX_LISTED};
use slipway_kernel::condition::{self, PROGRESSING, READY, RECONCILING, STALLED};
use slipway_kernel::{Blocker, blocker};

use super::map;
use crate::observe::{Flipper, Item, World, reference};
use crate::plan::MAX_STEPS;
use crate::plan::active::{Active, Finder};
use crate::plan::sweep::{Outcome, Sweep, Tally};
use crate::reasons::{Reason, state};
use crate::settings::{Scope, Settings};

/// Whether the spec can be followed.
pub(super) const ACCEPTED: &str = "Accepted";
/// Whether another policy decides about some workloads.
pub(super) const OVERLAPS: &str = "Overlaps";

/// How many failures a status carries at most, and how long a message may be.
const MAX_FAILURES: usize = 8;
const LONGEST_MESSAGE: usize = 256;

/// The status as stored; what cannot be read counts as absent.
pub(super) fn stored(flipper: &Item<Flipper>) -> FlipperStatus {
    use serde::Deserialize;
    FlipperStatus::deserialize(&flipper.body().status).unwrap_or_default()
}

struct Conditions {
    status: FlipperStatus,
    generation: i64,
    now: Timestamp,
}

impl Conditions {
    fn set(&mut self, kind: &str, status: bool, reason: &str, message: &str) {
        let (generation, now) = (self.generation, self.now);
        let all = &mut self.status.conditions;
        condition::set(all, kind, status, reason, message, generation, now);
    }

    /// For conditions that are there only while they are true.
    fn set_while(&mut self, kind: &str, status: bool, reason: &str, message: &str) {
        if status {
            self.set(kind, true, reason, message);
        } else {
            condition::clear(&mut self.status.conditions, kind);
        }
    }
}

/// The status of the Flipper at this place.
pub(super) fn of_policy(
    settings: &Settings,
    world: &World,
    active: &[Active<'_>],
    sweep: &Sweep<'_>,
    place: usize,
    blockers: &[Blocker],
    now: Timestamp,
) -> FlipperStatus {
    let (Some(policy), Some(tally)) = (active.get(place), sweep.tallies.get(place)) else {
        return FlipperStatus::default();
    };
    let before = policy.flipper.map_or_else(|| map::stored(world), stored);
    let generation = policy
        .flipper
        .map_or(0, |flipper| flipper.meta().generation);
    let count = |number: usize| Some(i64::try_from(number).unwrap_or(i64::MAX));
    if let (Some(flipper), Some(invalid)) = (policy.flipper, policy.invalid) {
        let mut made = invalid::status(flipper, &invalid.to_string(), blockers, now);
        made.matched = count(tally.matched);
        made.workloads = listed(world, tally);
        return made;
    }
    let next = tally.next.and_then(|at| policy.policy.calendar.opening(at));
    let last = tally.last.map(Time);
    let mut made = Conditions {
        status: FlipperStatus {
            observed_generation: policy.flipper.map(|_| generation),
            conditions: before.conditions,
            matched: count(tally.matched),
            workloads: listed(world, tally),
            would_restart: would_restart(world, sweep, place),
            pending: count(tally.pending),
            in_progress: count(tally.in_progress),
            skipped: count(tally.skipped),
            last_restart: last,
            next_restart: next.filter(|_| !policy.policy.suspended).map(Time),
            waiting_for: blocker::waiting_for(blockers, &before.waiting_for),
            failures: failures(settings, world, active, place),
        },
        generation,
        now,
    };
    accepted(&mut made, settings, policy);
    overlaps(&mut made, active, tally);
    ready(&mut made, policy, tally);
    progressing(&mut made, tally);
    made.set_while(STALLED, false, "", "");
    made.status
}

/// The first workloads of a policy, by name.
fn listed(world: &World, tally: &Tally) -> Vec<String> {
    let of = |at: &usize| world.workloads.get(*at);
    let workloads = tally.listed.iter().filter_map(of);
    workloads
        .map(|(kind, item)| reference(&world.cluster, *kind, item).to_string())
        .collect()
}

/// The first workloads that a dry run would restart.
fn would_restart(world: &World, sweep: &Sweep<'_>, place: usize) -> Vec<String> {
    let is_dry = |outcome: &Outcome| match outcome {
        Outcome::Held(held) => matches!(held.reason, Reason::DryRun | Reason::NeverRestarted),
        _ => false,
    };
    let cases = sweep.cases.iter();
    cases
        .filter(|case| case.place == place && is_dry(&case.outcome))
        .take(MAX_LISTED)
        .map(|case| reference(&world.cluster, case.kind, case.item).to_string())
        .collect()
}

fn accepted(made: &mut Conditions, settings: &Settings, policy: &Active<'_>) {
    let often = policy.often();
    let is_unreachable = policy.namespaces.as_ref().is_some_and(BTreeSet::is_empty);
    let is_narrow = settings.scope == Scope::OwnNamespace;
    let beyond = policy.out_of_reach();
    let (reason, message) = if is_narrow && is_unreachable {
        let message = "a Flipper reaches its own namespace only, and that is not among match.namespaces or is protected";
        (state::OUT_OF_SCOPE, message.to_owned())
    } else if is_narrow && !beyond.is_empty() {
        let message = format!(
            "workloads are restarted {often}, but not in {}: a Flipper reaches its own namespace only",
            beyond.join(", ")
        );
        (state::OUT_OF_SCOPE, message)
    } else if policy.policy.is_interval_defaulted {
        let message = format!("spec.interval is absent or zero; workloads are restarted {often}");
        (state::INTERVAL_DEFAULTED, message)
    } else if policy.is_raised {
        let message = format!(
            "spec.interval is below the least that is allowed; workloads are restarted {often}"
        );
        (state::INTERVAL_RAISED, message)
    } else {
        (state::ACCEPTED, format!("workloads are restarted {often}"))
    };
    made.set(ACCEPTED, !(is_narrow && is_unreachable), reason, &message);
}

fn overlaps(made: &mut Conditions, active: &[Active<'_>], tally: &Tally) {
    let names: Vec<String> = tally
        .overruled_by
        .iter()
        .filter_map(|place| Some(active.get(*place)?.name()))
        .collect();
    let shown = names.iter().take(MAX_FAILURES).cloned().collect::<Vec<_>>();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "some workloads are matched by {}{more} as well, and decided there",
        shown.join(", ")
    );
    made.set_while(OVERLAPS, !names.is_empty(), state::OVERRULED, &message);
}

fn ready(made: &mut Conditions, policy: &Active<'_>, tally: &Tally) {
    let of = |reason: Reason| tally.reasons.get(&reason).copied().unwrap_or_default();
    let (refused, failed) = (of(Reason::RefusedByApi), of(Reason::RolloutFailed));
    let is_adopting = tally.unstamped > MAX_STEPS;
    let adopting = format!(
        "{} are still to be stamped for the first time",
        tally.unstamped
    );
    let (status, reason, message) = if refused > 0 {
        let message = format!("the API refused to let {refused} be written: see failures");
        (false, state::REFUSED, message)
    } else if failed > 0 {
        let message = format!("{failed} due, whose last rollout did not finish: see waitingFor");
        (false, state::ROLLOUT_FAILED, message)
    } else if is_adopting {
        (false, state::ADOPTING, adopting.clone())
    } else if policy.policy.suspended {
        (
            true,
            state::SUSPENDED,
            "nothing is restarted while spec.suspend is true".to_owned(),
        )
    } else {
        let message = format!("{} matched, restarted {}", tally.matched, policy.often());
        (true, state::WATCHING, message)
    };
    made.set(READY, status, reason, &message);
    made.set_while(RECONCILING, is_adopting, state::ADOPTING, &adopting);
}

fn progressing(made: &mut Conditions, tally: &Tally) {
    let (status, reason, message) = if tally.in_progress > 0 {
        let message = format!("{} rolling, {} waiting", tally.in_progress, tally.pending);
        (true, state::RESTARTING, message)
    } else if tally.pending > 0 {
        let message = format!("{} due and waiting: see waitingFor", tally.pending);
        (false, state::WAITING, message)
    } else {
        (false, state::IDLE, "nothing is due".to_owned())
    };
    made.set(PROGRESSING, status, reason, &message);
}

/// The refused writes to workloads of this policy.
fn failures(
    settings: &Settings,
    world: &World,
    active: &[Active<'_>],
    place: usize,
) -> Vec<Failure> {
    if world.refusals.is_empty() {
        return Vec::new();
    }
    let mut finder = Finder::new(settings, active);
    let refused = world.workloads.iter().filter_map(|(kind, item)| {
        let object = reference(&world.cluster, *kind, item);
        let refusal = world.refusals.get(&object)?;
        Some((*kind, item, object, refusal))
    });
    refused
        .filter(|(kind, item, _, _)| finder.find(*kind, item).first() == Some(&place))
        .take(MAX_FAILURES)
        .map(|(_, _, object, refusal)| Failure {
            workload: object.to_string(),
            reason: refusal.reason.clone(),
            message: refusal.message.chars().take(LONGEST_MESSAGE).collect(),
            attempts: i64::from(refusal.attempts),
            retry_at: Time(refusal.retry_at),
        })
        .collect()
}
