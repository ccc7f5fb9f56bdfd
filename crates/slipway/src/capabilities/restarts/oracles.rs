//! R1–R5, R8: restarts. R9 is in `governed`, R10–R13 in `hours`.

mod calendar;
mod governed;
mod hours;
mod liveness;
pub(super) mod policy;

pub(super) use governed::by_default_only;
pub(super) use hours::{excluded_days, jitter, schedules, windows};
pub(super) use liveness::nothing_left;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::names::{
    DISRUPTION_CLAIM, LAST_RESTART, RESTART_NOT_BEFORE, RESTARTED_AT, RESTARTS_ENABLED,
};
use slipway_kernel::claim::Claim;

use slipway_sim::history::{Event, History, Image, Object};
use slipway_sim::oracles::workload::{self, Touch, name, restarts};
use slipway_sim::oracles::{Case, Findings, time};

use policy::Policy;

/// The acting policies that a restart was decided on and that match the workload.
fn acting(history: &History, touch: &Touch<'_>) -> Vec<Policy> {
    let mut found = policy::behind(history, touch.change, touch.request);
    found.retain(|policy| policy.acts && policy.matches(&touch.change.object, touch.before));
    found
}

/// Those of them that are of restarts.
fn of_restarts(history: &History) -> impl Iterator<Item = Touch<'_>> {
    workload::touches(history)
        .filter(|touch| touch.request.context.controller == slipway_restarts::NAME)
}

/// When a workload was last restarted, as its annotations say at a moment; what lies in the future does not count.
fn last_restart(image: &Image, now: Timestamp) -> Option<Timestamp> {
    let stamp = time(image.annotation(LAST_RESTART)).filter(|at| *at <= now);
    let template = time(image.template_annotation(RESTARTED_AT)).filter(|at| *at <= now);
    stamp.max(template)
}

fn signed(duration: std::time::Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// By how much true time may fall short of what the annotations say: stamps are rounded, and clocks wrong.
fn slack(history: &History) -> SignedDuration {
    SignedDuration::from_secs(1) + signed(history.skew) * 2
}

/// R1. By the annotations exactly; by the time of the requests up to the rounding of stamps and the skew of clocks.
pub(super) fn interval(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let slack = slack(history);
    // When each was sent and when it arrived.
    let mut sends: BTreeMap<&str, (Timestamp, Timestamp)> = BTreeMap::new();
    for touch in restarts(history) {
        let change = touch.change;
        let what = || name(&change.object);
        let policies = acting(history, &touch);
        let matching: Vec<&Policy> = policies.iter().collect();
        let least = policy::interval(&matching, touch.before).map(signed);
        let Some(value) = time(touch.restarted_at()) else {
            findings.check(change.at, false, || {
                format!("{}: restartedAt is no time", what())
            });
            continue;
        };
        let last = last_restart(touch.before, value);
        findings.check(change.at, last.is_some(), || {
            format!("{}: restarted although it was never stamped", what())
        });
        if let (Some(last), Some(least)) = (last, least) {
            let passed = value.duration_since(last);
            findings.check(change.at, passed >= least, || {
                format!(
                    "{}: restarted {passed} after {last}, the interval is {least}",
                    what()
                )
            });
        }
        // When it was sent: a request of a process that died may arrive later.
        let sent = touch.request.at;
        let uid = touch.after.text("/metadata/uid").unwrap_or_default();
        let before = sends.insert(uid, (sent, change.at));
        // What was put back has not been restarted.
        let before = before.filter(|before| !history.is_taken_back(*before, sent));
        if let (Some((before, _)), Some(least)) = (before, least) {
            let passed = sent.duration_since(before);
            findings.check(change.at, passed + slack >= least, || {
                format!(
                    "{}: restarted twice within {passed}, the interval is {least}",
                    what()
                )
            });
        }
    }
    findings
}

/// R2. Restarted and not yet done, at the moment of the next restart.
pub(super) fn concurrency(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let mut rolling: BTreeMap<&Object, &Image> = BTreeMap::new();
    let touches: BTreeMap<u64, Touch<'_>> =
        restarts(history).map(|t| (t.change.version, t)).collect();
    let workloads = history
        .changes
        .iter()
        .filter(|change| workload::kind(&change.object.0).is_some());
    for change in workloads {
        let Some(after) = change.after.as_deref() else {
            rolling.remove(&change.object);
            continue;
        };
        if let Some(touch) = touches.get(&change.version) {
            let policies = policy::behind(history, change, touch.request);
            let only = |object: &Object, image: &Image| {
                let mut matching = policies.iter().filter(|p| p.matches(object, image));
                matching.next().filter(|_| matching.next().is_none())
            };
            rolling.insert(&change.object, after);
            // Where policies overlap, which one counts is the planner's business.
            if let Some(policy) = only(&change.object, after)
                && let Some(most) = policy.max_concurrent
            {
                let of_policy = rolling.iter().filter(|(object, image)| {
                    only(object, image).is_some_and(|p| p.name == policy.name)
                });
                let count = i64::try_from(of_policy.count()).unwrap_or(i64::MAX);
                findings.check(change.at, count <= most, || {
                    let names: Vec<String> = rolling.keys().map(|o| name(o)).collect();
                    format!(
                        "{}: {count} roll at once, {most} may: {}",
                        policy.name,
                        names.join(", ")
                    )
                });
            }
        } else if rolling.contains_key(&change.object) {
            if workload::is_observed(after) && workload::is_complete(&change.object, after) {
                rolling.remove(&change.object);
            } else {
                rolling.insert(&change.object, after);
            }
        }
    }
    findings
}

/// R3. The precondition makes the object before the restart the one that was decided on.
pub(super) fn gates(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for touch in restarts(case.history) {
        let (change, before) = (touch.change, touch.before);
        let now = time(touch.restarted_at()).unwrap_or(change.at);
        let policies = acting(case.history, &touch);
        let patient = policies.iter().any(|policy| !policy.ignores_rollouts);
        let rolling = patient
            && workload::is_observed(before)
            && !workload::is_complete(&change.object, before);
        let later = time(before.annotation(RESTART_NOT_BEFORE)).is_some_and(|at| at > now);
        let claim = before.annotation(DISRUPTION_CLAIM);
        let claimed = claim
            .and_then(|text| Claim::read(text, now))
            .is_some_and(|claim| claim.holder != slipway_restarts::NAME);
        let zero = &*change.object.0 != "apps/daemonsets"
            && workload::desired(&change.object, before) == 0;
        let reasons = [
            (policies.is_empty(), "no acting policy matches it"),
            (rolling, "it was rolling or not available"),
            (
                before.at("/spec/paused").and_then(Value::as_bool) == Some(true),
                "it was paused",
            ),
            (zero, "it had no replicas"),
            (
                before.at("/metadata/deletionTimestamp").is_some(),
                "it was being deleted",
            ),
            (
                before.annotation(RESTARTS_ENABLED) == Some("false"),
                "it had opted out",
            ),
            (later, "its time had not come"),
            (claimed, "somebody else had claimed it"),
            (
                policies.iter().all(|p| p.respects_budgets) && exhausted(case.history, &touch),
                "its disruption budget was used up",
            ),
        ];
        for (holds, reason) in reasons {
            findings.check(change.at, !holds, || {
                format!("{} was restarted although {reason}", name(&change.object))
            });
        }
    }
    findings
}

/// Whether a budget over the workload's pods allowed nothing, as far as the operator had seen.
fn exhausted(history: &History, touch: &Touch<'_>) -> bool {
    let basis = &touch.request.context.basis;
    let seen = basis.get("poddisruptionbudgets").copied();
    let version = seen.unwrap_or(touch.change.version - 1);
    let labels = touch.before.at("/spec/template/metadata/labels");
    let budgets = history.states("policy/poddisruptionbudgets", version);
    budgets.iter().any(|(object, image)| {
        let selector = image.at("/spec/selector/matchLabels");
        let pairs = selector.and_then(Value::as_object);
        object.1 == touch.change.object.1
            && pairs.is_some_and(|pairs| {
                pairs
                    .iter()
                    .all(|(key, value)| labels.and_then(|l| l.get(key)) == Some(value))
            })
            && image.number("/status/observedGeneration") > 0
            && image.number("/status/disruptionsAllowed") == 0
    })
}

/// R4. The operator comes back after more than an interval.
pub(super) fn downtime(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let starts = history.marks.iter().filter_map(|mark| match &mark.what {
        Event::Started(_) => Some(mark.at),
        _ => None,
    });
    for start in starts {
        let mut counts: BTreeMap<&Object, u32> = BTreeMap::new();
        let before = history.requests.iter().rfind(|r| r.at < start);
        let gap = start.duration_since(before.map_or(history.start, |r| r.at));
        for touch in restarts(history).filter(|t| t.change.at >= start) {
            let policies = acting(history, &touch);
            let matching: Vec<&Policy> = policies.iter().collect();
            let Some(least) = policy::interval(&matching, touch.before).map(signed) else {
                continue;
            };
            let passed = touch.change.at.duration_since(start) + slack(history);
            let at = touch.change.at;
            let is_undone = history.is_taken_back((at, at), history.end);
            if gap < least || passed >= least || is_undone {
                continue;
            }
            let count = counts.entry(&touch.change.object).or_default();
            *count += 1;
            findings.check(touch.change.at, *count <= 1, || {
                format!(
                    "{}: {count} restarts after a downtime of {gap}",
                    name(&touch.change.object)
                )
            });
        }
    }
    findings
}

/// What the API server itself counts up when a `DaemonSet`'s template changes.
const COUNTED: &str = "deprecated.daemonset.template.generation";

/// R5.
pub(super) fn smallest_change(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for touch in of_restarts(case.history) {
        let change = touch.change;
        let mut before = touch.before.value().clone();
        let mut after = touch.after.value().clone();
        for value in [&mut before, &mut after] {
            strip(value, "/spec/template/metadata", &[RESTARTED_AT]);
            strip(
                value,
                "/metadata",
                &[LAST_RESTART, DISRUPTION_CLAIM, COUNTED],
            );
            if let Some(metadata) = value
                .pointer_mut("/metadata")
                .and_then(Value::as_object_mut)
            {
                for field in ["resourceVersion", "generation", "managedFields"] {
                    metadata.remove(field);
                }
            }
        }
        findings.check(change.at, before == after, || {
            format!(
                "{}: more was changed than the annotations of a restart",
                name(&change.object)
            )
        });
        let stamp = touch.after.annotation(LAST_RESTART);
        let value = touch.restarted_at();
        findings.check(change.at, value.is_none() || value == stamp, || {
            format!(
                "{}: restarted at {value:?} and stamped {stamp:?}",
                name(&change.object)
            )
        });
    }
    findings
}

/// Takes annotations away, and the map when it is empty.
fn strip(object: &mut Value, metadata: &str, keys: &[&str]) {
    let Some(metadata) = object.pointer_mut(metadata).and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(annotations) = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    {
        for key in keys {
            annotations.remove(*key);
        }
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// R8. A stamp has whole seconds, rounded down.
pub(super) fn dates(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let skew = signed(case.history.skew);
    for touch in of_restarts(case.history) {
        let written = [
            touch.restarted_at(),
            touch
                .after
                .annotation(LAST_RESTART)
                .filter(|stamp| Some(*stamp) != touch.before.annotation(LAST_RESTART)),
        ];
        for value in written.into_iter().flatten() {
            let at = time(Some(value));
            let latest = touch.change.at.checked_add(skew).unwrap_or(Timestamp::MAX);
            findings.check(touch.change.at, at.is_some_and(|at| at <= latest), || {
                format!(
                    "{}: dated {value}, it is {}",
                    name(&touch.change.object),
                    touch.change.at
                )
            });
        }
    }
    findings
}
