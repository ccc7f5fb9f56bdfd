//! L1 for rollout groups: all pods are replaced, or the group says what it waits for.

use jiff::SignedDuration;
use serde_json::Value;
use slipway_api::zones::{PAUSED, ROLLOUT_GROUP};

use super::{MAPS, SETS, Scene, Zone, deletions, is_ready};
use slipway_sim::fault::EventFault;
use slipway_sim::history::{Event, History};
use slipway_sim::oracles::{Case, Findings};

/// How long after the last fault, and the last pod, a group may say nothing: where the operator may be waiting for somebody who
/// said "later", or has not noticed yet what it did not hear.
const SOON: SignedDuration = SignedDuration::from_mins(8);

/// The same where one request or one event went wrong, and it knows.
const AT_ONCE: SignedDuration = SignedDuration::from_secs(150);

/// How long after all was calm a group may say nothing in this run.
fn patience(history: &History) -> SignedDuration {
    if !history.is_disturbed() {
        // A run without faults has had the time that its scenario gives it.
        return SignedDuration::ZERO;
    }
    let mut faults: Vec<&str> = history.requests.iter().filter_map(|r| r.fault).collect();
    let mut is_lasting = false;
    for mark in &history.marks {
        match mark.what {
            Event::Watch(_, _, fault) => faults.push(fault),
            Event::Spell(_) | Event::Paused(..) | Event::CutOff(..) | Event::Restored => {
                is_lasting = true;
            }
            _ => {}
        }
    }
    let is_unheard = faults.contains(&EventFault::Drop.name());
    if is_lasting || is_unheard || faults.len() > 1 {
        SOON
    } else {
        AT_ONCE
    }
}

/// Whether the operator looks after zones at all here.
fn acts(case: &Case<'_>) -> bool {
    let named = case.scenario.settings.get("controllers");
    let named = named.and_then(Value::as_array).into_iter().flatten();
    named.into_iter().any(|name| name == "zones")
}

/// L1.
pub(in super::super) fn explained(case: &Case<'_>, findings: &mut Findings) {
    if !acts(case) {
        return;
    }
    let history = case.history;
    let end = Scene::at(history, u64::MAX);
    let last = deletions(history).last().map(|deletion| deletion.change.at);
    let since = history.calm.max(last.unwrap_or(history.start));
    if history.end.duration_since(since) < patience(history) {
        return;
    }
    for (object, set) in history.states(SETS, u64::MAX) {
        let Some(group) = set.label(ROLLOUT_GROUP) else {
            continue;
        };
        let zone = Zone { object, set };
        let is_paused = set.annotation(PAUSED) == Some("true");
        let late = |zone: &Zone<'_>| {
            let mut pods = end.pods_of(zone);
            pods.any(|(_, pod)| zone.is_outdated(pod) || !is_ready(pod))
        };
        findings.check(
            history.end,
            is_paused || !late(&zone) || waits(case, &object.1, group),
            || {
                format!(
                    "{} has pods to be replaced, and nothing says why not",
                    object.2
                )
            },
        );
    }
}

fn waits(case: &Case<'_>, namespace: &str, group: &str) -> bool {
    let maps = case.history.states(MAPS, u64::MAX);
    maps.into_iter().any(|(object, map)| {
        let status = map
            .text("/data/status")
            .and_then(|s| serde_json::from_str::<Value>(s).ok());
        let waiting = status
            .as_ref()
            .and_then(|s| s.get("waitingFor")?.as_array());
        &*object.1 == namespace
            && map.text("/data/group") == Some(group)
            && waiting.is_some_and(|list| !list.is_empty())
    })
}
