//! W7, Z10 and W11: which evictions were let through.

use slipway_api::purpose::runtime::REVIEW;

use super::departures::Departure;
use super::replicas::downscale;
use super::{EVICTION, PREPARE, Scene, budget_over, evictions_allowed, is_ready};
use slipway_sim::history::{Call, History, Review};
use slipway_sim::oracles::{Case, Findings};

/// Evictions of ready pods under a budget.
fn departures<'a>(case: &Case<'a>) -> impl Iterator<Item = Departure<'a>> {
    let case = *case;
    evictions_allowed(case.history).filter_map(move |review| Departure::let_through(&case, review))
}

/// W7.
pub(in super::super) fn evictions(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for departure in departures(case).filter(|departure| !departure.is_by_partition()) {
        departure.check_zones(&mut findings);
    }
    findings
}

/// Z10.
pub(in super::super) fn partitions(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for departure in departures(case) {
        departure.check_partition(&mut findings);
    }
    findings
}

/// Whether all of a kind in the namespace of a review was read for reviews while it was judged.
fn has_read(history: &History, review: &Review, kind: &str) -> bool {
    let collection = format!("/namespaces/{}/{kind}", review.text("/namespace"));
    history.requests.iter().any(|request| {
        request.replica == review.replica
            && (review.at..=review.ended).contains(&request.at)
            && request.is_for(REVIEW)
            && request.path().ends_with(&collection)
            && request.ending.is_done()
    })
}

/// W11: what is let through rests on a look that began after the question came, and not on what was seen before.
pub(in super::super) fn fresh(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let passed = |review: &&Review| review.is_allowed() && !review.is_open();
    for review in history.reviews.iter().filter(passed) {
        let namespace = review.text("/namespace");
        let scene = Scene::at(history, review.versions.0);
        let pod = scene.pod(namespace, review.text("/name"));
        let needed = match review.path.as_str() {
            EVICTION => pod.is_some_and(|pod| {
                budget_over(history, review.versions.0, namespace, pod).is_some()
            }),
            // A downscale that pods were told of.
            PREPARE => {
                let told = |call: &Call| {
                    call.replica == review.replica
                        && call.method == "POST"
                        && (review.at..=review.ended).contains(&call.at)
                };
                downscale(&scene, review).is_some() && history.calls.iter().any(told)
            }
            _ => false,
        };
        if !needed {
            continue;
        }
        // A pod that is down already is missed by nobody: its own state is all there is to see. The other zones of a downscale
        // are listed by their group.
        let kinds: &[&str] = match review.path.as_str() {
            EVICTION if pod.is_some_and(is_ready) => {
                &["pods", "statefulsets", "zoneawarepoddisruptionbudgets"]
            }
            _ => &["pods"],
        };
        let mut kinds = kinds.iter();
        let looked = kinds.all(|kind| has_read(history, review, kind));
        findings.check(review.ended, looked, || {
            let name = review.text("/name");
            format!("{name} was let through, and nobody had looked since it was asked")
        });
    }
    findings
}
