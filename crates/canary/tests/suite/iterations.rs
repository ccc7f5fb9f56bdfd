//! Scenarios 40 to 44: Blue/Green and A/B.

use slipway_api::canary::Phase;
use slipway_canary::engine::{Deed, Rules, Shift, Strategy, Weights};

use crate::play::{Play, by_iterations, by_weights, version};

fn matching(iterations: u32) -> Rules {
    Rules {
        strategy: Strategy::Matching(iterations),
        ..by_weights(&[100])
    }
}

#[test]
fn scenario_40_and_r28_blue_green_checks_then_switches_then_promotes() {
    let mut play = Play::new(by_iterations(2));
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    let order = ["Progressing", "Promoting", "Finalising", "Succeeded"];
    assert_eq!(play.phases(), order);
    assert_eq!(play.weights(), [0, 100, 0]);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
}

#[test]
fn blue_green_takes_an_interval_for_each_iteration_and_one_with_live_traffic() {
    let mut play = Play::new(by_iterations(6));
    let began = play.now;
    play.push("v2").finish();
    assert_eq!(play.now.duration_since(began).as_secs(), 70);
    let mut plain = Play::new(Rules {
        shift: Shift::Nothing,
        ..by_iterations(6)
    });
    let began = plain.now;
    plain.push("v2").finish();
    assert_eq!(plain.run.phase, Phase::Succeeded);
    assert_eq!(plain.now.duration_since(began).as_secs(), 60);
}

#[test]
fn without_a_router_the_target_never_has_live_traffic() {
    let mut play = Play::new(Rules {
        shift: Shift::Nothing,
        mirror: true,
        ..by_iterations(3)
    });
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.weights(), [0]);
    let routes = play
        .done
        .iter()
        .filter(|deed| matches!(deed, Deed::Route(_)));
    assert_eq!(routes.count(), 0);
    assert!(play.story.iter().all(|(_, _, mirrored)| !mirrored));
}

#[test]
fn scenario_42_blue_green_mirrors_during_the_whole_test() {
    let mut play = Play::new(Rules {
        mirror: true,
        ..by_iterations(2)
    });
    play.push("v2");
    assert_eq!(play.finish(), Phase::Succeeded);
    let routes: Vec<&Deed> = play
        .done
        .iter()
        .filter(|deed| matches!(deed, Deed::Route(_)))
        .collect();
    let mirrored = Weights {
        target: 0,
        mirrored: true,
    };
    assert_eq!(
        routes,
        [
            &Deed::Route(mirrored),
            &Deed::Route(Weights::to_target(100)),
            &Deed::Route(Weights::SOURCE),
        ]
    );
}

#[test]
fn scenarios_43_and_44_a_b_sends_matching_requests_then_promotes() {
    let mut play = Play::new(matching(2));
    let began = play.now;
    play.push("v2").settle();
    assert_eq!((play.run.weight, play.run.iterations), (100, 1));
    assert_eq!(play.finish(), Phase::Succeeded);
    assert_eq!(play.now.duration_since(began).as_secs(), 20);
    assert_eq!(play.weights(), [0, 100, 0]);
    assert_eq!(play.sight.source.revision, Some(version("v2")));
}

#[test]
fn a_b_needs_no_more_replicas_than_the_target_asks_for() {
    let mut play = Play::new(matching(1));
    play.sight.source.size = 50;
    play.push("v2").settle();
    assert_eq!(play.sight.target.size, 3);
}
