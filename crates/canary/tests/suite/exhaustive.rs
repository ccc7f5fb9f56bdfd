//! All short stories: every sequence of a few happenings, on each kind of run, comes to a good end.

use slipway_canary::engine::{Rules, Shift, Strategy};

use crate::play::{Play, by_iterations, by_weights, measure};
use crate::properties::{Happening, check_end, happen};

/// What matters to the machine, one of each kind.
fn alphabet() -> Vec<Happening> {
    vec![
        Happening::Push(1),
        Happening::Push(2),
        Happening::Push(3),
        Happening::Target(0),
        Happening::Target(2),
        Happening::Target(3),
        Happening::Source(3),
        Happening::Answers(1),
        Happening::Tick,
        Happening::Wait(61),
        Happening::Heals(false),
        Happening::Command(0, 1),
        Happening::Command(1, 2),
    ]
}

fn ways() -> Vec<Rules> {
    let with = |rules: Rules| Rules {
        metrics: vec![measure("errors")],
        threshold: 2,
        ..rules
    };
    vec![
        with(by_weights(&[50, 100])),
        with(Rules {
            strategy: Strategy::Matching(1),
            ..by_weights(&[100])
        }),
        with(Rules {
            mirror: true,
            ..by_iterations(1)
        }),
        with(Rules {
            shift: Shift::Nothing,
            ..by_iterations(1)
        }),
        with(Rules {
            promotion_step: 60,
            ..by_weights(&[100])
        }),
    ]
}

#[test]
fn all_stories_of_four_happenings_after_a_push_end_well() {
    let alphabet = alphabet();
    let length = 4_u32;
    let number = alphabet.len();
    let mut played = 0_usize;
    for rules in ways() {
        for story in 0..number.pow(length) {
            let mut play = Play::new(rules.clone());
            happen(&mut play, &Happening::Push(2));
            let mut rest = story;
            for _ in 0..length {
                happen(&mut play, &alphabet[rest % number]);
                rest /= number;
            }
            check_end(&mut play);
            played += 1;
        }
    }
    assert_eq!(played, 5 * 13_usize.pow(4));
}
