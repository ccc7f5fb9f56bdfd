//! Readiness is measured by contact with the API, watch by watch, and not by news.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_kernel::interest::Need;
use tokio::time::Instant;
use tower::ServiceExt;
use tracing::field::{Field, Visit};

use crate::rights::{DEFINITION, widgets};
use crate::stage::{Replica, Stage, alone, secs, virtually};
use crate::toy::Toy;

fn about(resource: &str) -> Match {
    Match {
        agent: "one".to_owned(),
        resource: resource.to_owned(),
        ..Match::default()
    }
}

/// From now on no request of the replica gets through, and its open watch of config maps breaks.
async fn away(stage: &Stage, how: Fault) {
    let faults = stage.cluster.faults();
    faults.add_watch(about("/configmaps"), Frequency::always(), WatchFault::Close);
    faults.add(about(""), Frequency::always(), how);
    stage.map("breaks-the-watch", json!({"want": "1"})).await;
}

/// How long it takes until the replica is ready.
async fn until_ready(replica: &Replica) -> Duration {
    let began = Instant::now();
    while !replica.view.is_ready() {
        assert!(began.elapsed() < Duration::from_hours(1), "for ever");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    began.elapsed()
}

async fn always_ready(replica: &Replica, seconds: u64) {
    for second in 0..seconds {
        assert!(replica.view.is_ready(), "not after {second} s");
        secs(1).await;
    }
}

async fn started(stage: &Stage, toy: Toy) -> Replica {
    stage.map("a", json!({"want": "1"})).await;
    let replica = stage.start(alone(), toy);
    stage.until_have("a", "1", 10).await;
    secs(1).await;
    assert!(replica.view.is_ready());
    replica
}

#[test]
fn ready_within_ten_seconds_of_the_apis_return_although_nothing_changes_afterwards() {
    for outage in [1, 5, 20, 31, 60, 600] {
        virtually(async {
            let stage = Stage::new().await;
            let replica = started(&stage, Toy::default()).await;
            away(&stage, Fault::Unreachable).await;
            secs(outage).await;
            assert_eq!(replica.view.is_ready(), outage < 30, "{outage} s");
            stage.cluster.faults().clear();
            let took = until_ready(&replica).await;
            assert!(took <= Duration::from_secs(10), "{outage} s, then {took:?}");
            always_ready(&replica, 1_800).await;
            // And it has seen what it missed.
            assert_eq!(stage.have("breaks-the-watch").await, "1");
        });
    }
}

/// Streams end by themselves while it is away, and what is opened again brings no news.
#[test]
fn ready_within_ten_seconds_of_the_apis_return_where_nothing_ever_changes() {
    virtually(async {
        let stage = Stage::new().await;
        let replica = started(&stage, Toy::default()).await;
        let faults = stage.cluster.faults();
        faults.add(about(""), Frequency::always(), Fault::Unreachable);
        secs(600).await;
        assert!(!replica.view.is_ready());
        faults.clear();
        let took = until_ready(&replica).await;
        assert!(took <= Duration::from_secs(10), "{took:?}");
        always_ready(&replica, 1_800).await;
    });
}

#[test]
fn ready_within_ten_seconds_of_the_return_of_an_api_that_did_not_answer() {
    for outage in [5, 35, 90, 600] {
        virtually(async {
            let stage = Stage::new().await;
            let replica = started(&stage, Toy::default()).await;
            away(&stage, Fault::Delay(Duration::from_secs(100_000))).await;
            secs(outage).await;
            assert_eq!(replica.view.is_ready(), outage < 30, "{outage} s");
            stage.cluster.faults().clear();
            let took = until_ready(&replica).await;
            assert!(took <= Duration::from_secs(10), "{outage} s, then {took:?}");
            always_ready(&replica, 600).await;
        });
    }
}

#[test]
fn news_of_another_kind_does_not_hide_a_watch_that_fails_for_ever() {
    for code in [500, 403] {
        virtually(async {
            let stage = Stage::new().await;
            stage.create(DEFINITION, &widgets()).await;
            secs(1).await;
            let toy = Toy {
                widgets: Some(Need::Required),
                ..Toy::default()
            };
            let replica = started(&stage, toy).await;
            let faults = stage.cluster.faults();
            let kind = "toy.dev/widgets";
            faults.add_watch(about(kind), Frequency::always(), WatchFault::Close);
            stage.refuse(about(kind), code, "Trouble", Frequency::always());
            let widget =
                json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": "w"}});
            let path = "/apis/toy.dev/v1/namespaces/default/widgets";
            stage.create(path, &widget).await;
            secs(40).await;
            for n in 0..300 {
                assert!(!replica.view.is_ready(), "after {n} news");
                stage.want("a", &n.to_string()).await;
                secs(1).await;
            }
            stage.cluster.faults().clear();
            let took = until_ready(&replica).await;
            assert!(took <= Duration::from_secs(10), "{took:?}");
        });
    }
}

#[test]
fn an_optional_kind_that_fails_for_ever_leaves_it_ready() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        let toy = Toy {
            widgets: Some(Need::Optional),
            ..Toy::default()
        };
        let replica = started(&stage, toy).await;
        let faults = stage.cluster.faults();
        let kind = "toy.dev/widgets";
        faults.add_watch(about(kind), Frequency::always(), WatchFault::Close);
        stage.refuse(about(kind), 500, "InternalError", Frequency::always());
        let widget =
            json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": "w"}});
        let path = "/apis/toy.dev/v1/namespaces/default/widgets";
        stage.create(path, &widget).await;
        always_ready(&replica, 600).await;
    });
}

#[test]
fn an_open_watch_without_contact_is_not_ready_after_30_seconds() {
    virtually(async {
        let stage = Stage::new().await;
        let replica = started(&stage, Toy::default()).await;
        // Just after a bookmark.
        secs(61).await;
        let faults = stage.cluster.faults();
        faults.add(about(""), Frequency::always(), Fault::Unreachable);
        always_ready(&replica, 20).await;
        secs(15).await;
        assert!(!replica.view.is_ready());
        stage.cluster.faults().clear();
        let took = until_ready(&replica).await;
        assert!(took <= Duration::from_secs(10), "{took:?}");
    });
}

/// Contact comes back while the watch waits before its next attempt, whatever it has waited for.
#[test]
fn a_watch_that_was_begun_again_while_it_waited_stays_ready_in_a_quiet_namespace() {
    for quiet in 0..6 {
        virtually(async {
            let stage = Stage::new().await;
            let replica = started(&stage, Toy::default()).await;
            secs(quiet).await;
            let faults = stage.cluster.faults();
            let only = |verb: &str| Match {
                verb: verb.to_owned(),
                ..about("/configmaps")
            };
            let count = |skip, times| Frequency::Count { skip, times };
            let late = |seconds| Fault::Delay(Duration::from_secs(seconds));
            faults.add_watch(about("/configmaps"), Frequency::once(), WatchFault::Close);
            faults.add(only("watch"), count(0, 3), late(3));
            faults.add(only("watch"), count(0, 3), Fault::Unreachable);
            faults.add(only("list"), Frequency::once(), Fault::Unreachable);
            faults.add(only("list"), count(1, u64::MAX), late(4));
            stage.map("breaks-the-watch", json!({"want": "1"})).await;
            secs(30).await;
            stage.cluster.faults().clear();
            until_ready(&replica).await;
            always_ready(&replica, 600).await;
        });
    }
}

#[test]
fn a_list_of_several_pages_is_completed_although_each_one_takes_fifteen_seconds() {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..60 {
            stage.map(&format!("m{n}"), json!({"want": "1"})).await;
        }
        let lists = Match {
            verb: "list".to_owned(),
            ..about("/configmaps")
        };
        let late = Fault::Delay(Duration::from_secs(15));
        stage.cluster.faults().add(lists, Frequency::always(), late);
        let _replica = stage.start(alone(), Toy::default());
        stage.until_have("m59", "1", 120).await;
    });
}

#[test]
fn a_quiet_namespace_costs_a_small_read_every_ten_seconds_and_no_more() {
    virtually(async {
        let stage = Stage::new().await;
        let replica = started(&stage, Toy::default()).await;
        let before = stage.records(|r| r.agent == "one").len();
        always_ready(&replica, 3_600).await;
        let all = stage.records(|r| r.agent == "one").split_off(before);
        let small = |uri: &str| uri.contains("limit=1") && !uri.contains("limit=10");
        let reads = all.iter().filter(|r| r.verb == "list" && small(&r.uri));
        assert!((240..=361).contains(&reads.count()), "{}", all.len());
        let others = all.iter().filter(|r| !small(&r.uri)).count();
        // A list every half hour, and a watch that is opened again every five minutes.
        assert!(others <= 20, "{others}");
        assert!(stage.writes().len() <= 1);
    });
}

async fn ready_text(replica: &Replica) -> String {
    let router = slipway_runtime::probes::router(replica.view.clone());
    let request = http::Request::get("/ready");
    let request = request.body(axum::body::Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), 10_000).await;
    String::from_utf8(body.unwrap().to_vec()).unwrap()
}

#[test]
fn the_probe_names_the_kinds_that_are_missing_and_why() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        stage.refuse(
            about("toy.dev/widgets"),
            403,
            "Forbidden",
            Frequency::always(),
        );
        let toy = Toy {
            widgets: Some(Need::Required),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        secs(5).await;
        let text = ready_text(&replica).await;
        assert_eq!(
            text,
            "not ready:\n- widgets not listed yet: 403 Forbidden: cannot list widgets\n"
        );
        stage.cluster.faults().clear();
        until_ready(&replica).await;
        assert_eq!(ready_text(&replica).await, "ready\n");
        away(&stage, Fault::Unreachable).await;
        secs(60).await;
        let text = ready_text(&replica).await;
        assert!(
            text.contains("- no contact about configmaps for ")
                && text.contains("connection reset by peer"),
            "{text}"
        );
    });
}

/// Log lines, each as `level message key=value …`.
#[derive(Clone, Default)]
pub(crate) struct Lines(pub(crate) Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let Self(line) = self;
        *line = format!("{line} {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("slipway") && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn an_api_that_cannot_be_reached_is_one_line_with_address_and_cause() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        stage
            .cluster
            .faults()
            .add(about(""), Frequency::always(), Fault::Unreachable);
        let settings = slipway_runtime::Settings {
            server: "https://10.0.0.1:6443".to_owned(),
            ..alone()
        };
        let toy = Toy {
            widgets: Some(Need::RequiredIfServed),
            ..Toy::default()
        };
        let replica = stage.start(settings, toy);
        secs(12).await;
        let told = |word: &str| {
            let all = lines.0.lock().unwrap();
            let found = all.iter().filter(|line| line.contains(word));
            found.cloned().collect::<Vec<String>>()
        };
        let first = told("cannot reach the API server");
        assert_eq!(first.len(), 1, "{first:#?}");
        for part in ["https://10.0.0.1:6443", "cause=", "trying again within 8s"] {
            assert!(first[0].contains(part), "{first:?}");
        }
        assert!(!first[0].contains("Error("), "no debug output: {first:?}");
        secs(3_600).await;
        let all = told("cannot reach the API server");
        assert!((3..=9).contains(&all.len()), "{all:#?}");
        stage.cluster.faults().clear();
        until_ready(&replica).await;
        secs(60).await;
        assert_eq!(told("API server reached again").len(), 1);
        assert_eq!(told("WARN").len(), all.len(), "nothing else");
    });
}

#[test]
fn the_end_of_an_outage_is_told_although_there_is_no_right_to_one_kind() {
    for need in [Need::Optional, Need::RequiredIfServed] {
        let lines = Lines::default();
        let _guard = tracing::subscriber::set_default(lines.clone());
        virtually(async {
            let stage = Stage::new().await;
            stage.create(DEFINITION, &widgets()).await;
            secs(1).await;
            let faults = stage.cluster.faults();
            faults.add(about(""), Frequency::always(), Fault::Unreachable);
            let toy = Toy {
                widgets: Some(need),
                ..Toy::default()
            };
            let replica = stage.start(alone(), toy);
            secs(40).await;
            stage.cluster.faults().clear();
            let kind = about("toy.dev/widgets");
            stage.refuse(kind, 403, "Forbidden", Frequency::always());
            until_ready(&replica).await;
            secs(60).await;
            let all = lines.0.lock().unwrap().clone();
            let over = all.iter().filter(|l| l.contains("server reached again"));
            assert_eq!(over.count(), 1, "{need:?}: {all:#?}");
        });
    }
}

#[test]
fn a_missing_right_is_one_line_in_plain_words() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    virtually(async {
        let stage = Stage::new().await;
        stage.refuse(about("/configmaps"), 403, "Forbidden", Frequency::always());
        let mut settings = alone();
        settings.namespaces = vec!["x".to_owned()];
        let _replica = stage.start(settings, Toy::default());
        secs(25).await;
        let all = lines.0.lock().unwrap().clone();
        let found: Vec<&String> = all.iter().filter(|l| l.starts_with("WARN")).collect();
        assert_eq!(found.len(), 1, "{all:#?}");
        let wanted = "403 Forbidden: cannot list configmaps in namespace x";
        assert!(found[0].contains(wanted), "{found:?}");
    });
}
