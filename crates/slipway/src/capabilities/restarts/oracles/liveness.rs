//! L1 for restarts: what is due is done, or its own policy says why not.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::names::{LAST_RESTART, RESTART_NOT_BEFORE, RESTARTS_ENABLED};
use slipway_api::waiting::MAX_WAITING;
use slipway_sim::history::{History, Image, Object};
use slipway_sim::oracles::{Case, Findings, time, workload};
use slipway_sim::stage::NAMESPACE;

use super::last_restart;
use super::policy::{self, FLIPPERS, Policy};

/// How long after it is due, and after the last fault, a restart may take to begin.
const SOON: SignedDuration = SignedDuration::from_mins(8);
/// The `ConfigMap` in which the default criteria say what they wait for.
const STATUS_MAP: &str = "slipway-restarts";

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// L1. What is due is asked of the clocks of all replicas: nobody knows from outside who leads in the end.
pub(in super::super) fn nothing_left(case: &Case<'_>, findings: &mut Findings) {
    let history = case.history;
    let clocks = history.clocks(case.scenario.replicas.max(1));
    let policies = policy::at(history, u64::MAX);
    for (object, image) in history.last() {
        if workload::kind(&object.0).is_none() {
            continue;
        }
        let matching: Vec<&Policy> = policies
            .iter()
            .filter(|policy| policy.matches(object, image))
            .collect();
        if matching.is_empty() || !matching.iter().all(|policy| policy.acts) {
            continue;
        }
        let Some(interval) = policy::interval(&matching, image) else {
            continue;
        };
        let interval = SignedDuration::try_from(interval).unwrap_or(SignedDuration::MAX);
        let is_late = clocks.iter().all(|off| {
            let now = later(history.end, *off);
            let since = due(history, image, interval, now).max(later(history.calm, *off));
            !left_alone(object, image, now) && now.duration_since(since) > SOON
        });
        findings.check(
            history.end,
            !is_late || explained(history, &matching, object),
            || {
                let due = due(history, image, interval, history.end);
                format!(
                    "{} was due at {due} and nothing says why it waits",
                    workload::name(object)
                )
            },
        );
    }
}

/// When a workload is due, by a clock that shows `now`: what was never stamped for its stamp, and what was stamped in the
/// future an interval after that.
fn due(history: &History, image: &Image, interval: SignedDuration, now: Timestamp) -> Timestamp {
    let stamped = last_restart(image, now).or_else(|| time(image.annotation(LAST_RESTART)));
    match stamped {
        Some(last) => later(last, interval),
        None => time(image.text("/metadata/creationTimestamp")).unwrap_or(history.start),
    }
}

/// Whether it is plain from the workload itself that it is left alone.
fn left_alone(object: &Object, image: &Image, now: Timestamp) -> bool {
    let zero = &*object.0 != "apps/daemonsets" && workload::desired(object, image) == 0;
    zero || image.at("/spec/paused").and_then(Value::as_bool) == Some(true)
        || image.at("/metadata/deletionTimestamp").is_some()
        || image.annotation(RESTARTS_ENABLED) == Some("false")
        || time(image.annotation(RESTART_NOT_BEFORE)).is_some_and(|at| at > now)
}

/// Whether one of a workload's own policies says why it waits.
fn explained(history: &History, policies: &[&Policy], workload: &Object) -> bool {
    history
        .last()
        .into_iter()
        .any(|(object, image)| match &*object.0 {
            FLIPPERS => {
                let is_its_own = policies.iter().any(|policy| policy.is_of(object));
                let waiting = image.at("/status/waitingFor");
                is_its_own && says_why(waiting, ("Flipper", object), workload)
            }
            "/configmaps" => {
                let is_ours = &*object.1 == NAMESPACE && &*object.2 == STATUS_MAP;
                let status = image.text("/data/status");
                let status: Option<Value> = status.and_then(|s| serde_json::from_str(s).ok());
                let waiting = status.as_ref().and_then(|status| status.get("waitingFor"));
                let is_its_own = is_ours && policies.iter().any(|policy| policy.is_default());
                is_its_own && says_why(waiting, ("ConfigMap", object), workload)
            }
            _ => false,
        })
}

/// Whether a list of reasons has one for the policy as a whole, or one for this workload, or is full, so that there may be
/// more than it tells.
fn says_why(list: Option<&Value>, policy: (&str, &Object), workload: &Object) -> bool {
    let list = list.and_then(Value::as_array);
    let Some(list) = list else {
        return false;
    };
    let kind = workload::kind(&workload.0).unwrap_or_default();
    let sentence = format!("{} ", workload::name(workload));
    let mut reasons = list.iter();
    let is_told = reasons.any(|reason| {
        let text = |pointer: &str| reason.pointer(pointer).and_then(Value::as_str);
        let is_about = |(kind, object): (&str, &Object)| {
            text("/object/kind") == Some(kind)
                && text("/object/namespace") == Some(&*object.1)
                && text("/object/name") == Some(&*object.2)
        };
        let is_named = text("/message").is_some_and(|said| said.starts_with(&sentence));
        is_about(policy) || is_about((kind, workload)) || is_named
    });
    is_told || list.len() >= MAX_WAITING
}
