//! Scenarios 46 to 52, 58 and 59: webhooks as gates.

use std::time::Duration;

use slipway_api::canary::{HookType, Phase};
use slipway_canary::engine::{Answer, Ask, Check, Rules, Shift};
use slipway_canary::reasons::Reason;

use crate::play::{Play, by_iterations, by_weights, fine, hook, measure, version};

/// Webhooks of one type refuse; all others are fine.
fn refusing(kind: HookType) -> impl Fn(&Rules, Ask) -> Option<Answer> {
    move |rules, ask| match ask.check {
        Check::Hook(place) if rules.hooks[place].kind == kind => Some(Answer::No("403".to_owned())),
        _ => fine(rules, ask),
    }
}

/// A webhook asks for the version to go back.
fn alarmed(rules: &Rules, ask: Ask) -> Option<Answer> {
    match ask.check {
        Check::Hook(place) if rules.hooks[place].kind == HookType::ConfirmRollout => {
            Some(Answer::No("403".to_owned()))
        }
        Check::Hook(_) => Some(Answer::Yes),
        Check::Metric(_) => fine(rules, ask),
    }
}

fn gated(steps: &[u8], kinds: &[HookType]) -> Play {
    let mut rules = by_weights(steps);
    rules.hooks = kinds.iter().copied().map(hook).collect();
    Play::new(rules)
}

#[test]
fn scenario_46_and_r23_nothing_is_scaled_before_the_start_is_confirmed() {
    let mut play = gated(&[50], &[HookType::ConfirmRollout]);
    play.answer(refusing(HookType::ConfirmRollout));
    play.push("v2").ticks(5);
    assert_eq!(play.run.phase, Phase::Waiting);
    assert_eq!(play.sight.target.size, 0);
    assert!(play.done.is_empty());
    assert_eq!(play.alerts.len(), 1);
    assert!(play.calls(HookType::ConfirmRollout) >= 5);
    assert_eq!(play.run.failed_checks, 0);
    play.answer(fine);
    assert_eq!(play.finish(), Phase::Succeeded);
}

/// The version that went back was replaced at once, before the data plane had had its time.
#[test]
fn what_a_version_left_that_went_back_goes_while_the_next_one_waits() {
    for (wanted, phase) in [("v3", Phase::Waiting), ("v1", Phase::Succeeded)] {
        let mut play = gated(&[50], &[HookType::ConfirmRollout]);
        (play.rules.shift, play.rules.grace) = (Shift::Replicas, Duration::from_secs(30));
        play.answer(refusing(HookType::ConfirmRollout));
        (play.run.phase, play.run.target) = (Phase::Waiting, Some(version("v3")));
        (play.run.draining, play.run.replicas) = (true, Some(4));
        (play.sight.source.size, play.sight.target.size) = (2, 2);
        play.push(wanted).ticks(5);
        assert_eq!(play.run.phase, phase);
        assert_eq!((play.sight.source.size, play.sight.target.size), (4, 0));
        assert_eq!((play.run.draining, play.run.replicas), (false, None));
    }
}

#[test]
fn a_start_that_is_confirmed_at_once_is_no_waiting() {
    let mut play = gated(&[50], &[HookType::ConfirmRollout]);
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert!(!play.phases().contains(&"Waiting"));
}

#[test]
fn a_muted_gate_sends_no_alert() {
    let mut play = gated(&[50], &[HookType::ConfirmRollout]);
    play.rules.hooks[0].mute = true;
    play.answer(refusing(HookType::ConfirmRollout));
    play.push("v2").ticks(2);
    assert_eq!(play.run.phase, Phase::Waiting);
    assert!(play.alerts.is_empty());
}

#[test]
fn scenario_47_a_pre_rollout_webhook_that_fails_counts_and_keeps_traffic_away() {
    let mut play = gated(&[50], &[HookType::PreRollout]);
    play.answer(refusing(HookType::PreRollout));
    play.push("v2").settle();
    assert_eq!((play.run.failed_checks, play.run.weight), (1, 0));
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!(play.weights(), [0]);
}

#[test]
fn scenario_48_a_rollout_webhook_that_fails_as_often_as_may_be_sends_the_version_back() {
    let mut play = gated(&[50, 100], &[HookType::Rollout]);
    play.answer(refusing(HookType::Rollout));
    let began = play.now;
    play.push("v2");
    assert_eq!(play.finish(), Phase::Failed);
    // At the third failure, not a tick later.
    assert_eq!(play.now.duration_since(began).as_secs(), 30);
    assert_eq!(play.run.failed_checks, 3);
    assert_eq!(play.calls(HookType::Rollout), 3);
}

#[test]
fn scenario_49_a_closed_traffic_gate_holds_the_weight_and_counts_nothing() {
    let mut play = gated(&[10, 20], &[HookType::ConfirmTrafficIncrease]);
    play.push("v2").settle();
    assert_eq!(play.run.weight, 10);
    play.answer(refusing(HookType::ConfirmTrafficIncrease));
    let writes = play.writes;
    play.ticks(5);
    assert_eq!((play.run.weight, play.run.failed_checks), (10, 0));
    assert!(play.holds.contains(&Reason::TrafficGateClosed));
    assert_eq!(
        play.writes,
        writes + 1,
        "a closed gate is written when it closes, and not every tick"
    );
    play.answer(fine);
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn scenario_50_analysis_goes_on_while_promotion_waits() {
    let mut play = gated(&[50], &[HookType::ConfirmPromotion]);
    play.rules.metrics = vec![measure("errors")];
    play.answer(refusing(HookType::ConfirmPromotion));
    play.push("v2").ticks(4);
    assert_eq!(play.run.phase, Phase::WaitingPromotion);
    // D12: what is shown is what is routed.
    assert_eq!(play.run.weight, 50);
    assert_eq!(
        play.alerts
            .iter()
            .filter(|a| a.contains("promotion"))
            .count(),
        1
    );
    play.answer(|rules, ask| match ask.check {
        Check::Metric(_) => Some(Answer::Error("boom".to_owned())),
        Check::Hook(_) => refusing(HookType::ConfirmPromotion)(rules, ask),
    });
    assert_eq!(play.finish(), Phase::Failed);
}

#[test]
fn a_closed_promotion_gate_of_blue_green_counts_no_iterations() {
    let mut rules = by_iterations(2);
    rules.hooks = vec![hook(HookType::ConfirmPromotion)];
    let mut play = Play::new(rules);
    play.answer(refusing(HookType::ConfirmPromotion));
    play.push("v2").ticks(8);
    assert_eq!(play.run.phase, Phase::WaitingPromotion);
    assert_eq!((play.run.iterations, play.run.weight), (2, 0));
    play.answer(fine);
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn scenario_51_a_rollback_webhook_sends_the_version_back() {
    let mut play = gated(&[10, 20, 30], &[HookType::Rollback]);
    play.push("v2").ticks(1);
    assert_eq!(play.run.weight, 20);
    play.answer(alarmed);
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!(play.weights(), [0, 10, 20, 0]);
}

#[test]
fn scenario_52_d4_a_rollback_webhook_is_asked_while_the_start_waits() {
    let mut play = gated(&[10], &[HookType::ConfirmRollout, HookType::Rollback]);
    play.answer(refusing(HookType::ConfirmRollout));
    play.push("v2").ticks(2);
    assert_eq!(play.run.phase, Phase::Waiting);
    play.answer(alarmed);
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Failed);
}

#[test]
fn scenario_58_each_webhook_is_asked_as_often_as_it_should() {
    let kinds = [
        HookType::ConfirmRollout,
        HookType::PreRollout,
        HookType::Rollout,
        HookType::ConfirmTrafficIncrease,
        HookType::ConfirmPromotion,
        HookType::PostRollout,
    ];
    let mut play = gated(&[10, 20, 30], &kinds);
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert!(!play.run.closing);
    let calls = kinds.map(|kind| play.calls(kind));
    // Before each of three weights, and before the promotion.
    assert_eq!(calls, [1, 1, 3, 4, 1, 1]);
}

#[test]
fn scenario_59_without_analysis_only_the_first_and_the_last_are_asked() {
    let kinds = [
        HookType::ConfirmRollout,
        HookType::PreRollout,
        HookType::Rollout,
        HookType::ConfirmPromotion,
        HookType::Rollback,
        HookType::PostRollout,
    ];
    let mut play = gated(&[10], &kinds);
    play.rules.skip = true;
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    let calls = kinds.map(|kind| play.calls(kind));
    assert_eq!(calls, [1, 0, 0, 0, 0, 1]);
    assert_eq!(play.weights(), [0]);
}

#[test]
fn the_end_is_told_also_after_a_failure_and_a_refusal_of_that_changes_nothing() {
    let mut play = gated(&[10], &[HookType::Rollout, HookType::PostRollout]);
    play.answer(|_, _| Some(Answer::No("500".to_owned())));
    play.push("v2");
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!(play.calls(HookType::PostRollout), 1);
    assert!(!play.run.closing);
}

#[test]
fn webhooks_of_a_type_are_asked_in_their_order_until_one_refuses() {
    let mut play = gated(&[10], &[HookType::PreRollout, HookType::PreRollout]);
    play.answer(|_, ask| {
        Some(if ask.check == Check::Hook(0) {
            Answer::No("500".to_owned())
        } else {
            Answer::Yes
        })
    });
    play.push("v2").settle();
    assert!(play.asked.iter().all(|ask| ask.check == Check::Hook(0)));
}

#[test]
fn a_question_without_an_answer_keeps_the_run_where_it_is() {
    let mut play = gated(&[10], &[HookType::PreRollout]);
    play.answer(|_, _| None);
    play.push("v2").settle();
    play.wait(1_000);
    assert_eq!((play.run.phase, play.run.weight), (Phase::Progressing, 0));
    assert_eq!(play.run.failed_checks, 0);
}
