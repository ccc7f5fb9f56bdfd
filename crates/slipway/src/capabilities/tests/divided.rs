//! Histories of traffic that was divided.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use slipway_api::names::DISRUPTION_CLAIM;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::Purpose;
use slipway_sim::history::{Asked, Event};
use slipway_sim::routes::{TAKEN, TRAFFIC_SPLITS};
use slipway_sim::spell::{Disturbance, Spell};

use super::made::{Made, merge, object};
use super::objects;

const CANARIES: &str = "flagger.app/canaries";
pub(super) const DEPLOYMENTS: &str = "apps/deployments";
pub(super) const SLICES: &str = "discovery.k8s.io/endpointslices";

/// A request of the operator that changes an object so.
fn patch(made: &mut Made, resource: &str, name: &str, purpose: Option<Purpose>, body: &Value) {
    let mut value = made.current(&object(resource, name));
    merge(&mut value, body);
    write(made, (resource, name), purpose, value);
}

/// A request of the operator by which an object comes to be so.
pub(super) fn write(
    made: &mut Made,
    (resource, name): (&str, &str),
    purpose: Option<Purpose>,
    value: Value,
) {
    let plural = resource.rsplit('/').next().unwrap_or_default();
    let end = if purpose.is_some() { "" } else { "/status" };
    let uri = format!("/apis/group/v1/namespaces/shop/{plural}/{name}{end}?fieldManager=slipway");
    let conditions = json!({"metadata": {"resourceVersion": "1", "uid": name}});
    let number = made.request("PATCH", &uri, conditions);
    let purpose = purpose.map_or("status", Purpose::as_str);
    let context = &mut made.last_request().context;
    "canary".clone_into(&mut context.controller);
    purpose.clone_into(&mut context.purpose);
    made.put(object(resource, name), value, Some(number));
}

pub(super) fn status(made: &mut Made, phase: &str, weight: i64) {
    let body = json!({"status": {"phase": phase, "canaryWeight": weight, "observedGeneration": 1}});
    patch(made, CANARIES, "web", None, &body);
}

fn split(made: &mut Made, target: i64, source: i64) {
    let backends = json!([{"service": "web-canary", "weight": target}, {"service": "web-primary", "weight": source}]);
    let body = json!({"spec": {"service": "web", "backends": backends}});
    patch(made, TRAFFIC_SPLITS, "web", Some(purpose::ROUTE), &body);
}

/// A gateway takes what is written, or something else.
fn taken(made: &mut Made, target: i64) {
    let shares = json!({"web-canary": target * 100, "web-primary": (100 - target) * 100});
    let rule = json!({"particular": false, "shares": shares, "copies": []});
    let value = json!({"spec": {"rules": [rule]}});
    made.put(object(TAKEN, "trafficsplits.web"), value, None);
}

/// So many pods behind a Service are ready.
fn slice(made: &mut Made, service: &str, ready: usize) {
    let endpoints = vec![json!({"conditions": {"ready": true}}); ready];
    let labels = json!({"kubernetes.io/service-name": service});
    let value = json!({"metadata": {"labels": labels}, "endpoints": endpoints});
    made.put(object(SLICES, service), value, None);
}

/// A Service leads to the pods of a workload.
fn lead(made: &mut Made, service: &str, workload: &str) {
    let value = json!({"spec": {"selector": {"app": workload}}});
    made.put(object("/services", service), value, None);
}

pub(super) fn size(made: &mut Made, name: &str, replicas: i64) {
    let body = json!({"spec": {"replicas": replicas}});
    patch(made, DEPLOYMENTS, name, Some(purpose::SIZE), &body);
}

fn template(image: &str) -> Value {
    json!({"spec": {"template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }}})
}

/// The copy that serves becomes of a version.
fn serve(made: &mut Made, image: &str) {
    let body = template(image);
    let purpose = Some(purpose::SERVE);
    patch(made, DEPLOYMENTS, "web-primary", purpose, &body);
}

/// A Deployment of which so many pods are asked for, and so many are available.
fn deployment(made: &mut Made, name: &str, (asked, available): (i64, i64), image: &str) {
    let mut value = json!({
        "metadata": {"name": name, "uid": name, "generation": 1},
        "spec": {"replicas": asked},
        "status": {"observedGeneration": 1, "replicas": asked, "updatedReplicas": available, "availableReplicas": available},
    });
    merge(&mut value, &template(image));
    made.put(object(DEPLOYMENTS, name), value, None);
}

/// Prometheus says so.
fn measure(made: &mut Made, value: &str) {
    let number = made.history.asked.len() as u64;
    let at = made.now();
    let result = json!([{"metric": {}, "value": [0, value]}]);
    let said = json!({"status": "success", "data": {"resultType": "vector", "result": result}});
    made.history.asked.push(Asked {
        number,
        at,
        replica: "slipway-0-0".to_owned(),
        method: "POST".to_owned(),
        url: "http://prometheus.test/api/v1/query".to_owned(),
        id: format!("q{number}"),
        body: "query=errors%20of%20web".to_owned(),
        query: Some("errors of web".to_owned()),
        fault: None,
        arrived: 1,
        told: Some((at, 200)),
        said: Some(said.to_string()),
    });
}

/// A Canary with more in its spec, and both of its workloads.
pub(super) fn begun(more: &Value) -> Made {
    let mut made = Made::new();
    let metrics = json!([{"name": "errors", "query": "errors of {{ target }}", "thresholdRange": {"max": 0.1}}]);
    let mut spec = json!({"targetRef": {"kind": "Deployment", "name": "web"}, "analysis": {"metrics": metrics}});
    merge(&mut spec, more);
    let value = json!({"metadata": {"name": "web", "generation": 1}, "spec": spec});
    made.put(object(CANARIES, "web"), value, None);
    deployment(&mut made, "web", (3, 3), "web:2");
    deployment(&mut made, "web-primary", (3, 3), "web:1");
    made
}

/// A run at a fifth of the traffic, and all is well.
fn running() -> Made {
    let mut made = begun(&json!({}));
    status(&mut made, "Progressing", 0);
    split(&mut made, 0, 100);
    status(&mut made, "Progressing", 20);
    split(&mut made, 20, 80);
    taken(&mut made, 20);
    for service in ["web-canary", "web-primary"] {
        slice(&mut made, service, 3);
    }
    made.pass(10);
    measure(&mut made, "0.01");
    made
}

/// A good run to its end.
pub(super) fn good() -> Made {
    let mut made = running();
    status(&mut made, "Promoting", 20);
    serve(&mut made, "web:2");
    status(&mut made, "Finalising", 0);
    split(&mut made, 0, 100);
    made.pass(5);
    taken(&mut made, 0);
    size(&mut made, "web", 0);
    slice(&mut made, "web-canary", 0);
    status(&mut made, "Succeeded", 0);
    made.pass(600);
    made
}

/// A run that is over: another version comes, and so many seconds later a run begins, if it does.
fn next(after: Option<i64>) -> Made {
    let mut made = good();
    let body = json!({"status": {"lastAppliedSpec": "two"}});
    patch(&mut made, CANARIES, "web", None, &body);
    deployment(&mut made, "web", (0, 0), "web:3");
    if let Some(after) = after {
        made.pass(after);
        let body = json!({"status": {"lastAppliedSpec": "three", "phase": "Progressing"}});
        patch(&mut made, CANARIES, "web", None, &body);
    }
    made.pass(290);
    made
}

/// A Canary that has to give its workload back goes, while so many pods of that are available.
fn left(available: i64) -> Made {
    let mut made = begun(&json!({"revertOnDeletion": true}));
    status(&mut made, "Terminating", 0);
    deployment(&mut made, "web", (available, available), "web:2");
    made.remove(&object(CANARIES, "web"));
    made.pass(60);
    made
}

/// A Canary goes with the Service of its new version, which a gateway leads this share to.
fn left_at(share: i64) -> Made {
    let mut made = running();
    made.remove(&object(CANARIES, "web"));
    taken(&mut made, share);
    made.put(object("/services", "web-primary"), json!({}), None);
    made.pass(60);
    made
}

/// The new version is put away while a gateway still leads this share to it, though nothing of that is written any more.
fn put_away_at(share: i64) -> Made {
    let mut made = running();
    status(&mut made, "Finalising", 0);
    split(&mut made, 0, 100);
    taken(&mut made, share);
    size(&mut made, "web", 0);
    made
}

/// The new version, which has traffic, is without pods for so many seconds.
fn deserted_for(seconds: i64) -> Made {
    let mut made = running();
    slice(&mut made, "web-canary", 0);
    made.pass(seconds);
    taken(&mut made, 0);
    made.pass(60);
    made
}

/// The Service that clients know is without pods for so many seconds.
fn unserved_for(seconds: i64) -> Made {
    let mut made = begun(&json!({}));
    made.put(object("/services", "web"), json!({}), None);
    slice(&mut made, "web", 3);
    status(&mut made, "Initialized", 0);
    made.pass(60);
    slice(&mut made, "web", 0);
    made.pass(seconds);
    slice(&mut made, "web", 3);
    made.pass(60);
    made
}

/// A version is promoted after this was measured of it, and then another one was wanted, if so.
fn promoted_after(value: &str, is_newer: bool) -> Made {
    let mut made = running();
    made.pass(10);
    measure(&mut made, value);
    if is_newer {
        made.pass(1);
        deployment(&mut made, "web", (3, 3), "web:3");
    }
    status(&mut made, "Promoting", 20);
    serve(&mut made, if is_newer { "web:3" } else { "web:2" });
    made
}

/// A version whose pods are ready is sent back after so many failed checks.
fn sent_back_after(failed: i64) -> Made {
    let mut made = running();
    let body = json!({"status": {"phase": "Failed", "canaryWeight": 0, "failedChecks": failed}});
    patch(&mut made, CANARIES, "web", None, &body);
    split(&mut made, 0, 100);
    taken(&mut made, 0);
    size(&mut made, "web", 0);
    slice(&mut made, "web-canary", 0);
    made.pass(600);
    made
}

/// A workload is not touched in a run in which the API is away for so long, and goes down and up twice in the one without.
fn untouched(name: &str, away: u64) -> Made {
    let run = |sizes: &[i64]| {
        let mut made = begun(&json!({}));
        deployment(&mut made, "other", (3, 3), "other:1");
        made.history.base = made.history.changes.len() as u64;
        for replicas in sizes {
            size(&mut made, name, *replicas);
        }
        made.pass(3_600);
        made
    };
    let (wanted, mut made) = (run(&[0, 3, 0, 3]), run(&[]));
    let lasts = Duration::from_secs(away);
    let spell = Spell::new(Disturbance::Outage, Duration::ZERO, lasts);
    made.mark(Event::Spell(spell), -3_600);
    made.reference = Some(Box::new(wanted.history));
    made
}

/// A Canary of which it is expected that it succeeds, or, where something went wrong, that it fails, is in this phase.
fn expected(phase: &str, is_disturbed: bool) -> Made {
    let mut made = begun(&json!({}));
    status(&mut made, phase, 0);
    made.pass(600);
    if is_disturbed {
        made.history.calm += SignedDuration::from_secs(1);
    }
    let field = "object: Canary shop/web, path: status.phase";
    let text = format!("{{{field}, is: Succeeded, unless: {{{field}, is: Failed}}}}");
    made.scenario.expect = vec![serde_saphyr::from_str(&text).unwrap()];
    made
}

/// One bad history for each oracle of canary.
pub(super) fn bad(id: &str) -> Option<Made> {
    let mut made = running();
    match id {
        "T1" => split(&mut made, 40, 80),
        "T2" => {
            deployment(&mut made, "web", (3, 2), "web:2");
            split(&mut made, 40, 60);
        }
        "T3" => serve(&mut made, "web:2"),
        "T4" => {
            status(&mut made, "Finalising", 0);
            size(&mut made, "web", 0);
        }
        "T5" => {
            status(&mut made, "Failed", 0);
            made.pass(60);
        }
        "T6" => {
            split(&mut made, 0, 100);
            status(&mut made, "Waiting", 0);
            size(&mut made, "web", 5);
        }
        "T7" => return Some(deserted_for(60)),
        "T8" => return Some(next(None)),
        "T9" => return Some(left(0)),
        "T10" => return Some(unserved_for(60)),
        _ => return None,
    }
    Some(made)
}

/// Numbers of pods are the weights of a run that has four, so many of them of the new version; then one side comes to have so many.
fn divided(asked: i64, available: i64, (name, to): (&str, i64)) -> Made {
    let mut made = begun(&json!({"provider": "kubernetes:replicas"}));
    let run = json!({"status": {"run": {"replicas": 4}}});
    patch(&mut made, CANARIES, "web", None, &run);
    status(&mut made, "Progressing", 50);
    deployment(&mut made, "web", (asked, available), "web:2");
    deployment(&mut made, "web-primary", (4, 4), "web:1");
    size(&mut made, name, to);
    made
}

#[test]
fn where_pods_are_the_weights_nobody_goes_before_others_have_come() {
    for (available, side, is_bad) in [
        (2, ("web-primary", 2), false),
        (1, ("web-primary", 2), true),
        (2, ("web-primary", 0), true),
        (2, ("web", 1), false),
    ] {
        let made = divided(2, available, side);
        assert_eq!(objects("T4", &made), is_bad, "{available} {side:?}");
        assert!(!objects("T6", &made), "{available} {side:?}");
    }
    // The new version goes altogether when clients are led to the other one alone.
    for (leads_to, is_bad) in [("web", true), ("web-primary", false)] {
        let mut made = divided(2, 2, ("web", 1));
        lead(&mut made, "web", leads_to);
        status(&mut made, "Failed", 0);
        size(&mut made, "web", 0);
        assert_eq!(objects("T4", &made), is_bad, "{leads_to}");
    }
}

#[test]
fn a_claim_that_ends_with_its_run_changes_no_size() {
    // It has a purpose of its own: what is written as a size is judged as one, whatever it changes.
    for (purpose, is_bad) in [(purpose::CLAIM, false), (purpose::SIZE, true)] {
        let mut made = good();
        let claim = json!({"metadata": {"annotations": {DISRUPTION_CLAIM: "none"}}});
        patch(&mut made, DEPLOYMENTS, "web-primary", Some(purpose), &claim);
        assert_eq!(objects("T6", &made), is_bad, "{purpose:?}");
    }
}

#[test]
fn traffic_is_judged_by_what_a_gateway_has_taken_too() {
    for (share, is_bad) in [(0, false), (20, true)] {
        assert_eq!(objects("T4", &put_away_at(share)), is_bad, "{share}");
        assert_eq!(objects("T9", &left_at(share)), is_bad, "{share}");
    }
}

#[test]
fn nobody_is_without_pods_for_longer_than_it_takes_to_notice() {
    for (seconds, is_bad) in [(3, false), (60, true)] {
        assert_eq!(objects("T7", &deserted_for(seconds)), is_bad, "{seconds}");
        assert_eq!(objects("T10", &unserved_for(seconds)), is_bad, "{seconds}");
    }
}

#[test]
fn clients_are_not_led_to_a_copy_that_is_still_being_made() {
    for (leads_to, seconds, is_bad) in [
        ("web-primary", 3, false),
        ("web-primary", 60, true),
        // The workload fell by itself before there was a copy to lead anybody to.
        ("web", 60, false),
    ] {
        let mut made = begun(&json!({}));
        lead(&mut made, "web", "web");
        slice(&mut made, "web", 3);
        status(&mut made, "Initializing", 0);
        lead(&mut made, "web-primary", "web-primary");
        lead(&mut made, "web", leads_to);
        made.pass(60);
        slice(&mut made, "web", 0);
        made.pass(seconds);
        slice(&mut made, "web", 3);
        status(&mut made, "Initialized", 0);
        made.pass(60);
        assert_eq!(objects("T10", &made), is_bad, "{leads_to} {seconds}");
    }
    // Where nobody has answered yet, there is nobody to be missed.
    let mut made = begun(&json!({}));
    lead(&mut made, "web", "web-primary");
    lead(&mut made, "web-primary", "web-primary");
    slice(&mut made, "web", 0);
    status(&mut made, "Initializing", 0);
    made.pass(60);
    slice(&mut made, "web", 3);
    made.pass(60);
    assert!(!objects("T10", &made));
}

#[test]
fn a_version_is_promoted_by_what_was_last_measured_of_it() {
    for (value, is_newer, is_bad) in [
        ("0.01", false, false),
        ("0.9", false, true),
        ("0.01", true, true),
    ] {
        let made = promoted_after(value, is_newer);
        assert_eq!(objects("T3", &made), is_bad, "{value} {is_newer}");
    }
}

#[test]
fn a_version_that_comes_after_a_run_is_tried_in_time() {
    for (after, is_bad) in [(Some(10), false), (None, true)] {
        assert_eq!(objects("T8", &next(after)), is_bad, "{after:?}");
    }
}

#[test]
fn nobody_is_sent_back_for_nothing() {
    for (failed, is_bad) in [(1, false), (0, true)] {
        assert_eq!(objects("L1", &sent_back_after(failed)), is_bad, "{failed}");
    }
}

/// Only what a Canary is about, and only where the operator was away for longer than people wait.
#[test]
fn a_version_that_was_replaced_while_all_was_held_up_has_no_run() {
    for (name, away, is_bad) in [("web", 60, false), ("web", 4, true), ("other", 60, true)] {
        assert_eq!(
            objects("G8", &untouched(name, away)),
            is_bad,
            "{name} {away}"
        );
    }
}

#[test]
fn what_is_right_as_well_is_so_only_where_something_went_wrong() {
    for (phase, is_disturbed, is_bad) in [
        ("Succeeded", false, false),
        ("Failed", true, false),
        ("Failed", false, true),
        ("Progressing", true, true),
    ] {
        let made = expected(phase, is_disturbed);
        assert_eq!(objects("expect", &made), is_bad, "{phase} {is_disturbed}");
    }
}

#[test]
fn what_was_to_be_given_back_is_there() {
    for (available, is_bad) in [(3, false), (0, true)] {
        assert_eq!(objects("T9", &left(available)), is_bad, "{available}");
    }
}
