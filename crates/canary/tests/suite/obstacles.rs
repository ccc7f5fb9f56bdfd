//! What stands in the way in the middle of a run, and what is done all the same.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_api::purpose::canary as purpose;
use slipway_canary::stage::Stage;
use slipway_kernel::fact::{Cause, Missing, Refusal, Unseen};
use slipway_kernel::{ClusterId, ObjectRef};

use crate::planner::{controllers, phase, push, questions, settle, stage, status, until};

/// A run that has given the new version half of the traffic.
fn half_way() -> Stage {
    let analysis = json!({"iterations": null, "stepWeights": [50, 100]});
    let mut stage = stage(&json!({"provider": "smi:v1alpha1", "analysis": analysis}));
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    settle(&mut stage, 200);
    assert_eq!(status(&stage)["canaryWeight"], 50, "{:#}", status(&stage));
    assert_eq!(share(&stage), "50");
    stage
}

/// What the split gives the new version.
fn share(stage: &Stage) -> String {
    let split = stage.get("TrafficSplit", "shop", "web").unwrap();
    let weight = &split["spec"]["backends"][0]["weight"];
    weight.as_str().unwrap().to_owned()
}

pub(crate) fn command(stage: &mut Stage, verb: &str) {
    let written = json!({"verb": verb, "by": "ann", "reason": "because"}).to_string();
    let annotations = json!({slipway_api::flagger::COMMAND: written});
    let patch = json!({"metadata": {"annotations": annotations}});
    stage.patch("Canary", "shop", "web", &patch);
}

fn obstruct(stage: &mut Stage) {
    let scaler = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web"});
    let patch = json!({"spec": {"autoscalerRef": scaler}});
    stage.patch("Canary", "shop", "web", &patch);
}

/// Where nothing shifts traffic a version is checked beside it, also if nobody says how often, and that is how its end counts.
#[test]
fn a_run_that_cannot_be_followed_any_more_ends_as_what_it_was() {
    let mut stage = stage(&json!({"analysis": {"iterations": null}}));
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    settle(&mut stage, 200);
    obstruct(&mut stage);
    command(&mut stage, "abort");
    settle(&mut stage, 200);
    assert_eq!(phase(&stage), "Failed");
    let ends = json!({"failed/blue-green/completed": 1});
    assert_eq!(status(&stage)["run"]["ends"], ends);
}

#[test]
fn abort_is_heard_whatever_is_in_the_way() {
    let mut stage = half_way();
    obstruct(&mut stage);
    settle(&mut stage, 200);
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "Unsupported");
    assert_eq!(share(&stage), "50");
    command(&mut stage, "abort");
    settle(&mut stage, 200);
    assert_eq!(
        (phase(&stage).as_str(), share(&stage).as_str()),
        ("Failed", "0")
    );
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "Unsupported");
    // Its pods go when the Canary can be followed again.
    let patch = json!({"spec": {"autoscalerRef": null}});
    stage.patch("Canary", "shop", "web", &patch);
    for _ in 0..4 {
        let plans = settle(&mut stage, 200);
        if let Some(wake) = plans.last().and_then(|plan| plan.wake_at) {
            stage.now = wake;
        }
    }
    let target = stage.get("Deployment", "shop", "web").unwrap();
    assert_eq!(target["spec"]["replicas"], 0);
}

#[test]
fn abort_is_heard_whatever_is_wrong_with_the_canary() {
    let unknown = json!([{"name": "gate", "url": "http://gate.test/", "type": "never"}]);
    for wrong in [
        json!({"stepWeights": [10, 10]}),
        json!({"webhooks": unknown}),
        json!({"sessionAffinity": {"cookieName": "a"}}),
        json!({"stepPauses": ["soon"]}),
    ] {
        let mut stage = half_way();
        let patch = json!({"spec": {"analysis": wrong}});
        stage.patch("Canary", "shop", "web", &patch);
        settle(&mut stage, 200);
        let waits = status(&stage)["waitingFor"][0]["reason"].clone();
        assert_eq!(waits, "InvalidSpec", "{wrong}");
        assert_eq!(share(&stage), "50", "{wrong}");
        command(&mut stage, "abort");
        settle(&mut stage, 200);
        assert_eq!(
            (phase(&stage).as_str(), share(&stage).as_str()),
            ("Failed", "0")
        );
    }
}

#[test]
fn abort_is_heard_whatever_kind_the_workload_is_said_to_be_of() {
    for (kind, reason) in [
        ("StatefulSet", "Unsupported"),
        ("DaemonSet", "TargetNotFound"),
    ] {
        let mut stage = half_way();
        let patch = json!({"spec": {"targetRef": {"kind": kind}}});
        stage.patch("Canary", "shop", "web", &patch);
        settle(&mut stage, 200);
        assert_eq!(status(&stage)["waitingFor"][0]["reason"], reason);
        assert_eq!(share(&stage), "50", "{kind}");
        command(&mut stage, "abort");
        settle(&mut stage, 200);
        let ended = (phase(&stage), share(&stage));
        assert_eq!(ended, ("Failed".to_owned(), "0".to_owned()), "{kind}");
    }
}

#[test]
fn what_happens_is_told_whatever_is_in_the_way() {
    let mut stage = half_way();
    stage.put(
        json!({"apiVersion": "flagger.app/v1beta1", "kind": "AlertProvider",
        "metadata": {"name": "chat", "namespace": "shop"},
        "spec": {"type": "slack", "address": "https://chat.example.com/hook"}}),
    );
    let alerts = json!([{"name": "a", "severity": "error", "providerRef": {"name": "chat"}}]);
    let patch = json!({"spec": {"analysis": {"alerts": alerts}}});
    stage.patch("Canary", "shop", "web", &patch);
    obstruct(&mut stage);
    settle(&mut stage, 200);
    command(&mut stage, "abort");
    let plans = settle(&mut stage, 200);
    let asks = plans.iter().flat_map(questions);
    let told = asks.filter(|one| one.id.purpose == purpose::TELL).count();
    assert_eq!(told, 1, "{:#}", status(&stage));
    assert_eq!(status(&stage)["untold"], Value::Null, "once");
}

#[test]
fn a_version_without_pods_loses_its_traffic_whatever_is_in_the_way() {
    let mut stage = half_way();
    obstruct(&mut stage);
    let down = json!({"status": {"availableReplicas": 0}});
    stage.patch("Deployment", "shop", "web", &down);
    for _ in 0..5 {
        stage.step();
    }
    assert_eq!(
        (phase(&stage).as_str(), share(&stage).as_str()),
        ("Failed", "0")
    );
}

#[test]
fn another_provider_counts_from_the_next_run_on() {
    let mut stage = half_way();
    let patch = json!({"spec": {"provider": "kubernetes"}});
    stage.patch("Canary", "shop", "web", &patch);
    let plans = settle(&mut stage, 200);
    let mut events = plans.iter().flat_map(|plan| &plan.events);
    assert!(
        events.any(|event| event.note.contains("from the next run on")),
        "{plans:#?}"
    );
    until(&mut stage, "Succeeded");
    assert_eq!(share(&stage), "0");
    push(&mut stage, "web:3");
    until(&mut stage, "Succeeded");
    assert_eq!(status(&stage)["run"]["provider"], "kubernetes");
}

#[test]
fn a_provider_and_what_only_that_can_do_send_the_version_back_and_count_from_the_next_run_on() {
    let header = json!([{"headers": {"x-canary": {"exact": "yes"}}}]);
    let matching = json!({"provider": "istio",
        "analysis": {"stepWeights": null, "iterations": 2, "match": header}});
    let sticky = json!({"provider": "gatewayapi:v1", "service": {"gatewayRefs": [{"name": "gw"}]},
        "analysis": {"sessionAffinity": {"cookieName": "c"}}});
    for spec in [matching, sticky] {
        let mut stage = half_way();
        stage.patch("Canary", "shop", "web", &json!({"spec": spec}));
        let looked = |stage: &mut Stage| {
            for _ in 0..20 {
                let plan = stage.step();
                controllers(stage);
                accept_any(stage);
                if plan.steps.is_empty() && plan.statuses.is_empty() {
                    stage.now = plan.wake_at.unwrap_or(stage.now);
                }
            }
        };
        looked(&mut stage);
        assert_eq!(
            (phase(&stage).as_str(), share(&stage).as_str()),
            ("Failed", "0")
        );
        let target = stage.get("Deployment", "shop", "web").unwrap();
        assert_eq!(target["spec"]["replicas"], 0, "{:#}", status(&stage));
        assert_eq!(status(&stage)["run"]["provider"], spec["provider"]);
        push(&mut stage, "web:3");
        for _ in 0..6 {
            looked(&mut stage);
        }
        assert_eq!(phase(&stage), "Succeeded", "{:#}", status(&stage));
    }
}

/// A gateway that takes a route of the Canary's own.
fn accept_any(stage: &mut Stage) {
    let Some(route) = stage.get("HTTPRoute", "shop", "web") else {
        return;
    };
    let condition = json!({"type": "Accepted", "status": "True",
        "observedGeneration": route["metadata"]["generation"]});
    let parents = json!([{"parentRef": {"name": "gw"}, "conditions": [condition]}]);
    if route["status"]["parents"] != parents {
        let patch = json!({"status": {"parents": parents}});
        stage.patch("HTTPRoute", "shop", "web", &patch);
    }
}

#[test]
fn a_canary_that_flagger_has_just_written_is_left_alone_for_two_intervals() {
    let mut stage = stage(&json!({}));
    let written = stage.now - Duration::from_secs(5);
    let fields =
        json!([{"manager": "flagger", "operation": "Update", "time": written.to_string()}]);
    let patch = json!({"metadata": {"managedFields": fields}});
    stage.patch("Canary", "shop", "web", &patch);
    let plans = settle(&mut stage, 200);
    let last = plans.last().unwrap();
    assert_eq!(last.blockers[0].reason, "FlaggerRuns", "{last:#?}");
    assert_eq!(last.wake_at, Some(written + Duration::from_secs(20)));
    assert_eq!(
        stage.get("Deployment", "shop", "web").unwrap()["spec"]["replicas"],
        3
    );
    stage.now = last.wake_at.unwrap();
    until(&mut stage, "Initialized");
}

#[test]
fn when_flagger_stops_two_intervals_are_waited_for() {
    let mut stage = stage(&json!({}));
    let containers = json!([{"name": "flagger", "image": "ghcr.io/fluxcd/flagger:1.43.0"}]);
    stage.put(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "flagger", "namespace": "flagger-system"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}}}));
    settle(&mut stage, 200);
    let waits = status(&stage)["waitingFor"][0].clone();
    assert_eq!(waits["reason"], "FlaggerRuns", "{waits}");
    let stopped = json!({"spec": {"replicas": 0}});
    stage.patch("Deployment", "flagger-system", "flagger", &stopped);
    let plans = settle(&mut stage, 200);
    let wake = plans.last().unwrap().wake_at.unwrap();
    assert_eq!(wake, stage.now + Duration::from_secs(20));
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "FlaggerRuns");
    stage.now = wake;
    until(&mut stage, "Initialized");
}

#[test]
fn a_deletion_that_waits_for_ever_can_be_aborted() {
    let mut stage = stage(&json!({"revertOnDeletion": true}));
    until(&mut stage, "Initialized");
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    for _ in 0..10 {
        // Nothing becomes ready.
        stage.step();
    }
    let finalizers = |stage: &Stage| {
        let canary = stage.get("Canary", "shop", "web").unwrap();
        canary["metadata"]["finalizers"].clone()
    };
    assert_eq!(finalizers(&stage), json!(["finalizer.flagger.app"]));
    command(&mut stage, "abort");
    stage.step();
    assert_eq!(finalizers(&stage), json!([]));
}

#[test]
fn a_version_that_waits_for_approval_can_be_aborted_whatever_is_in_the_way() {
    let hook = json!({"name": "start", "type": "confirm-rollout", "url": "http://gate.shop/"});
    let mut stage = stage(&json!({"analysis": {"webhooks": [hook]}}));
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    settle(&mut stage, 403);
    assert_eq!(phase(&stage), "Waiting", "{:#}", status(&stage));
    obstruct(&mut stage);
    settle(&mut stage, 403);
    command(&mut stage, "abort");
    settle(&mut stage, 403);
    assert_eq!(phase(&stage), "Failed");
}

/// A gateway that takes the route.
fn accept(stage: &mut Stage) {
    let route = stage.get("HTTPRoute", "shop", "theirs").unwrap();
    let condition = json!({"type": "Accepted", "status": "True",
        "observedGeneration": route["metadata"]["generation"]});
    let parents = json!([{"parentRef": {"name": "gw"}, "conditions": [condition]}]);
    if route["status"]["parents"] != parents {
        let patch = json!({"status": {"parents": parents}});
        stage.patch("HTTPRoute", "shop", "theirs", &patch);
    }
}

fn routed(stage: &mut Stage, number: usize) -> Option<jiff::Timestamp> {
    let mut wake = None;
    for _ in 0..number {
        accept(stage);
        wake = stage.step().wake_at;
        controllers(stage);
    }
    wake
}

/// A Canary comes to its copy, for which those who call its Service have a while.
fn made(stage: &mut Stage) {
    if let Some(wake) = routed(stage, 20) {
        stage.now = wake;
    }
    routed(stage, 20);
}

#[test]
fn a_persons_own_route_is_what_it_was_when_a_canary_goes_in_the_middle_of_a_run() {
    let mut stage = stage(&json!({
        "provider": "gatewayapi:v1",
        "routeRef": {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "name": "theirs"},
        "analysis": {"iterations": null, "stepWeights": [50, 100]},
    }));
    let rules = json!([{"backendRefs": [{"name": "web", "port": 80}]},
        {"matches": [{"path": {"value": "/off"}}], "backendRefs": [{"name": "web", "port": 80, "weight": 0}]}]);
    stage.put(
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "theirs", "namespace": "shop"}, "spec": {"rules": rules}}),
    );
    made(&mut stage);
    assert_eq!(phase(&stage), "Initialized", "{:#}", status(&stage));
    push(&mut stage, "web:2");
    routed(&mut stage, 20);
    assert_eq!(status(&stage)["canaryWeight"], 50, "{:#}", status(&stage));
    let now = |stage: &Stage| -> Value {
        let route = stage.get("HTTPRoute", "shop", "theirs").unwrap();
        route["spec"]["rules"].clone()
    };
    assert_ne!(now(&stage), rules);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    routed(&mut stage, 6);
    let weights = |rules: &Value| -> Vec<(Value, Value)> {
        let all = rules.as_array().unwrap().iter();
        let backends = all.flat_map(|rule| rule["backendRefs"].as_array().unwrap());
        let each = backends.map(|one| (one["name"].clone(), one["weight"].clone()));
        each.collect()
    };
    let after = now(&stage);
    assert_eq!(
        weights(&after),
        [(json!("web"), json!(1)), (json!("web"), json!(0))],
        "{after}"
    );
    let canary = stage.get("Canary", "shop", "web").unwrap();
    assert_eq!(canary["metadata"]["finalizers"], json!([]));
    let target = stage.get("Deployment", "shop", "web").unwrap();
    assert_eq!(
        target["spec"]["replicas"], 3,
        "replicas are left as they are"
    );
}

#[test]
fn another_service_counts_from_the_next_run_on() {
    let mut stage = half_way();
    let patch = json!({"spec": {"service": {"name": "other"}}});
    stage.patch("Canary", "shop", "web", &patch);
    let plans = settle(&mut stage, 200);
    let mut events = plans.iter().flat_map(|plan| &plan.events);
    assert!(
        events.any(|event| event.note.contains("from the next run on")),
        "{plans:#?}"
    );
    until(&mut stage, "Succeeded");
    assert_eq!(share(&stage), "0", "what had the weight gave it back");
    push(&mut stage, "web:3");
    until(&mut stage, "Succeeded");
    assert_eq!(status(&stage)["run"]["places"]["apex"], "other");
}

/// A run that has given the new version half of what a person's own route leads to.
fn borrowing() -> (Stage, Value) {
    let mut stage = stage(&json!({
        "provider": "gatewayapi:v1",
        "routeRef": {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "name": "theirs"},
        "analysis": {"iterations": null, "stepWeights": [50, 100]},
    }));
    let rules = json!([{"backendRefs": [{"name": "web", "port": 80, "weight": 1}]}]);
    for name in ["theirs", "others"] {
        stage.put(
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": name, "namespace": "shop"}, "spec": {"rules": rules}}),
        );
    }
    made(&mut stage);
    push(&mut stage, "web:2");
    routed(&mut stage, 20);
    assert_eq!(status(&stage)["canaryWeight"], 50, "{:#}", status(&stage));
    (stage, rules)
}

fn rules(stage: &Stage, name: &str) -> Value {
    stage.get("HTTPRoute", "shop", name).unwrap()["spec"]["rules"].clone()
}

#[test]
fn another_route_counts_from_the_next_run_on() {
    let (mut stage, before) = borrowing();
    let patch = json!({"spec": {"routeRef": {"name": "others"}}});
    stage.patch("Canary", "shop", "web", &patch);
    for _ in 0..6 {
        if let Some(wake) = routed(&mut stage, 20) {
            stage.now = wake;
        }
    }
    assert_eq!(phase(&stage), "Succeeded", "{:#}", status(&stage));
    for name in ["theirs", "others"] {
        assert_eq!(rules(&stage, name), before, "{name}");
    }
}

#[test]
fn a_route_that_cannot_be_seen_is_not_let_go_of() {
    let (mut stage, _) = borrowing();
    let provider = slipway_canary::provider::Provider::of("gatewayapi:v1").unwrap();
    for kind in slipway_canary::router::kinds(provider) {
        let unseen = Missing::unseen(Unseen::Absent, &ClusterId::local(), &kind);
        stage.facts.missing.insert(unseen);
    }
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    for _ in 0..6 {
        stage.step();
    }
    let canary = stage.get("Canary", "shop", "web").unwrap();
    assert_eq!(
        canary["metadata"]["finalizers"],
        json!(["finalizer.flagger.app"])
    );
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "RouteNotFound");
}

#[test]
fn a_config_that_the_api_refuses_to_copy_ends_the_promotion_in_time() {
    let mut stage = stage(&json!({}));
    let map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "conf", "namespace": "shop"}, "data": {"k": value}})
    };
    stage.put(map("1"));
    let env = json!([{"configMapRef": {"name": "conf"}}]);
    let containers = json!([{"name": "c", "image": "web:1", "envFrom": env}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.patch("Deployment", "shop", "web", &patch);
    controllers(&mut stage);
    until(&mut stage, "Initialized");
    stage.put(map("2"));
    until(&mut stage, "Progressing");
    let refusal = Refusal {
        cause: Cause::Rejected,
        reason: "Forbidden".to_owned(),
        message: "exceeded quota".to_owned(),
        attempts: 1,
        since: stage.now,
        retry_at: stage.now + Duration::from_mins(5),
    };
    let kind = slipway_canary::kinds::CONFIG_MAP;
    let former = ObjectRef::local(kind, "shop", "conf-primary-former");
    stage.facts.refusals.insert(former.clone(), refusal);
    for _ in 0..200 {
        let plan = stage.plan();
        let is_refused = |object: &ObjectRef| *object == former;
        if plan
            .steps
            .iter()
            .any(|step| step.action.object().is_some_and(is_refused))
        {
            stage.now = plan
                .wake_at
                .unwrap_or_else(|| panic!("it waits for ever: {plan:#?}"));
            continue;
        }
        let plan = stage.step();
        controllers(&mut stage);
        if plan.steps.is_empty() && plan.statuses.is_empty() {
            stage.now = plan.wake_at.unwrap_or(stage.now);
        }
    }
    assert_eq!(phase(&stage), "Failed", "{:#}", status(&stage));
}

#[test]
fn a_name_that_counts_from_the_next_run_on_is_another_canarys_from_then_on() {
    let mut stage = half_way();
    stage.put(json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": "web-api", "namespace": "shop", "creationTimestamp": "2025-03-04T11:00:00Z"},
        "spec": {"provider": "kubernetes", "service": {"port": 80},
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"},
            "analysis": {"interval": "10s", "threshold": 2, "iterations": 2}}}));
    let patch = json!({"spec": {"service": {"name": "api"}}});
    stage.patch("Canary", "shop", "web", &patch);
    until(&mut stage, "Succeeded");
    settle(&mut stage, 200);
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "TargetBusy");
}
