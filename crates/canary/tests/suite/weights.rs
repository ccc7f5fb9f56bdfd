//! Scenarios 29 to 39: the canary strategy.

use std::time::Duration;

use slipway_api::canary::Phase;
use slipway_canary::engine::{Deed, Readiness, Shift, Weights, deeds, split};
use slipway_canary::reasons::Reason;

use crate::play::{Play, by_weights, measure, version};

fn weights_of(steps: &[u8]) -> Vec<u8> {
    let mut play = Play::new(by_weights(steps));
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
    assert_eq!(play.sight.target.size, 0);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    play.weights()
}

#[test]
fn scenarios_29_to_32_weights_go_up_as_written_and_back_at_the_end() {
    assert_eq!(weights_of(&[20, 40, 60]), [0, 20, 40, 60, 0]);
    assert_eq!(weights_of(&[50, 100]), [0, 50, 100, 0]);
    assert_eq!(weights_of(&[1, 2, 10, 80]), [0, 1, 2, 10, 80, 0]);
    assert_eq!(weights_of(&[1, 2, 10, 100]), [0, 1, 2, 10, 100, 0]);
}

#[test]
fn phases_come_in_the_order_of_the_design() {
    let mut play = Play::new(by_weights(&[50, 100]));
    play.push("v2").finish();
    let order = ["Progressing", "Promoting", "Finalising", "Succeeded"];
    assert_eq!(play.phases(), order);
}

#[test]
fn a_run_takes_one_interval_for_each_step_and_no_more() {
    let mut play = Play::new(by_weights(&[20, 40, 60]));
    let began = play.now;
    play.push("v2").finish();
    assert_eq!(play.now.duration_since(began).as_secs(), 30);
}

#[test]
fn an_idle_canary_asks_for_nothing() {
    let mut play = Play::new(by_weights(&[50]));
    assert_eq!(play.settle(), None);
    assert_eq!(play.writes, 0);
    play.push("v2").finish();
    let writes = play.writes;
    assert_eq!(play.settle(), None);
    play.wait(100_000);
    assert_eq!(play.writes, writes);
}

#[test]
fn scenario_33_a_promotion_in_steps_gives_traffic_back_bit_by_bit() {
    let mut rules = by_weights(&[100]);
    rules.promotion_step = 50;
    let mut play = Play::new(rules);
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    let story: Vec<_> = play
        .story
        .iter()
        .map(|(phase, w, _)| (*phase, *w))
        .collect();
    assert_eq!(
        story,
        [
            (Phase::Progressing, 0),
            (Phase::Progressing, 100),
            (Phase::Promoting, 100),
            (Phase::Promoting, 50),
            (Phase::Finalising, 0),
            (Phase::Succeeded, 0),
        ]
    );
}

#[test]
fn scenario_34_and_r25_a_new_revision_in_the_middle_begins_anew() {
    let mut rules = by_weights(&[10, 20, 30]);
    rules.metrics = vec![measure("errors")];
    let mut play = Play::new(rules);
    play.push("v2").ticks(1);
    assert_eq!(play.run.weight, 20);
    play.run.failed_checks = 1;
    play.push("v3").settle();
    // The first look only remembers it; traffic follows at once, and the first step when it is ready.
    let (phase, weight, _) = play.story[play.story.len() - 2];
    assert_eq!((phase, weight), (Phase::Progressing, 0));
    assert_eq!(play.run.failed_checks, 0);
    assert_eq!(play.run.target, Some(version("v3")));
    assert_eq!(play.run.serving, Some(version("v1")), "R32");
    assert!(play.done.contains(&Deed::Route(Weights::SOURCE)));
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version("v3")));
}

#[test]
fn scenario_35_with_mirroring_copies_come_before_traffic() {
    let mut rules = by_weights(&[10, 20]);
    rules.mirror = true;
    let mut play = Play::new(rules);
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    let story: Vec<_> = play.story.iter().map(|(_, w, m)| (*w, *m)).collect();
    let begin = [(0, false), (0, true), (10, false), (20, false)];
    assert_eq!(story[..4], begin);
}

#[test]
fn scenario_36_and_r13_replicas_are_divided_by_the_weight() {
    let targets: Vec<u32> = [10, 20, 30, 40, 50].map(|w| split(7, w).0).into();
    assert_eq!(targets, [1, 2, 3, 3, 4]);
    for weight in 0..=100 {
        let (target, source) = split(7, weight);
        assert_eq!(target > 0, weight > 0, "{weight}");
        assert_eq!(source > 0, weight < 100, "{weight}");
        assert!(target + source >= 7);
    }
    assert_eq!(split(7, 100), (7, 0));
    assert_eq!(split(1, 50), (1, 1));
    assert_eq!(split(0, 50), (1, 1));
}

#[test]
fn r15_where_replicas_are_the_weights_the_source_shrinks_after_the_target_grew() {
    let mut rules = by_weights(&[50]);
    rules.shift = Shift::Replicas;
    let mut play = Play::new(rules);
    play.sight.source.size = 6;
    play.push("v2");
    (play.run.weight, play.run.replicas) = (50, Some(6));
    play.run.phase = Phase::Progressing;
    play.run.target = Some(version("v2"));
    play.sight.target.readiness = Readiness::Down("starting".to_owned());
    let planned = |play: &Play| deeds(&play.rules, &play.run, &play.sight, play.now).list;
    assert_eq!(planned(&play), [Deed::SizeTarget(3)]);
    play.sight.target.size = 3;
    assert_eq!(planned(&play), []);
    play.sight.target.readiness = Readiness::Ready;
    let route = Deed::Route(Weights::to_target(50));
    assert_eq!(planned(&play), [route], "nobody is led to it yet");
    play.sight.routing.weights = Some(Weights::to_target(50));
    assert_eq!(planned(&play), [Deed::SizeSource(3)]);
    play.sight.source.size = 3;
    assert_eq!(planned(&play), []);
}

#[test]
fn scenario_37_an_unready_target_gets_no_more() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    assert_eq!(play.run.weight, 20);
    play.sight.target.readiness = Readiness::Partly("2 of 3".to_owned());
    play.wait(15);
    assert_eq!(play.run.weight, 20);
    assert_eq!(play.sight.source.size, 3);
    assert!(play.holds.contains(&Reason::TargetNotReady));
    play.sight.target.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn a_target_without_any_pod_loses_its_traffic_at_once_and_that_counts() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    play.sight.target.readiness = Readiness::Down("0 of 3".to_owned());
    play.settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!((play.run.weight, play.run.failed_checks), (0, 1));
    play.sight.target.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn a_target_that_goes_down_again_and_again_goes_back() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2");
    for _ in 0..3 {
        play.sight.target.readiness = Readiness::Ready;
        play.settle();
        assert_eq!(play.run.weight, 10);
        play.sight.target.readiness = Readiness::Down("0 of 3".to_owned());
        play.settle();
    }
    assert_eq!(play.run.phase, Phase::Failed);
    assert_eq!(play.run.failed_checks, 3);
}

#[test]
fn scenario_38_a_pause_keeps_a_step() {
    let mut rules = by_weights(&[10, 20]);
    rules.interval = Duration::from_mins(1);
    rules.pauses = vec![Duration::from_mins(10)];
    let mut play = Play::new(rules);
    play.push("v2").settle();
    play.wait(9 * 60);
    assert_eq!(play.run.weight, 10);
    assert!(play.holds.contains(&Reason::StepPause));
    play.wait(60);
    assert_eq!(play.run.weight, 20);
}

#[test]
fn scenario_39_weights_that_somebody_edits_are_restored_and_that_is_told() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    play.sight.routing.weights = Some(Weights::to_target(77));
    play.settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(20)));
    assert!(play.told.iter().any(|text| text.contains("weight 77")));
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn a_step_counts_from_when_the_data_plane_has_taken_it() {
    let mut play = Play::new(by_weights(&[10, 20]));
    play.push("v2").settle();
    play.sight.routing.pending = Some("not accepted".to_owned());
    play.wait(60);
    assert_eq!(play.run.weight, 10);
    assert!(play.holds.contains(&Reason::RoutingPending));
    play.sight.routing.pending = None;
    play.settle();
    assert_eq!(play.run.weight, 20);
    // It was late, and lasts an interval all the same.
    let due = play.run.due.unwrap();
    assert_eq!(due.duration_since(play.now).as_secs(), 10);
}

#[test]
fn ticks_do_not_drift() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").settle();
    let first = play.run.due.unwrap();
    play.now = first + Duration::from_millis(300);
    play.settle();
    let second = play.run.due.unwrap();
    assert_eq!(second.duration_since(first).as_secs_f64(), 10.0);
}

#[test]
fn scenario_97_the_side_that_gets_the_traffic_has_as_many_as_the_other_one_had() {
    let mut play = Play::new(by_weights(&[50, 100]));
    play.sight.source.size = 20;
    play.sight.target.full = 2;
    play.push("v2").settle();
    assert_eq!(play.sight.target.size, 10);
    play.ticks(1);
    assert_eq!((play.run.weight, play.sight.target.size), (100, 20));
    // The source's autoscaler has had nothing to do for a while.
    play.sight.source.size = 2;
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.source.size, 20);
}

#[test]
fn a_bound_of_the_autoscaler_is_not_fought() {
    let mut play = Play::new(by_weights(&[100]));
    play.sight.target.full = 20;
    play.sight.source.most = Some(5);
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.source.size, 5);
}
