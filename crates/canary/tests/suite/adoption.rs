//! A run and its status, what Flagger leaves in each phase, and what a deletion gives back.

use jiff::Timestamp;
use serde_json::json;
use slipway_api::canary::{CanaryStatus, Phase};
use slipway_canary::engine::{Readiness, Revision, Run, Side, Weights};
use slipway_canary::standalone::adopt::{Scene, is_foreign, run, status};
use slipway_canary::standalone::revert::{Step, next};
use slipway_kernel::finalizer::Phase as Guard;

use crate::play::{Play, by_weights};

fn version(template: &str) -> Revision {
    Revision {
        template: template.to_owned(),
        configs: Some([("configmap/a".to_owned(), "1".to_owned())].into()),
    }
}

const OURS: &str = "0123456789abcdef";

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

#[test]
fn a_run_is_read_as_it_was_written() {
    let at = Some(now());
    for phase in Phase::ALL {
        let before = Run {
            phase,
            serving: Some(version(OURS)),
            target: Some(version("fedcba9876543210")),
            attempt: 2,
            weight: 30,
            mirrored: true,
            matching: true,
            iterations: 4,
            failed_checks: 1,
            prepared: true,
            skip: true,
            closing: true,
            draining: true,
            paused: Some("by ann".to_owned()),
            stopped_since: at,
            router: Some("istio".to_owned()),
            places: [("apex".to_owned(), "web".to_owned())].into(),
            replicas: Some(7),
            free_since: at,
            due: at,
            step_since: at,
            held_since: at,
            unmeasured_since: at,
            gate: Some("g".to_owned()),
            command: Some("c".to_owned()),
            ends: [("failed/canary/completed".to_owned(), 2)].into(),
        };
        let written = status(&before, &CanaryStatus::default(), 7, now());
        assert_eq!(run(&written, &Scene::default()), before);
        // Through JSON as well, and a second time changes nothing.
        let text = serde_json::to_string(&written).unwrap();
        let read: CanaryStatus = serde_json::from_str(&text).unwrap();
        assert_eq!(run(&read, &Scene::default()), before);
        let later = Timestamp::from_second(2_000).unwrap();
        assert_eq!(status(&before, &read, 7, later), read);
    }
}

#[test]
fn the_condition_is_what_pipelines_wait_for() {
    let shown = |phase, before: &CanaryStatus, at: i64| {
        let run = Run {
            phase,
            ..Run::default()
        };
        status(&run, before, 1, Timestamp::from_second(at).unwrap())
    };
    let progressing = shown(Phase::Progressing, &CanaryStatus::default(), 10);
    let promoting = shown(Phase::Promoting, &progressing, 20);
    let condition = &promoting.conditions[0];
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("Unknown", "Promoting")
    );
    assert_eq!(
        condition
            .last_transition_time
            .as_ref()
            .unwrap()
            .0
            .as_second(),
        10
    );
    let done = shown(Phase::Succeeded, &promoting, 30);
    assert_eq!(done.conditions.len(), 1);
    assert_eq!(done.conditions[0].status, "True");
    assert_eq!(
        done.conditions[0]
            .last_transition_time
            .as_ref()
            .unwrap()
            .0
            .as_second(),
        30
    );
}

/// What Flagger leaves in a phase.
fn left(phase: &str) -> CanaryStatus {
    serde_json::from_value(json!({
        "phase": phase, "failedChecks": 1, "canaryWeight": 0, "iterations": -1,
        "lastAppliedSpec": "5d8b9c7f6", "lastPromotedSpec": "7c6d5f4b8",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Promoted", "status": "Unknown", "reason": phase,
            "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "m"}],
    }))
    .unwrap()
}

fn scene(is_alike: bool, weight: u8) -> Scene {
    Scene {
        target: Some(version(OURS)),
        is_alike,
        weights: Some(Weights::to_target(weight)),
        ..Scene::default()
    }
}

/// A play that goes on where Flagger stopped.
fn taken_over(phase: &str, is_alike: bool, weight: u8) -> Play {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.run = run(&left(phase), &scene(is_alike, weight));
    play.sight.target.revision = Some(version(OURS));
    play.sight.source.revision = if is_alike {
        Some(version(OURS))
    } else {
        play.run.serving.clone()
    };
    play.sight.target.size = u32::from(weight > 0) * 3;
    play.sight.routing.weights = Some(Weights::to_target(weight));
    play
}

#[test]
fn what_flagger_wrote_is_told_from_what_we_wrote() {
    assert!(is_foreign(&left("Progressing")));
    assert!(!is_foreign(&CanaryStatus::default()));
    let ours = status(&Run::default(), &left("Progressing"), 1, now());
    assert!(!is_foreign(&ours));
}

#[test]
fn an_idle_canary_of_flaggers_stays_idle() {
    for phase in ["Initialized", "Succeeded"] {
        let mut play = taken_over(phase, true, 0);
        assert_eq!(play.settle(), None);
        assert_eq!(play.run.phase.as_str(), phase);
        assert!(play.done.is_empty());
    }
    let mut failed = taken_over("Failed", false, 0);
    failed.finish();
    assert_eq!(failed.run.phase, Phase::Failed);
    assert!(!failed.phases().contains(&"Progressing"));
}

#[test]
fn a_version_that_came_while_nobody_looked_is_run() {
    let mut play = taken_over("Succeeded", false, 0);
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version(OURS)));
    assert!(play.phases().contains(&"Progressing"));
}

#[test]
fn a_run_of_flaggers_goes_on_from_where_it_is() {
    for (phase, weight) in [
        ("Progressing", 0),
        ("Progressing", 20),
        ("WaitingPromotion", 30),
        ("Waiting", 0),
    ] {
        let mut play = taken_over(phase, false, weight);
        assert_eq!(play.run.weight, weight, "{phase}: what is routed counts");
        assert_eq!(play.finish(), Phase::Succeeded, "{phase} {weight}");
        assert_eq!(play.run.serving, Some(version(OURS)));
        assert!(
            play.story
                .iter()
                .all(|(p, w, _)| *p != Phase::Progressing || *w >= weight)
        );
    }
}

#[test]
fn a_promotion_of_flaggers_is_completed() {
    for phase in ["Promoting", "Finalising"] {
        for weight in [0, 30] {
            let mut play = taken_over(phase, true, weight);
            assert_eq!(play.finish(), Phase::Succeeded, "{phase} {weight}");
            assert_eq!(play.run.serving, Some(version(OURS)));
            assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
        }
    }
}

fn side(size: u32, readiness: Readiness) -> Side {
    Side {
        revision: Some(version(OURS)),
        attempt: None,
        size,
        full: 1,
        most: None,
        readiness,
    }
}

#[test]
fn scenario_110_a_deletion_gives_the_workload_back_before_it_lets_go() {
    let source = side(5, Readiness::Ready);
    let ending = |target: &Side, is_routed| next(true, Guard::Ending, &source, target, is_routed);
    assert_eq!(ending(&side(0, Readiness::Ready), false), Step::Size(5));
    let starting = side(5, Readiness::Partly("2 of 5".to_owned()));
    assert_eq!(ending(&starting, false), Step::Wait);
    assert_eq!(ending(&side(5, Readiness::Ready), false), Step::Route);
    assert_eq!(ending(&side(5, Readiness::Ready), true), Step::Release);
    // Nothing is stuck for ever because of what is gone.
    assert_eq!(ending(&Side::default(), false), Step::Release);
}

#[test]
fn only_who_has_to_give_something_back_is_guarded() {
    let (source, target) = (side(5, Readiness::Ready), side(0, Readiness::Ready));
    let step = |asked, guard| next(asked, guard, &source, &target, false);
    assert_eq!(step(true, Guard::Unguarded), Step::Guard);
    assert_eq!(step(false, Guard::Unguarded), Step::Live);
    assert_eq!(step(true, Guard::Guarded), Step::Live);
    assert_eq!(step(true, Guard::Released), Step::Gone);
}

#[test]
fn what_serves_gets_our_name_when_the_workload_is_put_back_to_it() {
    let mut failed = run(&left("Failed"), &scene(false, 0));
    failed.draining = false;
    let written = status(&failed, &left("Failed"), 1, now());
    let again = run(&written, &scene(false, 0));
    assert_eq!(again.serving.unwrap().template, "7c6d5f4b8");
    let back = run(&written, &scene(true, 0));
    assert_eq!(back.serving, Some(version(OURS)));
}
