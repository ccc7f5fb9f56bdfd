#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
//! Each oracle objects to a history that was made up to be bad, and to no good one.

mod made;
mod zoned;

use made::Made;
use serde_json::json;

use slipway_sim::history::{Ending, Event};

use crate::scenarios::wiring;

/// A good history with one restart: 20 minutes after its stamp, by a Flipper of ten minutes.
fn good() -> Made {
    let mut made = Made::new();
    made.flipper(
        "f",
        &json!({"interval": "10m", "maxConcurrent": 1, "match": {"labels": {"mesh": "true"}}}),
    );
    made.deployment("a", 0);
    made.deployment("b", 0);
    made.pass(1200);
    made.restart("a", 1200);
    made
}

#[test]
fn nobody_objects_to_a_good_history() {
    let mut made = good();
    made.complete("a");
    made.pass(60);
    made.restart("b", 1260);
    made.complete("b");
    made.pass(60);
    let objections = made.objections();
    assert!(objections.is_empty(), "{objections:?}");
}

#[test]
fn nobody_objects_to_a_good_rollout() {
    let objections = zoned::good_rollout().objections();
    assert!(objections.is_empty(), "{objections:?}");
}

/// One bad history for each oracle.
fn bad(id: &str) -> Made {
    let mut made = good();
    match id {
        "G1" => {
            made.last_request().body = json!({"metadata": {"annotations": {}}});
        }
        "G2" => {
            made.scenario.quiet = std::time::Duration::from_secs(30);
            made.pass(100);
            made.post_event();
        }
        "G3" => {
            made.request("DELETE", "/api/v1/namespaces/shop/pods/x", json!({}));
        }
        "G4" => made.restart("unlabelled", 1200),
        "G5" => {
            made.status("f", json!({"observedGeneration": 2}));
            made.status("f", json!({"observedGeneration": 1}));
        }
        "G6" => {
            made.complete("a");
            made.epoch = 2;
            made.restart("b", 1200);
            made.complete("b");
            made.pass(700);
            made.epoch = 1;
            made.restart("a", 1900);
        }
        "G8" => {
            made.reference = Some(Box::new(made.history.clone()));
            made.complete("a");
            made.pass(700);
            made.restart("a", 1900);
        }
        "G11" => {
            for _ in 0..1000 {
                made.pass(1);
                made.request("GET", "/apis/apps/v1/deployments", json!(null));
            }
        }
        "R1" => {
            made.complete("a");
            made.pass(300);
            made.restart("a", 1500);
        }
        "R2" => made.restart("b", 1200),
        "R3" => {
            made.pass(700);
            made.restart("a", 1900);
        }
        "R4" => {
            made.scenario
                .except
                .insert("R1".to_owned(), "the test is about R4".to_owned());
            made.mark(Event::Started("slipway-0-1".to_owned()), -1);
            made.complete("a");
            made.pass(60);
            made.restart("a", 1260);
        }
        "R5" => {
            made.complete("a");
            made.pass(700);
            made.restart_with(
                "a",
                1900,
                &json!({"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}),
            );
        }
        "R8" => {
            made.complete("a");
            made.pass(700);
            made.restart("a", 9000);
        }
        "L1" => {
            made.complete("a");
            made.pass(3600);
        }
        "L4" => {
            made.scenario.replicas = 2;
            made.lease();
            made.mark(Event::Crashed("slipway-0-0".to_owned()), 0);
            made.pass(60);
        }
        "P" => made.mark(Event::Panicked("index out of bounds".to_owned()), 0),
        "expect" => {
            let text = "{restarts: {Deployment shop/a: 2}}";
            made.scenario.expect = vec![serde_saphyr::from_str(text).unwrap()];
        }
        other => return bad_in_time(other),
    }
    made
}

/// The same for what is judged by the clock and by names.
fn bad_in_time(id: &str) -> Made {
    let mut made = good();
    match id {
        "R9" => {
            made = Made::new();
            let spec = json!({"suspend": true, "match": {"labels": {"mesh": "true"}}});
            made.flipper("f", &spec);
            made.deployment("a", 0);
            made.pass(1200);
            made.restart("a", 1200);
        }
        "G15" => {
            let uri = "/api/v1/namespaces/shop/configmaps/theirs";
            made.request("PUT", uri, json!({"metadata": {"resourceVersion": "1"}}));
        }
        "V1" => {
            made.mark(Event::Started("slipway-0-0".to_owned()), -1200);
            made.mark(Event::Ready("slipway-0-0".to_owned(), true), -1200);
            made.mark(Event::Ready("slipway-0-0".to_owned(), false), -60);
        }
        other => return zoned::bad(other).unwrap_or_else(|| panic!("no bad history for {other}")),
    }
    made
}

#[test]
fn every_oracle_objects_to_what_it_is_there_for() {
    for oracle in wiring().oracles.all() {
        let objections = bad(oracle.id).objections();
        let of_it = objections.iter().filter(|(id, _)| *id == oracle.id);
        assert!(of_it.count() > 0, "{} is silent: {objections:?}", oracle.id);
    }
}

fn objects(id: &str, made: &Made) -> bool {
    made.objections().iter().any(|(by, _)| *by == id)
}

#[test]
fn what_a_flipper_with_a_mistyped_window_matches_is_nobody_else_s() {
    for (cron, is_bad) in [("61 1 * * *", true), ("1 1 * * mon-fri", false)] {
        let mut made = Made::new();
        let windows = json!([{"cron": cron, "duration": "2h"}]);
        let spec =
            json!({"interval": "10m", "match": {"labels": {"mesh": "true"}}, "windows": windows});
        made.flipper("f", &spec);
        made.deployment("a", 0);
        made.pass(1200);
        made.restart("a", 1200);
        assert_eq!(objects("R9", &made), is_bad, "{cron}");
    }
}

#[test]
fn a_registration_of_webhooks_is_not_ours_to_write() {
    let mut made = good();
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    made.request("PATCH", &format!("{hooks}/theirs"), json!({}));
    assert!(objects("G15", &made));
}

#[test]
fn a_look_at_pods_that_was_not_for_a_review_is_none() {
    let mut made = zoned::bad("W11").unwrap();
    let at = made.history.reviews.last().unwrap().at;
    made.request("GET", "/api/v1/namespaces/shop/pods", json!(null));
    made.last_request().at = at;
    assert!(objects("W11", &made));
}

#[test]
fn what_a_fault_forbids_is_no_missing_right() {
    for (fault, is_bad) in [(Some("forbidden"), true), (None, false)] {
        let mut made = zoned::bad("W12").unwrap();
        let request = made.last_request();
        request.ending = Ending::Answered(403);
        request.fault = fault;
        assert_eq!(objects("W12", &made), is_bad, "{fault:?}");
    }
}

#[test]
fn a_lost_answer_counts_as_done() {
    let mut made = good();
    made.last_request().ending = Ending::Lost(200);
    made.complete("a");
    made.pass(60);
    made.restart("a", 1260);
    assert!(made.objections().iter().any(|(id, _)| *id == "R1"));
}
