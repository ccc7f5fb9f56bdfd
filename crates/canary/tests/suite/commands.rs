//! What people ask for: abort, pause, promote, resume, retry; in every phase, each once.

use slipway_api::canary::{HookType, Phase};
use slipway_canary::engine::{Answer, Deed, Readiness, Verb, Weights};
use slipway_canary::reasons::Reason;

use crate::play::{Play, by_weights, fine, hook, version};

#[test]
fn abort_sends_a_version_back_at_once() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    play.command(Verb::Abort, "1").settle();
    assert_eq!(play.run.phase, Phase::Failed);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert!(play.alerts.iter().any(|alert| alert.contains("by ann")));
    let writes = play.writes;
    play.wait(1_000);
    assert_eq!(play.writes, writes, "followed once");
}

#[test]
fn abort_during_a_promotion_gives_the_source_its_former_version_back() {
    let mut play = Play::new(by_weights(&[50]));
    play.push("v2").settle();
    play.heals = false;
    play.ticks(1);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
    play.command(Verb::Abort, "1").settle();
    assert_eq!(play.run.phase, Phase::Failed);
    assert_eq!(play.sight.source.revision, Some(version("v1")));
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.sight.target.size, 0);
}

#[test]
fn abort_while_the_start_waits_ends_that() {
    let mut play = Play::new(by_weights(&[50]));
    play.rules.hooks = vec![hook(HookType::ConfirmRollout)];
    play.answer(|_, _| Some(Answer::No("403".to_owned())));
    play.push("v2").ticks(1);
    play.command(Verb::Abort, "1").settle();
    assert_eq!(play.run.phase, Phase::Failed);
    play.answer(fine);
    play.wait(1_000);
    assert_eq!(
        play.run.phase,
        Phase::Failed,
        "the version is not tried again"
    );
}

#[test]
fn promote_ends_the_analysis() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    let began = play.now;
    play.command(Verb::Promote, "1").settle();
    assert_eq!(play.run.phase, Phase::Succeeded);
    assert_eq!(play.now, began);
    assert_eq!(play.run.serving, Some(version("v2")));
    // The next run has its analysis.
    play.push("v3").settle();
    assert_eq!(play.run.phase, Phase::Progressing);
    assert!(!play.run.skip);
}

#[test]
fn promote_goes_through_a_closed_gate_and_a_broken_source() {
    let mut play = Play::new(by_weights(&[10]));
    play.rules.hooks = vec![hook(HookType::ConfirmRollout)];
    play.answer(|_, _| Some(Answer::No("403".to_owned())));
    play.push("v2").ticks(1);
    play.sight.source.readiness = Readiness::Down("crash loop".to_owned());
    play.command(Verb::Promote, "1");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
}

#[test]
fn promote_waits_for_the_version_to_be_ready() {
    let mut play = Play::new(by_weights(&[10]));
    play.heals = false;
    play.push("v2").settle();
    play.command(Verb::Promote, "1").settle();
    assert_eq!(play.run.phase, Phase::Progressing);
    assert!(!play.done.iter().any(|d| matches!(d, Deed::Template(_))));
    play.heals = true;
    play.sight.target.readiness = Readiness::Ready;
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn retry_tries_a_version_that_failed_again() {
    let mut play = Play::new(by_weights(&[10]));
    play.rules.hooks = vec![hook(HookType::PreRollout)];
    play.answer(|_, _| Some(Answer::No("500".to_owned())));
    play.push("v2");
    assert_eq!(play.finish(), Phase::Failed);
    play.answer(fine);
    play.command(Verb::Retry, "1");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.attempt, 1);
}

#[test]
fn pause_stays_where_it_is_until_resume() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    let weight = play.run.weight;
    play.command(Verb::Pause, "1").settle();
    assert!(play.holds.contains(&Reason::Paused), "{:?}", play.holds);
    let writes = play.writes;
    play.wait(100_000);
    assert_eq!((play.run.weight, play.writes), (weight, writes));
    assert_eq!(play.run.phase, Phase::Progressing);
    // Nothing that was not analysed gets traffic meanwhile.
    play.push("v3").settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert!(play.run.paused.is_some());
    play.command(Verb::Resume, "2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.serving, Some(version("v3")));
    assert!(play.run.paused.is_none() && play.run.stopped_since.is_none());
}

#[test]
fn a_version_that_is_put_back_during_a_pause_is_not_analysed() {
    let mut play = Play::new(by_weights(&[50, 80]));
    play.rules.hooks = vec![hook(HookType::PreRollout), hook(HookType::Rollout)];
    play.push("v2").ticks(1);
    assert!(play.run.weight > 0);
    play.command(Verb::Pause, "1").settle();
    let asked = play.asked.len();
    play.push("v1").settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    play.command(Verb::Resume, "2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.asked.len(), asked, "nobody is asked about what serves");
    assert_eq!(play.run.serving, Some(version("v1")));
}

#[test]
fn a_paused_version_can_be_aborted_and_promoted() {
    for (verb, end) in [
        (Verb::Abort, Phase::Failed),
        (Verb::Promote, Phase::Succeeded),
    ] {
        let mut play = Play::new(by_weights(&[10, 20, 30]));
        play.push("v2").ticks(1);
        play.command(Verb::Pause, "1").settle();
        play.command(verb, "2");
        assert_eq!(play.finish(), end);
        assert!(play.run.paused.is_none());
    }
}

#[test]
fn a_paused_version_without_pods_loses_its_traffic() {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.push("v2").ticks(1);
    play.command(Verb::Pause, "1").settle();
    play.sight.target.readiness = Readiness::Down("a node died".to_owned());
    play.settle();
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
}

#[test]
fn a_command_that_is_not_understood_is_told_once() {
    let mut play = Play::new(by_weights(&[10]));
    play.command(Verb::Abort, "1");
    play.sight.command.as_mut().unwrap().verb = None;
    play.settle();
    let about = |play: &Play| {
        let told = play.told.iter();
        told.filter(|text| text.contains("not understood")).count()
    };
    assert_eq!(about(&play), 1);
    play.wait(100);
    assert_eq!((about(&play), play.run.phase), (1, Phase::Initialized));
}

#[test]
fn every_command_is_taken_in_every_phase() {
    for phase in Phase::ALL {
        for verb in Verb::ALL {
            let mut play = Play::new(by_weights(&[10]));
            play.run.phase = phase;
            play.command(verb, "1");
            play.look();
            assert_eq!(play.run.command.as_deref(), Some("1"), "{phase:?} {verb:?}");
        }
    }
}

/// What a command comes to in a phase, for a version that is new; in all others it is told that there is nothing to do.
fn outcome(verb: Verb, phase: Phase) -> Option<Phase> {
    let is_run = matches!(
        phase,
        Phase::Waiting | Phase::Progressing | Phase::WaitingPromotion
    );
    let is_end = matches!(
        phase,
        Phase::Initialized | Phase::Succeeded | Phase::Failed | Phase::Waiting
    );
    let is_late = matches!(phase, Phase::Promoting | Phase::Finalising);
    match verb {
        Verb::Abort if is_run || is_late => Some(Phase::Failed),
        Verb::Promote if is_run || is_end => Some(Phase::Progressing),
        Verb::Retry if phase == Phase::Failed => Some(Phase::Progressing),
        Verb::Pause => Some(phase),
        _ => None,
    }
}

#[test]
fn every_command_does_in_every_phase_what_it_says_or_is_refused_with_a_word() {
    for phase in Phase::ALL {
        for verb in Verb::ALL {
            let mut play = Play::new(by_weights(&[10]));
            play.run.phase = phase;
            play.run.target = Some(version("v2"));
            play.push("v2");
            play.command(verb, "1");
            play.look();
            let found = (verb, phase, play.run.phase);
            if let Some(end) = outcome(verb, phase) {
                assert_eq!(found, (verb, phase, end));
                assert_eq!(play.run.paused.is_some(), verb == Verb::Pause, "{found:?}");
            } else {
                assert_eq!(found, (verb, phase, phase));
                let text = format!("There is nothing to {}", verb.as_str());
                assert!(
                    play.told[0].starts_with(&text),
                    "{found:?}: {:?}",
                    play.told
                );
            }
        }
    }
}
