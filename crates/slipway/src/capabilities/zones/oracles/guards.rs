//! W12: nothing passes a guard that could not be written.

use serde_json::Value;
use slipway_api::purpose::{Purpose, zones as purpose};
use slipway_api::zones::ROLLOUT_PODS;
use slipway_sim::history::{Ending, History, Request, Review};
use slipway_sim::oracles::{Case, Findings};

use super::{EVICTION, PREPARE, deletions};

/// The requests of a replica for a purpose while a review was judged.
fn meanwhile<'a>(
    history: &'a History,
    review: &'a Review,
    purposes: &'static [Purpose],
) -> impl Iterator<Item = &'a Request> {
    history.requests.iter().filter(move |request| {
        request.replica == review.replica
            && (review.at..=review.ended).contains(&request.at)
            && purposes.iter().any(|purpose| request.is_for(*purpose))
    })
}

/// The uid of the pod that a review is about, by what there was.
fn subject<'a>(history: &'a History, review: &Review) -> Option<&'a str> {
    let pods = history.states("/pods", review.versions.1);
    let (namespace, name) = (review.text("/namespace"), review.text("/name"));
    let mut found = pods.into_iter();
    let (_, pod) = found.find(|(object, _)| &*object.1 == namespace && &*object.2 == name)?;
    pod.text("/metadata/uid")
}

fn mentions(body: &Value, text: &str) -> bool {
    match body {
        Value::String(value) => value.contains(text),
        Value::Array(list) => list.iter().any(|value| mentions(value, text)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| key.contains(text) || mentions(value, text)),
        _ => false,
    }
}

/// Whether one of these writes was carried out, or could not be because the right is missing: then the design goes on
/// without, if there is one replica. What a fault forbade was forbidden for a moment only, and there is a right to it.
/// Others that fail may be of another review, which carries along what is written already.
fn is_written<'a>(case: &Case<'_>, writes: impl Iterator<Item = &'a Request>) -> Option<bool> {
    let is_said = |name: &str| case.scenario.settings.get(name) == Some(&Value::Bool(true));
    let is_alone = is_said("alone") || is_said("keepsNothing");
    let ends = writes.map(|write| {
        let is_momentary = matches!(write.fault, Some("forbidden" | "refused"));
        let no_right = write.ending == Ending::Answered(403) && !is_momentary;
        write.ending.is_done() || no_right && is_alone
    });
    ends.reduce(|one, other| one || other)
}

/// W12. Where it was tried to write a guard, and it could not be, nothing is let through.
pub(in super::super) fn guarded(case: &Case<'_>) -> Findings {
    const RESERVATION: &[Purpose] = &[purpose::WRITE_RESERVATION];
    const LOCK: &[Purpose] = &[purpose::LOCK];
    let mut findings = Findings::default();
    let history = case.history;
    let passed =
        |review: &&Review| review.is_allowed() && !review.is_dry_run() && !review.is_open();
    for review in history.reviews.iter().filter(passed) {
        let written = match review.path.as_str() {
            EVICTION => {
                let Some(uid) = subject(history, review) else {
                    continue;
                };
                let writes = meanwhile(history, review, RESERVATION);
                is_written(case, writes.filter(|request| mentions(&request.body, uid)))
            }
            PREPARE => is_written(case, meanwhile(history, review, LOCK)),
            _ => continue,
        };
        findings.check(review.ended, written != Some(false), || {
            let name = review.text("/name");
            format!("{name} was let through, and what guards that was not written")
        });
    }
    for deletion in deletions(history) {
        let uid = deletion.pod.text("/metadata/uid").unwrap_or_default();
        let notes = history.requests.iter().filter(|request| {
            request.number < deletion.request.number
                && request.replica == deletion.request.replica
                && request.is_for(purpose::NOTE)
                && request
                    .body
                    .pointer("/metadata/annotations")
                    .and_then(|annotations| annotations.get(ROLLOUT_PODS))
                    .is_some_and(|pods| mentions(pods, uid))
        });
        findings.check(
            deletion.change.at,
            is_written(case, notes) != Some(false),
            || format!("{} was deleted, and could not be noted", deletion.name()),
        );
    }
    findings
}
