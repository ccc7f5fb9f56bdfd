//! Canaries that are deleted: what they took is given back, all of it, and to whom it was taken from.

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_canary::stage::Stage;
use slipway_canary::{Canaries, Settings};
use slipway_kernel::fact::{Missing, Unseen};
use slipway_kernel::fields::merge;
use slipway_kernel::{ClusterId, Controller, Key, Plan};

use crate::obstacles::command;
use crate::planner::{canary, controllers, is_away, phase, push, settle, stage, status, until};

/// Time passes, as often as the plan asks for.
fn pass(stage: &mut Stage) {
    for _ in 0..20 {
        let plan = stage.step();
        controllers(stage);
        if plan.steps.is_empty() && plan.statuses.is_empty() {
            stage.now = plan.wake_at.unwrap_or(stage.now);
        }
    }
}

/// What a Canary that is deleted gave back: whether it still exists, and what its Service leads to.
fn given_back(stage: &mut Stage) -> (Value, Value, Value) {
    pass(stage);
    let canary = stage.get("Canary", "shop", "web").unwrap();
    let apex = stage.get("Service", "shop", "web").unwrap();
    let target = stage.get("Deployment", "shop", "web").unwrap();
    (
        canary["metadata"]["finalizers"].clone(),
        apex["spec"]["selector"]["app"].clone(),
        target["spec"]["replicas"].clone(),
    )
}

#[test]
fn an_abort_that_was_written_before_a_deletion_is_not_for_it() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    let all_back = (json!([]), json!("web"), json!(3));
    // Both are seen at once.
    let mut both = stage(&json!({"revertOnDeletion": true}));
    until(&mut both, "Initialized");
    push(&mut both, "web:2");
    until(&mut both, "Progressing");
    command(&mut both, "abort");
    both.patch("Canary", "shop", "web", &deleted);
    assert_eq!(given_back(&mut both), all_back);
    // Nobody could hear it.
    let mut suspended = stage(&json!({"revertOnDeletion": true}));
    until(&mut suspended, "Initialized");
    let suspend = json!({"spec": {"suspend": true}});
    suspended.patch("Canary", "shop", "web", &suspend);
    command(&mut suspended, "abort");
    settle(&mut suspended, 200);
    suspended.patch("Canary", "shop", "web", &deleted);
    assert_eq!(given_back(&mut suspended), all_back);
}

/// What a Canary has taken is what it has made a copy of, whatever it says by now.
#[test]
fn a_workload_is_given_back_whatever_kind_it_is_said_to_be_of() {
    for kind in ["StatefulSet", "DaemonSet"] {
        for is_running in [false, true] {
            let mut stage = stage(&json!({"revertOnDeletion": true}));
            until(&mut stage, "Initialized");
            if is_running {
                push(&mut stage, "web:2");
                until(&mut stage, "Progressing");
            }
            let patch = json!({"spec": {"targetRef": {"kind": kind}},
                "metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
            stage.patch("Canary", "shop", "web", &patch);
            let all_back = (json!([]), json!("web"), json!(3));
            assert_eq!(given_back(&mut stage), all_back, "{kind} {is_running}");
        }
    }
}

/// What the pods of a workload are made of.
fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// A Canary of a `DaemonSet` that serves, or is in the middle of a run.
fn daemons(is_running: bool) -> Stage {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let mut stage = Stage::new(Canaries::new(Settings::default()), now);
    let target = json!({"kind": "DaemonSet"});
    stage.put(canary(
        &json!({"revertOnDeletion": true, "targetRef": target}),
    ));
    stage.put(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")}}));
    controllers(&mut stage);
    until(&mut stage, "Initialized");
    assert!(is_away(&stage, "web"));
    if is_running {
        let patch = json!({"spec": {"template": template("web:2")}});
        stage.patch("DaemonSet", "shop", "web", &patch);
        controllers(&mut stage);
        until(&mut stage, "Progressing");
    }
    stage
}

/// A Deployment of the same name comes, and the Canary names that, and says this besides.
fn replaced(stage: &mut Stage, spec: &Value) {
    stage.put(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": template("web:3")}}));
    let mut whole = json!({"targetRef": {"kind": "Deployment"}});
    merge(&mut whole, spec);
    stage.patch("Canary", "shop", "web", &json!({"spec": whole}));
    controllers(stage);
}

/// A Deployment of the same name is another workload: it has its own first run, after that of the `DaemonSet`, which has its pods
/// back by then.
#[test]
fn a_deployment_has_no_part_in_the_run_of_a_daemon_set() {
    for is_running in [false, true] {
        let mut stage = daemons(is_running);
        replaced(&mut stage, &json!({}));
        for _ in 0..10 {
            pass(&mut stage);
        }
        let image = |kind: &str| {
            let copy = stage.get(kind, "shop", "web-primary").unwrap();
            copy["spec"]["template"]["spec"]["containers"][0]["image"].clone()
        };
        let served = if is_running { "web:2" } else { "web:1" };
        assert_eq!(image("DaemonSet"), served, "its run was its own");
        assert_eq!(image("Deployment"), "web:3");
        assert_eq!(phase(&stage), "Initialized", "{:#}", status(&stage));
        assert_eq!(status(&stage)["run"]["places"]["kind"], Value::Null);
        assert!(!is_away(&stage, "web"), "{is_running}");
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
        stage.patch("Canary", "shop", "web", &deleted);
        pass(&mut stage);
        let all_back = (json!([]), json!("web"), json!(3));
        assert_eq!(given_back(&mut stage), all_back, "{is_running}");
        assert!(!is_away(&stage, "web"), "{is_running}");
    }
}

#[test]
fn a_suspended_canary_forgets_nothing_of_the_workload_that_it_named_before() {
    let mut stage = daemons(false);
    let before = status(&stage)["run"].clone();
    replaced(&mut stage, &json!({"suspend": true}));
    for _ in 0..3 {
        pass(&mut stage);
    }
    assert_eq!(phase(&stage), "Initialized", "{:#}", status(&stage));
    assert_eq!(status(&stage)["run"], before);
    assert!(is_away(&stage, "web"));
    stage.patch(
        "Canary",
        "shop",
        "web",
        &json!({"spec": {"suspend": false}}),
    );
    for _ in 0..10 {
        pass(&mut stage);
    }
    assert!(!is_away(&stage, "web"), "it has its pods back");
    let copy = stage.get("Deployment", "shop", "web-primary");
    assert!(copy.is_some(), "{:#}", status(&stage));
}

#[test]
fn a_service_that_clients_knew_before_is_given_back_whatever_workload_came_since() {
    let mut stage = daemons(false);
    service(&mut stage, "other");
    let renamed = json!({"spec": {"service": {"name": "other"}}});
    stage.patch("Canary", "shop", "web", &renamed);
    pass(&mut stage);
    assert_eq!(leads(&stage, "other"), "web-primary");
    replaced(&mut stage, &json!({}));
    for _ in 0..10 {
        pass(&mut stage);
    }
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    for _ in 0..2 {
        pass(&mut stage);
    }
    for name in ["web", "other"] {
        assert_eq!(leads(&stage, name), "web", "{name}");
    }
}

/// The other way round, a kind that is not looked at for every Canary goes on being looked at.
#[test]
fn a_daemon_set_is_given_back_though_it_is_said_to_be_a_deployment() {
    for is_running in [false, true] {
        let mut stage = daemons(is_running);
        let patch = json!({"spec": {"targetRef": {"kind": "Deployment"}}});
        stage.patch("Canary", "shop", "web", &patch);
        settle(&mut stage, 200);
        if is_running {
            assert_eq!(
                phase(&stage),
                "Progressing",
                "it counts from the next run on"
            );
        } else {
            let waits = status(&stage)["waitingFor"][0]["reason"].clone();
            assert_eq!(waits, "TargetNotFound");
        }
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
        stage.patch("Canary", "shop", "web", &deleted);
        pass(&mut stage);
        let canary = stage.get("Canary", "shop", "web").unwrap();
        assert_eq!(canary["metadata"]["finalizers"], json!([]), "{is_running}");
        assert!(!is_away(&stage, "web"), "{is_running}");
        assert_eq!(leads(&stage, "web"), "web", "{is_running}");
    }
}

/// Who holds the workload, if somebody does.
fn claim(stage: &Stage) -> Value {
    let target = stage.get("Deployment", "shop", "web").unwrap();
    target["metadata"]["annotations"]["slipway.dev/disruption-claim"].clone()
}

/// A Canary that is deleted in the middle of a run keeps nobody away from its workload any more.
#[test]
fn a_claim_ends_with_the_canary_that_had_it() {
    for is_reverted in [false, true] {
        let mut stage = stage(&json!({"revertOnDeletion": is_reverted}));
        until(&mut stage, "Initialized");
        push(&mut stage, "web:2");
        until(&mut stage, "Progressing");
        assert!(claim(&stage).is_string(), "{is_reverted}");
        if is_reverted {
            let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
            stage.patch("Canary", "shop", "web", &deleted);
            pass(&mut stage);
            let canary = stage.get("Canary", "shop", "web").unwrap();
            assert_eq!(canary["metadata"]["finalizers"], json!([]));
        } else {
            // Nobody is asked before it is gone, and its copy with it.
            stage.delete("Canary", "shop", "web");
            stage.delete("Deployment", "shop", "web-primary");
            let gone = gone(&stage).expect("the claim is left");
            stage.execute(&gone);
            assert!(gone_for_good(&stage));
        }
        assert!(claim(&stage).is_null(), "{is_reverted}");
    }
}

/// Who has another Canary, or whose claim is another's, is left alone.
#[test]
fn a_claim_of_somebody_elses_stays_when_a_canary_goes() {
    let claims =
        |holder: &str| json!({"holder": holder, "until": "2099-01-01T00:00:00Z"}).to_string();
    for (holder, is_followed) in [("restarts", false), ("canary", true)] {
        let mut stage = stage(&json!({}));
        let annotations = json!({"slipway.dev/disruption-claim": claims(holder)});
        let patch = json!({"metadata": {"annotations": annotations}});
        stage.patch("Deployment", "shop", "web", &patch);
        if is_followed {
            let mut other = canary(&json!({}));
            other["metadata"]["name"] = json!("other");
            stage.put(other);
        }
        stage.delete("Canary", "shop", "web");
        assert!(gone_for_good(&stage), "{holder}");
    }
}

/// A Canary that cannot be read may be about any workload, and is as much in the middle of its run as before.
#[test]
fn a_claim_stays_while_a_canary_cannot_be_read() {
    let mut stage = stage(&json!({}));
    let claim = json!({"holder": "canary", "until": "2099-01-01T00:00:00Z"}).to_string();
    let patch = json!({"metadata": {"annotations": {"slipway.dev/disruption-claim": claim}}});
    stage.patch("Deployment", "shop", "web", &patch);
    let mut other = canary(&json!({}));
    other["metadata"]["name"] = json!("other");
    other["spec"]["targetRef"]["name"] = json!(7);
    stage.put(other);
    stage.delete("Canary", "shop", "web");
    assert!(gone_for_good(&stage));
    stage.delete("Canary", "shop", "other");
    assert!(gone(&stage).is_some(), "nobody is about it");
}

/// What is done about a Canary that is gone.
fn gone(stage: &Stage) -> Option<Plan> {
    let key = Key {
        cluster: ClusterId::local(),
        controller: slipway_canary::NAME,
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    };
    let stores = stage.stores();
    stage.planner.plan(&stores, &stage.facts, &key, stage.now)
}

fn gone_for_good(stage: &Stage) -> bool {
    gone(stage).is_none()
}

fn service(stage: &mut Stage, name: &str) {
    stage.put(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}}}));
}

fn leads(stage: &Stage, name: &str) -> Value {
    let service = stage.get("Service", "shop", name).unwrap();
    service["spec"]["selector"]["app"].clone()
}

#[test]
fn all_services_that_were_turned_are_given_back() {
    // The name is changed between two runs; the Canary is deleted at once, before the next run, and after it.
    for looks in 0..3 {
        let mut stage = stage(&json!({"revertOnDeletion": true}));
        service(&mut stage, "web");
        service(&mut stage, "other");
        until(&mut stage, "Initialized");
        assert_eq!(leads(&stage, "web"), "web-primary");
        let patch = json!({"spec": {"service": {"name": "other"}}});
        stage.patch("Canary", "shop", "web", &patch);
        if looks > 0 {
            settle(&mut stage, 200);
            assert_eq!(leads(&stage, "other"), "web-primary");
        }
        if looks > 1 {
            push(&mut stage, "web:2");
            until(&mut stage, "Succeeded");
        }
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
        stage.patch("Canary", "shop", "web", &deleted);
        assert_eq!(
            given_back(&mut stage),
            (json!([]), json!("web"), json!(3)),
            "{looks}"
        );
        assert_eq!(leads(&stage, "other"), "web", "{looks}");
    }
}

/// A person's own `VirtualService`, and what is in it.
fn mesh(stage: &mut Stage) -> Value {
    let http = json!([{"route": [{"destination": {"host": "web"}}], "timeout": "7s"}]);
    let spec = json!({"hosts": ["web"], "http": http});
    stage.put(
        json!({"apiVersion": "networking.istio.io/v1beta1", "kind": "VirtualService",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}),
    );
    spec
}

fn hosts(stage: &Stage) -> Value {
    stage.get("VirtualService", "shop", "web").unwrap()["spec"].clone()
}

#[test]
fn what_another_provider_borrowed_between_two_runs_is_given_back() {
    for runs in [false, true] {
        let steps = json!({"iterations": null, "stepWeights": [50, 100]});
        let mut stage = stage(&json!({"provider": "smi:v1alpha1", "analysis": steps}));
        let theirs = mesh(&mut stage);
        until(&mut stage, "Initialized");
        let patch = json!({"spec": {"provider": "istio"}});
        stage.patch("Canary", "shop", "web", &patch);
        settle(&mut stage, 200);
        assert_ne!(hosts(&stage), theirs, "it is taken over");
        if runs {
            push(&mut stage, "web:2");
            until(&mut stage, "Succeeded");
        }
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
        stage.patch("Canary", "shop", "web", &deleted);
        given_back(&mut stage);
        assert_eq!(hosts(&stage)["http"], theirs["http"], "{runs}");
        let canary = stage.get("Canary", "shop", "web").unwrap();
        assert_eq!(canary["metadata"]["finalizers"], json!([]));
    }
}

#[test]
fn a_route_that_traffic_does_not_go_by_any_more_is_given_back_before_the_next_run() {
    let steps = json!({"iterations": null, "stepWeights": [50, 100]});
    let mut stage = stage(&json!({"provider": "istio", "analysis": steps}));
    let theirs = mesh(&mut stage);
    until(&mut stage, "Initialized");
    assert_ne!(hosts(&stage), theirs, "it is taken over");
    let patch = json!({"spec": {"provider": "smi:v1alpha1"}});
    stage.patch("Canary", "shop", "web", &patch);
    push(&mut stage, "web:2");
    until(&mut stage, "Succeeded");
    assert_eq!(hosts(&stage)["http"], theirs["http"]);
    assert_eq!(status(&stage)["run"]["provider"], "smi:v1alpha1");
}

#[test]
fn a_workload_that_cannot_be_seen_is_not_taken_for_one_that_is_gone() {
    let mut stage = stage(&json!({"revertOnDeletion": true}));
    until(&mut stage, "Initialized");
    let kind = slipway_canary::kinds::DEPLOYMENT;
    let unseen = Missing::unseen(Unseen::Absent, &ClusterId::local(), &kind);
    stage.facts.missing.insert(unseen);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    for _ in 0..6 {
        stage.step();
    }
    let canary = stage.get("Canary", "shop", "web").unwrap();
    let kept = json!(["finalizer.flagger.app"]);
    assert_eq!(canary["metadata"]["finalizers"], kept);
}
