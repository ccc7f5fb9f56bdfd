//! Time: what is given its while, what does not count, and what is said meanwhile.

use std::time::Duration;

use serde_json::json;
use slipway_api::canary::{HookType, NoData, Phase};
use slipway_canary::engine::{Answer, Check, Deed, Readiness, Strategy, Verb, Weights};
use slipway_canary::reasons::Reason;

use crate::cluster::Cluster;
use crate::play::{Play, by_iterations, by_weights, fine, hook, measure, version};

const GRACE: Duration = Duration::from_secs(5);

fn silent() -> Play {
    let mut play = Play::new(by_weights(&[50]));
    play.rules.grace = GRACE;
    play
}

#[test]
fn a_data_plane_that_says_nothing_has_its_time_before_pods_go() {
    let mut play = silent();
    play.push("v2").ticks(1);
    assert_eq!(play.run.phase, Phase::Finalising);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.sight.target.size, 3);
    assert!(play.holds.contains(&Reason::RoutingPending));
    assert_eq!(play.settle(), Some(play.now + GRACE));
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.target.size, 0);
    // Also when a version goes back; and the next one has its own time.
    play.push("v3").settle();
    assert!(play.run.weight > 0);
    play.command(Verb::Abort, "1").settle();
    assert_eq!(play.run.phase, Phase::Failed);
    assert_eq!(play.sight.target.size, 3);
    assert_eq!(play.settle(), Some(play.now + GRACE));
    play.finish();
    assert_eq!(play.sight.target.size, 0);
}

#[test]
fn who_calls_the_service_itself_has_a_while_when_a_canary_is_made() {
    // The route is taken at once, which says nothing of those who do not go by it.
    let route = json!({"provider": "gatewayapi:v1", "service": {"gatewayRefs": [{"name": "gw"}]}});
    let mut cluster = Cluster::new(&route);
    let wake = cluster.settle();
    let apex = cluster.get("Service", "web");
    assert_eq!(apex["spec"]["selector"]["app"], "web-primary");
    assert_eq!(cluster.replicas("web"), 3);
    assert_eq!(wake, Some(cluster.now + Duration::from_secs(10)));
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    assert_eq!(cluster.replicas("web"), 0);
}

#[test]
fn pods_go_in_time_also_when_the_clock_was_set_back() {
    let mut play = silent();
    play.push("v2").ticks(1);
    assert_eq!(
        (play.run.phase, play.sight.target.size),
        (Phase::Finalising, 3)
    );
    play.now -= Duration::from_hours(6);
    assert_eq!(play.settle(), Some(play.now + GRACE));
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn who_never_has_traffic_goes_at_once() {
    let mut play = Play::new(by_iterations(1));
    play.rules.shift = slipway_canary::engine::Shift::Nothing;
    play.rules.grace = GRACE;
    play.push("v2").ticks(1);
    assert_eq!(play.run.phase, Phase::Succeeded);
}

#[test]
fn an_autoscaler_has_the_last_word_once_a_share_is_given() {
    let mut play = Play::new(by_weights(&[50, 80]));
    play.sight.source.size = 20;
    play.sight.target.most = Some(30);
    play.push("v2").settle();
    assert_eq!((play.run.weight, play.sight.target.size), (50, 10));
    let done = play.done.len();
    play.sight.target.size = 2;
    play.settle();
    assert_eq!(play.done[done..], [], "it is not fought");
    play.ticks(1);
    assert_eq!((play.run.weight, play.sight.target.size), (80, 16));
}

#[test]
fn a_version_that_nobody_has_scaled_up_is_not_late() {
    let mut play = Play::new(by_weights(&[50]));
    play.obeys = false;
    play.push("v2").settle();
    play.wait(6_000);
    assert_eq!(play.run.phase, Phase::Progressing);
    assert!(play.holds.contains(&Reason::TargetNotReady));
    play.obeys = true;
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn a_serving_version_that_nobody_has_changed_is_not_late() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.obeys = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.wait(6_000);
    assert_eq!(play.run.phase, Phase::Promoting);
    (play.obeys, play.heals) = (true, false);
    play.settle();
    play.wait(30);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.sight.source.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn what_the_api_refuses_for_too_long_goes_back() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.obeys = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.sight.refused_since = Some(play.now);
    play.wait(59);
    assert_eq!(play.run.phase, Phase::Promoting);
    play.wait(2);
    assert_eq!(play.run.phase, Phase::Failed);
}

#[test]
fn time_of_a_suspension_does_not_count() {
    let mut play = Play::new(by_weights(&[50]));
    play.heals = false;
    play.push("v2").settle();
    play.rules.suspend = true;
    play.settle();
    assert!(play.holds.contains(&Reason::Suspended));
    play.wait(6_000);
    play.rules.suspend = false;
    play.settle();
    play.wait(30);
    assert_eq!(play.run.phase, Phase::Progressing);
    play.wait(40);
    assert_eq!(play.run.phase, Phase::Failed);
}

#[test]
fn one_answer_after_a_long_silence_says_nothing_of_the_time_before() {
    let mut play = Play::new(by_weights(&[50, 80]));
    let mut errors = measure("errors");
    errors.no_data = NoData::Hold;
    play.rules.metrics = vec![errors];
    play.answer(|_, _| Some(Answer::NoValues));
    play.push("v2").ticks(1);
    assert!(play.holds.contains(&Reason::NoData), "{:?}", play.holds);
    play.answers.clear();
    play.wait(6_000);
    assert_eq!(play.run.phase, Phase::Progressing);
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Failed);
}

#[test]
fn whoever_is_asked_is_named() {
    let mut play = Play::new(by_weights(&[50]));
    play.rules.hooks = vec![hook(HookType::PreRollout)];
    play.answer(|_, _| None);
    play.push("v2").settle();
    assert!(play.holds.contains(&Reason::Asking), "{:?}", play.holds);
}

#[test]
fn a_new_version_does_not_wait_for_who_is_told_the_end_of_the_last_one() {
    let mut play = Play::new(by_weights(&[50]));
    play.rules.hooks = vec![hook(HookType::PostRollout)];
    play.answer(|rules, ask| match ask.check {
        Check::Hook(_) => None,
        Check::Metric(_) => fine(rules, ask),
    });
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert!(play.run.closing && play.holds.contains(&Reason::Asking));
    play.push("v3").settle();
    assert_eq!(play.run.phase, Phase::Succeeded);
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Progressing);
    assert_eq!(play.run.target, Some(version("v3")));
}

/// A promotion that failed: the new version has everything.
fn stranded(strategy: Strategy) -> Play {
    let mut play = Play::new(by_weights(&[50]));
    play.rules.strategy = strategy;
    play.push("v2").settle();
    play.heals = false;
    while play.run.phase != Phase::Promoting {
        play.ticks(1);
    }
    play.sight.source.readiness = Readiness::Stuck("no quota".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    play
}

#[test]
fn a_promotion_that_failed_says_what_it_waits_for() {
    let mut play = stranded(Strategy::Weights(vec![50]));
    play.settle();
    assert!(play.holds.contains(&Reason::SourceNotReady));
}

#[test]
fn after_a_promotion_that_failed_a_new_version_is_analysed_beside_what_served_before() {
    let mut play = stranded(Strategy::Weights(vec![50]));
    play.heals = true;
    play.push("v3");
    assert_eq!(play.finish(), Phase::Succeeded, "{:?}", play.holds);
    let templates: Vec<&Deed> = play
        .done
        .iter()
        .filter(|deed| matches!(deed, Deed::Template(_)))
        .collect();
    let expected = ["v2", "v1", "v3"].map(|name| Deed::Template(version(name)));
    assert_eq!(templates, expected.iter().collect::<Vec<_>>());
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.run.serving, Some(version("v3")));
}

#[test]
fn after_a_promotion_that_failed_all_requests_are_the_new_versions_and_not_those_that_match() {
    let mut play = stranded(Strategy::Matching(1));
    assert!(!play.run.matching);
    play.command(Verb::Retry, "1").settle();
    let everything = Some(Weights::to_target(100));
    assert_eq!(play.sight.routing.weights, everything);
    assert_eq!((play.run.phase, play.run.weight), (Phase::Promoting, 100));
}

#[test]
fn a_closed_start_gate_is_asked_within_an_interval_also_when_the_clock_was_set_back() {
    let mut play = Play::new(by_weights(&[50]));
    play.rules.hooks = vec![hook(HookType::ConfirmRollout)];
    play.answer(|_, _| Some(Answer::No("403".to_owned())));
    play.push("v2").settle();
    assert_eq!(play.run.phase, Phase::Waiting);
    play.now -= Duration::from_hours(6);
    let wake = play.settle().unwrap();
    assert!(wake <= play.now + play.rules.interval, "{wake}");
    assert!(play.holds.contains(&Reason::RolloutGateClosed));
}

#[test]
fn a_promotion_in_steps_goes_on_within_an_interval_and_says_what_it_waits_for() {
    let mut play = Play::new(by_weights(&[100]));
    play.rules.promotion_step = 30;
    play.push("v2").settle();
    play.ticks(1);
    assert_eq!((play.run.phase, play.run.weight), (Phase::Promoting, 70));
    assert!(play.holds.contains(&Reason::StepPause), "{:?}", play.holds);
    play.now -= Duration::from_hours(6);
    let wake = play.settle().unwrap();
    assert!(wake <= play.now + play.rules.interval, "{wake}");
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn who_has_a_share_is_judged_also_while_the_data_plane_has_not_taken_the_last_one() {
    let pending = || {
        let mut play = Play::new(by_weights(&[20, 40]));
        play.push("v2").settle();
        assert_eq!(play.run.weight, 20, "{:?}", play.holds);
        play.sight.routing.pending = Some("one gateway of two".to_owned());
        play.settle();
        play
    };
    // Its checks fail.
    let mut play = pending();
    play.rules.hooks = vec![hook(HookType::Rollout)];
    play.answer(|_, _| Some(Answer::No("500".to_owned())));
    play.ticks(6);
    assert_eq!(play.run.phase, Phase::Failed, "{:?}", play.holds);
    assert_eq!(play.run.failed_checks, 3);
    // Somebody wants it back.
    let mut play = pending();
    play.rules.hooks = vec![hook(HookType::Rollback)];
    play.answer(|_, _| Some(Answer::Yes));
    play.ticks(2);
    assert_eq!(play.run.phase, Phase::Failed, "{:?}", play.holds);
    // All is well, and the weights are never taken.
    let mut play = pending();
    let began = play.now;
    assert_eq!(play.finish(), Phase::Failed);
    assert!(
        play.weights().iter().all(|weight| *weight <= 20),
        "no step was made"
    );
    assert!(play.now.duration_since(began).as_secs() <= 100);
    // They are taken in time.
    let mut play = pending();
    play.ticks(2);
    play.sight.routing.pending = None;
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn who_has_a_share_is_judged_also_while_a_side_is_not_whole() {
    let unwhole = |is_source: bool| {
        let mut play = Play::new(by_weights(&[20, 40]));
        play.push("v2").settle();
        assert_eq!(play.run.weight, 20, "{:?}", play.holds);
        let partly = Readiness::Partly("9 of 10 pods are available".to_owned());
        if is_source {
            play.sight.source.readiness = partly;
        } else {
            play.sight.target.readiness = partly;
        }
        play.settle();
        play
    };
    for is_source in [true, false] {
        // Its checks fail.
        let mut play = unwhole(is_source);
        play.rules.hooks = vec![hook(HookType::Rollout)];
        play.answer(|_, _| Some(Answer::No("500".to_owned())));
        play.ticks(3);
        assert_eq!(play.run.phase, Phase::Failed, "{:?}", play.holds);
        assert_eq!(play.run.failed_checks, 3);
        assert!(play.told.iter().any(|text| text.contains("threshold")));
        // Somebody wants it back.
        let mut play = unwhole(is_source);
        play.rules.hooks = vec![hook(HookType::Rollback)];
        play.answer(|_, _| Some(Answer::Yes));
        play.ticks(1);
        assert_eq!(play.run.phase, Phase::Failed, "{:?}", play.holds);
        // All is well: the next step waits, and it is said for whom.
        let mut play = unwhole(is_source);
        play.ticks(3);
        assert_eq!((play.run.phase, play.run.weight), (Phase::Progressing, 20));
        let reason = if is_source {
            Reason::SourceNotReady
        } else {
            Reason::TargetNotReady
        };
        assert!(play.holds.contains(&reason), "{:?}", play.holds);
        play.sight.source.readiness = Readiness::Ready;
        play.sight.target.readiness = Readiness::Ready;
        assert_eq!(play.finish(), Phase::Succeeded);
    }
}

#[test]
fn a_version_that_was_taken_back_has_neither_succeeded_nor_been_promoted() {
    let mut play = Play::new(by_weights(&[20, 40]));
    play.push("v2").ticks(1);
    play.push("v1");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert!(play.run.ends.is_empty(), "{:?}", play.run.ends);
    assert!(
        !play
            .told
            .iter()
            .any(|text| text.contains("Promotion completed"))
    );
}
