//! From a change to a write, and when there is nothing to do.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::trace::Ending;
use slipway_kernel::fact::{Answer, Question};
use slipway_kernel::identity::{ClusterId, Key, kinds};
use slipway_runtime::gather::Gather;
use slipway_runtime::{Environment, Operator};
use tower::ServiceExt;

use crate::answers::with_gadget;
use crate::stage::{Replica, Stage, alone, epoch, one_of_many, secs, virtually};
use crate::toy::{Map, Toy};

#[test]
fn what_is_wanted_is_done_and_told() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        assert!(replica.view.is_leader("toy"));
        stage.want("a", "2").await;
        stage.until_have("a", "2", 1).await;
        secs(1).await;
        let writes = stage.writes();
        assert_eq!(writes.len(), 2, "{writes:#?}");
        assert!(writes.iter().all(|w| w.ending == Ending::Answered(200)));
        let context = &writes[0].context;
        assert!(
            context
                .starts_with("controller=toy;replica=one;epoch=0;purpose=follow;basis=configmaps:"),
            "{context}"
        );
        let events = stage
            .get("/apis/events.k8s.io/v1/namespaces/default/events")
            .await;
        let notes: Vec<&str> = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["note"].as_str().unwrap())
            .collect();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert_eq!(events["items"][0]["reportingController"], "slipway.dev/toy");
    });
}

#[test]
fn nothing_to_do_is_no_request_in_24_hours_g2() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            every: Some(Duration::from_mins(1)),
            ..Toy::default()
        };
        let _replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        secs(5).await;
        let before = stage.cluster.trace().len();
        let version = stage.cluster.version();
        secs(24 * 3_600).await;
        assert_eq!(stage.cluster.version(), version, "never during this time");
        let later = stage.records(|r| r.index >= before);
        let odd: Vec<_> = later
            .iter()
            .filter(|r| !matches!(r.verb.as_str(), "list" | "watch"))
            .collect();
        assert!(odd.is_empty(), "{odd:#?}");
    });
}

#[test]
fn a_backlog_is_planned_again_between_batches() {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..200 {
            stage.map(&format!("m{n:03}"), json!({"want": "old"})).await;
        }
        // Each write takes a second, 16 at a time.
        stage.cluster.faults().add(
            Match {
                verb: "patch".to_owned(),
                agent: "one".to_owned(),
                ..Match::default()
            },
            Frequency::always(),
            Fault::Delay(Duration::from_secs(1)),
        );
        let _replica = stage.start(alone(), Toy::default());
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        for n in 100..200 {
            stage.want(&format!("m{n:03}"), "new").await;
        }
        secs(30).await;
        let old = stage
            .writes()
            .iter()
            .filter(|w| w.name.as_str() >= "m100" && w.ending == Ending::Answered(409))
            .count();
        assert!(
            old == 0,
            "the first batch was 64 long, the next plan knew better: {old}"
        );
        for n in 0..200 {
            let want = if n < 100 { "old" } else { "new" };
            assert_eq!(stage.have(&format!("m{n:03}")).await, want);
        }
        assert_eq!(stage.writes().len(), 200, "each object was written once");
        let most = most_at_once(&stage);
        assert_eq!(most, 16, "writes in flight");
    });
}

/// How many writes were under way at once.
fn most_at_once(stage: &Stage) -> usize {
    let times: Vec<_> = stage.writes().iter().map(|w| w.at).collect();
    times
        .iter()
        .map(|t| times.iter().filter(|u| *u == t).count())
        .max()
        .unwrap()
}

#[test]
fn steps_start_in_the_order_of_the_plan() {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..40 {
            stage.map(&format!("m{n:02}"), json!({"want": "1"})).await;
        }
        let _replica = stage.start(alone(), Toy::default());
        secs(5).await;
        let names: Vec<String> = stage.writes().iter().map(|w| w.name.clone()).collect();
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(names, sorted);
        assert_eq!(names.len(), 40);
    });
}

#[test]
fn deletions_carry_uid_and_version_and_are_seen_at_once() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"delete": "yes"})).await;
        let _replica = stage.start(alone(), Toy::default());
        secs(10).await;
        assert!(stage.maps().get_opt("a").await.unwrap().is_none());
        assert_eq!(stage.writes().len(), 1, "{:#?}", stage.writes());
    });
}

#[test]
fn an_object_that_cannot_be_understood_keeps_nobody_from_their_work_w10() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("bad", json!({"bad": "x"})).await;
        stage.map("worse", json!({"panic": "project"})).await;
        stage.map("good", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("good", "1", 5).await;
        let stores = replica.view.stores();
        let bad: Vec<_> = stores
            .undecodable::<Map>(&ClusterId::local(), &kinds::CONFIG_MAP)
            .map(|(m, u)| (m.name.clone(), u.field.clone()))
            .collect();
        assert_eq!(
            bad,
            [
                ("bad".to_owned(), "data.bad".to_owned()),
                ("worse".to_owned(), "object".to_owned())
            ]
        );
        assert!(
            replica
                .view
                .metrics()
                .contains("slipway_undecodable_objects{kind=\"ConfigMap\"} 2")
        );
        stage
            .send(
                "PATCH",
                "/api/v1/namespaces/default/configmaps/bad",
                &json!({"data": {"bad": null, "want": "2"}}),
            )
            .await;
        stage.until_have("bad", "2", 2).await;
    });
}

#[test]
fn blockers_metrics_and_probes_show_what_goes_on() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("idle", json!({"x": "y"})).await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        assert!(!replica.view.is_ready());
        stage.until_have("a", "1", 5).await;
        secs(1).await;
        let blockers = replica.view.blockers();
        assert_eq!(
            blockers
                .iter()
                .map(|b| (b.reason, b.object.name.as_str()))
                .collect::<Vec<_>>(),
            [
                ("NothingWanted", "idle"),
                ("NothingWanted", "kube-root-ca.crt")
            ]
            .into_iter()
            .take(blockers.len())
            .collect::<Vec<_>>()
        );
        let text = replica.view.metrics();
        for line in [
            "slipway_actions_total{controller=\"toy\",verb=\"patch\",kind=\"ConfigMap\",purpose=\"follow\",outcome=\"done\"} 1",
            "slipway_leader{controller=\"toy\"} 1.0",
            "slipway_queue_depth{controller=\"toy\"} 0",
            "toy_wanting{where=\"local\"} 1",
            "slipway_blockers{controller=\"toy\",reason=\"NothingWanted\"}",
            "slipway_watch_age_seconds{cluster=\"local\",kind=\"ConfigMap\"}",
            "slipway_reconciles_total{controller=\"toy\",outcome=\"done\"}",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("idle"), "no object's name is in a label");
        let router = slipway_runtime::probes::router(replica.view.clone());
        for (path, code) in [("/ready", 200), ("/healthz", 200), ("/metrics", 200)] {
            assert_eq!(ask(&router, path).await, code, "{path}");
        }
        replica.pause.set(true);
        secs(61).await;
        assert_eq!(
            ask(&router, "/healthz").await,
            503,
            "the loop makes no progress"
        );
        replica.pause.set(false);
        secs(1).await;
        assert_eq!(ask(&router, "/healthz").await, 200);
    });
}

async fn ask(router: &axum::Router, path: &str) -> u16 {
    let request = http::Request::get(path)
        .body(axum::body::Body::empty())
        .unwrap();
    router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .status()
        .as_u16()
}

#[test]
fn those_who_look_are_told_of_changes() {
    virtually(async {
        let stage = Stage::new().await;
        let replica = stage.start(alone(), Toy::default());
        secs(10).await;
        let view = replica.view.clone();
        let mut last = view
            .stores()
            .list::<Map>(&ClusterId::local(), &kinds::CONFIG_MAP)
            .count();
        stage.map("new", json!({"want": "1"})).await;
        while last < 1
            || view
                .stores()
                .get::<Map>(&ClusterId::local(), &kinds::CONFIG_MAP, "default", "new")
                .is_none()
        {
            tokio::time::timeout(Duration::from_secs(5), view.changed())
                .await
                .unwrap();
            last += 1;
        }
    });
}

struct Oracle;

impl Gather for Oracle {
    fn gather(&self, _: &Key, question: Question) -> BoxFuture<'static, Answer> {
        Box::pin(async move {
            let takes = if question.address() == "slow" { 60 } else { 1 };
            tokio::time::sleep(Duration::from_secs(takes)).await;
            Answer::Said {
                code: 200,
                body: format!("{} it is", question.address()),
            }
        })
    }
}

#[test]
fn questions_are_asked_once_and_their_answers_are_facts() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"ask": "blue"})).await;
        stage.map("b", json!({"ask": "slow"})).await;
        let environment = Environment::virtual_from(epoch(), 7);
        let operator =
            Operator::new(environment, stage.client("one"), alone()).with(Arc::new(Toy::default()));
        let replica = Replica::run(operator.gathering(Arc::new(Oracle)));
        stage.until_have("a", "blue it is", 3).await;
        stage.until_have("b", "Failed(Timeout(Answer))", 5).await;
        drop(replica);
        stage.map("c", json!({"ask": "anybody"})).await;
        let _replica = stage.start(alone(), Toy::default());
        stage
            .until_have("c", "Failed(Unreachable(\"no gatherer\"))", 3)
            .await;
    });
}

/// A planner that asks to be woken in the past, or now, for ever.
#[test]
fn a_wake_up_in_the_past_does_not_spin() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            every: Some(Duration::ZERO),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        secs(10).await;
        let plans = ended(&replica, "nothing").unwrap();
        assert!(plans <= 200, "{plans} plans in 10 s");
    });
}

/// How many plans ended in this way.
fn ended(replica: &Replica, outcome: &str) -> Option<u32> {
    let prefix = format!("slipway_reconciles_total{{controller=\"toy\",outcome=\"{outcome}\"}} ");
    let text = replica.view.metrics();
    let found = text.lines().find_map(|line| line.strip_prefix(&prefix))?;
    Some(found.parse().unwrap())
}

/// Definitions that are older than the operator: what the next plan would rest on is not kept, and it rests.
#[test]
fn a_plan_that_rests_on_what_the_server_throws_away_is_not_made_again_and_again() {
    virtually(async {
        let pruning = json!({"type": "object", "properties": {"other": {"type": "string"}}});
        let stage = with_gadget(pruning, json!({"status": {}})).await;
        let toy = Toy {
            gadgets: true,
            prepares: true,
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        secs(280).await;
        assert_eq!(stage.writes().len(), 1);
        let again = ended(&replica, "again").unwrap_or_default();
        assert!(again <= 1, "{again} times");
    });
}

/// G14.
#[test]
fn the_same_seed_gives_the_same_trace_twenty_times() {
    let run = || {
        virtually(async {
            let stage = Stage::seeded(9).await;
            for n in 0..30 {
                stage.map(&format!("m{n:02}"), json!({"want": "1"})).await;
            }
            stage.cluster.faults().add(
                Match {
                    agent: "slipway".to_owned(),
                    ..Match::default()
                },
                Frequency::seeded(50, 3),
                Fault::Lose,
            );
            let a = stage.start(one_of_many("slipway-a"), Toy::default());
            let _b = stage.start(one_of_many("slipway-b"), Toy::default());
            secs(20).await;
            for n in 0..30 {
                stage.want(&format!("m{n:02}"), "2").await;
            }
            secs(5).await;
            drop(a);
            secs(120).await;
            for n in 0..30 {
                assert_eq!(stage.have(&format!("m{n:02}")).await, "2");
            }
            stage.cluster.trace().hash()
        })
    };
    let first = run();
    for _ in 0..19 {
        assert_eq!(run(), first);
    }
}
