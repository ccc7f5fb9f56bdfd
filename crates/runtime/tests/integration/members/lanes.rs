//! What shares a budget is said by the capability, and a write whose outcome is not known stops that and nothing else.

use slipway_apiserver::faults::{Fault, Frequency, Match};

use super::herd::{Herd, NAME};
use super::stage::{DEBOUNCE, Fleet};
use super::{BAD, GOOD};
use crate::stage::{alone, secs, virtually};

fn about(verb: &str, name: &str) -> Match {
    Match {
        agent: "one".to_owned(),
        verb: verb.to_owned(),
        resource: "/configmaps".to_owned(),
        name: name.to_owned(),
        ..Match::default()
    }
}

/// The answer to a write at home is lost, and nobody can find out what became of it: other keys of home go on.
#[test]
fn a_lost_answer_about_one_key_stops_no_other_where_each_has_its_own_lane() {
    virtually(async {
        let fleet = Fleet::unnamed().await;
        let _replica = fleet.start(alone(), Herd::default());
        let faults = fleet.home.cluster.faults();
        faults.add(about("patch", BAD), Frequency::always(), Fault::Lose);
        faults.add(about("get", BAD), Frequency::always(), Fault::Unreachable);
        fleet.name(BAD, "1").await;
        secs(20).await;
        for name in GOOD {
            fleet.name(name, "1").await;
            let took = fleet.until(name, "1", 5).await;
            assert!(took <= DEBOUNCE * 4, "{took:?}");
        }
        faults.clear();
        fleet.until(BAD, "1", 400).await;
    });
}

/// The same in a member: what the other members have to do goes on, and home's keys.
#[test]
fn a_lost_answer_in_a_member_stops_no_other_member() {
    virtually(async {
        let (fleet, _replica, usual) = Fleet::running().await;
        let faults = fleet.members[BAD].cluster.faults();
        for verb in ["patch", "get"] {
            faults.add(about(verb, NAME), Frequency::always(), Fault::Unreachable);
        }
        fleet.want(BAD, "2").await;
        fleet.goes_on(usual).await;
        faults.clear();
        fleet.until(BAD, "2", 400).await;
    });
}

/// A server that has too much to do slows what is done there, and nothing elsewhere.
#[test]
fn a_busy_member_slows_no_other() {
    virtually(async {
        let (fleet, _replica, usual) = Fleet::running().await;
        let always = Frequency::always();
        fleet.members[BAD].refuse(about("patch", ""), 429, "TooManyRequests", always);
        fleet.want(BAD, "2").await;
        fleet.goes_on(usual).await;
        assert_ne!(fleet.members[BAD].have(NAME).await, "2");
    });
}
