//! Whatever happens to a watch, what is wanted gets done.

use std::time::Duration;

use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_apiserver::status::Status;
use slipway_runtime::Settings;

use crate::stage::{Stage, alone, secs, virtually};
use crate::toy::Toy;

fn watch() -> Match {
    Match {
        agent: "one".to_owned(),
        resource: "/configmaps".to_owned(),
        ..Match::default()
    }
}

fn quick() -> Settings {
    Settings {
        relist: Duration::from_mins(10),
        ..alone()
    }
}

/// A watch with this fault at its n-th event, for each n; gives the longest time until all is done.
fn survives(fault: &WatchFault, at_most: u64) {
    for skip in 0..8 {
        virtually(async {
            let stage = Stage::new().await;
            stage.map("a", json!({"want": "0"})).await;
            stage.cluster.faults().add_watch(
                watch(),
                Frequency::Count { skip, times: 1 },
                fault.clone(),
            );
            let _replica = stage.start(quick(), Toy::default());
            stage.until_have("a", "0", 5).await;
            for n in 1..4 {
                stage.want("a", &n.to_string()).await;
                secs(1).await;
                stage.map(&format!("b{n}"), json!({"want": "x"})).await;
                secs(1).await;
            }
            stage.until_have("a", "3", at_most).await;
            stage.until_have("b3", "x", at_most).await;
            stage.until_have("b1", "x", at_most).await;
        });
    }
}

#[test]
fn an_event_that_is_dropped_w1() {
    survives(&WatchFault::Drop, 610);
}

#[test]
fn an_event_that_comes_twice_w2() {
    survives(&WatchFault::Duplicate, 2);
}

#[test]
fn an_event_that_is_late() {
    survives(&WatchFault::Delay(Duration::from_secs(20)), 30);
}

#[test]
fn a_stream_that_is_closed_w5() {
    survives(&WatchFault::Close, 5);
}

#[test]
fn a_version_that_is_gone_w6() {
    survives(&WatchFault::Gone, 5);
}

#[test]
fn gone_at_every_list_and_watch_backs_off_w6() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let gone = || Fault::Refuse(Box::new(Status::failure(410, "Expired", "too old")));
        for verb in ["list", "watch"] {
            let about = Match {
                verb: verb.to_owned(),
                ..watch()
            };
            stage.cluster.faults().add(
                about,
                Frequency::Count {
                    skip: 1,
                    times: 100,
                },
                gone(),
            );
        }
        let _replica = stage.start(alone(), Toy::default());
        secs(600).await;
        let asked = stage
            .records(|r| r.agent == "one" && r.resource == "/configmaps")
            .len();
        // At most 8 s apart, so that the end of it is noticed within 10 s; with the small reads of the quiet time before.
        assert!(asked < 110, "{asked} requests in 10 minutes");
        stage.cluster.faults().clear();
        stage.want("a", "2").await;
        stage.until_have("a", "2", 31).await;
    });
}

#[test]
fn a_silent_watch_is_opened_again_after_two_minutes_l5_w9() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let _replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        secs(1).await;
        // From now on the open watch says nothing any more.
        stage.cluster.faults().add_watch(
            watch(),
            Frequency::always(),
            WatchFault::Delay(Duration::from_secs(100_000)),
        );
        stage.want("a", "2").await;
        secs(1).await;
        stage.cluster.faults().clear();
        let took = stage.until_have("a", "2", 125).await;
        assert!(
            took > Duration::from_secs(100),
            "the watch was silent: {took:?}"
        );
    });
}

#[test]
fn a_list_that_is_never_answered_is_begun_again() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let about = Match {
            verb: "list".to_owned(),
            ..watch()
        };
        stage.cluster.faults().add(
            about,
            Frequency::once(),
            Fault::Delay(Duration::from_secs(100_000)),
        );
        let replica = stage.start(alone(), Toy::default());
        secs(10).await;
        assert!(!replica.view.is_ready());
        stage.until_have("a", "1", 70).await;
        assert!(replica.view.is_ready());
    });
}

#[test]
fn long_lists_come_in_pages_and_an_expired_page_begins_again_e7() {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..1_200 {
            stage
                .map(&format!("m{n:04}"), json!({"want": "1", "have": "1"}))
                .await;
        }
        stage.map("z", json!({"want": "1"})).await;
        let about = Match {
            verb: "list".to_owned(),
            ..watch()
        };
        let gone = Fault::Refuse(Box::new(Status::failure(
            410,
            "Expired",
            "the continue token has expired",
        )));
        stage
            .cluster
            .faults()
            .add(about, Frequency::Count { skip: 1, times: 1 }, gone);
        let _replica = stage.start(alone(), Toy::default());
        stage.until_have("z", "1", 5).await;
        let pages = stage.records(|r| r.agent == "one" && r.verb == "list");
        assert!(
            pages
                .iter()
                .all(|r| r.uri.split(['?', '&']).any(|part| part == "limit=50")
                    && !r.uri.contains("resourceVersion=")),
            "{pages:#?}"
        );
        assert_eq!(pages.len(), 2 + 25);
    });
}

#[test]
fn an_unreachable_api_makes_it_unready_and_it_recovers() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        let all = Match {
            agent: "one".to_owned(),
            ..Match::default()
        };
        stage
            .cluster
            .faults()
            .add(all, Frequency::always(), Fault::Unreachable);
        stage
            .cluster
            .faults()
            .add_watch(watch(), Frequency::once(), WatchFault::Close);
        stage.want("a", "2").await;
        secs(3_600).await;
        assert!(!replica.view.is_ready());
        let asked = stage.records(|r| r.agent == "one").len();
        // At most 8 s apart, so that its return is noticed within 10 s; with the small reads while a request hangs.
        assert!(asked < 550, "{asked} requests in an hour");
        stage.cluster.faults().clear();
        stage.until_have("a", "2", 40).await;
        assert!(replica.view.is_ready());
    });
}
