//! What follows from each answer to a write.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_apiserver::status::Status;
use slipway_apiserver::trace::{Ending, Record};
use slipway_kernel::identity::{ObjectRef, kinds};
use slipway_runtime::{Environment, Operator};

use crate::stage::{Replica, Stage, alone, epoch, secs, virtually};
use crate::toy::{GADGET, Toy};
use crate::webhook::guarding;

fn patches() -> Match {
    Match {
        verb: "patch".to_owned(),
        agent: "one".to_owned(),
        ..Match::default()
    }
}

fn patch_of(name: &str) -> Match {
    Match {
        name: name.to_owned(),
        ..patches()
    }
}

fn refuse(code: u16, reason: &str) -> Fault {
    Fault::Refuse(Box::new(Status::failure(code, reason, "no")))
}

fn verbs(records: &[Record]) -> Vec<(&str, &str)> {
    records
        .iter()
        .map(|r| (r.verb.as_str(), r.name.as_str()))
        .collect()
}

fn of_replica(stage: &Stage) -> Vec<Record> {
    stage.records(|r| r.context.starts_with("controller=toy") && !r.resource.contains("events"))
}

#[test]
fn a_conflict_is_read_and_planned_again_at_once_e1() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        // Somebody writes while our watch is behind.
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        let about = Match {
            agent: "one".to_owned(),
            ..Match::default()
        };
        stage.cluster.faults().add_watch(
            about,
            Frequency::Count { skip: 1, times: 1 },
            WatchFault::Delay(Duration::from_mins(1)),
        );
        stage.want("a", "2").await;
        stage.want("a", "3").await;
        let took = stage.until_have("a", "3", 5).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        let codes: Vec<_> = stage.writes().iter().map(|w| w.ending.clone()).collect();
        assert_eq!(
            codes,
            [
                Ending::Answered(200),
                Ending::Answered(409),
                Ending::Answered(200)
            ]
        );
        assert!(
            replica.view.facts().refusals.is_empty(),
            "a conflict is no refusal"
        );
    });
}

#[test]
fn conflicts_in_a_row_back_off_e1() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        stage
            .cluster
            .faults()
            .add(patches(), Frequency::always(), refuse(409, "Conflict"));
        let _replica = stage.start(alone(), Toy::default());
        secs(3_600).await;
        let n = stage.writes().len();
        assert!((10..=400).contains(&n), "{n} in an hour");
    });
}

/// C-3: the answer is lost, the write is done.
#[test]
fn a_lost_answer_is_looked_up_before_the_next_step() {
    for fault in [
        Fault::Lose,
        Fault::LoseAs(Box::new(Status::failure(500, "InternalError", "etcd"))),
        Fault::LoseAs(Box::new(Status::failure(504, "Timeout", "slow"))),
    ] {
        virtually(async {
            let stage = Stage::new().await;
            for name in ["a", "b", "c"] {
                stage.map(name, json!({"want": "1"})).await;
            }
            stage
                .cluster
                .faults()
                .add(patch_of("a"), Frequency::once(), fault);
            let toy = Toy {
                budget: 1,
                ..Toy::default()
            };
            let _replica = stage.start(alone(), toy);
            stage.until_have("c", "1", 10).await;
            let all = of_replica(&stage);
            assert_eq!(
                verbs(&all)[..3],
                [("patch", "a"), ("get", "a"), ("patch", "b")],
                "what was done is known before anything else is done, and not done again"
            );
            assert_eq!(stage.writes().len(), 3, "G9");
            secs(1).await;
            let told = stage
                .get("/apis/events.k8s.io/v1/namespaces/default/events")
                .await;
            let told = told["items"].as_array().unwrap();
            let about: Vec<&str> = told
                .iter()
                .map(|event| event["regarding"]["name"].as_str().unwrap())
                .collect();
            assert_eq!(about.len(), 3, "each write is told once: {about:?}");
            assert!(about.contains(&"a"), "also the one without an answer");
        });
    }
}

#[test]
fn until_a_lost_answer_is_looked_up_nothing_else_is_done() {
    virtually(async {
        let stage = Stage::new().await;
        for name in ["a", "b"] {
            stage.map(name, json!({"want": "1"})).await;
        }
        stage
            .cluster
            .faults()
            .add(patch_of("a"), Frequency::once(), Fault::Lose);
        let reads = Match {
            verb: "get".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        stage
            .cluster
            .faults()
            .add(reads, Frequency::always(), Fault::Unreachable);
        // Also the watch does not show it.
        let about = Match {
            agent: "one".to_owned(),
            ..Match::default()
        };
        stage.cluster.faults().add_watch(
            about,
            Frequency::always(),
            WatchFault::Delay(Duration::from_secs(100_000)),
        );
        let toy = Toy {
            budget: 1,
            ..Toy::default()
        };
        let _replica = stage.start(alone(), toy);
        secs(250).await;
        let writes = stage.writes();
        assert_eq!(verbs(&writes), [("patch", "a")], "never during this time");
        stage.cluster.faults().clear();
        stage.until_have("b", "1", 600).await;
    });
}

#[test]
fn a_write_that_was_never_done_is_tried_again() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        stage.cluster.faults().add(
            patches(),
            Frequency::once(),
            Fault::Delay(Duration::from_secs(30)),
        );
        let replica = stage.start(alone(), Toy::default());
        secs(10).await;
        assert_eq!(stage.have("a").await, "");
        stage.until_have("a", "1", 5).await;
        secs(1).await;
        assert!(replica.view.facts().refusals.is_empty());
    });
}

/// G11, E-4.
#[test]
fn refusals_back_off_to_the_cap_and_others_go_on() {
    for (code, reason) in [
        (403, "Forbidden"),
        (422, "Invalid"),
        (413, "RequestEntityTooLarge"),
        (400, "BadRequest"),
        (500, "InternalError"),
    ] {
        virtually(async {
            let stage = Stage::new().await;
            stage.map("a", json!({"want": "1"})).await;
            stage.map("b", json!({"want": "1"})).await;
            stage
                .cluster
                .faults()
                .add(patch_of("a"), Frequency::always(), refuse(code, reason));
            let replica = stage.start(alone(), Toy::default());
            let took = stage.until_have("b", "1", 5).await;
            assert!(took < Duration::from_secs(2), "L3: {took:?}");
            secs(3_600).await;
            let times: Vec<_> = stage
                .writes()
                .iter()
                .filter(|w| w.name == "a")
                .map(|w| w.at)
                .collect();
            let gaps: Vec<i64> = times
                .windows(2)
                .map(|w| w[1].duration_since(w[0]).as_secs())
                .collect();
            assert_eq!(
                gaps[..10],
                [1, 2, 4, 8, 16, 32, 64, 128, 256, 300],
                "{code}"
            );
            assert!(gaps[10..].iter().all(|gap| *gap == 300), "{gaps:?}");
            let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "a");
            let refusal = replica.view.facts().refusals[&object].clone();
            assert_eq!(refusal.reason, reason);
            assert_eq!(usize::try_from(refusal.attempts).unwrap(), times.len());
            // What people change is tried at once; then the refusal is over.
            stage.cluster.faults().clear();
            let label = json!({"metadata": {"labels": {"fixed": "yes"}}});
            stage
                .send("PATCH", "/api/v1/namespaces/default/configmaps/a", &label)
                .await;
            let took = stage.until_have("a", "1", 5).await;
            assert!(took < Duration::from_secs(1), "{took:?}");
            assert!(replica.view.facts().refusals.is_empty());
        });
    }
}

#[test]
fn a_clock_that_is_set_prolongs_no_refusal_t5() {
    for hours in [-1, 1] {
        virtually(async {
            let stage = Stage::new().await;
            stage.map("a", json!({"want": "1"})).await;
            let faults = stage.cluster.faults();
            let twice = Frequency::Count { skip: 0, times: 2 };
            faults.add(patches(), twice, refuse(422, "Invalid"));
            let environment = Environment::virtual_from(epoch(), 7);
            let operator = Operator::new(environment.clone(), stage.client("one"), alone());
            let _replica = Replica::run(operator.with(Arc::new(Toy::default())));
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            assert_eq!(stage.writes().len(), 2);
            environment.set_clock_by(hours * 3_600);
            let took = stage.until_have("a", "1", 10).await;
            assert!(took > Duration::from_secs(1), "nor shortens one: {took:?}");
        });
    }
}

fn busy(seconds: u32) -> Fault {
    let busy = Status::failure(429, "TooManyRequests", "later");
    Fault::Refuse(Box::new(busy.retry_after(seconds)))
}

/// E-2: the server says it of one request.
#[test]
fn an_object_that_a_busy_server_sends_away_waits_and_no_other_does() {
    for (said, waits) in [(17, 17), (100_000, 300), (u32::MAX, 300)] {
        virtually(async {
            let stage = Stage::new().await;
            for name in ["a", "b", "c"] {
                stage.map(name, json!({"want": "1"})).await;
            }
            let faults = stage.cluster.faults();
            faults.add(patch_of("a"), Frequency::once(), busy(said));
            let _replica = stage.start(alone(), Toy::default());
            for name in ["b", "c"] {
                let took = stage.until_have(name, "1", 5).await;
                assert!(took < Duration::from_secs(1), "{name}: {took:?}");
            }
            stage.want("b", "2").await;
            let took = stage.until_have("b", "2", 5).await;
            assert!(took < Duration::from_secs(1), "{took:?}");
            stage.until_have("a", "1", 400).await;
            let of_a: Vec<_> = stage
                .writes()
                .into_iter()
                .filter(|w| w.name == "a")
                .collect();
            let gap = of_a[1].at.duration_since(of_a[0].at).as_secs();
            assert_eq!((of_a.len(), gap), (2, waits));
        });
    }
}

/// E-2: it says it of all writes.
#[test]
fn a_server_that_is_busy_for_all_is_left_alone() {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..200 {
            stage.map(&format!("m{n:03}"), json!({"want": "1"})).await;
        }
        let faults = stage.cluster.faults();
        faults.add(patches(), Frequency::always(), busy(7));
        let (replica, hook) = guarding(stage.client("one"), alone());
        for _ in 0..7 {
            secs(10).await;
            assert!(replica.view.is_ready() && replica.view.is_healthy());
            assert!(hook.is_answered().await, "it only reads");
        }
        let n = stage.writes().len();
        assert!((10..=16 * 11).contains(&n), "{n} in ten times the wait");
        stage.cluster.faults().clear();
        stage.until_have("m199", "1", 30).await;
    });
}

/// A server that does not serve the kind yet says 404 as well, of objects that are there.
#[test]
fn a_404_that_is_not_about_the_object_does_not_bury_it() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        let about = Match {
            agent: "one".to_owned(),
            verb: "patch".to_owned(),
            ..Match::default()
        };
        stage.refuse(about, 404, "NotFound", Frequency::once());
        stage.want("a", "2").await;
        stage.until_have("a", "2", 30).await;
        assert!(replica.view.facts().refusals.is_empty());
    });
}

#[test]
fn an_object_that_is_gone_is_known_to_be_gone() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        secs(1).await;
        let about = Match {
            agent: "one".to_owned(),
            ..Match::default()
        };
        stage.cluster.faults().add_watch(
            about,
            Frequency::Count { skip: 1, times: 1 },
            WatchFault::Delay(Duration::from_secs(100)),
        );
        stage.want("a", "2").await;
        stage
            .maps()
            .delete("a", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        secs(50).await;
        let codes: Vec<_> = stage.writes().iter().map(|w| w.ending.clone()).collect();
        assert_eq!(codes, [Ending::Answered(200), Ending::Answered(404)]);
        assert!(replica.view.facts().refusals.is_empty());
    });
}

fn definition(schema: &Value, subresources: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.toy.dev"},
        "spec": {
            "group": "toy.dev", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": schema,
                }}},
            }],
        },
    })
}

pub(crate) async fn with_gadget(schema: Value, subresources: Value) -> Stage {
    let stage = Stage::new().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage
        .create(path, &definition(&schema, &subresources))
        .await;
    secs(1).await;
    let gadget = json!({"apiVersion": "toy.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 2}});
    stage.create(&GADGET.path("default"), &gadget).await;
    stage
}

async fn resize(stage: &Stage, size: u32) {
    let path = format!("{}/g", GADGET.path("default"));
    stage
        .send("PATCH", &path, &json!({"spec": {"size": size}}))
        .await;
}

pub(crate) fn with_gadgets() -> Toy {
    Toy {
        gadgets: true,
        every: Some(Duration::from_secs(10)),
        ..Toy::default()
    }
}

#[test]
fn a_status_is_written_once_and_not_more_often_than_it_is_useful() {
    virtually(async {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let stage = with_gadget(open, json!({"status": {}})).await;
        let _replica = stage.start(alone(), with_gadgets());
        secs(60).await;
        assert_eq!(stage.writes().len(), 1);
        // Even sizes keep the condition: one write in five seconds.
        for size in [4, 6, 8, 10, 12, 14, 16, 18, 20, 22] {
            resize(&stage, size).await;
            secs(1).await;
        }
        secs(10).await;
        let n = stage.writes().len() - 1;
        assert!((2..=4).contains(&n), "{n} writes");
        let before = stage.writes().len();
        for size in [23, 24, 25, 26] {
            resize(&stage, size).await;
            secs(1).await;
        }
        assert_eq!(
            stage.writes().len() - before,
            4,
            "a condition that changes is told at once"
        );
        let path = format!("{}/g", GADGET.path("default"));
        assert_eq!(stage.get(&path).await["status"]["seen"], 26);
    });
}

#[test]
fn a_status_that_the_server_prunes_is_not_written_again() {
    virtually(async {
        let pruning = json!({"type": "object", "properties": {"conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}});
        let stage = with_gadget(pruning, json!({"status": {}})).await;
        let _replica = stage.start(alone(), with_gadgets());
        secs(24 * 3_600).await;
        assert_eq!(stage.writes().len(), 1, "never during this time");
        // Also not when only what is pruned differs; but a condition that changes is written.
        resize(&stage, 3).await;
        secs(60).await;
        assert_eq!(stage.writes().len(), 2);
    });
}

#[test]
fn where_a_definition_has_no_status_nothing_is_written_again() {
    virtually(async {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let stage = with_gadget(open, json!({})).await;
        let replica = stage.start(alone(), with_gadgets());
        secs(24 * 3_600).await;
        assert_eq!(
            stage.writes().len(),
            1,
            "never during this time: {:#?}",
            stage.writes()
        );
        assert!(replica.view.facts().refusals.is_empty());
    });
}

/// More refused objects than a batch holds: those behind them get their turn, and nothing spins.
#[test]
fn many_refusals_do_not_fill_the_batch() {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..150 {
            stage.map(&format!("m{n:03}"), json!({"want": "1"})).await;
        }
        stage.map("z", json!({"want": "1"})).await;
        let about = Match {
            agent: "one".to_owned(),
            verb: "patch".to_owned(),
            ..Match::default()
        };
        stage.cluster.faults().add(
            about,
            Frequency::Count {
                skip: 0,
                times: 150,
            },
            refuse(403, "Forbidden"),
        );
        let _replica = stage.start(alone(), Toy::default());
        let took = stage.until_have("z", "1", 5).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        stage.until_have("m149", "1", 10).await;
    });
}

/// Without the right to get, a lost answer is looked up in a list.
#[test]
fn a_lost_answer_is_found_without_the_right_to_get() {
    virtually(async {
        let stage = Stage::new().await;
        for name in ["a", "b"] {
            stage.map(name, json!({"want": "1"})).await;
        }
        stage
            .cluster
            .faults()
            .add(patch_of("a"), Frequency::once(), Fault::Lose);
        let reads = Match {
            verb: "get".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        stage
            .cluster
            .faults()
            .add(reads, Frequency::always(), refuse(403, "Forbidden"));
        let toy = Toy {
            budget: 1,
            ..Toy::default()
        };
        let _replica = stage.start(alone(), toy);
        stage.until_have("b", "1", 5).await;
        assert_eq!(stage.writes().len(), 2);
    });
}

#[test]
fn an_object_of_our_own_is_applied_once() {
    virtually(async {
        let stage = Stage::new().await;
        stage
            .map("a", json!({"mirror": "copy", "want": "1", "have": "1"}))
            .await;
        let toy = Toy {
            every: Some(Duration::from_secs(10)),
            ..Toy::default()
        };
        let _replica = stage.start(alone(), toy);
        secs(60).await;
        assert_eq!(stage.entry("copy", "of").await.as_deref(), Some("a"));
        let writes = stage.writes();
        assert_eq!(
            writes.len(),
            1,
            "the answer is known before the watch shows it"
        );
        assert!(writes[0].uri.contains("fieldManager=slipway&force=true"));
    });
}
