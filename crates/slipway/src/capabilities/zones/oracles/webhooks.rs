//! W1, W3–W7, W9: what webhooks let through, and what they do meanwhile.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::purpose::{Purpose, zones as purpose};
use slipway_api::zones::NO_DOWNSCALE;

use super::replicas::{LONGEST_REVIEW, downscale};
use super::{PREPARE, Scene};
use slipway_sim::history::{Change, Ending, Event, Review};
use slipway_sim::oracles::{Case, Findings};

/// What a webhook writes when it lets something through.
const RECORDS: &[Purpose] = &[
    purpose::WRITE_RESERVATION,
    purpose::LOCK,
    purpose::ANNOTATE,
    purpose::RECORD,
    purpose::CREATE_TRACKER,
];

/// W3: what a webhook cannot see it lets pass with a warning, by the design; but only then.
pub(in super::super) fn let_pass(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for review in history.reviews.iter().filter(|review| review.is_open()) {
        // The last look counts: one that failed before it is made up for.
        let last = history.requests.iter().rfind(|request| {
            request.is_for(purpose::READ_PARENT)
                && request.path().rsplit('/').next() == Some(review.text("/name"))
                && request.replica == review.replica
                && (review.at..=review.ended).contains(&request.at)
        });
        let unread = last.is_some_and(|look| !matches!(look.ending, Ending::Answered(..300)));
        findings.check(review.ended, unread, || {
            let name = review.text("/name");
            format!("{name} was let pass with a warning, and could be seen")
        });
    }
    findings
}

/// Whether a review is about this change, to so many replicas: it was stored after the answer, at once but for what other
/// webhooks were asked meanwhile.
fn is_about(review: &Review, change: &Change, to: i64) -> bool {
    let asked = review.asked.pointer("/object/spec/replicas");
    let since = change.at.duration_since(review.ended);
    review.text("/name") == &*change.object.2
        && review.text("/namespace") == &*change.object.1
        && review.versions.1 < change.version
        && (SignedDuration::ZERO..=LONGEST_REVIEW).contains(&since)
        // A `Scale` to none has no number.
        && asked.and_then(Value::as_i64).unwrap_or_default() == to
}

/// W1 and W2: whatever the way, fewer replicas are not stored, but for what W3 allows to pass.
pub(in super::super) fn no_downscale(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let hooks = "admissionregistration.k8s.io/validatingwebhookconfigurations";
    for change in history.changes.iter().filter(|c| c.version > history.base) {
        let guarded = matches!(
            &*change.object.0,
            "apps/statefulsets" | "apps/deployments" | "apps/replicasets"
        );
        let (Some(before), Some(after), true) =
            (change.before.as_deref(), change.after.as_deref(), guarded)
        else {
            continue;
        };
        if before.label(NO_DOWNSCALE) != Some("true") {
            continue;
        }
        let number = |image: &slipway_sim::history::Image| {
            image.at("/spec/replicas").and_then(Value::as_i64)
        };
        let (Some(from), Some(to)) = (number(before), number(after)) else {
            continue;
        };
        let asked = !history.states(hooks, change.version).is_empty();
        let mut open = history.reviews.iter().filter(|review| review.is_open());
        let passed = open.any(|review| is_about(review, change, to));
        findings.check(change.at, to >= from || !asked || passed, || {
            format!("{} went from {from} to {to} replicas", change.object.2)
        });
    }
    findings
}

/// W4.
pub(in super::super) fn prepared(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let reviews = history.reviews.iter();
    for review in reviews.filter(|r| r.path == PREPARE && r.is_allowed() && !r.is_open()) {
        let scene = Scene::at(history, review.versions.0);
        let Some((zone, from, to)) = downscale(&scene, review) else {
            continue;
        };
        let start = zone.set.number("/spec/ordinals/start");
        for ordinal in to..from {
            let name = format!("{}-{}", zone.name(), start + ordinal);
            let last = history.calls.iter().rfind(|call| {
                call.pod.1 == name
                    && call.pod.0 == *zone.object.1
                    && call.replica == review.replica
                    && call.at >= review.at
                    && call.at <= review.ended
            });
            let told = last.is_some_and(|call| {
                call.method == "POST" && call.code.is_some_and(|code| code < 300)
            });
            findings.check(review.ended, told, || {
                format!("{name} may go, and was not told")
            });
        }
    }
    findings
}

/// W5.
pub(in super::super) fn dry_runs(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let during = |review: &Review, at: Timestamp, replica: &str| {
        replica == review.replica && at >= review.at && at <= review.ended
    };
    for review in history.reviews.iter().filter(|r| r.is_dry_run()) {
        let others = history.reviews.iter().any(|other| {
            !other.is_dry_run() && other.at <= review.ended && other.ended >= review.at
        });
        if others {
            continue;
        }
        let calls = history.calls.iter();
        let asked = calls
            .filter(|call| during(review, call.at, &call.replica))
            .count();
        let requests = history.requests.iter();
        let written = requests
            .filter(|request| during(review, request.at, &request.replica) && request.is_write())
            .filter(|request| RECORDS.iter().any(|purpose| request.is_for(*purpose)))
            .count();
        findings.check(review.ended, asked + written == 0, || {
            let name = review.text("/name");
            format!("a dry run about {name} asked {asked} pods and wrote {written} times")
        });
    }
    findings
}

/// W6.
pub(in super::super) fn prompt(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for review in &case.history.reviews {
        let Some(said) = &review.said else {
            continue;
        };
        let uid = said.get("uid").and_then(Value::as_str);
        findings.check(review.ended, uid == Some(review.text("/uid")), || {
            format!("{} answered about {uid:?}", review.path)
        });
        let stood_still = case.history.marks.iter().any(|mark| {
            let Event::Paused(replica, time) = &mark.what else {
                return false;
            };
            let time = SignedDuration::try_from(*time).unwrap_or(SignedDuration::MAX);
            let until = mark.at.checked_add(time).unwrap_or(Timestamp::MAX);
            *replica == review.replica && mark.at <= review.ended && review.at <= until
        });
        let took = review.ended.duration_since(review.at).unsigned_abs();
        let in_time = took * 10 <= review.patience * 9;
        findings.check(review.ended, in_time || stood_still, || {
            format!("{} took {took:?} of {:?}", review.path, review.patience)
        });
    }
    findings
}

/// W9: no webhook of zones changes what it is asked about.
pub(in super::super) fn unchanged(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for review in &case.history.reviews {
        let Some(said) = &review.said else {
            continue;
        };
        findings.check(review.ended, said.get("patch").is_none(), || {
            format!("{} changed {}", review.path, review.text("/name"))
        });
    }
    findings
}
