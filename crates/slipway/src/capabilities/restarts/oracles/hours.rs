//! R10 to R13: when restarts begin. By the policies that they were decided on, as far as the operator had seen them, and by the date
//! that the restart bears, which is the operator's clock; and by the true time at which it was sent, up to what clocks may be off.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use slipway_api::names::RESTART_INTERVAL;
use slipway_sim::history::{History, Object};
use slipway_sim::oracles::workload::{name, restarts};
use slipway_sim::oracles::{Case, Findings, time};

use super::calendar::{Hours, Times};
use super::policy::{self, Policy};
use super::{acting, last_restart, signed, slack};

/// How long after it was decided on a restart may be sent: a plan has many steps, and each waits for the one before.
const SENT_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Looks at each restart whose policies all have something to say about when: one of them must allow it, at the restart's own date
/// and at some moment around the sending.
fn allowed(
    case: &Case<'_>,
    what: &str,
    says: fn(&Policy) -> bool,
    allows: fn(&Hours, Timestamp) -> bool,
) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let slack = slack(history) + SENT_WITHIN;
    for touch in restarts(history) {
        let policies = acting(history, &touch);
        let Some(dated) = time(touch.restarted_at()) else {
            continue;
        };
        let is_unsteady = |policy: &Policy| policy.hours.is_unsteady(dated);
        if policies.is_empty() || !policies.iter().all(says) || policies.iter().any(is_unsteady) {
            continue;
        }
        let at = touch.change.at;
        let is_allowed = |at| policies.iter().any(|policy| allows(&policy.hours, at));
        findings.check(at, is_allowed(dated), || {
            format!(
                "{} was restarted at {dated}, {what}",
                name(&touch.change.object)
            )
        });
        let sent = touch.request.at;
        let around = [
            sent.checked_sub(slack).unwrap_or(sent),
            sent,
            sent.checked_add(slack).unwrap_or(sent),
        ];
        findings.check(at, around.into_iter().any(is_allowed), || {
            format!(
                "{} was restarted at {dated}, sent at {sent}, {what}",
                name(&touch.change.object)
            )
        });
    }
    findings
}

/// R10.
pub(in super::super) fn windows(case: &Case<'_>) -> Findings {
    let says = |policy: &Policy| policy.hours.has_windows();
    allowed(case, "when no window was open", says, Hours::is_open)
}

/// R11.
pub(in super::super) fn excluded_days(case: &Case<'_>) -> Findings {
    let says = |policy: &Policy| policy.hours.has_excluded();
    allowed(case, "on a day that is excluded", says, Hours::is_free)
}

/// R12. Where an interval counts, R1 judges.
pub(in super::super) fn schedules(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for touch in restarts(case.history) {
        let policies = acting(case.history, &touch);
        let schedules: Vec<&Times> = policies
            .iter()
            .filter_map(|p| p.schedule.as_ref())
            .collect();
        let Some(dated) = time(touch.restarted_at()) else {
            continue;
        };
        let Some(last) = last_restart(touch.before, dated) else {
            continue;
        };
        if schedules.is_empty()
            || schedules.len() < policies.len()
            || touch.before.annotation(RESTART_INTERVAL).is_some()
            || schedules.iter().any(|times| times.is_unsteady(dated))
        {
            continue;
        }
        let is_due = schedules.iter().any(|times| times.has_between(last, dated));
        findings.check(touch.change.at, is_due, || {
            format!(
                "{} was restarted at {dated} after {last}, and its schedule has no time between",
                name(&touch.change.object)
            )
        });
    }
    findings
}

/// How long after it was due a workload was restarted.
struct Late<'a> {
    object: &'a Object,
    policy: String,
    jitter: SignedDuration,
    due: Timestamp,
    by: SignedDuration,
    at: Timestamp,
}

/// Restarts by a policy with jitter, and an interval.
fn late(history: &History) -> impl Iterator<Item = Late<'_>> {
    restarts(history).filter_map(move |touch| {
        let policies = acting(history, &touch);
        let [policy] = policies.as_slice() else {
            return None;
        };
        let interval = policy::interval(&[policy], touch.before)?;
        let dated = time(touch.restarted_at())?;
        let last = last_restart(touch.before, dated)?;
        let due = last.checked_add(signed(interval)).ok()?;
        (policy.jitter > Duration::ZERO).then(|| Late {
            object: &touch.change.object,
            policy: policy.name.clone(),
            jitter: signed(policy.jitter),
            due,
            by: dated.duration_since(due),
            at: touch.change.at,
        })
    })
}

/// Dates have whole seconds.
const ROUNDED: SignedDuration = SignedDuration::from_secs(2);
/// So many that are due at once cannot have drawn the same place by chance.
const CROWD: usize = 3;

/// R13. What went wrong may put a restart off, never bring it forward.
pub(in super::super) fn jitter(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    // A clock that is off from the beginning disturbs nothing else.
    let is_calm = !case.history.is_disturbed() && case.history.spells().next().is_none();
    let mut places: BTreeMap<&Object, SignedDuration> = BTreeMap::new();
    for one in case.reference.into_iter().flat_map(late) {
        let place = places.entry(one.object).or_insert(one.by);
        *place = one.by.min(*place);
    }
    let mut crowds: BTreeMap<(String, Timestamp), Vec<SignedDuration>> = BTreeMap::new();
    for one in late(case.history) {
        let what = || name(one.object);
        let place = *places.entry(one.object).or_insert(one.by);
        let is_early = one.by + ROUNDED + slack(case.history) < place;
        findings.check(one.at, !is_early, || {
            format!(
                "{}: {} after it was due, its place is {place}",
                what(),
                one.by
            )
        });
        if is_calm {
            findings.check(one.at, one.by <= one.jitter + ROUNDED, || {
                format!(
                    "{}: {} after it was due, the jitter is {}",
                    what(),
                    one.by,
                    one.jitter
                )
            });
            findings.check(one.at, one.by <= place + ROUNDED, || {
                format!(
                    "{}: {} after it was due, and {place} before that",
                    what(),
                    one.by
                )
            });
            crowds
                .entry((one.policy, one.due))
                .or_default()
                .push(one.by);
        }
    }
    for ((policy, due), places) in crowds.iter().filter(|(_, places)| places.len() >= CROWD) {
        let is_spread = places.iter().min() != places.iter().max();
        findings.check(case.history.end, is_spread, || {
            let count = places.len();
            format!("{policy}: all {count} that were due at {due} were restarted at once")
        });
    }
    findings
}
