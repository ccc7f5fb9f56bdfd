//! Scenarios 78 to 83, 88 and 89: how a run ends.

use std::time::Duration;

use slipway_api::canary::Phase;
use slipway_canary::engine::{Deed, Finish, Readiness, Weights};
use slipway_canary::reasons::Reason;

use crate::play::{Play, by_weights, version};

/// A run whose version takes over, and whose source is not ready yet.
fn promoting() -> Play {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
    play
}

#[test]
fn scenario_78_the_source_becomes_the_version_and_gets_the_traffic_back() {
    let mut play = promoting();
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(50)));
    assert!(play.holds.contains(&Reason::SourceNotReady));
    play.sight.source.readiness = Readiness::Ready;
    play.settle();
    assert_eq!(play.run.phase, Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version("v2")));
}

#[test]
fn scenario_79_a_promotion_that_gets_stuck_leaves_the_traffic_with_the_healthy_side() {
    let mut play = promoting();
    play.sight.source.readiness = Readiness::Stuck("deadline exceeded".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
    assert_eq!(play.sight.target.size, 3);
    assert!(play.alerts.iter().any(|alert| alert.contains("deadline")));
    // It stays so.
    let writes = play.writes;
    play.wait(100_000);
    assert_eq!(play.writes, writes);
}

#[test]
fn a_promotion_that_takes_too_long_by_our_clock_fails_too() {
    let mut play = promoting();
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!(play.run.weight, 100);
}

#[test]
fn after_a_failed_promotion_a_revert_heals_the_source_then_gives_it_the_traffic() {
    let mut play = promoting();
    play.sight.source.readiness = Readiness::Stuck("deadline exceeded".to_owned());
    play.settle();
    play.heals = true;
    play.push("v1");
    play.finish();
    assert_eq!(play.sight.source.revision, Some(version("v1")));
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.sight.target.size, 0);
}

#[test]
fn scenario_80_traffic_goes_back_when_the_source_breaks_after_it_got_it() {
    let mut play = promoting();
    play.sight.source.readiness = Readiness::Ready;
    play.look();
    assert_eq!(play.run.phase, Phase::Finalising);
    play.sight.source.readiness = Readiness::Stuck("crash loop".to_owned());
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
}

#[test]
fn scenario_80_who_alone_has_pods_is_not_put_away_at_the_end_of_a_promotion() {
    let finalising = || {
        let mut play = promoting();
        play.rules.grace = Duration::from_secs(10);
        play.sight.source.readiness = Readiness::Ready;
        play.settle();
        assert_eq!(play.run.phase, Phase::Finalising);
        assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
        play.sight.source.readiness = Readiness::Down("out of memory".to_owned());
        play
    };
    // The load was too much for the copy: the version takes it back, and the promotion goes on.
    let mut play = finalising();
    play.settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Promoting, 100));
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
    play.wait(20);
    assert_eq!(play.sight.target.size, 3);
    play.sight.source.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
    // It does not come up again.
    let mut play = finalising();
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!((play.run.weight, play.sight.target.size), (100, 3));
    // The version is not whole either: it stays until somebody answers.
    let mut play = finalising();
    play.sight.target.readiness = Readiness::Partly("2 of 3".to_owned());
    play.wait(20);
    assert_eq!(play.sight.target.size, 3);
    assert!(play.holds.contains(&Reason::SourceNotReady), "it is said");
}

#[test]
fn scenarios_82_and_83_d5_a_version_that_never_gets_ready_goes_back_with_an_alert() {
    let mut play = Play::new(by_weights(&[50]));
    play.heals = false;
    play.push("v2").settle();
    assert!(play.holds.contains(&Reason::TargetNotReady));
    play.sight.target.readiness = Readiness::Stuck("ProgressDeadlineExceeded".to_owned());
    play.settle();
    assert_eq!(play.run.phase, Phase::Failed);
    assert_eq!(play.sight.target.size, 0);
    assert!(play.errors.iter().any(|error| error.contains("Deadline")));
}

#[test]
fn a_version_that_nobody_says_anything_of_goes_back_at_the_deadline() {
    let mut play = Play::new(by_weights(&[50]));
    play.heals = false;
    play.push("v2");
    let began = play.now;
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!(play.now.duration_since(began).as_secs(), 60);
}

#[test]
fn a_source_that_gets_stuck_in_the_middle_ends_the_run() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    play.sight.source.readiness = Readiness::Stuck("deadline exceeded".to_owned());
    play.settle();
    assert_eq!(play.run.phase, Phase::Failed);
}

#[test]
fn a_workload_that_is_deleted_in_the_middle_ends_the_run() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    play.sight.target.revision = None;
    play.sight.target.readiness = Readiness::Missing;
    play.sight.target.size = 0;
    play.settle();
    assert_eq!(play.run.phase, Phase::Failed);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert!(play.holds.contains(&Reason::TargetNotFound));
}

#[test]
fn scenario_88_d7_a_version_that_comes_during_a_promotion_waits_and_gets_no_traffic() {
    let mut play = promoting();
    play.push("v3").settle();
    assert_eq!((play.run.phase, play.run.weight), (Phase::Promoting, 0));
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.run.target, Some(version("v2")));
    play.sight.source.readiness = Readiness::Ready;
    play.heals = true;
    play.sight.target.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
    let ends = play.story.iter().filter(|(p, ..)| *p == Phase::Succeeded);
    assert_eq!(ends.count(), 2);
    assert_eq!(play.run.serving, Some(version("v3")));
}

#[test]
fn d8_what_was_not_analysed_is_not_promoted() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.obeys = false;
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Promoting);
    // Between the decision and the copy, somebody pushes another version.
    play.push("v3");
    play.obeys = true;
    play.settle();
    assert_eq!(play.run.phase, Phase::Progressing);
    assert_eq!(play.sight.source.revision, Some(version("v1")));
    assert_eq!(play.finish(), Phase::Succeeded);
    let copies: Vec<&Deed> = play
        .done
        .iter()
        .filter(|deed| matches!(deed, Deed::Template(_)))
        .collect();
    assert_eq!(copies, [&Deed::Template(version("v3"))]);
}

#[test]
fn scenario_89_a_crash_after_any_write_or_deed_comes_to_the_same_end() {
    // Answers are gone with the process; what is remembered and what was done is not.
    let mut plain = Play::new(by_weights(&[20, 40]));
    plain.rules.metrics = vec![crate::play::measure("errors")];
    plain.push("v2").finish();
    for crash in 0..40 {
        let mut play = Play::new(by_weights(&[20, 40]));
        play.rules.metrics = vec![crate::play::measure("errors")];
        play.push("v2");
        for _ in 0..crash {
            if let (false, Some(wake)) = play.look() {
                play.now = wake;
            }
        }
        play.answers.clear();
        assert_eq!(play.finish(), Phase::Succeeded, "crash {crash}");
        assert_eq!(play.weights(), plain.weights(), "crash {crash}");
        assert_eq!(play.sight, plain.sight, "crash {crash}");
    }
}

#[test]
fn r17_a_version_can_take_over_in_its_own_place() {
    let mut rules = by_weights(&[50]);
    rules.finish = Finish::OntoTarget;
    let mut play = Play::new(rules);
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.source.size, 0);
    assert_eq!(play.sight.routing.weights, Some(Weights::to_target(100)));
    assert!(!play.done.iter().any(|d| matches!(d, Deed::Template(_))));
    let down = play.done.iter().position(|d| *d == Deed::SizeSource(0));
    let routed = play
        .done
        .iter()
        .position(|d| *d == Deed::Route(Weights::to_target(100)));
    assert!(routed < down);
}

#[test]
fn scenario_97_after_a_promotion_that_failed_nobody_lands_on_too_few_pods() {
    // The target has all traffic on twenty pods; nobody is at the copy, and its autoscaler takes it down to two.
    for back in [None, Some("v1")] {
        let mut play = promoting();
        play.sight.target.size = 20;
        play.sight.source.readiness = Readiness::Stuck("no quota".to_owned());
        play.settle();
        assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
        play.obeys = false;
        if let Some(version) = back {
            play.push(version);
            play.sight.source.revision = play.sight.target.revision.clone();
            play.sight.target.readiness = Readiness::Ready;
        }
        (play.sight.source.size, play.sight.source.readiness) = (2, Readiness::Ready);
        play.settle();
        assert_eq!((play.run.phase, play.run.weight), (Phase::Failed, 100));
        play.obeys = true;
        play.finish();
        assert!(play.done.contains(&Deed::SizeSource(20)), "{back:?}");
        assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    }
}
