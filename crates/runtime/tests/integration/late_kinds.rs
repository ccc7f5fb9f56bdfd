//! "Not defined" is discovery's word, confirmed; what an installed kind could forbid waits while it is not synced.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_kernel::interest::Need;
use tokio::time::Instant;

use crate::rights::{DEFINITION, widgets};
use crate::stage::{Replica, Stage, alone, secs, virtually};
use crate::toy::{Toy, WIDGET};

const ABSENT: &str = "watch widgets";
const OUT_OF_SYNC: &str = "sync widgets";
const WIDGETS: &str = "toy.dev/widgets";

fn toy(need: Need) -> Toy {
    Toy {
        widgets: Some(need),
        ..Toy::default()
    }
}

fn about(verb: &str, resource: &str) -> Match {
    Match {
        agent: "one".to_owned(),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        ..Match::default()
    }
}

async fn widget(stage: &Stage, name: &str) {
    let widget = json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": name}});
    stage.create(&WIDGET.path("default"), &widget).await;
}

/// A stage with a definition and one object of it, and a replica that knows it.
async fn known(need: Need) -> (Stage, Replica) {
    let stage = Stage::new().await;
    stage.create(DEFINITION, &widgets()).await;
    secs(1).await;
    widget(&stage, "w").await;
    stage.map("a", json!({"want": "1"})).await;
    let replica = stage.start(alone(), toy(need));
    stage.until_have("a", "1", 5).await;
    assert_eq!(count(&replica), Some(1));
    (stage, replica)
}

/// How many are known; none if they have not been listed.
fn count(replica: &Replica) -> Option<usize> {
    let stores = replica.view.stores();
    let mut all = stores.iter();
    let (_, store) = all.find(|((_, kind, _), _)| *kind == WIDGET)?;
    store.is_synced().then(|| store.len())
}

fn is(replica: &Replica, feature: &str) -> bool {
    replica.lacks(feature)
}

/// The open watch breaks.
async fn broken(stage: &Stage, name: &str) {
    let faults = stage.cluster.faults();
    faults.add_watch(about("", WIDGETS), Frequency::once(), WatchFault::Close);
    widget(stage, name).await;
}

#[test]
fn a_definition_that_is_applied_later_is_seen_within_ten_seconds() {
    for need in [Need::Optional, Need::RequiredIfServed] {
        virtually(async {
            let stage = Stage::new().await;
            stage.map("a", json!({"want": "1"})).await;
            let replica = stage.start(alone(), toy(need));
            stage.until_have("a", "1", 5).await;
            assert!(is(&replica, ABSENT) && replica.view.is_ready());
            secs(1_000).await;
            assert!(is(&replica, ABSENT) && replica.view.is_ready());
            stage.create(DEFINITION, &widgets()).await;
            widget(&stage, "w").await;
            let began = Instant::now();
            while count(&replica) != Some(1) {
                assert!(began.elapsed() < Duration::from_secs(10), "{need:?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert!(!is(&replica, ABSENT) && !is(&replica, OUT_OF_SYNC));
            assert!(replica.view.is_ready());
        });
    }
}

#[test]
fn a_kind_that_appears_and_cannot_be_listed_yet_is_not_absent() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), toy(Need::RequiredIfServed));
        stage.until_have("a", "1", 5).await;
        let lists = about("list", WIDGETS);
        stage.refuse(lists, 500, "InternalError", Frequency::always());
        stage.create(DEFINITION, &widgets()).await;
        secs(10).await;
        for _ in 0..120 {
            assert!(!is(&replica, ABSENT) && is(&replica, OUT_OF_SYNC));
            assert!(!replica.view.is_ready());
            secs(1).await;
        }
        stage.cluster.faults().clear();
        secs(10).await;
        assert!(!is(&replica, OUT_OF_SYNC) && replica.view.is_ready());
    });
}

#[test]
fn a_kind_that_one_namespace_has_found_and_another_has_not_is_out_of_sync_and_not_absent() {
    virtually(async {
        let stage = Stage::new().await;
        let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
        stage.create("/api/v1/namespaces", &other).await;
        stage.map("a", json!({"want": "1"})).await;
        let mut settings = alone();
        settings.namespaces = vec!["default".to_owned(), "other".to_owned()];
        let replica = stage.start(settings, toy(Need::RequiredIfServed));
        stage.until_have("a", "1", 10).await;
        assert!(is(&replica, ABSENT) && !is(&replica, OUT_OF_SYNC));
        // Discovery tells the first that asks, and not the other one, for a while.
        let some = Frequency::Count { skip: 1, times: 3 };
        stage.refuse(about("get", ""), 404, "NotFound", some);
        stage.create(DEFINITION, &widgets()).await;
        for namespace in ["default", "other"] {
            let widget =
                json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": "w"}});
            stage.create(&WIDGET.path(namespace), &widget).await;
        }
        let known = || {
            let stores = replica.view.stores();
            let mut all = stores.iter();
            let found = all.find(|((_, kind, _), _)| *kind == WIDGET);
            found.map_or(0, |(_, store)| store.len())
        };
        let mut differed = false;
        for _ in 0..600 {
            if known() == 1 {
                assert!(!is(&replica, ABSENT) && is(&replica, OUT_OF_SYNC));
                differed = true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(differed, "or this shows nothing");
        assert_eq!(count(&replica), Some(2));
        assert!(!is(&replica, ABSENT) && !is(&replica, OUT_OF_SYNC));
    });
}

#[test]
fn not_found_for_a_moment_is_not_taken_for_absent_while_discovery_knows_the_kind() {
    for need in [Need::Optional, Need::RequiredIfServed] {
        virtually(async {
            let (stage, replica) = known(need).await;
            stage.refuse(about("", WIDGETS), 404, "NotFound", Frequency::always());
            broken(&stage, "x").await;
            for _ in 0..120 {
                secs(1).await;
                assert!(!is(&replica, ABSENT), "{need:?}");
                assert_eq!(count(&replica), Some(1), "nothing is forgotten");
            }
            stage.cluster.faults().clear();
            secs(10).await;
            assert_eq!(count(&replica), Some(2));
            assert!(!is(&replica, OUT_OF_SYNC));
        });
    }
}

#[test]
fn a_discovery_that_forgets_the_kind_for_a_moment_is_not_believed() {
    virtually(async {
        let (stage, replica) = known(Need::RequiredIfServed).await;
        stage.refuse(about("", WIDGETS), 404, "NotFound", Frequency::always());
        stage.refuse(about("get", ""), 404, "NotFound", Frequency::always());
        broken(&stage, "x").await;
        for second in 0..15 {
            secs(1).await;
            assert!(!is(&replica, ABSENT), "after {second} s");
            assert_eq!(count(&replica), Some(1), "nothing is forgotten");
            assert!(is(&replica, OUT_OF_SYNC), "and nothing is believed");
        }
        stage.cluster.faults().clear();
        secs(10).await;
        assert_eq!(count(&replica), Some(2));
        assert!(!is(&replica, OUT_OF_SYNC) && !is(&replica, ABSENT));
    });
}

#[test]
fn not_found_for_a_moment_at_the_start_is_not_taken_for_absent() {
    for need in [Need::Optional, Need::RequiredIfServed] {
        virtually(async {
            let stage = Stage::new().await;
            stage.create(DEFINITION, &widgets()).await;
            secs(1).await;
            widget(&stage, "w").await;
            stage.map("a", json!({"want": "1"})).await;
            stage.refuse(about("", WIDGETS), 404, "NotFound", Frequency::always());
            stage.refuse(about("get", ""), 404, "NotFound", Frequency::once());
            let replica = stage.start(alone(), toy(need));
            for _ in 0..60 {
                secs(1).await;
                assert!(!is(&replica, ABSENT));
                assert!(stage.writes().is_empty(), "nobody knows whether there are");
            }
            stage.cluster.faults().clear();
            stage.until_have("a", "1", 10).await;
            assert_eq!(count(&replica), Some(1));
        });
    }
}

#[test]
fn a_definition_that_is_deleted_counts_as_gone_once_that_is_sure_and_may_come_back() {
    virtually(async {
        let (stage, replica) = known(Need::RequiredIfServed).await;
        let path = format!("{DEFINITION}/widgets.toy.dev");
        for round in 0..3 {
            stage.send("DELETE", &path, &Value::Null).await;
            secs(10).await;
            assert!(!is(&replica, ABSENT), "round {round}");
            secs(60).await;
            assert!(is(&replica, ABSENT) && !is(&replica, OUT_OF_SYNC));
            assert!(replica.view.is_ready());
            stage.create(DEFINITION, &widgets()).await;
            widget(&stage, "w").await;
            secs(10).await;
            assert!(!is(&replica, ABSENT) && !is(&replica, OUT_OF_SYNC));
            assert_eq!(count(&replica), Some(1));
        }
    });
}

#[test]
fn a_kind_that_cannot_be_read_for_a_while_is_out_of_sync_until_it_can() {
    virtually(async {
        let (stage, replica) = known(Need::RequiredIfServed).await;
        let all = about("", WIDGETS);
        stage.refuse(all, 500, "InternalError", Frequency::always());
        broken(&stage, "x").await;
        secs(10).await;
        for _ in 0..60 {
            assert!(is(&replica, OUT_OF_SYNC) && !is(&replica, ABSENT));
            assert_eq!(count(&replica), Some(1));
            secs(1).await;
        }
        assert!(!replica.view.is_ready());
        stage.cluster.faults().clear();
        secs(10).await;
        assert!(!is(&replica, OUT_OF_SYNC) && replica.view.is_ready());
        assert_eq!(count(&replica), Some(2));
    });
}

/// An expired watch is opened like any other, and only then says that it has expired.
#[test]
fn a_kind_that_answers_again_is_out_of_sync_until_it_has_been_listed() {
    virtually(async {
        let (stage, replica) = known(Need::RequiredIfServed).await;
        let faults = stage.cluster.faults();
        let kind = about("", WIDGETS);
        faults.add(kind, Frequency::always(), Fault::Unreachable);
        broken(&stage, "x").await;
        secs(12).await;
        assert!(is(&replica, OUT_OF_SYNC));
        faults.clear();
        let slow = Fault::Delay(Duration::from_secs(6));
        faults.add(about("list", WIDGETS), Frequency::always(), slow);
        faults.add_watch(about("", WIDGETS), Frequency::once(), WatchFault::Gone);
        let mut waited = 0;
        while is(&replica, OUT_OF_SYNC) {
            assert!(waited < 600, "for ever");
            waited += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(waited > 120, "or this shows nothing");
        assert_eq!(count(&replica), Some(2), "and nothing was missed");
        faults.clear();
        for _ in 0..60 {
            secs(1).await;
            assert!(!is(&replica, OUT_OF_SYNC) && replica.view.is_ready());
        }
    });
}

#[test]
fn a_missing_right_at_the_start_is_tried_again_soon() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        widget(&stage, "w").await;
        stage.map("a", json!({"want": "1"})).await;
        stage.refuse(about("", WIDGETS), 403, "Forbidden", Frequency::once());
        let replica = stage.start(alone(), toy(Need::Optional));
        stage.until_have("a", "1", 5).await;
        secs(10).await;
        assert_eq!(count(&replica), Some(1));
        assert!(!is(&replica, ABSENT));
    });
}

/// Where even the review of one's own access is forbidden, what can be done without is done without after a minute, and
/// nobody waits for ever.
#[test]
fn a_kind_that_may_neither_be_listed_nor_asked_about_is_done_without_after_a_minute() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        stage.map("a", json!({"want": "1"})).await;
        let reviews = "authorization.k8s.io/selfsubjectaccessreviews";
        for resource in [WIDGETS, reviews] {
            let always = Frequency::always();
            stage.refuse(about("", resource), 403, "Forbidden", always);
        }
        let replica = stage.start(alone(), toy(Need::Optional));
        secs(45).await;
        assert!(!is(&replica, ABSENT), "it may pass");
        stage.until_have("a", "1", 90).await;
        assert!(is(&replica, ABSENT));
    });
}

/// What came about since the last list is not known, nor whether listing is forbidden too; what it could forbid must not wait
/// until it is time to list again.
#[test]
fn a_kind_that_may_not_be_watched_any_more_is_listed_at_once() {
    for verb in ["watch", ""] {
        virtually(async {
            let (stage, replica) = known(Need::RequiredIfServed).await;
            secs(60).await;
            let refused = about(verb, WIDGETS);
            stage.refuse(refused, 403, "Forbidden", Frequency::always());
            let began = Instant::now();
            broken(&stage, "x").await;
            let is_known = || match verb {
                "watch" => count(&replica) == Some(2),
                _ => is(&replica, "see widgets"),
            };
            while !is_known() {
                assert!(began.elapsed() < Duration::from_secs(2), "{verb:?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
}
