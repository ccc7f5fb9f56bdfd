//! `kubernetes:replicas`: nobody divides requests, and the numbers of pods are the weights. Scenarios 36 and 89, R13, R15 and R19.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_api::canary::Phase;
use slipway_canary::engine::Weights;
use slipway_canary::reasons::Reason;
use slipway_canary::router::{
    CannotRoute, Ensured, Objects, Pods, Route, borrows, ensure, restore, retreat,
};
use slipway_canary::spec::read_with;
use slipway_canary::stage::Stage;

use crate::cluster::{Cluster, canary};
use crate::obstacles::command;
use crate::planner::{controllers, phase, push, settle, stage, until};
use crate::routes::{give_back, named, objects, route, shift};

const LABEL: &str = "slipway.dev/canary";
const WEIGHT: &str = "slipway.dev/canary-weight";

fn divided(weights: &[u8]) -> Value {
    json!({"provider": "kubernetes:replicas",
        "analysis": {"stepWeight": null, "stepWeights": weights}})
}

/// A Canary of seven pods that serves.
fn started(spec: &Value) -> Cluster {
    let mut cluster = Cluster::new(spec);
    let patch =
        json!({"spec": {"replicas": 7, "template": {"metadata": {"labels": {LABEL: "web"}}}}});
    cluster.change("Deployment", "web", &patch);
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    cluster
}

fn weight(cluster: &Cluster) -> i64 {
    cluster.canary.status.as_ref().unwrap().canary_weight
}

/// Replicas of target and source.
fn sizes(cluster: &Cluster) -> (i64, i64) {
    (cluster.replicas("web"), cluster.replicas("web-primary"))
}

/// What the apex says of where requests go.
fn said(cluster: &Cluster) -> (Value, Value) {
    let apex = cluster.get("Service", "web");
    (
        apex["spec"].clone(),
        apex["metadata"]["annotations"].clone(),
    )
}

/// Passes until nothing comes of it at this moment, with what has to hold after each.
fn settled(cluster: &mut Cluster) -> Option<jiff::Timestamp> {
    for _ in 0..200 {
        let (is_something, wake) = cluster.pass();
        let (target, source) = cluster.led();
        assert!(target + source > 0, "requests go to nobody");
        let (new, serving) = sizes(cluster);
        assert!(serving > 0 && new + serving >= 7, "somebody is starved");
        if !is_something {
            return wake;
        }
    }
    panic!("it does not settle");
}

/// To the end: each (weight, pods of both that the apex leads to) that there was for a while.
fn story(cluster: &mut Cluster) -> Vec<(i64, (i64, i64))> {
    let mut all = Vec::new();
    for _ in 0..100 {
        let wake = settled(cluster);
        let seen = (weight(cluster), cluster.led());
        if all.last() != Some(&seen) {
            all.push(seen);
        }
        let Some(wake) = wake else { break };
        cluster.now = wake;
    }
    all
}

#[test]
fn scenario_36_and_r13_pods_are_divided_as_the_weight_says() {
    let mut cluster = started(&divided(&[10, 20, 30, 40, 50]));
    let before = said(&cluster);
    assert_eq!((cluster.led(), sizes(&cluster)), ((0, 7), (0, 7)));
    cluster.push("web:2");
    let expected = [
        (10, (1, 6)),
        (20, (2, 5)),
        (30, (3, 4)),
        (40, (3, 4)),
        (50, (4, 3)),
        (0, (0, 7)),
    ];
    assert_eq!(story(&mut cluster), expected);
    assert_eq!(cluster.phase(), Phase::Succeeded);
    assert_eq!(cluster.image("web-primary"), "web:2");
    assert_eq!(sizes(&cluster), (0, 7));
    assert_eq!(said(&cluster), before, "the apex is what it was");
    let writes = cluster.writes;
    assert_eq!(cluster.settle(), None);
    assert_eq!(cluster.writes, writes, "an idle canary costs nothing");
    // And once more, by all the traffic: who is to be gone back to is kept.
    let all = json!({"analysis": {"stepWeights": [100]}});
    cluster.canary.spec = canary(&{
        let mut spec = divided(&[]);
        slipway_kernel::fields::merge(&mut spec, &all);
        spec
    })
    .spec;
    cluster.push("web:3");
    assert_eq!(story(&mut cluster), [(100, (7, 0)), (0, (0, 7))]);
    assert_eq!(cluster.image("web-primary"), "web:3");
}

#[test]
fn r15_nobody_goes_before_others_have_come() {
    let mut cluster = started(&divided(&[50]));
    cluster.heals = false;
    cluster.push("web:2");
    cluster.settle();
    // The new pods do not get ready.
    assert_eq!(sizes(&cluster), (1, 7));
    assert_eq!(cluster.led(), (0, 7));
    cluster.heals = true;
    cluster.controllers();
    settled(&mut cluster);
    assert_eq!((weight(&cluster), cluster.led()), (50, (4, 3)));
}

#[test]
fn r19_a_rollback_takes_the_traffic_at_once_and_gives_the_replicas_back() {
    for verb in ["", "abort"] {
        let mut cluster = started(&divided(&[50, 100]));
        let before = said(&cluster);
        cluster.push("web:2");
        settled(&mut cluster);
        assert_eq!((weight(&cluster), cluster.led()), (50, (4, 3)));
        if verb.is_empty() {
            cluster.value = 5.0;
            for _ in 0..2 {
                cluster.now += std::time::Duration::from_secs(10);
                cluster.pass();
            }
        } else {
            let asked = json!({"verb": verb, "id": "1"}).to_string();
            let annotations = BTreeMap::from([(slipway_api::flagger::COMMAND.to_owned(), asked)]);
            cluster.canary.metadata.annotations = Some(annotations);
            cluster.pass();
        }
        assert_eq!(cluster.phase(), Phase::Failed);
        cluster.pass();
        assert_eq!(cluster.led().0, 0, "in the next look");
        assert_eq!(
            sizes(&cluster),
            (4, 7),
            "who has all requests gets all pods"
        );
        story(&mut cluster);
        assert_eq!((cluster.led(), sizes(&cluster)), ((0, 7), (0, 7)));
        assert_eq!(cluster.phase(), Phase::Failed);
        assert_eq!(cluster.image("web-primary"), "web:1");
        assert_eq!(said(&cluster), before, "the apex is what it was");
        let run = cluster
            .canary
            .status
            .as_ref()
            .unwrap()
            .run
            .as_ref()
            .unwrap();
        assert_eq!(run.replicas, None, "nothing is left to be given back");
    }
}

#[test]
fn pods_that_take_longer_than_an_interval_hold_up_their_step_and_no_more() {
    let mut cluster = started(&divided(&[20, 50]));
    cluster.push("web:2");
    settled(&mut cluster);
    assert_eq!((weight(&cluster), cluster.led()), (20, (2, 5)));
    cluster.heals = false;
    cluster.now += std::time::Duration::from_secs(10);
    cluster.pass();
    while sizes(&cluster) != (4, 5) {
        cluster.pass();
    }
    // Those that were there are, and the two others are not yet. It is measured and found good meanwhile.
    let slow = json!({"status": {"availableReplicas": 2}});
    cluster.change("Deployment", "web", &slow);
    for _ in 0..3 {
        settled(&mut cluster);
        assert_eq!((weight(&cluster), cluster.led()), (50, (2, 5)));
        cluster.now += std::time::Duration::from_secs(10);
    }
    cluster.heals = true;
    cluster.controllers();
    story(&mut cluster);
    assert_eq!(cluster.image("web-primary"), "web:2");
    assert_eq!(sizes(&cluster), (0, 7));
}

#[test]
fn a_version_in_the_middle_gets_no_more_than_its_own_share() {
    let mut cluster = started(&divided(&[10, 50]));
    cluster.push("web:2");
    settled(&mut cluster);
    cluster.now += std::time::Duration::from_secs(10);
    settled(&mut cluster);
    assert_eq!((weight(&cluster), cluster.led()), (50, (4, 3)));
    cluster.push("web:3");
    cluster.pass();
    cluster.pass();
    assert_eq!(cluster.led().0, 0, "nobody has analysed it");
    settled(&mut cluster);
    assert_eq!((weight(&cluster), cluster.led()), (10, (1, 6)));
    story(&mut cluster);
    assert_eq!(cluster.image("web-primary"), "web:3");
    assert_eq!(sizes(&cluster), (0, 7));
}

#[test]
fn the_serving_version_in_the_middle_gets_its_replicas_back() {
    let mut cluster = started(&divided(&[50, 60]));
    cluster.push("web:2");
    settled(&mut cluster);
    cluster.push("web:1");
    story(&mut cluster);
    assert_eq!(cluster.phase(), Phase::Succeeded);
    assert_eq!((cluster.led(), sizes(&cluster)), ((0, 7), (0, 7)));
}

#[test]
fn blue_green_has_all_pods_before_it_has_all_requests() {
    let spec = json!({"provider": "kubernetes:replicas",
        "analysis": {"stepWeight": null, "iterations": 2}});
    let mut cluster = started(&spec);
    cluster.push("web:2");
    assert_eq!(
        story(&mut cluster),
        [(0, (0, 7)), (100, (7, 0)), (0, (0, 7))]
    );
    assert_eq!(cluster.phase(), Phase::Succeeded);
}

/// Scenario 89: a plan of which only the beginning was done is not missed by anybody.
#[test]
fn scenario_89_a_crash_between_any_two_writes_comes_to_the_same_end() {
    let gateway = json!({"provider": "gatewayapi:v1", "service": {"gatewayRefs": [{"name": "gw"}]},
        "analysis": {"stepWeight": null, "stepWeights": [20, 60], "stepWeightPromotion": 30}});
    let plain =
        json!({"provider": "kubernetes", "analysis": {"stepWeight": null, "iterations": 2}});
    for spec in [gateway, plain, divided(&[20, 60])] {
        for value in [0.0, 5.0] {
            let whole = |dies_after: Option<usize>| {
                let mut cluster = Cluster::new(&spec);
                cluster.dies_after = dies_after;
                let patch = json!({"spec": {"template": {"metadata": {"labels": {LABEL: "web"}}}}});
                cluster.change("Deployment", "web", &patch);
                cluster.finish();
                cluster.value = value;
                cluster.config("conf", "2");
                cluster.push("web:2");
                cluster.finish();
                cluster
            };
            let expected = whole(None);
            for dies_after in 0..expected.writes {
                let cluster = whole(Some(dies_after));
                assert_eq!(ends(&cluster), ends(&expected), "after {dies_after} writes");
                assert_eq!(cluster.phases, expected.phases, "after {dies_after} writes");
                assert_eq!(cluster.shares, expected.shares, "after {dies_after} writes");
            }
        }
    }
}

/// What a run leaves behind.
fn ends(cluster: &Cluster) -> (Phase, Value, BTreeMap<(String, String), Value>) {
    let status = cluster.canary.status.as_ref().unwrap();
    let run = status.run.as_ref().unwrap();
    let left = json!({"weight": status.canary_weight, "serving": status.last_promoted_spec,
        "draining": run.draining, "replicas": run.replicas, "ends": run.ends});
    let specs = cluster.objects.0.iter();
    let specs = specs.map(|(key, object)| (key.clone(), object["spec"].clone()));
    (cluster.phase(), left, specs.collect())
}

/// The route of a person's own Service, and all that it leads to.
pub(crate) fn shop() -> (Route, Objects) {
    let mut route = route(json!({}));
    route.pods = Some(Pods {
        key: "app".to_owned(),
        source: "web-primary".to_owned(),
        target: "web".to_owned(),
        kind: "Deployment".to_owned(),
        of_source: "web-primary".to_owned(),
        of_target: "web".to_owned(),
    });
    let workload = |name: &str| {
        json!({"kind": "Deployment", "metadata": {"name": name},
            "spec": {"template": {"metadata": {"labels": {"app": name, "tier": "front", LABEL: "web"}}}}})
    };
    let apex = json!({"kind": "Service", "metadata": {"name": "web", "annotations": {"own": "a"}},
        "spec": {"selector": {"app": "web-primary", "tier": "front"}}});
    let all = objects(&[workload("web"), workload("web-primary"), apex]);
    (route, all)
}

fn apex(all: &Objects) -> &Value {
    all.get("Service", "web").unwrap()
}

#[test]
fn a_service_leads_to_both_by_what_their_pods_share_and_is_what_it_was_afterwards() {
    let replicas = named("kubernetes:replicas");
    let (route, mut all) = shop();
    let before = apex(&all).clone();
    let steps = [
        (1, json!({LABEL: "web", "tier": "front"}), json!("1")),
        (99, json!({LABEL: "web", "tier": "front"}), json!("99")),
        (100, json!({"app": "web", "tier": "front"}), json!("100")),
        (30, json!({LABEL: "web", "tier": "front"}), json!("30")),
    ];
    for (weight, selector, written) in steps {
        shift(replicas, &route, &mut all, Weights::to_target(weight)).unwrap();
        assert_eq!(apex(&all)["spec"]["selector"], selector);
        assert_eq!(apex(&all)["metadata"]["annotations"][WEIGHT], written);
        assert!(borrows(replicas, &route, &all));
    }
    shift(replicas, &route, &mut all, Weights::SOURCE).unwrap();
    assert_eq!(apex(&all)["spec"], before["spec"]);
    let annotations = |one: &Value| one["metadata"]["annotations"].clone();
    assert_eq!(annotations(apex(&all)), annotations(&before));
    // In the middle it is given back to the workload, which is all that is left.
    shift(replicas, &route, &mut all, Weights::to_target(30)).unwrap();
    give_back(replicas, &route, &mut all);
    let own = json!({"app": "web", "tier": "front"});
    assert_eq!(apex(&all)["spec"]["selector"], own);
    assert_eq!(annotations(apex(&all)), annotations(&before));
}

#[test]
fn a_selector_of_somebody_elses_is_no_weight() {
    let replicas = named("kubernetes:replicas");
    let (route, mut all) = shop();
    shift(replicas, &route, &mut all, Weights::to_target(30)).unwrap();
    let key = ("Service".to_owned(), "web".to_owned());
    for selector in [
        json!({"app": "web"}),
        json!({"app": "other"}),
        json!({LABEL: "other"}),
        json!({}),
    ] {
        all.0.get_mut(&key).unwrap()["spec"]["selector"] = selector.clone();
        let seen = slipway_canary::router::seen(replicas, &route, &all).unwrap();
        assert_eq!(seen.weights, None, "{selector}");
        shift(replicas, &route, &mut all, Weights::to_target(30)).unwrap();
    }
    let owner = json!([{"kind": "Other", "uid": "other", "controller": true}]);
    all.0.get_mut(&key).unwrap()["metadata"]["ownerReferences"] = owner;
    let refused = ensure(replicas, &route, &all, Weights::SOURCE).unwrap_err();
    assert!(matches!(refused, CannotRoute::NotOurs { .. }), "{refused}");
    // Nor is it led back.
    let annotated = json!({"metadata": {"annotations": {WEIGHT: "30"}}});
    slipway_kernel::fields::merge(all.0.get_mut(&key).unwrap(), &annotated);
    assert_eq!(retreat(replicas, &route, &all), []);
    assert_eq!(restore(replicas, &route, &all), []);
    assert!(!borrows(replicas, &route, &all));
}

#[test]
fn pods_that_no_service_could_find_together_are_named() {
    let replicas = named("kubernetes:replicas");
    for name in ["web", "web-primary"] {
        let (route, mut all) = shop();
        let key = ("Deployment".to_owned(), name.to_owned());
        let labels = json!({"app": name, LABEL: "other"});
        all.0.get_mut(&key).unwrap()["spec"]["template"]["metadata"]["labels"] = labels;
        let refused = ensure(replicas, &route, &all, Weights::to_target(30)).unwrap_err();
        let told = refused.to_string();
        assert!(told.contains(LABEL) && told.contains(name), "{told}");
        // To go back needs nothing of that.
        let back = ensure(replicas, &route, &all, Weights::SOURCE);
        assert_eq!(back, Ok(Ensured::Converged));
    }
    // It is said before anything is taken.
    let mut cluster = Cluster::new(&divided(&[50]));
    cluster.settle();
    assert!(cluster.holds.contains(&Reason::InvalidSpec));
    assert_eq!(cluster.replicas("web"), 3);
    assert_eq!(cluster.objects.get("Deployment", "web-primary"), None);
}

#[test]
fn a_version_without_the_label_gets_nothing_and_goes_back_in_time() {
    let mut cluster = started(&divided(&[50, 60]));
    cluster.push("web:2");
    settled(&mut cluster);
    assert_eq!(cluster.led(), (4, 3));
    let patch = json!({"spec": {"template": {"metadata": {"labels": {LABEL: null}}}}});
    cluster.change("Deployment", "web", &patch);
    for _ in 0..200 {
        let wake = settled(&mut cluster);
        assert_eq!(cluster.led().0, 0);
        let Some(wake) = wake else { break };
        cluster.now = wake;
    }
    assert_eq!(cluster.phase(), Phase::Failed);
    assert_eq!(sizes(&cluster), (0, 7));
    assert!(cluster.holds.contains(&Reason::InvalidSpec));
}

#[test]
fn what_scales_itself_or_has_no_replicas_is_refused() {
    let replicas = named("kubernetes:replicas");
    let problem = |spec: &Value| {
        read_with(&canary(spec).spec, replicas)
            .unwrap_err()
            .to_string()
    };
    let scaled = json!({"autoscalerRef": {"apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler", "name": "web"}});
    assert!(problem(&scaled).starts_with("spec.autoscalerRef: "));
    let daemon = json!({"targetRef": {"kind": "DaemonSet"}});
    assert!(problem(&daemon).starts_with("spec.targetRef: "));
    let matching = json!({"analysis": {"stepWeight": null, "iterations": 2,
        "match": [{"headers": {"a": {"exact": "b"}}}]}});
    assert!(problem(&matching).starts_with("spec.analysis.match: "));
    assert!(replicas.shifts() && replicas.divides() && !replicas.mirrors());
}

/// A planner's stage in the middle of a run: 2 of 3 pods are new.
fn halfway(spec: &Value) -> Stage {
    let mut whole = json!({"provider": "kubernetes:replicas",
        "analysis": {"iterations": null, "stepWeights": [50, 60]}});
    slipway_kernel::fields::merge(&mut whole, spec);
    let mut stage = stage(&whole);
    let label = json!({"spec": {"template": {"metadata": {"labels": {LABEL: "web"}}}}});
    stage.patch("Deployment", "shop", "web", &label);
    controllers(&mut stage);
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    until(&mut stage, "Progressing");
    assert_eq!(leads(&stage), (json!({LABEL: "web"}), json!("50")));
    assert_eq!(replicas(&stage), (2, 1));
    stage
}

/// The apex's selector, and the weight that is written on it.
fn leads(stage: &Stage) -> (Value, Value) {
    let apex = stage.get("Service", "shop", "web").unwrap();
    let weight = &apex["metadata"]["annotations"][WEIGHT];
    (apex["spec"]["selector"].clone(), weight.clone())
}

fn replicas(stage: &Stage) -> (i64, i64) {
    let of = |name: &str| {
        let workload = stage.get("Deployment", "shop", name).unwrap();
        workload["spec"]["replicas"].as_i64().unwrap()
    };
    (of("web"), of("web-primary"))
}

/// Whatever is in the way, the apex leads by the weight, and one that is taken back comes with the replicas.
#[test]
fn what_is_in_the_way_takes_nobody_s_pods_for_good() {
    let mut held = halfway(&json!({}));
    for spec in [json!({"suspend": true}), json!({"suspend": false})] {
        held.patch("Canary", "shop", "web", &json!({"spec": spec}));
        settle(&mut held, 200);
        assert_eq!(leads(&held), (json!({LABEL: "web"}), json!("50")));
        // Somebody applies the Service again.
        let own = json!({"spec": {"selector": {"app": "web", LABEL: null}}});
        held.patch("Service", "shop", "web", &own);
        settle(&mut held, 200);
        let (selector, _) = leads(&held);
        assert_ne!(
            selector["app"],
            json!("web"),
            "nobody but the new version would answer"
        );
    }
    settle(&mut held, 200);
    let wrong = json!({"spec": {"analysis": {"stepWeights": [10, 10]}}});
    held.patch("Canary", "shop", "web", &wrong);
    settle(&mut held, 200);
    assert_eq!(leads(&held), (json!({LABEL: "web"}), json!("50")));
    command(&mut held, "abort");
    settle(&mut held, 200);
    assert_eq!(phase(&held), "Failed");
    assert_eq!(leads(&held), (json!({"app": "web-primary"}), Value::Null));
    assert_eq!(replicas(&held).1, 3, "who has all requests gets all pods");
}

/// One that failed, and then names the Service of another one, draws nothing back that the other one has led there.
#[test]
fn who_comes_second_leads_nothing_of_the_first_one_s() {
    let mut held = halfway(&json!({}));
    command(&mut held, "abort");
    for _ in 0..6 {
        let plans = settle(&mut held, 200);
        held.now = plans
            .last()
            .and_then(|plan| plan.wake_at)
            .unwrap_or(held.now);
    }
    let run = &held.get("Canary", "shop", "web").unwrap()["status"]["run"];
    assert_eq!(run.get("replicas"), None, "{run}");
    held.put(
        json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": "x", "namespace": "shop", "creationTimestamp": "2026-03-04T10:00:00Z"},
        "spec": {"provider": "kubernetes:replicas", "service": {"name": "other", "port": 80},
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
            "analysis": {"interval": "10s", "threshold": 2, "stepWeights": [50]}}}),
    );
    let led = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "other", "namespace": "shop", "annotations": {WEIGHT: "50"}},
        "spec": {"ports": [{"port": 80}], "selector": {LABEL: "other"}}});
    held.put(led.clone());
    let second = json!({"spec": {"service": {"name": "other"}}});
    held.patch("Canary", "shop", "web", &second);
    settle(&mut held, 200);
    let waits = &held.get("Canary", "shop", "web").unwrap()["status"]["waitingFor"];
    assert_eq!(waits[0]["reason"], "TargetBusy", "{waits}");
    let other = held.get("Service", "shop", "other").unwrap();
    assert_eq!(other["spec"]["selector"], led["spec"]["selector"]);
    assert_eq!(other["metadata"]["annotations"][WEIGHT], "50");
}

/// Who is deleted between any two writes is kept while a person's own Service is not what it was, and only in a run.
#[test]
fn a_canary_is_kept_before_a_person_s_service_is_changed() {
    let mut stage = stage(&json!({"provider": "kubernetes:replicas",
        "analysis": {"iterations": null, "stepWeights": [50]}}));
    let label = json!({"spec": {"template": {"metadata": {"labels": {LABEL: "web"}}}}});
    stage.patch("Deployment", "shop", "web", &label);
    stage.put(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}}}));
    controllers(&mut stage);
    until(&mut stage, "Initialized");
    let is_kept = |stage: &Stage| {
        let canary = stage.get("Canary", "shop", "web").unwrap();
        canary["metadata"]["finalizers"] == json!(["finalizer.flagger.app"])
    };
    assert!(!is_kept(&stage), "it is idle");
    push(&mut stage, "web:2");
    let mut was_changed = false;
    for _ in 0..100 {
        let plan = stage.step();
        controllers(&mut stage);
        let is_changed = !leads(&stage).1.is_null();
        assert!(!is_changed || is_kept(&stage), "{}", phase(&stage));
        was_changed |= is_changed;
        if plan.steps.is_empty() && plan.statuses.is_empty() {
            stage.now = plan.wake_at.unwrap_or(stage.now);
        }
    }
    assert!(was_changed);
    assert_eq!(phase(&stage), "Succeeded");
    assert!(!is_kept(&stage), "its run is over");
}

#[test]
fn a_canary_that_goes_in_the_middle_gives_the_service_back() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    let mut held = halfway(&json!({"revertOnDeletion": true}));
    held.patch("Canary", "shop", "web", &deleted);
    for _ in 0..30 {
        let plan = held.step();
        controllers(&mut held);
        if plan.steps.is_empty() && plan.statuses.is_empty() {
            held.now = plan.wake_at.unwrap_or(held.now);
        }
    }
    assert_eq!(leads(&held), (json!({"app": "web"}), Value::Null));
    assert_eq!(replicas(&held), (3, 3));
    let canary = held.get("Canary", "shop", "web").unwrap();
    assert_eq!(canary["metadata"]["finalizers"], json!([]));
}
