//! What would hurt those who are served: a side that is gone, a share that means something else, a copy that is not one, a
//! deletion in the middle of trouble.

use serde_json::{Value, json};
use slipway_api::canary::{CanaryStatus, Phase};
use slipway_canary::engine::{Deed, Readiness, Side, Strategy, Verb, Weights};
use slipway_canary::provider::Provider;
use slipway_canary::reasons::Reason;
use slipway_canary::router::Objects;
use slipway_canary::spec::read;
use slipway_canary::standalone::revert::{Step, next};
use slipway_kernel::finalizer::Phase as Guard;

use crate::planner::{controllers, settle, stage, status, until};
use crate::play::{Play, by_weights, measure, version};
use crate::replicas::shop;
use crate::routes::{give_back, named, objects, route, shift};

fn gone() -> Side {
    Side {
        full: 3,
        ..Side::default()
    }
}

#[test]
fn a_serving_copy_that_somebody_deletes_is_made_again() {
    let mut play = Play::new(by_weights(&[50]));
    play.sight.source = gone();
    let (_, wake) = play.look();
    assert!(play.holds.contains(&Reason::SourceNotReady) && wake.is_none());
    play.settle();
    assert_eq!(play.sight.source.revision, Some(version("v1")));
    assert!(play.sight.source.state().is_ready());
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn a_serving_copy_that_goes_in_the_middle_leaves_the_traffic_with_the_new_version() {
    let mut play = Play::new(by_weights(&[50, 80]));
    play.push("v2").ticks(1);
    assert!(play.run.weight > 0);
    play.sight.source = gone();
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    let everything = Some(Weights::to_target(100));
    assert_eq!(play.sight.routing.weights, everything);
    assert!(
        play.holds.contains(&Reason::TemplateLost),
        "{:?}",
        play.holds
    );
    // What is to serve is a person's to say.
    play.command(Verb::Promote, "1");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_serving_copy_that_goes_in_its_promotion_is_made_of_the_version_that_takes_over() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.sight.source = gone();
    play.heals = true;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
}

#[test]
fn without_a_copy_the_workload_gets_what_it_had() {
    let target = Side {
        size: 0,
        full: 3,
        readiness: Readiness::Ready,
        ..Side::default()
    };
    let step = |target: &Side| next(true, Guard::Ending, &gone(), target, false);
    assert_eq!(step(&target), Step::Size(3));
    let bounded = Side {
        most: Some(2),
        ..target
    };
    assert_eq!(step(&bounded), Step::Size(2));
}

#[test]
fn a_version_without_pods_loses_its_traffic_although_the_serving_one_is_not_whole() {
    let down = || Readiness::Down("a node died".to_owned());
    let partly = || Readiness::Partly("9 of 10".to_owned());
    let mut play = Play::new(by_weights(&[50, 80]));
    play.push("v2").ticks(1);
    assert!(play.run.weight > 0);
    play.heals = false;
    play.sight.source.readiness = partly();
    play.sight.target.readiness = down();
    play.settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert!(play.holds.contains(&Reason::SourceNotReady));
    // In a promotion as well.
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.sight.source.readiness = partly();
    play.sight.target.readiness = down();
    play.settle();
    assert_eq!(play.run.phase, Phase::Promoting);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_promotion_that_failed_is_finished_when_what_serves_becomes_ready_after_all() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.sight.source.readiness = Readiness::Stuck("no quota".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    play.sight.source.readiness = Readiness::Ready;
    play.heals = true;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version("v2")));
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn promote_is_for_the_version_that_was_seen() {
    let mut play = Play::new(by_weights(&[50]));
    play.rules.metrics = vec![measure("errors")];
    play.heals = false;
    play.push("v2").settle();
    play.command(Verb::Promote, "1").settle();
    assert!(play.run.skip);
    play.push("v3").settle();
    assert!(!play.run.skip);
    play.heals = true;
    play.sight.target.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert!(!play.asked.is_empty(), "the next version is measured");
}

#[test]
fn a_share_of_those_who_match_does_not_become_one_of_all() {
    let mut play = Play::new(by_weights(&[10]));
    play.rules.strategy = Strategy::Matching(3);
    play.push("v2").ticks(1);
    assert_eq!(play.run.weight, 100);
    play.rules.strategy = Strategy::Weights(vec![10]);
    let (is_written, _) = play.look();
    assert!(is_written);
    assert_eq!((play.run.phase, play.run.weight), (Phase::Progressing, 0));
    assert_eq!(play.finish(), Phase::Succeeded);
    assert!(play.weights().contains(&10));
}

#[test]
fn a_match_is_understood_wholly_or_refused() {
    let read = |provider: &str, matches: Value| {
        let spec = json!({
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "analysis": {"iterations": 2, "threshold": 1, "match": matches},
        });
        let spec = serde_json::from_value(spec).unwrap();
        read(&spec, Provider::of(provider).unwrap())
    };
    let header = json!([{"headers": {"x": {"exact": "y"}}}]);
    for provider in ["gatewayapi:v1", "istio", "nginx"] {
        assert!(read(provider, header.clone()).is_ok(), "{provider}");
        for nothing in [json!([{}]), json!([null]), json!(["x"])] {
            assert!(read(provider, nothing.clone()).is_err(), "{nothing}");
        }
    }
    for unknown in [
        json!([{"header": {"x": {"exact": "y"}}}]),
        json!([{"authority": {"exact": "y"}}]),
        json!([{"headers": {"x": {"exakt": "y"}}}]),
        json!([{"headers": {"x": {"exact": "y"}}, "port": 80}]),
        json!([{"method": {"regex": "G.*"}}]),
        json!([{"sourceLabels": {"a": "b"}}]),
    ] {
        assert!(read("gatewayapi:v1", unknown.clone()).is_err(), "{unknown}");
        assert!(read("nginx", unknown.clone()).is_err(), "{unknown}");
    }
    assert!(read("nginx", json!([{"uri": {"prefix": "/a"}}])).is_err());
    let labels = json!([{"sourceLabels": {"a": "b"}}]);
    assert!(read("istio", labels).is_ok());
}

#[test]
fn every_router_comes_from_all_weights_to_all_others() {
    let mirrored = Weights {
        target: 0,
        mirrored: true,
    };
    let weights = [
        Weights::SOURCE,
        Weights::to_target(10),
        Weights::to_target(100),
        mirrored,
    ];
    let service = json!({"gatewayRefs": [{"name": "gw", "namespace": "infra"}]});
    let rule = json!({"host": "a", "http": {"paths": [{"path": "/", "pathType": "Prefix",
        "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}});
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "theirs"}, "spec": {"rules": [rule]}});
    for (name, provider) in Provider::all().filter(|(_, provider)| provider.shifts()) {
        let able = |one: &&Weights| provider.mirrors() || !one.mirrored;
        for from in weights.iter().filter(able) {
            for to in weights.iter().filter(able) {
                let (mut route, mut all) = (
                    route(service.clone()),
                    objects(std::slice::from_ref(&ingress)),
                );
                route.ingress = Some("theirs".to_owned());
                if provider.divides() {
                    (route, all) = shop();
                }
                shift(provider, &route, &mut all, *from)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                shift(provider, &route, &mut all, *to).unwrap();
            }
        }
    }
}

#[test]
fn what_was_put_back_is_not_put_back_again() {
    let spec = json!({"hosts": ["web"], "http": [{"route": [{"destination": {"host": "web"}}]}]});
    let applied = json!({"spec": spec}).to_string();
    let theirs = json!({"apiVersion": "networking.istio.io/v1beta1", "kind": "VirtualService",
        "metadata": {"name": "web", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
        "spec": spec});
    let route = route(json!({}));
    let mut all: Objects = objects(&[theirs]);
    shift(named("istio"), &route, &mut all, Weights::to_target(50)).unwrap();
    give_back(named("istio"), &route, &mut all);
    let service = all.get("VirtualService", "web").unwrap();
    assert_eq!(service["spec"], spec);
    let again = slipway_canary::router::restore(named("istio"), &route, &all);
    assert!(again.is_empty(), "{again:?}");
}

#[test]
fn a_deleted_canary_gives_the_workload_back_whatever_is_in_the_way() {
    let obstacles = [
        json!({"autoscalerRef": {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "gone"}}),
        json!({"provider": "istoi"}),
        json!({"provider": "istio"}),
        json!({"analysis": {"metrics": [{"name": "a", "templateRef": {"name": "t"}}]}}),
    ];
    for obstacle in obstacles {
        let mut stage = stage(&json!({"revertOnDeletion": true}));
        until(&mut stage, "Initialized");
        stage.put(
            json!({"apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate",
            "metadata": {"name": "t", "namespace": "shop"},
            "spec": {"provider": {"type": "datadog"}, "query": "q"}}),
        );
        stage.patch("Canary", "shop", "web", &json!({"spec": obstacle}));
        settle(&mut stage, 200);
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
        stage.patch("Canary", "shop", "web", &deleted);
        for _ in 0..20 {
            let plan = stage.step();
            controllers(&mut stage);
            if plan.steps.is_empty() && plan.statuses.is_empty() {
                stage.now = plan.wake_at.unwrap_or(stage.now);
            }
        }
        let canary = stage.get("Canary", "shop", "web").unwrap();
        assert_eq!(canary["metadata"]["finalizers"], json!([]), "{obstacle}");
        let target = stage.get("Deployment", "shop", "web").unwrap();
        assert_eq!(target["spec"]["replicas"], 3, "{obstacle}");
        let apex = stage.get("Service", "shop", "web").unwrap();
        assert_eq!(apex["spec"]["selector"]["app"], "web", "{obstacle}");
    }
}

#[test]
fn a_deletion_says_what_it_waits_for() {
    let mut stage = stage(&json!({"revertOnDeletion": true}));
    until(&mut stage, "Initialized");
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    for _ in 0..5 {
        stage.step();
    }
    stage.now += std::time::Duration::from_mins(1);
    stage.step();
    let waits = &status(&stage)["waitingFor"][0];
    assert_eq!(waits["reason"], "TargetNotReady", "{waits}");
}

/// Takes out of a status what Flagger's definition of Canaries does not know.
fn prune(stage: &mut slipway_canary::stage::Stage) {
    let ours = [
        "run",
        "waitingFor",
        "checks",
        "untold",
        "observedGeneration",
    ];
    let pruned: serde_json::Map<String, Value> = ours
        .into_iter()
        .map(|name| (name.to_owned(), Value::Null))
        .collect();
    stage.patch("Canary", "shop", "web", &json!({"status": pruned}));
}

#[test]
fn a_definition_that_does_not_keep_a_run_is_told_and_not_written_to() {
    let mut stage = stage(&json!({}));
    stage.step();
    prune(&mut stage);
    let plan = stage.plan();
    assert!(
        plan.steps.is_empty() && plan.statuses.is_empty(),
        "{plan:#?}"
    );
    assert_eq!(plan.blockers[0].reason, "DefinitionTooOld");
    // It is tried again after a while, and where it is kept by then, all is well.
    stage.now = plan.wake_at.unwrap();
    until(&mut stage, "Initialized");
    // A status of Flagger's is none of these.
    let left = json!({"phase": "Initialized", "canaryWeight": 0, "failedChecks": 0, "iterations": 0,
        "lastAppliedSpec": "5d8b9c7f6", "lastPromotedSpec": "5d8b9c7f6",
        "conditions": [{"type": "Promoted", "status": "True", "reason": "Initialized", "message": "done"}]});
    let left: CanaryStatus = serde_json::from_value(left).unwrap();
    assert!(!slipway_canary::standalone::adopt::is_pruned(&left));
}

#[test]
fn a_deletion_ends_also_where_a_definition_does_not_keep_a_run() {
    let mut stage = stage(&json!({"revertOnDeletion": true}));
    until(&mut stage, "Initialized");
    // What Flagger leaves, and its definition.
    let left = json!({"lastAppliedSpec": "5d8b9c7f6", "lastPromotedSpec": "5d8b9c7f6"});
    stage.patch("Canary", "shop", "web", &json!({"status": left}));
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    let began = stage.now;
    for _ in 0..20 {
        prune(&mut stage);
        let plan = stage.step();
        prune(&mut stage);
        controllers(&mut stage);
        let is_written = !plan.steps.is_empty() || !plan.statuses.is_empty();
        let later = stage.now + std::time::Duration::from_secs(1);
        stage.now = plan.wake_at.filter(|_| !is_written).unwrap_or(later);
    }
    let canary = stage.get("Canary", "shop", "web").unwrap();
    assert_eq!(canary["metadata"]["finalizers"], json!([]));
    let apex = stage.get("Service", "shop", "web").unwrap();
    assert_eq!(apex["spec"]["selector"]["app"], "web");
    assert!(stage.now.duration_since(began).as_secs() >= 10);
}

#[test]
fn nobody_is_ready_without_a_pod() {
    use slipway_canary::standalone::readiness::{Demand, Workload, readiness};
    let now = jiff::Timestamp::from_second(1_000).unwrap();
    for percent in 1..=100 {
        let demand = Demand {
            percent,
            deadline: std::time::Duration::from_mins(10),
        };
        let one = json!({"metadata": {"generation": 1}, "spec": {"replicas": 1},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}});
        let found = readiness(Workload::Deployment, &one, demand, now);
        assert!(found.is_down(), "{percent}: {found:?}");
        let nowhere =
            json!({"metadata": {"generation": 1}, "spec": {}, "status": {"observedGeneration": 1}});
        let found = readiness(Workload::DaemonSet, &nowhere, demand, now);
        assert!(found.is_down(), "{percent}: {found:?}");
    }
}

#[test]
fn who_has_all_requests_is_compared_with_nobody() {
    let mut play = Play::new(by_weights(&[100]));
    let mut errors = measure("errors");
    errors.max_increase = Some(5.0);
    play.rules.metrics = vec![errors];
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded, "{:?}", play.told);
}

#[test]
fn a_clock_that_is_set_back_delays_a_check_by_an_interval_at_most() {
    let mut play = Play::new(by_weights(&[20, 40]));
    play.push("v2").ticks(1);
    play.now -= std::time::Duration::from_hours(1);
    let wake = play.settle().unwrap();
    assert_eq!(wake, play.now + play.rules.interval);
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn retry_after_a_promotion_that_failed_takes_no_traffic_from_who_serves() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    play.sight.source.readiness = Readiness::Stuck("no quota".to_owned());
    play.settle();
    let everything = Some(Weights::to_target(100));
    assert_eq!(play.sight.routing.weights, everything);
    let ends = play.run.ends.clone();
    let written = |play: &Play| {
        let templates = play
            .done
            .iter()
            .filter(|deed| matches!(deed, Deed::Template(_)));
        templates.count()
    };
    let before = written(&play);
    play.command(Verb::Retry, "1").settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Promoting, 100));
    assert_eq!(play.sight.routing.weights, everything);
    assert!(play.sight.target.size > 0);
    assert_eq!(written(&play), before + 1, "its pods are started anew");
    assert_eq!(play.run.ends, ends, "nothing has failed again");
}

#[test]
fn what_cannot_be_seen_any_more_begins_no_run() {
    use slipway_kernel::ClusterId;
    use slipway_kernel::fact::{Missing, Unseen};
    let mut stage = stage(&json!({}));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "key", "namespace": "shop"}, "data": {"k": "cw=="}});
    stage.put(secret);
    let env = json!([{"secretRef": {"name": "key"}}]);
    let containers = json!([{"name": "c", "image": "web:1", "envFrom": env}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.patch("Deployment", "shop", "web", &patch);
    controllers(&mut stage);
    until(&mut stage, "Initialized");
    let kind = &slipway_canary::kinds::SECRET;
    let unseen = Missing::unseen(Unseen::Absent, &ClusterId::local(), kind);
    stage.facts.missing.insert(unseen);
    let plan = stage.plan();
    assert!(
        plan.steps.is_empty() && plan.statuses.is_empty(),
        "{plan:#?}"
    );
}

#[test]
fn traffic_is_taken_back_also_where_nothing_else_can_be_written() {
    use slipway_canary::router::{ensure, retreat, seen};
    let gateways = json!({"gatewayRefs": [{"name": "gw"}]});
    let cors = json!({"gatewayRefs": [{"name": "gw"}], "corsPolicy": {"allowOrigin": ["*"]}});
    let delegated = json!({"delegation": true, "hosts": ["a"]});
    let cases = [
        ("gatewayapi:v1", gateways.clone(), cors),
        ("gatewayapi:v1", gateways, json!({})),
        ("istio", json!({}), delegated),
        ("nginx", json!({}), json!({})),
    ];
    let rule = json!({"host": "a", "http": {"paths": [{"path": "/", "pathType": "Prefix",
        "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}});
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "theirs"}, "spec": {"rules": [rule]}});
    for (name, before, after) in cases {
        let with = |service: &Value| {
            let mut route = route(service.clone());
            route.ingress = Some("theirs".to_owned());
            route
        };
        let mut all = objects(std::slice::from_ref(&ingress));
        shift(
            named(name),
            &with(&before),
            &mut all,
            Weights::to_target(50),
        )
        .unwrap();
        if name == "nginx" {
            all.0.remove(&("Ingress".to_owned(), "theirs".to_owned()));
        }
        let route = with(&after);
        assert!(ensure(named(name), &route, &all, Weights::SOURCE).is_err());
        let writes = retreat(named(name), &route, &all);
        assert!(!writes.is_empty(), "{name}");
        crate::routes::done(&mut all, &writes);
        let found = seen(named(name), &route, &all).unwrap();
        assert_eq!(found.weights, Some(Weights::SOURCE), "{name}");
        assert!(retreat(named(name), &route, &all).is_empty(), "{name}");
    }
}

#[test]
fn what_is_analysed_was_started_with_the_configs_that_are_promoted() {
    let configured = |checksum: &str| {
        let mut revision = version("v2");
        let configs = [("configmap/c".to_owned(), checksum.to_owned())];
        revision.configs = Some(configs.into());
        Some(revision)
    };
    let mut play = Play::new(by_weights(&[20, 40]));
    play.sight.target.revision = configured("1");
    play.ticks(1);
    assert!(play.run.weight > 0 && play.sight.target.size > 0);
    play.sight.target.revision = configured("2");
    let done = play.done.len();
    play.settle();
    let sizes: Vec<&Deed> = play.done[done..]
        .iter()
        .filter(|deed| matches!(deed, Deed::SizeTarget(_)))
        .collect();
    assert_eq!(sizes, [&Deed::SizeTarget(0), &Deed::SizeTarget(3)]);
    assert_eq!(play.finish(), Phase::Succeeded);
}
