//! Histories of traffic that nobody divides: numbers of pods are the weights.

use serde_json::{Value, json};
use slipway_api::purpose::canary as purpose;

use super::divided::{DEPLOYMENTS, SLICES, begun, size, status, write};
use super::made::{Made, object};
use super::objects;

const SERVICES: &str = "/services";
const LABEL: &str = "slipway.dev/canary";

/// A selector of the pods of one version.
fn one(workload: &str) -> Value {
    json!({"app": workload})
}

/// A selector of the pods of both.
fn both() -> Value {
    json!({LABEL: "web"})
}

fn service(selector: &Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"selector": selector}})
}

/// The operator leads the Service that clients know to these pods.
fn lead(made: &mut Made, selector: &Value) {
    let purpose = Some(purpose::LEAD);
    write(made, (SERVICES, "web"), purpose, service(selector));
}

/// A Deployment of which so many pods are asked for, and so many are available.
fn workload(made: &mut Made, name: &str, (asked, available): (i64, i64)) {
    let value = json!({
        "metadata": {"name": name, "uid": name, "generation": 1},
        "spec": {
            "replicas": asked,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name, LABEL: "web"}}},
        },
        "status": {"observedGeneration": 1, "updatedReplicas": available, "availableReplicas": available},
    });
    made.put(object(DEPLOYMENTS, name), value, None);
}

/// These pods are ready behind a Service.
fn behind(made: &mut Made, service: &str, pods: &[&str]) {
    let endpoints = pods.iter().map(
        |pod| json!({"conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": pod}}),
    );
    let endpoints: Vec<Value> = endpoints.collect();
    let labels = json!({"kubernetes.io/service-name": service});
    let value = json!({"metadata": {"labels": labels}, "endpoints": endpoints});
    made.put(object(SLICES, service), value, None);
}

/// A run of which this weight was remembered. Clients are led to what serves, which has four pods; the new version has two, of which
/// so many are available.
fn remembered(weight: i64, available: i64) -> Made {
    let mut made = begun(&json!({"provider": "kubernetes:replicas"}));
    workload(&mut made, "web", (2, available));
    workload(&mut made, "web-primary", (4, 4));
    made.put(object(SERVICES, "web"), service(&one("web-primary")), None);
    behind(&mut made, "web-canary", &["new"]);
    behind(&mut made, "web-primary", &["old"]);
    behind(&mut made, "web", &["old"]);
    status(&mut made, "Progressing", weight);
    made
}

/// The same, where clients are led to both.
fn divided(available: i64) -> Made {
    let mut made = remembered(20, available);
    lead(&mut made, &both());
    behind(&mut made, "web", &["old", "new"]);
    made
}

#[test]
fn clients_are_led_to_those_that_have_a_weight() {
    for (weight, selector, is_bad) in [
        (20, both(), false),
        (20, one("web"), true),
        (20, one("web-primary"), false),
        (20, one("other"), true),
        (0, both(), true),
        (0, one("web"), true),
        (100, one("web"), false),
        (100, both(), true),
    ] {
        let mut made = remembered(weight, 2);
        lead(&mut made, &selector);
        // What is said besides is nobody's traffic.
        let mut same = service(&selector);
        same["metadata"]["labels"] = json!({"a": "b"});
        write(&mut made, (SERVICES, "web"), Some(purpose::LEAD), same);
        assert_eq!(objects("T1", &made), is_bad, "{weight} {selector}");
    }
}

#[test]
fn clients_are_led_to_nobody_elses_pods() {
    for (app, is_bad) in [("web", false), ("web-primary", false), ("other", true)] {
        let mut made = remembered(20, 2);
        let labels = json!({"app": app, LABEL: "web"});
        let pod = json!({"metadata": {"labels": labels}});
        made.put(object("/pods", "pod"), pod, None);
        lead(&mut made, &both());
        assert_eq!(objects("T1", &made), is_bad, "{app}");
    }
}

#[test]
fn a_version_that_is_not_ready_is_not_given_more_by_pods() {
    for (available, is_bad) in [(2, false), (1, true)] {
        let made = divided(available);
        assert_eq!(objects("T2", &made), is_bad, "led to {available}");
    }
    // What serves has fewer pods: the others have more of all.
    for (available, to, is_bad) in [(2, 3, false), (1, 3, true), (1, 5, false)] {
        let mut made = divided(2);
        workload(&mut made, "web", (2, available));
        size(&mut made, "web-primary", to);
        assert_eq!(objects("T2", &made), is_bad, "{available} {to}");
    }
}

#[test]
fn a_version_that_was_sent_back_has_no_pods_where_clients_find_them() {
    let (both, old): (&[&str], &[&str]) = (&["old", "new"], &["old"]);
    for (is_led_back, found, is_bad) in [
        (true, old, false),
        (false, both, true),
        // By what is written it is gone, and in fact it is not.
        (true, both, true),
    ] {
        let mut made = divided(2);
        status(&mut made, "Failed", 0);
        if is_led_back {
            lead(&mut made, &one("web-primary"));
        }
        behind(&mut made, "web", found);
        made.pass(60);
        assert_eq!(objects("T5", &made), is_bad, "{is_led_back} {found:?}");
    }
}

#[test]
fn clients_are_not_led_to_a_version_without_pods_for_long() {
    for (seconds, is_bad) in [(3, false), (60, true)] {
        let mut made = divided(2);
        behind(&mut made, "web-canary", &[]);
        behind(&mut made, "web", &["old"]);
        made.pass(seconds);
        lead(&mut made, &one("web-primary"));
        made.pass(60);
        assert_eq!(objects("T7", &made), is_bad, "{seconds}");
    }
}
