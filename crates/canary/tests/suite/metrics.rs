//! Scenarios 65 to 67, 73, 76 and 77: what is measured.

use slipway_api::canary::{NoData, Phase};
use slipway_canary::engine::{Answer, Good, Measure, Reading, Verdict, judge};
use slipway_canary::reasons::Reason;

use crate::play::{Play, by_weights, measure};

fn value(value: f64) -> Answer {
    Answer::Value(Reading {
        value,
        ..Reading::default()
    })
}

fn verdict(measure: &Measure, answer: &Answer) -> Verdict {
    judge(measure, answer).verdict
}

fn measured(rules: Measure) -> Play {
    let mut play = Play::new(by_weights(&[10, 20, 30]));
    play.rules.metrics = vec![rules];
    play
}

#[test]
fn scenarios_65_and_66_bounds_are_good_themselves() {
    let rate = Measure {
        good: Good {
            min: Some(99.0),
            max: None,
        },
        ..measure("request-success-rate")
    };
    assert_eq!(verdict(&rate, &value(98.9)), Verdict::Failed);
    assert_eq!(verdict(&rate, &value(99.0)), Verdict::Passed);
    let duration = Measure {
        good: Good {
            min: None,
            max: Some(500.0),
        },
        is_whole: true,
        ..measure("request-duration")
    };
    assert_eq!(verdict(&duration, &value(500.9)), Verdict::Passed);
    assert_eq!(verdict(&duration, &value(501.0)), Verdict::Failed);
}

#[test]
fn scenario_67_what_is_no_number_is_no_value() {
    for policy in [NoData::Hold, NoData::Fail, NoData::Pass] {
        let rules = Measure {
            no_data: policy,
            ..measure("errors")
        };
        let expected = match policy {
            NoData::Hold => Verdict::Held,
            NoData::Fail => Verdict::Failed,
            NoData::Pass => Verdict::Passed,
        };
        assert_eq!(verdict(&rules, &Answer::NoValues), expected);
        assert_eq!(verdict(&rules, &value(f64::NAN)), expected);
    }
    for infinite in [f64::INFINITY, f64::NEG_INFINITY] {
        let anything = Measure::default();
        assert_eq!(verdict(&anything, &value(infinite)), Verdict::Failed);
    }
}

#[test]
fn a_failing_measure_sends_the_version_back_and_the_source_gets_all_at_once() {
    let mut play = measured(measure("errors"));
    play.answer(|_, _| Some(value(2.0)));
    play.push("v2");
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!(play.weights(), [0, 10, 0]);
    assert_eq!(play.run.failed_checks, 3);
    assert!(play.errors.iter().any(|error| error.contains("errors 2")));
}

#[test]
fn failures_add_up_over_a_run_and_a_success_does_not_take_them_back() {
    let mut play = measured(measure("errors"));
    play.rules.threshold = 2;
    play.answer(|_, _| Some(value(2.0)));
    play.push("v2").ticks(1);
    assert_eq!(play.run.failed_checks, 1);
    play.answer(|_, _| Some(value(0.0)));
    play.ticks(1);
    assert_eq!((play.run.weight, play.run.failed_checks), (20, 1));
    play.answer(|_, _| Some(value(2.0)));
    play.ticks(1);
    assert_eq!(play.run.phase, Phase::Failed);
}

#[test]
fn scenario_73_without_values_the_weight_is_held_until_the_deadline() {
    let mut play = measured(Measure {
        no_data: NoData::Hold,
        ..measure("errors")
    });
    play.answer(|_, _| Some(Answer::NoValues));
    let began = play.now;
    play.push("v2").ticks(4);
    assert_eq!((play.run.weight, play.run.failed_checks), (10, 0));
    assert!(play.holds.contains(&Reason::NoData));
    assert_eq!(play.finish(), Phase::Failed);
    assert_eq!(play.run.failed_checks, 0);
    assert!(play.now.duration_since(began).as_secs() >= 60);
}

#[test]
fn values_that_come_in_time_let_the_run_go_on_and_the_deadline_begins_anew() {
    let mut play = measured(Measure {
        no_data: NoData::Hold,
        ..measure("errors")
    });
    play.answer(|_, _| Some(Answer::NoValues));
    play.push("v2").ticks(4);
    play.answer(|_, _| Some(value(0.0)));
    play.ticks(1);
    assert_eq!(play.run.unmeasured_since, None);
    assert_eq!(play.finish(), Phase::Succeeded);
}

#[test]
fn too_few_samples_are_no_values() {
    let rules = Measure {
        min_samples: Some(100.0),
        no_data: NoData::Hold,
        ..measure("errors")
    };
    let answer = |samples| {
        Answer::Value(Reading {
            value: 9.0,
            baseline: None,
            samples,
        })
    };
    assert_eq!(verdict(&rules, &answer(Some(99.0))), Verdict::Held);
    assert_eq!(verdict(&rules, &answer(None)), Verdict::Held);
    assert_eq!(verdict(&rules, &answer(Some(100.0))), Verdict::Failed);
}

#[test]
fn scenario_76_a_dry_run_reports_and_decides_nothing() {
    let mut play = measured(Measure {
        dry_run: true,
        ..measure("errors")
    });
    play.answer(|_, _| Some(value(2.0)));
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.run.failed_checks, 0);
    let rules = &play.rules.metrics[0];
    assert_eq!(verdict(rules, &value(2.0)), Verdict::Reported);
}

#[test]
fn scenario_77_a_version_that_is_worse_than_the_serving_one_fails() {
    let rules = Measure {
        good: Good::default(),
        max_increase: Some(5.0),
        ..measure("latency")
    };
    let against = |value, baseline| {
        Answer::Value(Reading {
            value,
            baseline,
            samples: None,
        })
    };
    assert_eq!(
        verdict(&rules, &against(105.0, Some(100.0))),
        Verdict::Passed
    );
    assert_eq!(
        verdict(&rules, &against(105.1, Some(100.0))),
        Verdict::Failed
    );
    assert_eq!(verdict(&rules, &against(1.0, None)), Verdict::Failed);
    let fall = Measure {
        good: Good::default(),
        max_decrease: Some(10.0),
        ..measure("rate")
    };
    assert_eq!(verdict(&fall, &against(90.0, Some(100.0))), Verdict::Passed);
    assert_eq!(verdict(&fall, &against(89.9, Some(100.0))), Verdict::Failed);
}

#[test]
fn all_measures_of_a_tick_are_asked_at_once() {
    let mut play = measured(measure("a"));
    play.rules.metrics.push(measure("b"));
    play.push("v2").settle();
    play.answer(|_, _| None);
    play.now = play.run.due.unwrap();
    let next = slipway_canary::engine::advance(
        &play.rules,
        &play.run,
        &play.sight,
        &play.answers,
        play.now,
    );
    assert_eq!(next.asks.len(), 2);
}
