//! Scenarios 1, 2, 15, 21 to 26 and 34: how a new version is noticed.

use slipway_api::canary::{HookType, Phase};
use slipway_canary::engine::{Answer, Deed, Readiness, Routing, Run, Side, Weights};
use slipway_canary::reasons::Reason;

use crate::play::{Play, by_weights, fine, hook, version};

/// A workload that serves without a Canary until now.
fn new() -> Play {
    let mut play = Play::new(by_weights(&[50]));
    play.run = Run::default();
    play.sight.source = Side {
        full: 3,
        ..Side::default()
    };
    play.sight.target.size = 3;
    play.sight.routing = Routing::default();
    play
}

fn failed() -> Play {
    let mut play = Play::new(by_weights(&[10, 20]));
    play.rules.hooks = vec![hook(HookType::Rollout)];
    play.answer(|_, _| Some(Answer::No("500".to_owned())));
    play.push("v2");
    assert_eq!(play.finish(), Phase::Failed);
    play.answer(fine);
    play
}

#[test]
fn scenarios_1_and_2_what_serves_is_ready_and_routed_to_before_the_target_goes() {
    let mut play = new();
    play.heals = false;
    play.settle();
    assert_eq!(play.run.phase, Phase::Initializing);
    assert_eq!(play.done, [Deed::Template(version("v1"))]);
    assert_eq!(play.sight.target.size, 3);
    play.sight.source.readiness = Readiness::Ready;
    play.settle();
    assert_eq!(play.run.phase, Phase::Initialized);
    let order = [Deed::Route(Weights::SOURCE), Deed::SizeTarget(0)];
    assert_eq!(play.done[1..], order);
    assert_eq!(play.run.serving, Some(version("v1")));
}

/// Whoever applies a Canary together with a version that does not run corrects the version.
#[test]
fn what_never_became_ready_is_of_the_version_that_the_workload_is_corrected_to() {
    let mut play = new();
    play.heals = false;
    play.settle();
    play.sight.source.readiness = Readiness::Down("0 of 3 pods are available".to_owned());
    play.push("v2");
    play.settle();
    let made = [version("v1"), version("v2")].map(Deed::Template);
    assert_eq!(play.done, made);
    play.heals = true;
    play.sight.source.readiness = Readiness::Ready;
    play.sight.target.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Initialized);
    assert_eq!(play.run.serving, Some(version("v2")));
}

/// Whoever leads to what serves has not asked for an unproved version, however long that is down.
#[test]
fn what_is_led_to_does_not_become_of_another_version_while_it_is_down() {
    let mut play = new();
    play.heals = false;
    play.settle();
    play.sight.routing.weights = Some(Weights::SOURCE);
    play.sight.source.readiness = Readiness::Down("0 of 3 pods are available".to_owned());
    play.push("v2");
    play.settle();
    assert_eq!(play.done, [Deed::Template(version("v1"))]);
}

#[test]
fn a_route_that_is_not_taken_keeps_the_target_as_it_is() {
    let mut play = new();
    play.sight.routing.pending = Some("no parent has accepted the route".to_owned());
    play.settle();
    play.wait(100_000);
    assert_eq!(play.run.phase, Phase::Initializing);
    assert_eq!(play.sight.target.size, 3);
    assert!(play.holds.contains(&Reason::RoutingPending));
}

#[test]
fn a_version_that_comes_while_what_serves_is_made_is_the_first_run() {
    let mut play = new();
    play.heals = false;
    play.settle();
    play.push("v2");
    play.heals = true;
    play.sight.source.readiness = Readiness::Ready;
    play.sight.target.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert!(play.phases().contains(&"Progressing"));
    assert_eq!(play.run.serving, Some(version("v2")));
}

#[test]
fn scenario_15_a_changed_template_begins_a_run_at_once() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    assert_eq!(play.run.phase, Phase::Progressing);
    assert_eq!(play.sight.target.size, 3);
}

#[test]
fn a_changed_config_is_another_version() {
    let mut play = Play::new(by_weights(&[50]));
    let mut changed = version("v1");
    changed.configs = Some([("configmap/a".to_owned(), "1".to_owned())].into());
    play.sight.target.revision = Some(changed.clone());
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(changed));
}

#[test]
fn scenarios_21_and_22_after_a_revert_the_failing_version_may_come_again() {
    let mut play = failed();
    play.push("v1").settle();
    assert_eq!(play.run.phase, Phase::Failed);
    let writes = play.writes;
    play.wait(1_000);
    assert_eq!(play.writes, writes);
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn a_version_that_failed_is_not_tried_again_by_itself() {
    let mut play = failed();
    let writes = play.writes;
    assert_eq!(play.settle(), None);
    assert_eq!(play.writes, writes);
    // D12: how many checks failed can still be seen.
    assert_eq!(play.run.failed_checks, 3);
}

#[test]
fn scenario_23_r29_another_version_after_a_failure_begins_a_run() {
    let mut play = failed();
    play.push("v3");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version("v3")));
}

#[test]
fn scenario_24_d1_a_version_that_comes_while_the_source_is_unready_is_not_lost() {
    let mut play = failed();
    play.sight.source.readiness = Readiness::Partly("2 of 3".to_owned());
    play.push("v3").settle();
    assert_eq!(play.run.phase, Phase::Failed);
    assert!(play.holds.contains(&Reason::SourceNotReady));
    assert_eq!(play.run.target, Some(version("v2")));
    play.sight.source.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version("v3")));
}

#[test]
fn d13_a_source_without_replicas_is_not_ready() {
    let mut play = Play::new(by_weights(&[50]));
    play.sight.source.size = 0;
    play.push("v2").settle();
    assert_eq!(play.run.phase, Phase::Initialized);
    assert!(play.holds.contains(&Reason::SourceNotReady));
}

#[test]
fn scenario_25_d2_a_revert_in_the_middle_cancels_the_run() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(2);
    assert_eq!(play.run.weight, 30);
    play.push("v1").settle();
    assert_eq!(play.run.phase, Phase::Succeeded);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.sight.target.size, 0);
    assert!(!play.phases().contains(&"Promoting"));
    let templates = play.done.iter().filter(|d| matches!(d, Deed::Template(_)));
    assert_eq!(templates.count(), 0);
    let writes = play.writes;
    play.wait(1_000);
    assert_eq!(play.writes, writes, "no second run begins by itself");
}

#[test]
fn scenario_26_d3_a_revert_while_the_start_waits_ends_that() {
    let mut play = Play::new(by_weights(&[10]));
    play.rules.hooks = vec![hook(HookType::ConfirmRollout)];
    play.answer(|_, _| Some(Answer::No("403".to_owned())));
    play.push("v2").ticks(2);
    assert_eq!(play.run.phase, Phase::Waiting);
    play.push("v1").settle();
    play.answer(fine);
    play.wait(1_000);
    assert_eq!(play.run.phase, Phase::Succeeded);
    assert!(play.done.is_empty());
}

#[test]
fn scenario_109_a_suspended_canary_is_left_as_it_is_and_goes_on_later() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    play.rules.suspend = true;
    let (writes, done) = (play.writes, play.done.len());
    play.sight.routing.weights = Some(Weights::to_target(50));
    play.wait(1_000);
    // Only since when is remembered: that time does not count.
    assert_eq!((play.writes, play.done.len()), (writes + 1, done));
    assert_eq!(play.holds, [Reason::Suspended]);
    play.rules.suspend = false;
    assert_eq!(play.finish(), Phase::Succeeded);
}
