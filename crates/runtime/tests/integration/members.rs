//! A hub and three members: whatever is wrong with one delays no other by more than one debounce, and nothing is left of one that
//! was removed.

mod crowd;
mod doubt;
mod failover;
mod flock;
mod herd;
mod identity;
mod lanes;
mod line;
mod rotation;
mod silence;
mod stage;
mod wanted;

use std::time::Duration;

use serde_json::json;
use slipway_kernel::identity::ClusterId;
use tokio::time::Instant;

use crate::stage::{Replica, Stage, alone, secs, virtually};
use herd::Herd;
use line::Mode;
use stage::{ALL, DEBOUNCE, Fleet, stores_of};

/// What can be wrong with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Nothing,
    /// It never answers.
    Dead,
    /// Connections to it are refused.
    Refused,
    /// Each answer takes eight seconds.
    Slow,
    /// Its credentials have no rights.
    Forbidden,
    /// Its credentials are not known there.
    Stranger,
    /// There is no Secret.
    NoSecret,
    /// A kind that is needed is not defined there.
    Undefined,
    /// Its lists fail.
    Failing,
    /// Another cluster answers in its place.
    Replaced,
    /// It is named no more, and then it is again.
    Returned,
}

pub(crate) const WRONGS: [Wrong; 8] = [
    Wrong::Dead,
    Wrong::Refused,
    Wrong::Slow,
    Wrong::Forbidden,
    Wrong::Stranger,
    Wrong::NoSecret,
    Wrong::Undefined,
    Wrong::Failing,
];

/// The member that something is wrong with, and the others.
pub(crate) const BAD: &str = "north";
pub(crate) const GOOD: [&str; 2] = ["east", "west"];

impl Wrong {
    /// Makes it so.
    pub(crate) async fn befall(self, fleet: &Fleet) {
        match self {
            Self::Nothing => {}
            Self::Dead => fleet.lines.set(BAD, Mode::Dead),
            Self::Refused => fleet.lines.set(BAD, Mode::Refused),
            Self::Slow => fleet.lines.set(BAD, Mode::Slow(Duration::from_secs(8))),
            Self::Forbidden => fleet.rotate(BAD, "weak").await,
            Self::Stranger => fleet.rotate(BAD, "nobody").await,
            Self::NoSecret => {
                let path = format!("/api/v1/namespaces/default/secrets/{BAD}");
                fleet.home.send("DELETE", &path, &json!(null)).await;
            }
            Self::Undefined => {
                let name = "widgets.toy.dev";
                let path = format!("{}/{name}", crate::rights::DEFINITION);
                fleet.members[BAD].send("DELETE", &path, &json!(null)).await;
            }
            Self::Failing => {
                use slipway_apiserver::faults::{Frequency, Match};
                let lists = Match {
                    verb: "list".to_owned(),
                    ..Match::default()
                };
                let stage = &fleet.members[BAD];
                stage.refuse(lists, 500, "InternalError", Frequency::always());
            }
            Self::Replaced => {
                let other = Stage::seeded(99).await;
                fleet.lines.lead(BAD, &other.cluster);
            }
            Self::Returned => {
                fleet.unname(BAD).await;
                fleet.name(BAD, "1").await;
            }
        }
    }
}

/// A fleet in which each member has the definition that is needed.
pub(crate) async fn defined() -> Fleet {
    let fleet = Fleet::unnamed().await;
    for stage in fleet.members.values() {
        let widgets = crate::rights::widgets();
        stage.create(crate::rights::DEFINITION, &widgets).await;
    }
    secs(1).await;
    for name in ALL {
        fleet.name(name, "1").await;
    }
    fleet
}

pub(crate) fn needing_widgets() -> Herd {
    Herd {
        widgets: true,
        ..Herd::default()
    }
}

#[test]
fn members_follow_home_and_are_said_to_be_ready() {
    virtually(async {
        let fleet = Fleet::new().await;
        let replica = fleet.start(alone(), Herd::default());
        for name in ALL {
            fleet.until(name, "1", 5).await;
            fleet.until_state(name, "Ready", 5).await;
        }
        let took = fleet.follow(&ALL, "2").await;
        assert!(took <= DEBOUNCE * 2, "{took:?}");
        assert!(replica.view.is_ready());
        let metrics = replica.view.metrics();
        assert!(
            metrics.contains("slipway_members{state=\"Ready\"} 3"),
            "{metrics}"
        );
    });
}

/// How long the good members take to have what they are to have after a start.
async fn start_with(wrong: Wrong) -> Duration {
    let fleet = defined().await;
    wrong.befall(&fleet).await;
    secs(1).await;
    let began = Instant::now();
    let replica = fleet.start(alone(), needing_widgets());
    for name in GOOD {
        fleet.until(name, "1", 30).await;
    }
    let took = began.elapsed();
    assert!(
        replica.view.is_ready(),
        "{wrong:?}: {:?}",
        replica.view.unready()
    );
    took
}

#[test]
fn whatever_is_wrong_with_a_member_from_the_start_delays_no_other() {
    let usual = virtually(start_with(Wrong::Nothing));
    for wrong in WRONGS {
        let took = virtually(start_with(wrong));
        assert!(
            took <= usual + DEBOUNCE,
            "{wrong:?}: {took:?}, usually {usual:?}"
        );
    }
}

#[test]
fn whatever_goes_wrong_with_a_member_later_delays_no_other() {
    for wrong in WRONGS {
        virtually(async {
            let fleet = defined().await;
            let replica = fleet.start(alone(), needing_widgets());
            for name in ALL {
                fleet.until_state(name, "Ready", 10).await;
            }
            let usual = fleet.follow(&GOOD, "2").await;
            wrong.befall(&fleet).await;
            for round in 3..40 {
                let took = fleet.follow(&GOOD, &round.to_string()).await;
                assert!(
                    took <= usual + DEBOUNCE,
                    "{wrong:?}: {took:?}, usually {usual:?}"
                );
                assert!(
                    replica.view.is_ready(),
                    "{wrong:?}: {:?}",
                    replica.view.unready()
                );
                let missing = replica.view.facts().missing;
                assert!(missing.is_empty(), "{wrong:?}: {missing:?} at home");
                fleet.want(BAD, &round.to_string()).await;
                secs(3).await;
            }
        });
    }
}

#[test]
fn a_member_that_does_not_answer_is_said_to_be_unreachable_and_goes_on_when_it_does() {
    virtually(async {
        let fleet = Fleet::new().await;
        let replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "Ready", 5).await;
        fleet.lines.set(BAD, Mode::Dead);
        fleet.until_state(BAD, "Unreachable", 60).await;
        let facts = replica.view.facts();
        let known = &facts.members[&ClusterId::remote(BAD)];
        assert!(!known.synced && known.contact.is_some());
        assert!(stores_of(&replica, BAD) > 0, "what was seen is still shown");
        fleet.want(BAD, "2").await;
        secs(100).await;
        fleet.lines.set(BAD, Mode::Up);
        fleet.until(BAD, "2", 60).await;
        fleet.until_state(BAD, "Ready", 10).await;
    });
}

/// What is left of a member.
fn traces(replica: &Replica, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if stores_of(replica, name) > 0 {
        found.push("stores".to_owned());
    }
    let cluster = ClusterId::remote(name);
    if replica.view.facts().members.contains_key(&cluster) {
        found.push("state".to_owned());
    }
    if replica.view.facts_of(&cluster).is_some() {
        found.push("facts".to_owned());
    }
    let blockers = replica.view.blockers();
    if blockers
        .iter()
        .any(|b| b.object.cluster == cluster || b.object.name == name)
    {
        found.push("blockers".to_owned());
    }
    let metrics = replica.view.metrics();
    let lines = metrics.lines().filter(|line| line.contains(name));
    found.extend(lines.map(str::to_owned));
    found
}

#[test]
fn nothing_is_left_of_a_member_that_was_removed_and_it_can_come_back() {
    for wrong in [Wrong::Nothing, Wrong::Dead, Wrong::Refused, Wrong::Slow] {
        virtually(async {
            let fleet = Fleet::unnamed().await;
            for name in GOOD {
                fleet.name(name, "1").await;
            }
            let replica = fleet.start(alone(), Herd::default());
            for name in GOOD {
                fleet.until_state(name, "Ready", 5).await;
            }
            secs(60).await;
            let (tasks, watches) = (replica.view.tasks(), fleet.members[BAD].cluster.watches());
            for round in ["a", "b", "c"] {
                fleet.name(BAD, round).await;
                if wrong == Wrong::Nothing || round == "a" {
                    fleet.until(BAD, round, 20).await;
                }
                wrong.befall(&fleet).await;
                secs(70).await;
                assert!(!traces(&replica, BAD).is_empty());
                fleet.unname(BAD).await;
                secs(60).await;
                assert_eq!(traces(&replica, BAD), Vec::<String>::new(), "{wrong:?}");
                assert_eq!(replica.view.tasks(), tasks, "{wrong:?}");
                assert_eq!(fleet.members[BAD].cluster.watches(), watches, "{wrong:?}");
            }
            fleet.lines.set(BAD, Mode::Up);
            fleet.name(BAD, "back").await;
            fleet.until(BAD, "back", 10).await;
        });
    }
}

#[test]
fn a_member_that_comes_and_goes_delays_no_other() {
    virtually(async {
        let (fleet, _replica, usual) = Fleet::running().await;
        for round in 3..20 {
            fleet.unname(BAD).await;
            let without = fleet.follow(&GOOD, &format!("{round} without")).await;
            fleet.name(BAD, "1").await;
            let with = fleet.follow(&GOOD, &format!("{round} with")).await;
            let took = with.max(without);
            assert!(took <= usual + DEBOUNCE, "{took:?}, usually {usual:?}");
        }
    });
}

/// Versions of one cluster run backwards: what is known of the others is as good as before.
#[test]
fn a_member_whose_storage_was_restored_delays_no_other() {
    virtually(async {
        let (fleet, replica, usual) = Fleet::running().await;
        let cluster = &fleet.members[BAD].cluster;
        let before = cluster.snapshot();
        for round in ["a", "b", "c"] {
            fleet.follow(&[BAD], round).await;
        }
        cluster.restore(&before);
        fleet.goes_on(usual).await;
        assert!(replica.view.is_ready());
        fleet.want(BAD, "after").await;
        fleet.until(BAD, "after", 120).await;
        assert_eq!(fleet.state(BAD).await, "Ready", "it is the same cluster");
    });
}
