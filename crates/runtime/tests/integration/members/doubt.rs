//! Nothing is decided on a member while it is not sure that what is known of it is all, and of the cluster that it is taken for.

use std::time::Duration;

use serde_json::json;
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_apiserver::trace::{Ending, Record};
use slipway_kernel::identity::ClusterId;

use super::BAD;
use super::herd::{Herd, NAME};
use super::identity::{grant, uid};
use super::line::Mode;
use super::stage::Fleet;
use super::{defined, needing_widgets};
use crate::records::Records;
use crate::stage::{Replica, Stage, alone, secs, virtually};

const GADGETS: (&str, &str) = ("gadgets", "Gadget");
const WIDGETS: (&str, &str) = ("widgets", "Widget");
const MAP: &str = "/api/v1/namespaces/default/configmaps/herd";

/// A stream that died without a word tells nothing of what happened while the member did not answer.
#[test]
fn a_member_that_did_not_answer_is_listed_before_anything_is_planned() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        fleet.lines.set(BAD, Mode::Mute);
        fleet.until_state(BAD, "Unreachable", 60).await;
        let other = json!({"data": {"have": "other"}});
        fleet.members[BAD].send("PATCH", MAP, &other).await;
        fleet.lines.set(BAD, Mode::Up);
        // It is asked again within half a minute. Without a list the stream would be found dead two minutes after its last word.
        fleet.until(BAD, "usual", 35).await;
    });
}

/// While the lists after a restore are made, what is in the stores is of two histories: home's plans must know.
#[test]
fn home_is_told_that_a_member_whose_storage_was_restored_is_not_known() {
    virtually(async {
        let (fleet, replica, _) = Fleet::running().await;
        let cluster = &fleet.members[BAD].cluster;
        let before = cluster.snapshot();
        for round in ["a", "b", "c"] {
            fleet.follow(&[BAD], round).await;
        }
        fleet.lines.set(BAD, Mode::Slow(Duration::from_secs(4)));
        cluster.restore(&before);
        fleet.want(BAD, "after").await;
        let is_synced = || replica.view.facts().members[&ClusterId::remote(BAD)].synced;
        let mut waited = Duration::ZERO;
        while is_synced() {
            assert!(waited < Duration::from_mins(1), "it is said to be known");
            tokio::time::sleep(Duration::from_millis(100)).await;
            waited += Duration::from_millis(100);
        }
        fleet.lines.set(BAD, Mode::Up);
        fleet.until(BAD, "after", 120).await;
        fleet.until_state(BAD, "Ready", 10).await;
    });
}

/// What was planned while the uid could not be read is done when it can, and not with the next heartbeat.
#[test]
fn a_member_that_says_again_which_one_it_is_goes_on_at_once() {
    virtually(async {
        let fleet = Fleet::new().await;
        let maps = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]});
        let system = json!({
            "apiGroups": [""], "resources": ["namespaces"],
            "resourceNames": ["kube-system"], "verbs": ["get"],
        });
        grant(&fleet.members[BAD], "herd", &json!([maps, system])).await;
        fleet.rotate(BAD, "weak").await;
        let _replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "Ready", 10).await;
        let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/herd";
        let blind = json!({"rules": [maps]});
        fleet.members[BAD].send("PATCH", role, &blind).await;
        fleet.until_state(BAD, "ClusterUnidentified", 60).await;
        fleet.want(BAD, "2").await;
        secs(10).await;
        assert_eq!(fleet.members[BAD].have(NAME).await, "1");
        let seeing = json!({"rules": [maps, system]});
        fleet.members[BAD].send("PATCH", role, &seeing).await;
        fleet.until(BAD, "2", 40).await;
    });
}

/// Its lists are there before it says which cluster it is. By them all that the former one has would be gone, also to plans at home.
#[test]
fn what_another_cluster_behind_the_same_name_lists_is_not_taken_for_what_the_member_has() {
    virtually(async {
        let (fleet, replica, _) = Fleet::running().await;
        secs(20).await;
        let other = Stage::seeded(99).await;
        // Its versions are newer, so that they tell nothing.
        for number in 0..200 {
            other.map(&format!("other-{number}"), json!({})).await;
        }
        other.map(NAME, json!({"have": "other"})).await;
        let maps = Match {
            agent: "one".to_owned(),
            resource: "/configmaps".to_owned(),
            ..Match::default()
        };
        let faults = other.cluster.faults();
        faults.add_watch(maps, Frequency::once(), WatchFault::Gone);
        let late = Fault::Delay(Duration::from_secs(6));
        faults.add(super::silence::identity(), Frequency::always(), late);
        fleet.lines.lead(BAD, &other.cluster);
        secs(4).await;
        let lists = |record: &Record| record.agent == "one" && record.verb == "list";
        assert!(!other.records(lists).is_empty(), "it was not listed");
        let known = replica.view.facts().members[&ClusterId::remote(BAD)].clone();
        assert!(!known.synced, "home takes it for the member");
        fleet.until_state(BAD, "ClusterReplaced", 60).await;
    });
}

/// An event needs no object to be there, and would be told to whoever answers.
#[test]
fn nothing_is_told_in_another_cluster_behind_the_same_name() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        secs(20).await;
        fleet.patch(BAD, json!({"data": {"tells": "first"}})).await;
        secs(5).await;
        assert!(told(&fleet.members[BAD]) > 0);
        let other = Stage::seeded(99).await;
        fleet.lines.set(BAD, Mode::Slow(Duration::from_secs(5)));
        fleet.lines.lead(BAD, &other.cluster);
        fleet.patch(BAD, json!({"data": {"tells": "second"}})).await;
        secs(60).await;
        assert_eq!(told(&other), 0);
    });
}

/// A question may change something, and its answer is a fact of whoever gives it.
#[test]
fn nothing_is_asked_of_another_cluster_behind_the_same_name() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        secs(20).await;
        let asked = |stage: &Stage| {
            let asked = stage.records(|r| r.verb == "get" && r.name == "who");
            asked.len()
        };
        let other = Stage::seeded(99).await;
        for stage in [&fleet.members[BAD], &other] {
            stage.map("who", json!({"who": "anybody"})).await;
        }
        fleet.lines.set(BAD, Mode::Slow(Duration::from_secs(5)));
        fleet.lines.lead(BAD, &other.cluster);
        fleet.patch(BAD, json!({"data": {"asks": "yes"}})).await;
        secs(60).await;
        assert_eq!((asked(&fleet.members[BAD]), asked(&other)), (0, 0));
    });
}

/// That there is none there would end the doubt about what was written elsewhere.
#[test]
fn a_lost_answer_is_not_looked_up_in_another_cluster_behind_the_same_name() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        secs(20).await;
        let about = |verb: &str| Match {
            agent: "one".to_owned(),
            verb: verb.to_owned(),
            resource: "/configmaps".to_owned(),
            name: NAME.to_owned(),
            ..Match::default()
        };
        let faults = fleet.members[BAD].cluster.faults();
        faults.add(about("patch"), Frequency::always(), Fault::Lose);
        faults.add(about("get"), Frequency::always(), Fault::Unreachable);
        let looked = |stage: &Stage| {
            let looked = stage.records(|r| r.agent == "one" && r.verb == "get" && r.name == NAME);
            looked.len()
        };
        fleet.want(BAD, "2").await;
        secs(2).await;
        assert!(looked(&fleet.members[BAD]) > 0, "nothing was looked up");
        let other = Stage::seeded(99).await;
        let late = Fault::Delay(Duration::from_secs(6));
        let faults = other.cluster.faults();
        faults.add(super::silence::identity(), Frequency::always(), late);
        fleet.lines.lead(BAD, &other.cluster);
        secs(60).await;
        assert_eq!(looked(&other), 0);
    });
}

/// What tells events in a member.
fn telling() -> Match {
    Match {
        agent: "one".to_owned(),
        verb: "create".to_owned(),
        resource: "events.k8s.io/events".to_owned(),
        ..Match::default()
    }
}

fn told(stage: &Stage) -> usize {
    let told = stage.records(|r| r.resource.contains("events") && r.verb != "list");
    told.len()
}

/// It is told again after a second, by when the answer may be another cluster's.
#[test]
fn an_event_that_was_not_answered_is_not_told_again_in_another_cluster() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        secs(20).await;
        let late = Fault::Delay(Duration::from_secs(2));
        let faults = fleet.members[BAD].cluster.faults();
        faults.add(telling(), Frequency::always(), late);
        fleet.patch(BAD, json!({"data": {"tells": "first"}})).await;
        secs(1).await;
        let other = Stage::seeded(99).await;
        fleet.lines.lead(BAD, &other.cluster);
        secs(60).await;
        assert_eq!(told(&fleet.members[BAD]), 1, "it was on its way");
        assert_eq!(told(&other), 0);
    });
}

/// Its credentials may have been taken away.
#[test]
fn nothing_is_told_again_in_a_member_that_was_removed() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        secs(20).await;
        let stage = &fleet.members[BAD];
        stage.refuse(telling(), 429, "TooManyRequests", Frequency::always());
        fleet.patch(BAD, json!({"data": {"tells": "first"}})).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(told(stage), 1);
        fleet.unname(BAD).await;
        secs(60).await;
        assert_eq!(told(stage), 1);
    });
}

/// What another cluster serves is asked for when it takes the place, and not with the next round.
#[test]
fn what_a_cluster_serves_that_has_taken_the_place_of_another_one_is_known_at_once() {
    virtually(async {
        let fleet = Fleet::new().await;
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let gadgets = super::wanted::definition();
        fleet.members[BAD].create(definitions, &gadgets).await;
        secs(1).await;
        let herd = Herd {
            discovers: true,
            ..Herd::default()
        };
        let _replica = fleet.start(alone(), herd);
        fleet.until_state(BAD, "Ready", 10).await;
        secs(5).await;
        let serves = fleet.home.entry(BAD, "serves").await;
        assert_eq!(serves.as_deref(), Some("true"));
        let other = Stage::seeded(99).await;
        fleet.lines.lead(BAD, &other.cluster);
        fleet.until_state(BAD, "ClusterReplaced", 60).await;
        let new = uid(&other).await;
        let confirm = json!({"metadata": {"annotations": {CONFIRM_CLUSTER: new}}});
        fleet.patch(BAD, confirm).await;
        secs(45).await;
        let serves = fleet.home.entry(BAD, "serves").await;
        assert_eq!(serves.as_deref(), Some("false"));
    });
}

/// Refuses all that is asked about a kind of the toy's, once something of it has changed.
async fn refuse(stage: &Stage, kind: (&str, &str), code: u16) {
    let (plural, name) = kind;
    let about = Match {
        agent: "one".to_owned(),
        resource: format!("toy.dev/{plural}"),
        ..Match::default()
    };
    let faults = stage.cluster.faults();
    faults.add_watch(about.clone(), Frequency::once(), WatchFault::Close);
    stage.refuse(about, code, "Refused", Frequency::always());
    make(stage, kind, name).await;
}

async fn make(stage: &Stage, (plural, kind): (&str, &str), name: &str) {
    let name = name.to_lowercase();
    let object = json!({"apiVersion": "toy.dev/v1", "kind": kind, "metadata": {"name": name}});
    let path = format!("/apis/toy.dev/v1/namespaces/default/{plural}");
    stage.create(&path, &object).await;
}

/// One whose gadgets are counted, of which there is one; gives the replica that does it.
async fn counting(fleet: &Fleet) -> Replica {
    let stage = &fleet.members[BAD];
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage
        .create(definitions, &super::wanted::definition())
        .await;
    secs(1).await;
    make(stage, GADGETS, "a").await;
    let replica = fleet.start(alone(), Herd::default());
    fleet.until_state(BAD, "Ready", 5).await;
    fleet.patch(BAD, json!({"data": {"sees": "gadgets"}})).await;
    replica
}

/// A right that is taken away later is a right that is not there: a replica that began now would say so.
#[test]
fn a_kind_of_a_member_that_may_not_be_seen_any_more_counts_as_never_listed() {
    virtually(async {
        let fleet = Fleet::new().await;
        let _replica = counting(&fleet).await;
        let stage = &fleet.members[BAD];
        let counted = async |gadgets: &str| {
            secs(15).await;
            let told = stage.entry(NAME, "gadgets").await;
            assert_eq!(told.as_deref(), Some(gadgets));
            assert_eq!(fleet.state(BAD).await, "Ready");
        };
        counted("1").await;
        refuse(stage, GADGETS, 403).await;
        counted("").await;
        stage.cluster.faults().clear();
        counted("2").await;
    });
}

/// Its own API answers all the while, so that nothing else tells.
#[test]
fn a_member_of_which_a_kind_that_is_needed_cannot_be_read_any_more_is_not_known() {
    for code in [403, 500] {
        virtually(async {
            let fleet = defined().await;
            let _replica = fleet.start(alone(), needing_widgets());
            fleet.until_state(BAD, "Ready", 5).await;
            secs(20).await;
            let stage = &fleet.members[BAD];
            refuse(stage, WIDGETS, code).await;
            fleet.until_state(BAD, "NotSynced", 60).await;
            fleet.want(BAD, "2").await;
            secs(30).await;
            assert_eq!(stage.have(NAME).await, "1", "{code}");
            assert_eq!(fleet.state(BAD).await, "NotSynced", "{code}");
            stage.cluster.faults().clear();
            fleet.until(BAD, "2", 15).await;
            fleet.until_state(BAD, "Ready", 5).await;
        });
    }
}

/// A watch that can be opened again goes on from where it was, as if nothing had happened meanwhile.
#[test]
fn a_kind_of_a_member_that_can_be_read_again_is_listed_before_anything_is_planned() {
    virtually(async {
        let fleet = defined().await;
        let _replica = fleet.start(alone(), needing_widgets());
        fleet.until_state(BAD, "Ready", 5).await;
        secs(20).await;
        let stage = &fleet.members[BAD];
        refuse(stage, WIDGETS, 500).await;
        fleet.until_state(BAD, "NotSynced", 60).await;
        fleet.want(BAD, "2").await;
        secs(1).await;
        let is_list = |record: &Record| {
            let is_done = record.ending == Ending::Answered(200);
            record.verb == "list" && record.resource == "toy.dev/widgets" && is_done
        };
        let before = stage.records(is_list).len();
        stage.cluster.faults().clear();
        fleet.until(BAD, "2", 15).await;
        assert!(stage.records(is_list).len() > before, "it was not listed");
    });
}

/// What was asked for at run time is waited for by nobody: that it cannot be read begins no work anew, again and again.
#[test]
fn a_kind_of_a_member_that_was_asked_for_later_and_cannot_be_read_holds_nothing_up() {
    let records = Records::default();
    let _guard = tracing::subscriber::set_default(records.clone());
    virtually(async {
        let fleet = Fleet::new().await;
        let _replica = counting(&fleet).await;
        secs(15).await;
        refuse(&fleet.members[BAD], GADGETS, 500).await;
        let beginnings = || {
            let all = records.all();
            let begins = all.iter().filter(|one| one.contains("all objects listed"));
            begins.count()
        };
        let before = beginnings();
        assert!(before > 0);
        secs(120).await;
        // Once it is asked which cluster it is, because streams of it have ended.
        let since = beginnings() - before;
        assert!(since <= 1, "{since}");
        fleet.follow(&[BAD], "2").await;
    });
}
