//! Whatever is remembered, seen and heard: while nothing else changes, a run comes to rest. What follows from a run is only done in
//! a look in which the run stays as it is, so that one that is changed in every look is never gone on with.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use slipway_api::canary::{HookType, Phase};
use slipway_canary::engine::{
    Answer, Answers, Ask, Check, Command, Finish, Readiness, Reading, Routing, Rules, Run, Shift,
    Side, Sight, Verb, Weights, advance,
};

use crate::play::{by_weights, version};
use crate::properties::{readiness, rules};

/// In so many looks a run comes to rest.
const MOST: usize = 20;

/// So many seconds after the first look.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

/// All that a look goes by, but the time.
#[derive(Debug, Clone)]
struct Scene {
    rules: Rules,
    run: Run,
    sight: Sight,
    answers: Answers,
}

impl Scene {
    /// Every run that is written, the first look's first; there are more than [`MOST`] if it does not come to rest.
    fn runs(&self, pause: Duration) -> Vec<Run> {
        let (mut run, mut now, mut all) = (self.run.clone(), at(0), Vec::new());
        while all.len() <= MOST {
            let next = advance(&self.rules, &run, &self.sight, &self.answers, now);
            if next.run == run {
                break;
            }
            run = next.run;
            all.push(run.clone());
            now += pause;
        }
        all
    }
}

/// A moment around the first look, if there is one.
fn moment() -> impl Strategy<Value = Option<Timestamp>> {
    let around = prop_oneof![
        Just(-100_i64),
        Just(-30),
        Just(-20),
        Just(-10),
        Just(-3),
        Just(0),
        Just(5),
        Just(100)
    ];
    proptest::option::of(around).prop_map(|seconds| seconds.map(at))
}

fn name(which: u8) -> String {
    format!("v{}", which % 3 + 1)
}

/// One side: its readiness, version, size, bound and attempt.
fn side() -> impl Strategy<Value = Side> {
    let parts = (
        prop_oneof![4 => Just(0_u8), 5 => 1_u8..6],
        0_u8..3,
        0_u32..8,
        proptest::option::of(1_u32..6),
        proptest::option::of(0_u32..2),
    );
    parts.prop_map(|(ready, which, size, most, attempt)| {
        if ready == 5 {
            return Side::default();
        }
        Side {
            revision: Some(version(&name(which))),
            attempt,
            size,
            full: 3,
            most,
            readiness: readiness(ready),
        }
    })
}

fn weight() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0_u8), Just(10), Just(50), Just(100)]
}

fn command() -> impl Strategy<Value = Option<Command>> {
    let one = (0..Verb::ALL.len()).prop_map(|which| Command {
        verb: Some(Verb::ALL[which]),
        id: "1".to_owned(),
        because: "by ann".to_owned(),
    });
    proptest::option::weighted(0.2, one)
}

fn sight() -> impl Strategy<Value = Sight> {
    let routed = proptest::option::weighted(0.9, (weight(), any::<bool>()));
    let pending = proptest::bool::weighted(0.2);
    (side(), side(), routed, pending, command(), moment()).prop_map(
        |(source, target, routed, pending, command, refused_since)| Sight {
            source,
            target,
            routing: Routing {
                weights: routed.map(|(target, mirrored)| Weights { target, mirrored }),
                pending: pending.then(|| "pending".to_owned()),
            },
            command,
            refused_since,
        },
    )
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        1 => Just(Phase::Initializing),
        1 => Just(Phase::Initialized),
        2 => Just(Phase::Waiting),
        5 => Just(Phase::Progressing),
        2 => Just(Phase::WaitingPromotion),
        4 => Just(Phase::Promoting),
        3 => Just(Phase::Finalising),
        2 => Just(Phase::Succeeded),
        4 => Just(Phase::Failed),
        1 => Just(Phase::Terminating),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    let versions = (0_u8..3, 0_u8..3, 0_u32..2, proptest::option::of(1_u32..8));
    let numbers = (weight(), 0_u32..4, 0_u32..3);
    let moments = (moment(), moment(), moment(), moment(), moment());
    let stopped = (proptest::option::weighted(0.2, moment()), any::<u8>());
    let facts = any::<[bool; 8]>();
    (phase(), versions, numbers, moments, stopped, facts).prop_map(
        |(phase, versions, numbers, moments, (stopped, word), facts)| {
            let (serving, target, attempt, replicas) = versions;
            let (weight, iterations, failed_checks) = numbers;
            let (free_since, due, step_since, held_since, unmeasured_since) = moments;
            let [
                matching,
                mirrored,
                prepared,
                skip,
                closing,
                draining,
                is_routed,
                is_paused,
            ] = facts;
            Run {
                phase,
                serving: Some(version(&name(serving))),
                target: Some(version(&name(target))),
                attempt,
                weight,
                matching,
                mirrored,
                iterations,
                failed_checks,
                prepared,
                skip: skip && word < 64,
                closing,
                draining,
                paused: (is_paused && word > 200).then(|| "by ann".to_owned()),
                stopped_since: stopped.flatten(),
                router: is_routed.then(|| "istio".to_owned()),
                places: is_routed
                    .then(|| ("target".to_owned(), "web".to_owned()))
                    .into_iter()
                    .collect(),
                replicas,
                free_since,
                due,
                step_since,
                held_since,
                unmeasured_since,
                gate: None,
                ..Run::default()
            }
        },
    )
}

/// Rules as elsewhere, with what else can hold a run up.
fn all_rules() -> impl Strategy<Value = Rules> {
    let more = (
        any::<[bool; 4]>(),
        proptest::bool::weighted(0.1),
        proptest::bool::weighted(0.1),
    );
    (rules(), more).prop_map(
        |(rules, ([has_grace, has_pauses, is_named, tries_thrice], suspend, is_late))| {
            let grace = if has_grace { 15 } else { 0 };
            let pauses = if has_pauses { vec![30, 5] } else { Vec::new() };
            Rules {
                grace: Duration::from_secs(grace),
                first_grace: Duration::from_secs(grace),
                pauses: pauses.into_iter().map(Duration::from_secs).collect(),
                router: if is_named { "istio" } else { "nginx" }.to_owned(),
                threshold: if tries_thrice { 3 } else { 1 },
                finish: if is_late {
                    Finish::OntoTarget
                } else {
                    Finish::IntoSource
                },
                suspend,
                ..rules
            }
        },
    )
}

/// What everybody has answered at a tick.
fn answer(rules: &Rules, check: Check, which: u8) -> Answer {
    let value = |value| {
        Answer::Value(Reading {
            value,
            ..Reading::default()
        })
    };
    let is_alarm = |place: usize| {
        let hook = rules.hooks.get(place);
        hook.is_some_and(|hook| hook.kind == HookType::Rollback)
    };
    match (check, which) {
        (Check::Hook(place), 0..=2) if is_alarm(place) => Answer::No("all is well".to_owned()),
        (Check::Hook(_), 0..=2) => Answer::Yes,
        (Check::Hook(_), _) => Answer::No("no".to_owned()),
        (Check::Metric(_), 0 | 3) => value(0.5),
        (Check::Metric(_), 1) => value(5.0),
        (Check::Metric(_), _) => Answer::NoValues,
    }
}

fn answers(rules: &Rules, ticks: &[Option<u8>]) -> Answers {
    let mut all = Answers::new();
    for (seconds, which) in [-30, -20, -10, 0].into_iter().zip(ticks) {
        let Some(which) = *which else {
            continue;
        };
        let hooks = (0..rules.hooks.len()).map(Check::Hook);
        for check in hooks.chain((0..rules.metrics.len()).map(Check::Metric)) {
            let ask = Ask {
                check,
                at: at(seconds),
            };
            all.insert(ask, answer(rules, check, which));
        }
    }
    all
}

fn scene() -> impl Strategy<Value = Scene> {
    let ticks = proptest::collection::vec(proptest::option::of(0_u8..5), 4);
    (all_rules(), run(), sight(), ticks).prop_map(|(rules, run, sight, ticks)| Scene {
        answers: answers(&rules, &ticks),
        rules,
        run,
        sight,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_comes_to_rest_while_nothing_else_changes(scene in scene(), passes in any::<bool>()) {
        // Looks take a while; but nothing falls due in between.
        let pause = Duration::from_millis(if passes { 7 } else { 0 });
        let runs = scene.runs(pause);
        prop_assert!(runs.len() <= MOST, "it is changed for ever: {:#?}", runs.get(MOST - 3..));
    }
}

/// One of four ready pods of a share is not there yet, and the check is due: it was held and let go again in turns.
#[test]
fn a_step_that_waits_for_its_pods_is_held_once() {
    let half = |name: &str, size| Side {
        revision: Some(version(name)),
        size,
        full: 7,
        readiness: Readiness::Ready,
        ..Side::default()
    };
    let scene = Scene {
        rules: Rules {
            shift: Shift::Replicas,
            ..by_weights(&[20, 50])
        },
        run: Run {
            phase: Phase::Progressing,
            serving: Some(version("v1")),
            target: Some(version("v2")),
            weight: 50,
            prepared: true,
            replicas: Some(7),
            due: Some(at(-10)),
            step_since: Some(at(-20)),
            ..Run::default()
        },
        sight: Sight {
            source: half("v1", 5),
            target: half("v2", 3),
            routing: Routing {
                weights: Some(Weights::to_target(50)),
                pending: None,
            },
            ..Sight::default()
        },
        answers: Answers::new(),
    };
    let runs = scene.runs(Duration::ZERO);
    let held: Vec<_> = runs.iter().map(|run| run.held_since).collect();
    assert_eq!(held, [Some(at(0))]);
}
