//! A member that says that it fails is there, and one that did not answer goes on as soon as it does.

use std::time::Duration;

use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_runtime::{Members, Settings};

use super::herd::{Herd, NAME};
use super::line::Mode;
use super::stage::Fleet;
use super::{BAD, defined, needing_widgets};
use crate::stage::{alone, one_of_many, secs, virtually};
use crate::toy::WIDGET;

/// The question which cluster it is.
pub(super) fn identity() -> Match {
    Match {
        agent: "one".to_owned(),
        verb: "get".to_owned(),
        resource: "/namespaces".to_owned(),
        name: "kube-system".to_owned(),
        ..Match::default()
    }
}

/// What can be done without may fail for ever: who waited for its list would never go on.
#[test]
fn a_member_that_answers_again_goes_on_without_what_it_can_do_without() {
    virtually(async {
        let fleet = defined().await;
        let herd = Herd {
            optional: true,
            ..needing_widgets()
        };
        let _replica = fleet.start(alone(), herd);
        fleet.until_state(BAD, "Ready", 10).await;
        fleet.lines.set(BAD, Mode::Mute);
        fleet.until_state(BAD, "Unreachable", 90).await;
        let widgets = Match {
            resource: "toy.dev/widgets".to_owned(),
            ..Match::default()
        };
        let stage = &fleet.members[BAD];
        stage.refuse(widgets, 500, "InternalError", Frequency::always());
        fleet.want(BAD, "2").await;
        fleet.lines.set(BAD, Mode::Up);
        fleet.until(BAD, "2", 60).await;
        fleet.until_state(BAD, "Ready", 10).await;
        for round in 3..8 {
            secs(20).await;
            fleet.want(BAD, &round.to_string()).await;
            fleet.until(BAD, &round.to_string(), 15).await;
        }
    });
}

/// A stream in which nothing happens says nothing for a minute, and never where lists are made more often than that.
#[test]
fn a_member_whose_streams_were_closed_at_once_goes_on_when_they_stay_open() {
    virtually(async {
        let fleet = defined().await;
        let settings = Settings {
            relist: Duration::from_secs(52),
            ..alone()
        };
        let _replica = fleet.start(settings, needing_widgets());
        fleet.until_state(BAD, "Ready", 10).await;
        let stage = &fleet.members[BAD];
        let widgets = Match {
            resource: "toy.dev/widgets".to_owned(),
            ..Match::default()
        };
        let faults = stage.cluster.faults();
        faults.add_watch(widgets, Frequency::always(), WatchFault::Close);
        for n in 0.. {
            let name = format!("w{n}");
            let widget =
                json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": name}});
            stage.create(&WIDGET.path("default"), &widget).await;
            secs(2).await;
            if fleet.state(BAD).await == "NotSynced" {
                break;
            }
            assert!(n < 60, "nobody noticed");
        }
        // Whatever would be told has been listed by then.
        fleet.until_state(BAD, "Ready", 90).await;
        fleet.want(BAD, "2").await;
        fleet.until(BAD, "2", 5).await;
    });
}

/// When a kind that can be done without has begun to fail, for ever.
#[derive(Debug, Clone, Copy)]
enum Fails {
    FromTheStart,
    WithNewCredentials,
    BeforeAFailover,
    AfterARestore,
}

/// A member of which widgets, which can be done without, cannot be listed.
async fn fails(when: Fails) {
    let fleet = defined().await;
    let herd = || Herd {
        optional: true,
        ..needing_widgets()
    };
    let stage = &fleet.members[BAD];
    let fail = || {
        let widgets = Match {
            resource: "toy.dev/widgets".to_owned(),
            ..Match::default()
        };
        stage.refuse(widgets, 500, "InternalError", Frequency::always());
    };
    if let Fails::FromTheStart = when {
        fail();
    }
    let leader = fleet.start(one_of_many("one"), herd());
    fleet.until(BAD, "1", 40).await;
    fleet.until_state(BAD, "Ready", 10).await;
    let mut follower = None;
    match when {
        Fails::FromTheStart => {}
        Fails::WithNewCredentials => {
            fail();
            let path = format!("/api/v1/namespaces/default/secrets/{BAD}");
            let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
            fleet.home.send("PATCH", &path, &touched).await;
        }
        Fails::BeforeAFailover => {
            fail();
            follower = Some(fleet.start(one_of_many("two"), herd()));
            secs(20).await;
        }
        Fails::AfterARestore => {
            let before = stage.cluster.snapshot();
            for round in ["a", "b", "c"] {
                fleet.follow(&[BAD], round).await;
            }
            fail();
            stage.cluster.restore(&before);
            fleet.lines.set(BAD, Mode::Refused);
            secs(1).await;
            fleet.lines.set(BAD, Mode::Up);
        }
    }
    let acting = if let Some(follower) = follower {
        drop(leader);
        follower
    } else {
        leader
    };
    fleet.want(BAD, "2").await;
    fleet.until(BAD, "2", 120).await;
    fleet.until_state(BAD, "Ready", 10).await;
    secs(20).await;
    let blockers = acting.view.blockers();
    assert!(blockers.is_empty(), "{when:?}: {blockers:?}");
    stage.cluster.faults().clear();
    secs(20).await;
    let listed = fleet.home.entry(BAD, "widgets").await;
    assert_eq!(listed.as_deref(), Some("true"), "{when:?}");
}

#[test]
fn what_a_member_can_do_without_holds_it_nowhere_when_it_fails() {
    for when in [
        Fails::FromTheStart,
        Fails::WithNewCredentials,
        Fails::BeforeAFailover,
        Fails::AfterARestore,
    ] {
        virtually(fails(when));
    }
}

/// Nothing is decided while it cannot say which cluster it is. Its streams have told of everything meanwhile.
#[test]
fn a_member_that_says_that_it_fails_is_not_listed_again_when_it_does_not() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        let stage = &fleet.members[BAD];
        let lists = || {
            let lists = stage.records(|record| record.agent == "one" && record.verb == "list");
            lists.len()
        };
        secs(5).await;
        let before = lists();
        for round in 0..3 {
            stage.refuse(identity(), 500, "InternalError", Frequency::always());
            fleet.until_state(BAD, "Unreachable", 60).await;
            fleet.want(BAD, &round.to_string()).await;
            secs(5).await;
            assert_ne!(stage.have(NAME).await, round.to_string());
            stage.cluster.faults().clear();
            fleet.until(BAD, &round.to_string(), 60).await;
            fleet.until_state(BAD, "Ready", 10).await;
        }
        assert_eq!(lists(), before);
    });
}

/// Whoever is about to write asks first. That one question is lost says little, and is asked again before the next one is due.
#[test]
fn a_lost_question_of_a_plan_holds_a_member_no_longer_than_it_takes_to_ask_again() {
    virtually(async {
        let fleet = Fleet::new().await;
        let settings = Settings {
            members: Members {
                check: Duration::from_mins(10),
                ..Members::default()
            },
            ..alone()
        };
        let _replica = fleet.start(settings, Herd::default());
        fleet.until_state(BAD, "Ready", 5).await;
        secs(20).await;
        let faults = fleet.members[BAD].cluster.faults();
        faults.add(identity(), Frequency::once(), Fault::Unreachable);
        fleet.want(BAD, "2").await;
        fleet.until(BAD, "2", 5).await;
    });
}
