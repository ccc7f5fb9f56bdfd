//! W1, W4–W7: what webhooks let through, and what they do meanwhile.

use serde_json::Value;
use slipway_api::zones::NO_DOWNSCALE;

use super::super::{Case, Findings};
use super::replicas::downscale;
use super::{PREPARE, Scene, budget_over, evictions_allowed, is_ready, on_their_way};
use crate::history::{Ending, Event, Review};

/// What a webhook writes when it lets something through.
const RECORDS: &[&str] = &[
    "write-reservation",
    "lock",
    "annotate",
    "record",
    "create-tracker",
];

/// W1 and W2: whatever the way, fewer replicas are not stored. What a webhook could not see it lets pass, by the design:
/// but only then.
pub(in super::super) fn no_downscale(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for review in history.reviews.iter().filter(|review| review.is_open()) {
        let unread = history.requests.iter().any(|request| {
            request.context.purpose == "read-parent"
                && request.path().rsplit('/').next() == Some(review.text("/name"))
                && request.replica == review.replica
                && (review.at..=review.ended).contains(&request.at)
                && !matches!(request.ending, Ending::Answered(..300))
        });
        findings.check(review.ended, unread, || {
            let name = review.text("/name");
            format!("{name} was let pass with a warning, and could be seen")
        });
    }
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
        let mut open = history.reviews.iter().filter(|review| review.is_open());
        let passed = open.any(|r| {
            r.text("/name") == &*change.object.2 && r.text("/namespace") == &*change.object.1
        });
        if before.label(NO_DOWNSCALE) != Some("true") || passed {
            continue;
        }
        let number =
            |image: &crate::history::Image| image.at("/spec/replicas").and_then(Value::as_i64);
        let (Some(from), Some(to)) = (number(before), number(after)) else {
            continue;
        };
        let asked = !history.states(hooks, change.version).is_empty();
        findings.check(change.at, to >= from || !asked, || {
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
    let during = |review: &Review, at: jiff::Timestamp, replica: &str| {
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
            .filter(|request| RECORDS.contains(&request.context.purpose.as_str()))
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
            matches!(&mark.what, Event::Paused(replica, _) if *replica == review.replica)
                && mark.at <= review.ended
        });
        let took = review.ended.duration_since(review.at).unsigned_abs();
        let in_time = took * 10 <= review.patience * 9;
        findings.check(review.ended, in_time || stood_still, || {
            format!("{} took {took:?} of {:?}", review.path, review.patience)
        });
    }
    findings
}

/// The version at which the verdict on an eviction was reached: a review may have waited for long.
fn decided_at(case: &Case<'_>, review: &Review) -> u64 {
    let history = case.history;
    let (namespace, name) = (review.text("/namespace"), review.text("/name"));
    let mut requests = history.requests.iter().filter(|request| {
        request.replica == review.replica && request.at >= review.at && request.at <= review.ended
    });
    let last = requests.rfind(|request| match request.context.purpose.as_str() {
        "write-reservation" => {
            let scene = Scene::at(history, request.versions.0);
            let uid = scene
                .pod(namespace, name)
                .and_then(|pod| pod.text("/metadata/uid"));
            let data = request.body.get("data");
            uid.is_some_and(|uid| data.is_some_and(|data| data.get(uid).is_some()))
        }
        "read-pod" => request.path().rsplit('/').next() == Some(name),
        _ => false,
    });
    last.map_or(review.versions.0, |request| request.versions.0)
}

/// W7: no other zone is down, and of the pod's own fewer than the budget, with every pod that was let go before.
pub(in super::super) fn evictions(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for review in evictions_allowed(history) {
        let version = decided_at(case, review);
        let (namespace, name) = (review.text("/namespace"), review.text("/name"));
        let scene = Scene::at(history, version);
        let Some(pod) = scene.pod(namespace, name).filter(|pod| is_ready(pod)) else {
            continue;
        };
        let Some(budget) = budget_over(history, version, namespace, pod) else {
            continue;
        };
        let Some(own) = scene.zone_of(pod) else {
            continue;
        };
        if budget.at("/spec/podNamePartitionRegex").is_some() {
            continue;
        }
        let most = budget
            .at("/spec/maxUnavailable")
            .and_then(Value::as_i64)
            .unwrap_or(1);
        let labels = budget
            .at("/spec/selector/matchLabels")
            .cloned()
            .unwrap_or_default();
        // Whoever was let go while this one was being judged counts too.
        let mut leaving = on_their_way(history, &scene, version, review.ended);
        let meanwhile = evictions_allowed(history).filter(|other| {
            !std::ptr::eq(*other, review) && other.ended >= review.at && other.ended <= review.ended
        });
        let meanwhile = meanwhile
            .filter(|other| version < other.versions.1 && other.versions.1 < review.versions.1);
        leaving.extend(meanwhile.map(|other| {
            (
                other.text("/namespace").to_owned(),
                other.text("/name").to_owned(),
            )
        }));
        for zone in scene.labelled(namespace, &labels) {
            let mut down = scene.down(&zone);
            let more = leaving.iter().filter(|(place, pod)| {
                place == namespace && zone.places().any(|expected| expected == *pod)
            });
            down.extend(more.map(|(_, pod)| pod.clone()));
            down.retain(|place| place != name);
            down.sort();
            down.dedup();
            let limit = if zone.object == own.object { most } else { 1 };
            let count = i64::try_from(down.len()).unwrap_or(i64::MAX);
            findings.check(review.ended, count < limit, || {
                format!("{name} was let go while {} was down", down.join(", "))
            });
        }
    }
    findings
}
