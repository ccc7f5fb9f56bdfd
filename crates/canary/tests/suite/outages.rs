//! Who is sent to whom while one of the two sides does not answer.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_api::canary::Phase;
use slipway_canary::engine::{Deed, Readiness, Verb, Weights};
use slipway_canary::reasons::Reason;
use slipway_canary::stage::Stage;
use slipway_canary::standalone::readiness::{Demand, Workload, readiness};

use crate::cluster::Cluster;
use crate::planner::{controllers, phase, push, settle, stage, status, until};
use crate::play::{Play, by_weights, version};

fn down() -> Readiness {
    Readiness::Down("0 of 3 pods are available".to_owned())
}

/// A promotion whose source has lost its pods: its strategy is `Recreate`. The version, which is ready, has all traffic meanwhile.
fn recreated() -> Play {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    (play.heals, play.recreates) = (false, true);
    play.ticks(1);
    assert_eq!((play.run.phase, play.run.weight), (Phase::Promoting, 100));
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
    assert!(play.sight.source.state().is_down());
    play
}

#[test]
fn a_proven_version_gets_all_traffic_while_nobody_else_answers() {
    let mut play = recreated();
    assert!(play.alerts.iter().any(|text| text.contains("Nobody")));
    play.sight.source.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_promotion_that_failed_with_one_pod_unready_leaves_nobody_without_an_answer() {
    let short = || Readiness::Partly("9 of 10 pods are available".to_owned());
    for weight in [50, 100] {
        let mut play = Play::new(by_weights(&[weight]));
        play.push("v2").settle();
        (play.heals, play.recreates) = (false, true);
        play.sight.target.readiness = short();
        play.run.phase = Phase::Promoting;
        play.sight.source.readiness = down();
        play.sight.source.revision = Some(version("v2"));
        play.sight.source.attempt = Some(0);
        play.finish();
        assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, weight));
        play.sight.target.readiness = Readiness::Ready;
        play.settle();
        assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
        // It goes on as after every promotion that failed.
        play.sight.source.readiness = Readiness::Ready;
        assert_eq!(play.finish(), Phase::Succeeded);
    }
}

#[test]
fn a_copy_that_somebody_deletes_leaves_all_traffic_with_a_version_that_becomes_ready() {
    for is_started in [false, true] {
        let mut play = Play::new(by_weights(&[10, 50]));
        play.heals = is_started;
        play.push("v2").settle();
        play.heals = false;
        if is_started {
            play.sight.target.readiness = Readiness::Partly("one restarts".to_owned());
        }
        play.sight.source = slipway_canary::engine::Side {
            full: 1,
            ..Default::default()
        };
        play.settle();
        assert_eq!(play.run.phase, Phase::Failed);
        play.sight.target.readiness = Readiness::Ready;
        play.settle();
        assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
    }
}

#[test]
fn a_version_that_was_sent_back_gets_nothing_although_nobody_else_answers() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.command(Verb::Abort, "1").settle();
    assert_eq!((play.run.phase, play.sight.target.size), (Phase::Failed, 0));
    // Somebody scales it up again; then the pods of what serves go. It failed, and is not the answer.
    play.heals = false;
    play.sight.target.size = 3;
    play.settle();
    play.sight.source.readiness = down();
    let run = play.run.clone();
    play.settle();
    assert_eq!(play.run, run);
}

/// Plain Services, or a route of our own: who is idle, with some of the copy's pods unready.
fn idle(spec: &Value) -> Cluster {
    let mut cluster = Cluster::new(spec);
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    cluster.heals = false;
    let partly = json!({"status": {"availableReplicas": 2}});
    cluster.change("Deployment", "web-primary", &partly);
    cluster
}

#[test]
fn an_apex_that_somebody_applies_again_leads_to_the_copy_although_that_is_not_whole() {
    let plain =
        json!({"provider": "kubernetes", "analysis": {"stepWeight": null, "iterations": 2}});
    let gateway =
        json!({"provider": "gatewayapi:v1", "service": {"gatewayRefs": [{"name": "gw"}]}});
    for spec in [plain, gateway] {
        let mut cluster = idle(&spec);
        let applied = json!({"spec": {"selector": {"app": "web"}}});
        cluster.change("Service", "web", &applied);
        cluster.pass();
        assert!(
            cluster.holds.contains(&Reason::RoutingPending),
            "it is said"
        );
        cluster.settle();
        let apex = cluster.get("Service", "web");
        assert_eq!(apex["spec"]["selector"]["app"], "web-primary");
        // Somebody deletes it.
        let key = ("Service".to_owned(), "web".to_owned());
        cluster.objects.0.remove(&key);
        cluster.settle();
        let apex = cluster.get("Service", "web");
        assert_eq!(apex["spec"]["selector"]["app"], "web-primary");
    }
}

/// A step after somebody has applied their Service again; gives what it leads to then.
fn applied_again(stage: &mut Stage) -> Value {
    let applied = json!({"spec": {"selector": {"app": "web"}}});
    stage.patch("Service", "shop", "web", &applied);
    for _ in 0..3 {
        stage.step();
        controllers(stage);
    }
    let apex = stage.get("Service", "shop", "web").unwrap();
    apex["spec"]["selector"]["app"].clone()
}

#[test]
fn an_apex_that_somebody_applies_again_leads_to_the_copy_whatever_is_in_the_way() {
    let scaler =
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "gone"});
    let obstacles = [
        (
            "InvalidSpec",
            json!({"analysis": {"threshold": 1, "iterations": null, "stepWeights": [10, 10]}, "provider": "smi:v1alpha1"}),
        ),
        ("InvalidSpec", json!({"provider": "istoi"})),
        ("AutoscalerNotFound", json!({"autoscalerRef": scaler})),
        (
            "Unsupported",
            json!({"analysis": {"alerts": [{"name": "a", "providerRef": {"name": "p"}}]}}),
        ),
    ];
    for (reason, obstacle) in obstacles {
        let mut stage = stage(&json!({}));
        until(&mut stage, "Initialized");
        stage.put(
            json!({"apiVersion": "flagger.app/v1beta1", "kind": "AlertProvider",
            "metadata": {"name": "p", "namespace": "shop"}, "spec": {"type": "rocket"}}),
        );
        stage.patch("Canary", "shop", "web", &json!({"spec": obstacle}));
        settle(&mut stage, 200);
        let waits = status(&stage)["waitingFor"][0].clone();
        assert_eq!(waits["reason"], reason, "{waits}");
        assert_eq!(applied_again(&mut stage), "web-primary", "{obstacle}");
    }
    // A template that names what is not there.
    let mut missing = stage(&json!({}));
    until(&mut missing, "Initialized");
    let env = json!([{"configMapRef": {"name": "gone"}}]);
    let containers = json!([{"name": "c", "image": "web:2", "envFrom": env}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    missing.patch("Deployment", "shop", "web", &patch);
    settle(&mut missing, 200);
    assert_eq!(
        status(&missing)["waitingFor"][0]["reason"],
        "ConfigNotFound"
    );
    assert_eq!(applied_again(&mut missing), "web-primary");
    // In the middle of a run it would be the new version's pods.
    let analysis = json!({"iterations": null, "stepWeights": [50, 100]});
    let mut running = stage(&json!({"provider": "smi:v1alpha1", "analysis": analysis}));
    until(&mut running, "Initialized");
    push(&mut running, "web:2");
    settle(&mut running, 200);
    assert_eq!(split(&running), "50");
    let steps = json!({"spec": {"analysis": {"stepWeights": [10, 10]}}});
    running.patch("Canary", "shop", "web", &steps);
    settle(&mut running, 200);
    assert_eq!(applied_again(&mut running), "web-primary");
}

#[test]
fn an_apex_that_somebody_applies_again_leads_to_the_copy_also_while_all_is_suspended() {
    let mut stage = stage(&json!({}));
    until(&mut stage, "Initialized");
    stage.patch("Canary", "shop", "web", &json!({"spec": {"suspend": true}}));
    settle(&mut stage, 200);
    assert_eq!(applied_again(&mut stage), "web-primary");
}

#[test]
fn nothing_is_led_to_a_copy_that_has_never_served_whatever_is_in_the_way() {
    let mut stage = stage(&json!({}));
    stage.put(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}));
    for _ in 0..3 {
        // The copy is made, and does not become ready.
        stage.step();
    }
    stage.patch(
        "Canary",
        "shop",
        "web",
        &json!({"spec": {"provider": "istoi"}}),
    );
    assert_eq!(applied_again(&mut stage), "web");
}

#[test]
fn who_is_aborted_keeps_its_traffic_while_it_alone_answers() {
    let mut play = recreated();
    play.command(Verb::Abort, "1").settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
    assert!(play.sight.target.size > 0);
    assert!(play.holds.contains(&Reason::SourceNotReady), "it is said");
    assert!(play.done.contains(&Deed::Template(version("v1"))));
    // One pod is enough.
    play.sight.source.readiness = Readiness::Partly("1 of 3 pods are available".to_owned());
    play.settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.sight.target.size, 0);
    assert_eq!(play.run.phase, Phase::Failed);
}

/// The same version with other configs.
fn reconfigured(play: &mut Play, name: &str, value: &str) {
    let mut version = version(name);
    let configs = [("configmap/conf".to_owned(), value.to_owned())];
    version.configs = Some(configs.into());
    play.sight.target.revision = Some(version);
}

#[test]
fn a_config_that_changes_while_the_version_alone_answers_does_not_keep_the_run_for_ever() {
    let mut play = Play::new(by_weights(&[50, 80]));
    reconfigured(&mut play, "v2", "1");
    play.settle();
    assert_eq!(play.run.weight, 50);
    play.heals = false;
    play.sight.source.readiness = down();
    play.settle();
    reconfigured(&mut play, "v2", "2");
    play.settle();
    assert_eq!((play.run.weight, play.run.draining), (50, true));
    assert!(play.holds.contains(&Reason::SourceNotReady), "it is said");
    play.heals = true;
    play.sight.source.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded, "{:?}", play.holds);
    assert_eq!(play.run.serving, play.sight.target.revision);
}

#[test]
fn a_config_that_changes_after_a_promotion_that_failed_can_be_promoted() {
    let mut play = Play::new(by_weights(&[50]));
    reconfigured(&mut play, "v1", "2");
    play.settle();
    play.heals = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.sight.source.readiness = Readiness::Stuck("no quota".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    reconfigured(&mut play, "v1", "3");
    play.heals = true;
    play.command(Verb::Promote, "1");
    assert_eq!(play.finish(), Phase::Succeeded, "{:?}", play.holds);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_version_that_comes_in_a_promotion_takes_nothing_from_who_alone_answers() {
    let mut play = recreated();
    play.push("v3").settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Promoting, 100));
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
    play.sight.source.readiness = Readiness::Ready;
    play.sight.target.readiness = Readiness::Ready;
    play.heals = true;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version("v3")));
}

#[test]
fn a_source_that_is_stuck_without_a_pod_gets_nothing_before_it_has_one() {
    let mut play = Play::new(by_weights(&[50, 80]));
    play.push("v2").ticks(1);
    let weight = play.run.weight;
    assert!(weight > 0);
    play.heals = false;
    play.sight.source.readiness = Readiness::Stuck("deadline exceeded".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, weight));
    // Tried again, it is judged from its first step on.
    play.command(Verb::Retry, "1").settle();
    assert!(
        !play
            .done
            .iter()
            .any(|deed| matches!(deed, Deed::Template(v) if *v == version("v2")))
    );
    play.sight.source.readiness = Readiness::Ready;
    play.settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_revert_takes_nothing_from_who_alone_answers() {
    let mut play = Play::new(by_weights(&[50, 80]));
    play.push("v2").ticks(1);
    play.heals = false;
    play.sight.source.readiness = down();
    play.settle();
    let weight = play.run.weight;
    play.push("v1").settle();
    assert_eq!(
        (play.run.phase, play.run.weight),
        (Phase::Finalising, weight)
    );
    assert!(play.holds.contains(&Reason::SourceNotReady));
    play.sight.source.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_workload_that_is_given_up_is_down_only_without_a_pod() {
    let now = jiff::Timestamp::from_second(100_000).unwrap();
    let demand = Demand {
        percent: 100,
        deadline: Duration::from_mins(10),
    };
    let with = |available: i64| {
        let conditions = json!([{"type": "Progressing", "status": "False",
            "reason": "ProgressDeadlineExceeded"}]);
        let object = json!({"metadata": {"generation": 1}, "spec": {"replicas": 4},
            "status": {"observedGeneration": 1, "replicas": 5, "updatedReplicas": 2,
                "availableReplicas": available, "conditions": conditions}});
        readiness(Workload::Deployment, &object, demand, now)
    };
    assert!(with(0).is_down() && !with(3).is_down());
    assert!(with(0).given_up().is_some() && with(3).given_up().is_some());
}

#[test]
fn a_dead_version_loses_its_traffic_to_a_copy_that_is_given_up_and_has_pods() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    play.sight.source.readiness = Readiness::Stalled("deadline exceeded".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    play.sight.target.readiness = down();
    play.settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_promotion_that_stalled_beside_a_version_that_is_not_whole_leaves_no_pods_behind() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.sight.target.readiness = Readiness::Partly("one restarts".to_owned());
    play.sight.source.readiness = Readiness::Stalled("deadline exceeded".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 0));
    assert!(play.done.contains(&Deed::Template(version("v1"))));
    play.sight.source.readiness = Readiness::Ready;
    play.settle();
    assert_eq!(play.sight.target.size, 0);
}

fn split(stage: &Stage) -> String {
    let split = stage.get("TrafficSplit", "shop", "web").unwrap();
    let weight = &split["spec"]["backends"][0]["weight"];
    weight.as_str().unwrap().to_owned()
}

/// A run that has given the new version half of the traffic, of a Canary that is then deleted.
fn deleted() -> Stage {
    let analysis = json!({"iterations": null, "stepWeights": [50, 100]});
    let spec = json!({"provider": "smi:v1alpha1", "revertOnDeletion": true, "analysis": analysis});
    let mut stage = stage(&spec);
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    settle(&mut stage, 200);
    assert_eq!(split(&stage), "50");
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    stage
}

fn finalizers(stage: &Stage) -> Value {
    let canary = stage.get("Canary", "shop", "web").unwrap();
    canary["metadata"]["finalizers"].clone()
}

#[test]
fn a_version_has_nothing_any_more_while_a_workload_is_given_back() {
    let mut stage = deleted();
    let dead = json!({"status": {"availableReplicas": 0}});
    stage.patch("Deployment", "shop", "web", &dead);
    for _ in 0..5 {
        // Nothing becomes ready.
        stage.step();
    }
    assert_eq!(
        (phase(&stage).as_str(), split(&stage).as_str()),
        ("Terminating", "0")
    );
    let waits = &status(&stage)["waitingFor"][0];
    assert_eq!(
        finalizers(&stage),
        json!(["finalizer.flagger.app"]),
        "{waits}"
    );
}

#[test]
fn a_copy_goes_when_the_data_plane_had_its_time_to_turn_from_it() {
    let mut stage = deleted();
    for _ in 0..10 {
        stage.step();
        controllers(&mut stage);
    }
    let apex = stage.get("Service", "shop", "web").unwrap();
    assert_eq!(apex["spec"]["selector"]["app"], "web");
    let kept = json!(["finalizer.flagger.app"]);
    assert_eq!(
        finalizers(&stage),
        kept,
        "the copy still answers whoever comes late"
    );
    let wake = stage.plan().wake_at.unwrap();
    assert_eq!(wake, stage.now + Duration::from_secs(10));
    stage.now = wake - Duration::from_secs(1);
    stage.step();
    assert_eq!(finalizers(&stage), kept);
    stage.now = wake;
    stage.step();
    assert_eq!(finalizers(&stage), json!([]));
}

#[test]
fn a_canary_that_has_taken_nothing_is_let_go_of_at_once() {
    let mut stage = stage(&json!({"revertOnDeletion": true}));
    for _ in 0..3 {
        // The copy is made, and does not become ready.
        stage.step();
    }
    assert_eq!(phase(&stage), "Initializing");
    let dead = json!({"status": {"availableReplicas": 0}});
    stage.patch("Deployment", "shop", "web", &dead);
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    for _ in 0..3 {
        stage.step();
    }
    assert_eq!(finalizers(&stage), json!([]));
}
