//! A new leader fences each member by itself: one that does not answer delays no other.

use std::time::Duration;

use serde_json::json;
use slipway_api::names::{FENCE, UNANSWERED};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_kernel::capability::Fence;
use tokio::time::Instant;

use super::herd::{Herd, NAME};
use super::line::Mode;
use super::stage::{DEBOUNCE, Fleet};
use super::{ALL, BAD, GOOD, Wrong, defined, needing_widgets};
use crate::stage::{Stage, one_of_many, secs, virtually};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/slipway-system/leases/herd";

/// How long the good members take to follow after the leader has died, with something wrong with the other one.
async fn take_over(wrong: Wrong, fence: Fence) -> Duration {
    let fleet = defined().await;
    let herd = || Herd {
        fence,
        ..needing_widgets()
    };
    let leader = fleet.start(one_of_many("one"), herd());
    for name in ALL {
        fleet.until_state(name, "Ready", 10).await;
    }
    let follower = fleet.start(one_of_many("two"), herd());
    secs(5).await;
    wrong.befall(&fleet).await;
    drop(leader);
    let began = Instant::now();
    for name in ALL {
        fleet.want(name, "2").await;
    }
    for name in GOOD {
        fleet.until(name, "2", 120).await;
    }
    let took = began.elapsed();
    assert!(follower.view.is_leader("herd"));
    if wrong == Wrong::Dead {
        fleet.lines.set(BAD, Mode::Up);
    }
    if matches!(wrong, Wrong::Dead | Wrong::Nothing | Wrong::Returned) {
        fleet.until(BAD, "2", 120).await;
    }
    if wrong == Wrong::Replaced {
        secs(60).await;
        let cluster = fleet.lines.end_of(BAD);
        assert_eq!(
            Stage { cluster }.have(NAME).await,
            "",
            "nobody confirmed it"
        );
    }
    took
}

#[test]
fn a_member_that_something_is_wrong_with_delays_no_other_across_a_failover() {
    for fence in [Fence::WaitOut, Fence::BumpVersions] {
        let usual = virtually(take_over(Wrong::Nothing, fence));
        for wrong in [
            Wrong::Dead,
            Wrong::Refused,
            Wrong::Slow,
            Wrong::Forbidden,
            Wrong::Stranger,
            Wrong::NoSecret,
            Wrong::Undefined,
            Wrong::Failing,
            Wrong::Replaced,
            Wrong::Returned,
        ] {
            let took = virtually(take_over(wrong, fence));
            assert!(
                took <= usual + DEBOUNCE,
                "{wrong:?} {fence:?}: {took:?}, usually {usual:?}"
            );
        }
    }
}

/// What a former leader has begun in a member is known at home only. The follower has not heard of it, and home's lists come
/// late: the member's object is bumped all the same.
#[test]
fn what_is_bumped_in_a_member_is_known_when_home_has_been_listed() {
    virtually(async {
        let fleet = Fleet::new().await;
        let herd = || Herd {
            fence: Fence::BumpVersions,
            ..Herd::default()
        };
        let leader = fleet.start(one_of_many("one"), herd());
        for name in ALL {
            fleet.until_state(name, "Ready", 10).await;
        }
        let _follower = fleet.start(one_of_many("two"), herd());
        secs(10).await;
        let of_two = |verb: &str| Match {
            agent: "two".to_owned(),
            verb: verb.to_owned(),
            resource: "/configmaps".to_owned(),
            ..Match::default()
        };
        let faults = fleet.home.cluster.faults();
        let deaf = WatchFault::Delay(Duration::from_mins(10));
        faults.add_watch(of_two("watch"), Frequency::always(), deaf);
        let late = Fault::Delay(Duration::from_secs(3));
        faults.add(of_two("list"), Frequency::always(), late);
        fleet.lines.set(BAD, Mode::Slow(Duration::from_secs(8)));
        fleet.want(BAD, "2").await;
        secs(1).await;
        drop(leader);
        fleet.lines.set(BAD, Mode::Up);
        fleet.until(BAD, "2", 120).await;
        let path = format!("/api/v1/namespaces/default/configmaps/{NAME}");
        let map = fleet.members[BAD].get(&path).await;
        assert!(
            map["metadata"]["annotations"][FENCE].is_string(),
            "it was not bumped: {map}"
        );
    });
}

/// A write is under way in each member when the leader is told to end. How long it takes then until the good members have something
/// else, and until the other one has.
async fn hand_on(mode: Mode) -> (Duration, Duration) {
    let fleet = Fleet::new().await;
    let leader = fleet.start(one_of_many("one"), Herd::default());
    for name in ALL {
        fleet.until_state(name, "Ready", 10).await;
    }
    let follower = fleet.start(one_of_many("two"), Herd::default());
    secs(5).await;
    fleet.lines.set(BAD, mode);
    for name in ALL {
        fleet.want(name, "2").await;
    }
    secs(1).await;
    let began = Instant::now();
    leader.stop().await;
    fleet.lines.set(BAD, Mode::Up);
    for name in ALL {
        fleet.want(name, "3").await;
    }
    for name in GOOD {
        fleet.until(name, "3", 60).await;
    }
    let took = began.elapsed();
    assert!(follower.view.is_leader("herd"));
    fleet.until(BAD, "3", 120).await;
    (took, began.elapsed())
}

/// An ordinary restart. A second is what answers of members are awaited for, and two is how often the Lease is looked at; where there
/// is no answer, what was sent may yet be done.
#[test]
fn a_member_that_does_not_answer_a_leader_that_ends_is_the_only_one_that_waits_for_the_next() {
    let (usual, all) = virtually(hand_on(Mode::Up));
    assert!(all < Duration::from_secs(10), "{all:?}");
    for mode in [Mode::Dead, Mode::Slow(Duration::from_secs(8))] {
        let (took, all) = virtually(hand_on(mode));
        let most = usual + Duration::from_secs(1 + 2) + DEBOUNCE;
        assert!(took <= most, "{mode:?}: {took:?}, usually {usual:?}");
        assert!(all >= Duration::from_secs(10), "{mode:?}: {all:?}");
    }
}

/// Somebody has edited the Lease by hand. Any cluster may owe an answer then, so each is waited for as after a leader that has died.
#[test]
fn where_it_cannot_be_read_which_members_owe_an_answer_all_are_waited_for() {
    virtually(async {
        let fleet = Fleet::new().await;
        let leader = fleet.start(one_of_many("one"), Herd::default());
        for name in ALL {
            fleet.until_state(name, "Ready", 10).await;
        }
        leader.stop().await;
        let torn = json!({"metadata": {"annotations": {UNANSWERED: "[\"north\""}}});
        fleet.home.send("PATCH", LEASE, &torn).await;
        assert_eq!(fleet.home.get(LEASE).await["spec"]["holderIdentity"], "");
        for name in ALL {
            fleet.want(name, "2").await;
        }
        let began = Instant::now();
        let _next = fleet.start(one_of_many("two"), Herd::default());
        for name in ALL {
            fleet.until(name, "2", 120).await;
            let took = began.elapsed();
            assert!(took >= Duration::from_secs(10), "{name}: {took:?}");
        }
    });
}

#[test]
fn followers_see_members_and_write_nothing_there() {
    virtually(async {
        let fleet = Fleet::new().await;
        let _leader = fleet.start(one_of_many("one"), Herd::default());
        for name in ALL {
            fleet.until_state(name, "Ready", 10).await;
        }
        let follower = fleet.start(one_of_many("two"), Herd::default());
        secs(20).await;
        fleet.follow(&ALL, "2").await;
        secs(20).await;
        let facts = follower.view.facts();
        assert_eq!(facts.members.len(), ALL.len());
        assert!(facts.members.values().all(|known| known.synced));
        for name in ALL {
            let written = fleet.members[name].records(|record| {
                record.agent == "two" && !matches!(record.verb.as_str(), "get" | "list" | "watch")
            });
            assert!(written.is_empty(), "{written:?}");
        }
    });
}

/// A member's storage is restored after it was listed for a fence, and while home's lists are late: what was to be bumped is of
/// before, so the former leader is waited for.
#[test]
fn what_was_listed_in_a_member_before_a_restore_is_not_bumped() {
    virtually(async {
        let fleet = Fleet::new().await;
        let herd = || Herd {
            fence: Fence::BumpVersions,
            ..Herd::default()
        };
        let leader = fleet.start(one_of_many("one"), herd());
        for name in ALL {
            fleet.until_state(name, "Ready", 10).await;
        }
        let _follower = fleet.start(one_of_many("two"), herd());
        secs(10).await;
        let cluster = &fleet.members[BAD].cluster;
        let before = cluster.snapshot();
        for round in ["a", "b", "c"] {
            fleet.follow(&[BAD], round).await;
        }
        let lists = Match {
            agent: "two".to_owned(),
            verb: "list".to_owned(),
            resource: "/configmaps".to_owned(),
            ..Match::default()
        };
        let late = Fault::Delay(Duration::from_secs(9));
        let faults = fleet.home.cluster.faults();
        faults.add(lists, Frequency::always(), late);
        drop(leader);
        fleet.want(BAD, "2").await;
        let mut waited = 0;
        while fleet.home.get(LEASE).await["spec"]["holderIdentity"] != "two" {
            assert!(waited < 600, "nobody takes over");
            tokio::time::sleep(Duration::from_millis(100)).await;
            waited += 1;
        }
        secs(1).await;
        cluster.restore(&before);
        // Streams that stay open do not tell of it: these break, and what is listed then is older than what was known.
        fleet.lines.set(BAD, Mode::Refused);
        secs(1).await;
        fleet.lines.set(BAD, Mode::Up);
        fleet.until(BAD, "2", 180).await;
        let fences = fleet.members[BAD].records(|record| {
            let is_fence = record.context.contains("purpose=fence");
            record.agent == "two" && is_fence
        });
        assert!(fences.is_empty(), "{fences:?}");
    });
}
