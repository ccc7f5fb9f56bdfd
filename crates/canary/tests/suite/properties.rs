//! Laws over random runs: whatever happens in the middle, and in whatever order.
//!
//! Those that hold at every look are checked by the play itself: weights sum to 100; no version is promoted with a failing
//! check; an unready version, or one that was not analysed, gets no more traffic; neither side is scaled down before the
//! other is routed to; nothing is taken from a side that alone answers.

use proptest::prelude::*;
use slipway_api::canary::{HookType, NoData, Phase};
use slipway_canary::engine::{
    Answer, Check, Readiness, Reading, Rules, Shift, Strategy as Way, Verb, Weights,
};

use crate::play::{Play, by_weights, fine, hook, measure};

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    Push(u8),
    Target(u8),
    Source(u8),
    Answers(u8),
    Edit(u8),
    Pending(bool),
    Heals(bool),
    Recreates(bool),
    Tick,
    Wait(u16),
    Command(u8, u8),
    Suspend(bool),
    Crash,
    /// Somebody changes the Canary itself.
    Spec(u8),
}

pub(crate) fn readiness(which: u8) -> Readiness {
    match which % 5 {
        0 => Readiness::Ready,
        1 => Readiness::Partly("partly".to_owned()),
        2 => Readiness::Down("down".to_owned()),
        3 => Readiness::Stuck("stuck".to_owned()),
        _ => Readiness::Stalled("stalled".to_owned()),
    }
}

fn answers(play: &mut Play, which: u8) {
    match which % 4 {
        0 => play.answer(fine),
        1 => play.answer(|_, _| Some(Answer::No("no".to_owned()))),
        2 => play.answer(|_, ask| match ask.check {
            Check::Hook(_) => Some(Answer::Yes),
            Check::Metric(_) => Some(Answer::NoValues),
        }),
        _ => play.answer(|_, ask| match ask.check {
            Check::Hook(_) => Some(Answer::Yes),
            Check::Metric(_) => Some(Answer::Value(Reading {
                value: 5.0,
                ..Reading::default()
            })),
        }),
    }
}

pub(crate) fn happen(play: &mut Play, what: &Happening) {
    match what {
        Happening::Push(which) => {
            play.push(&format!("v{}", which % 4));
        }
        Happening::Target(which) => play.sight.target.readiness = readiness(*which),
        Happening::Source(which) => play.sight.source.readiness = readiness(*which),
        Happening::Answers(which) => answers(play, *which),
        Happening::Edit(weight) if play.rules.shift == Shift::Router => {
            play.sight.routing.weights = Some(Weights::to_target(weight % 101));
        }
        Happening::Edit(_) => {}
        Happening::Pending(is) => {
            play.sight.routing.pending = is.then(|| "pending".to_owned());
        }
        Happening::Heals(is) => play.heals = *is,
        Happening::Recreates(is) => play.recreates = *is,
        Happening::Tick => {
            play.pass();
        }
        Happening::Wait(seconds) => {
            play.wait(u64::from(*seconds));
        }
        Happening::Command(verb, id) => {
            let all = [Verb::Abort, Verb::Promote, Verb::Retry];
            play.command(all[usize::from(verb % 3)], &id.to_string());
        }
        Happening::Suspend(is) => play.rules.suspend = *is,
        Happening::Crash => play.answers.clear(),
        Happening::Spec(which) => respecify(play, *which),
    }
    play.settle();
}

/// Another way, and other numbers; what shifts the traffic stays.
fn respecify(play: &mut Play, which: u8) {
    if !play.rules.is_live() {
        return;
    }
    play.rules.strategy = match which % 5 {
        0 => Way::Weights(vec![5, 95]),
        1 => Way::Weights(vec![30]),
        2 if play.rules.shift == Shift::Router => Way::Matching(1),
        3 => Way::Switch(2),
        _ => Way::Weights(vec![10, 100]),
    };
    play.rules.mirror = which & 8 > 0 && play.rules.shift == Shift::Router;
    play.rules.skip = which & 16 > 0;
    play.rules.promotion_step = which % 60;
    play.rules.threshold = u32::from(which % 3) + 1;
    // Webhooks and measures are known by their place, and answers with them.
    play.answers.clear();
}

/// Everything is well again.
pub(crate) fn heal(play: &mut Play) {
    play.heals = true;
    play.rules.suspend = false;
    play.sight.target.readiness = Readiness::Ready;
    play.sight.source.readiness = Readiness::Ready;
    play.sight.routing.pending = None;
    play.answer(fine);
}

/// What holds when nothing goes on any more.
pub(crate) fn check_end(play: &mut Play) {
    heal(play);
    let phase = play.finish();
    let is_end = matches!(phase, Phase::Succeeded | Phase::Failed | Phase::Initialized);
    assert!(is_end, "{phase:?} {:?}", play.holds);
    if play.run.weight == 0 {
        assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    }
    // A second look does nothing.
    let (writes, done) = (play.writes, play.done.len());
    assert_eq!(play.settle(), None);
    assert_eq!((play.writes, play.done.len()), (writes, done));
    // A new version begins a run, and comes to its end.
    play.push("fresh");
    assert_eq!(play.finish(), Phase::Succeeded, "{:?}", play.holds);
    assert_eq!(play.run.serving, play.sight.target.revision);
    assert_eq!(play.sight.source.revision, play.sight.target.revision);
    assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    assert_eq!(play.sight.target.size, 0);
    // What a run took of its replicas is given back.
    assert_eq!(play.run.replicas, None);
    assert!(play.sight.source.size >= 3, "{:?}", play.sight);
}

pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let ways = prop_oneof![
        Just(Way::Weights(vec![50])),
        Just(Way::Weights(vec![10, 20, 60])),
        Just(Way::Weights(vec![100])),
        Just(Way::Matching(2)),
        Just(Way::Switch(1)),
        Just(Way::Switch(3)),
    ];
    let all = HookType::ALL.to_vec();
    let hooks = proptest::sample::subsequence(all, 0..=8);
    let no_data = prop_oneof![Just(NoData::Hold), Just(NoData::Fail), Just(NoData::Pass)];
    (
        ways,
        hooks,
        no_data,
        any::<[bool; 5]>(),
        prop_oneof![Just(0_u8), Just(30)],
    )
        .prop_map(
            |(way, hooks, no_data, [mirror, live, skip, metrics, divided], step)| {
                let is_switch = matches!(way, Way::Switch(_));
                let is_matching = matches!(way, Way::Matching(_));
                let shift = match (is_switch, is_matching) {
                    (true, _) if !live => Shift::Nothing,
                    (_, false) if divided => Shift::Replicas,
                    _ => Shift::Router,
                };
                let mut metric = measure("errors");
                metric.no_data = no_data;
                Rules {
                    strategy: way,
                    hooks: hooks.into_iter().map(hook).collect(),
                    metrics: if metrics { vec![metric] } else { Vec::new() },
                    mirror: mirror && shift != Shift::Replicas,
                    skip,
                    promotion_step: step,
                    shift,
                    ..by_weights(&[100])
                }
            },
        )
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => any::<u8>().prop_map(Happening::Push),
        2 => any::<u8>().prop_map(Happening::Target),
        1 => any::<u8>().prop_map(Happening::Source),
        2 => any::<u8>().prop_map(Happening::Answers),
        1 => any::<u8>().prop_map(Happening::Edit),
        1 => any::<bool>().prop_map(Happening::Pending),
        1 => any::<bool>().prop_map(Happening::Heals),
        1 => any::<bool>().prop_map(Happening::Recreates),
        4 => Just(Happening::Tick),
        1 => any::<u16>().prop_map(Happening::Wait),
        1 => any::<(u8, u8)>().prop_map(|(verb, id)| Happening::Command(verb, id)),
        1 => any::<bool>().prop_map(Happening::Suspend),
        1 => Just(Happening::Crash),
        1 => any::<u8>().prop_map(Happening::Spec),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_laws_hold_and_the_next_version_gets_through(
        rules in rules(),
        story in proptest::collection::vec(happening(), 0..25),
    ) {
        let mut play = Play::new(rules);
        for what in &story {
            happen(&mut play, what);
        }
        check_end(&mut play);
    }

    #[test]
    fn a_rollback_reaches_the_source_in_the_next_look(
        rules in rules(),
        ticks in 0_usize..6,
    ) {
        let mut play = Play::new(rules);
        play.push("v2").ticks(ticks);
        play.command(Verb::Abort, "1");
        let is_running = play.run.phase.is_running() || play.run.phase == Phase::Waiting;
        play.look();
        if is_running {
            prop_assert_eq!(play.run.phase, Phase::Failed);
        }
        play.look();
        prop_assert_eq!(play.sight.routing.weights, Some(Weights::SOURCE));
    }
}
