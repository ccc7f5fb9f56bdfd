//! L1 for restarts: what is due is done, or somebody says why not.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::names::{RESTART_NOT_BEFORE, RESTARTS_ENABLED};
use slipway_sim::history::{History, Image, Object};
use slipway_sim::oracles::{Case, Findings, time, workload};
use slipway_sim::stage::NAMESPACE;

use super::last_restart;
use super::policy::{self, FLIPPERS, Policy};

/// How long after it is due, and after the last fault, a restart may take to begin.
const SOON: SignedDuration = SignedDuration::from_mins(8);

/// L1.
pub(in super::super) fn nothing_left(case: &Case<'_>, findings: &mut Findings) {
    let history = case.history;
    let end = history.end;
    let policies = policy::at(history, u64::MAX);
    for (object, image) in history.last() {
        if workload::kind(&object.0).is_none() || left_alone(object, image, end) {
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
        let last = last_restart(image, end);
        let created = time(image.text("/metadata/creationTimestamp"));
        // What was never stamped is due for its stamp.
        let due = match last {
            Some(last) => last.checked_add(interval).unwrap_or(Timestamp::MAX),
            None => created.unwrap_or(history.start),
        };
        let since = due.max(history.calm);
        let late = end.duration_since(since);
        findings.check(end, late <= SOON || explained(history), || {
            format!(
                "{} was due at {due} and nothing says why it waits",
                workload::name(object)
            )
        });
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

/// Whether a status of ours says what is waited for.
fn explained(history: &History) -> bool {
    history
        .last()
        .iter()
        .any(|(object, image)| match &*object.0 {
            FLIPPERS => {
                let waiting = image.at("/status/waitingFor").and_then(Value::as_array);
                waiting.is_some_and(|list| !list.is_empty())
            }
            "/configmaps" => {
                let data = image.at("/data").map(Value::to_string).unwrap_or_default();
                &*object.1 == NAMESPACE && data.contains("waitingFor")
            }
            _ => false,
        })
}
