//! G1–G5, G11: what holds for all writes of the operator.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::names::FIELD_MANAGER;

use super::specifics::{is_own_map, is_own_name};
use super::{Case, Findings, workload};
use crate::history::{Event, Request};
use crate::stage::NAMESPACE;

/// How many requests for one object in an hour there are at most: a loop would make thousands.
const MAX_AN_HOUR: usize = 400;
/// A leader renews every two seconds, and tries more often when that fails.
const MAX_LEASES_AN_HOUR: usize = 4_000;
/// How long after the last fault the consequences may last.
const AFTERMATH: SignedDuration = SignedDuration::from_mins(6);

/// How long after a restart the operator has something to say about it.
const SETTLING: SignedDuration = SignedDuration::from_mins(2);

fn is_lease(request: &Request) -> bool {
    request.path().contains("/leases")
}

fn has_text(body: &Value, pointer: &str) -> bool {
    let text = body.pointer(pointer).and_then(Value::as_str);
    text.is_some_and(|text| !text.is_empty())
}

/// G1.
pub(super) fn preconditions(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let writes = case.history.requests.iter().filter(|r| r.is_write());
    for request in writes {
        let own = request
            .path()
            .contains(&format!("/namespaces/{NAMESPACE}/"))
            || is_own_map(case, request.path());
        let query = request.uri.split_once('?').map_or("", |(_, query)| query);
        let ours = query
            .split('&')
            .any(|part| part.strip_prefix("fieldManager=") == Some(FIELD_MANAGER));
        let body = &request.body;
        let version = has_text(body, "/metadata/resourceVersion");
        let mut specifics = case.specifics.iter();
        let is_unconditional = specifics.any(|one| (one.is_unconditional)(request));
        let holds = match request.method.as_str() {
            "POST" => true,
            "PUT" => version,
            "PATCH" if request.media.starts_with("application/apply-patch") => {
                is_unconditional || ours && (own || !query.contains("force=true"))
            }
            "PATCH" if request.path().contains("/events/") || is_unconditional => true,
            "PATCH" => version && has_text(body, "/metadata/uid"),
            "DELETE" => has_text(body, "/preconditions/uid"),
            _ => false,
        };
        findings.check(request.at, holds, || {
            format!("{} {} has no precondition", request.method, request.uri)
        });
    }
    findings
}

/// G2.
pub(super) fn quiet(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let length = SignedDuration::try_from(case.scenario.quiet).unwrap_or_default();
    let begins = history.end.checked_sub(length).unwrap_or(history.end);
    let calm = if history.is_disturbed() {
        history
            .calm
            .checked_add(AFTERMATH)
            .unwrap_or(Timestamp::MAX)
    } else {
        begins
    };
    // A fault may have put off what was due into this time; then it is quiet after that.
    let last = history
        .deeds()
        .filter(|(change, _)| {
            &*change.object.0 == "/pods" || workload::kind(&change.object.0).is_some()
        })
        .last()
        .map(|(change, _)| change.at);
    let last = last.filter(|_| history.is_disturbed());
    let last = last.and_then(|at| at.checked_add(SETTLING).ok());
    let quiet = begins.max(calm).max(last.unwrap_or(begins));
    let late = history.requests.iter().filter(|r| r.at > quiet);
    for request in late {
        let disturbs = request.is_write() && !is_lease(request);
        findings.check(request.at, !disturbs, || {
            format!("{} {} when nothing was due", request.method, request.uri)
        });
    }
    findings
}

/// G3.
pub(super) fn deletes(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let deletes = case
        .history
        .requests
        .iter()
        .filter(|r| r.method == "DELETE");
    for request in deletes {
        let both = has_text(&request.body, "/preconditions/uid")
            && has_text(&request.body, "/preconditions/resourceVersion");
        findings.check(request.at, both, || {
            format!("DELETE {} without uid and resourceVersion", request.uri)
        });
    }
    findings
}

/// G4.
pub(super) fn targets(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, request) in case.history.deeds() {
        let (resource, namespace, _) = &change.object;
        let home = &**namespace == NAMESPACE;
        let is_business = || {
            let mut specifics = case.specifics.iter();
            specifics.any(|one| (one.may_change)(case, change, request))
        };
        let holds = match &**resource {
            "coordination.k8s.io/leases" => home,
            "/configmaps" => home || is_own_name(case, &change.object.2) || is_business(),
            "events.k8s.io/events" | "/events" => true,
            _ => is_business(),
        };
        findings.check(change.at, holds, || {
            format!(
                "{} {} is none of the operator's business",
                request.method, request.uri
            )
        });
    }
    findings
}

/// G5.
pub(super) fn statuses(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, _) in case.history.deeds() {
        let mut statuses = case.specifics.iter().flat_map(|one| one.statuses);
        let known = statuses.find(|(resource, _)| *resource == &*change.object.0);
        let (Some((_, kind)), Some(after)) = (known, change.after.as_deref()) else {
            continue;
        };
        let observed = after.number("/status/observedGeneration");
        let before = change.before.as_deref();
        // Definitions may say that nothing was observed yet, by a generation that there is not.
        let earlier = before.and_then(|image| image.at("/status/observedGeneration")?.as_i64());
        let earlier = earlier.unwrap_or(-1);
        let name = format!("{kind} {}/{}", change.object.1, change.object.2);
        findings.check(change.at, observed >= earlier, || {
            format!("{name}: observedGeneration went back from {earlier} to {observed}")
        });
        let generation = after.number("/metadata/generation");
        findings.check(change.at, observed <= generation, || {
            format!("{name}: observedGeneration {observed} of generation {generation}")
        });
        let conditions = after.at("/status/conditions").and_then(Value::as_array);
        let is_true = |kind: &str| {
            conditions.into_iter().flatten().any(|condition| {
                condition.get("type").and_then(Value::as_str) == Some(kind)
                    && condition.get("status").and_then(Value::as_str) == Some("True")
            })
        };
        findings.check(change.at, !(is_true("Ready") && is_true("Stalled")), || {
            format!("{name} is ready and stalled")
        });
    }
    findings
}

/// G11.
pub(super) fn pace(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut paths: BTreeMap<(&str, &str, &str, Vec<&str>), Vec<Timestamp>> = BTreeMap::new();
    for request in &case.history.requests {
        let key = (
            request.cluster.as_str(),
            request.method.as_str(),
            request.path(),
            selectors(&request.uri),
        );
        paths.entry(key).or_default().push(request.at);
    }
    for ((_, method, path, _), times) in paths {
        let most = if path.contains("/leases") {
            MAX_LEASES_AN_HOUR
        } else {
            MAX_AN_HOUR
        };
        let mut first = 0;
        let mut densest = (0, case.history.start);
        for (last, at) in times.iter().enumerate() {
            while times
                .get(first)
                .is_some_and(|from| at.duration_since(*from) > SignedDuration::from_hours(1))
            {
                first += 1;
            }
            if last + 1 - first > densest.0 {
                densest = (last + 1 - first, *at);
            }
        }
        findings.check(densest.1, densest.0 <= most, || {
            format!("{} times {method} {path} within an hour", densest.0)
        });
    }
    findings
}

/// What a request selects of those that it is about: who looks at five of a kind by their names looks at five things.
fn selectors(uri: &str) -> Vec<&str> {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    let is_selector =
        |part: &&str| part.starts_with("fieldSelector=") || part.starts_with("labelSelector=");
    query.split('&').filter(is_selector).collect()
}

/// P.
pub(super) fn sound(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for mark in &case.history.marks {
        let problem = match &mark.what {
            Event::Panicked(text) => Some(format!("a panic: {text}")),
            Event::Endless(requests) => Some(format!("{requests} requests, and no end of them")),
            // What is invalid by a definition can be kept, but not put back.
            Event::Failed(text) if !case.history.is_redefined() => Some(format!(
                "somebody could not do what the scenario says: {text}"
            )),
            // Whether webhooks can be asked, and what they know by then, depends on the faults.
            Event::Otherwise(text) if !case.history.is_disturbed() => Some(format!(
                "something came out other than the scenario says: {text}"
            )),
            _ => None,
        };
        findings.check(mark.at, problem.is_none(), || problem.unwrap_or_default());
    }
    findings
}
