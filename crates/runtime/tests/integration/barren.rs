//! What is answered and comes to nothing is no contact: lists that never end, watches that are closed at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use serde_json::json;
use slipway_apiserver::faults::{Frequency, Match, WatchFault};
use slipway_kernel::interest::Need;
use slipway_runtime::{Environment, Operator};
use tokio::time::Instant;
use tower::Service;

use crate::rights::{DEFINITION, widgets};
use crate::stage::{ADMIN, Replica, Stage, alone, epoch, secs, virtually};
use crate::toy::{Toy, WIDGET};

const OUT_OF_SYNC: &str = "sync widgets";

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

fn count(replica: &Replica) -> usize {
    let stores = replica.view.stores();
    let mut all = stores.iter();
    let found = all.find(|((_, kind, _), _)| *kind == WIDGET);
    found.map_or(0, |(_, store)| store.len())
}

/// A client that gets this answer to each request for a further page of a list, while that is so.
fn tearing(stage: &Stage, code: u16, is_torn: &Arc<AtomicBool>) -> Client {
    let (inner, is_torn) = (
        stage.cluster.service(ADMIN).with_agent("one"),
        is_torn.clone(),
    );
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (mut inner, is_torn) = (inner.clone(), is_torn.clone());
        async move {
            let query = request.uri().query().unwrap_or_default();
            let is_further = query.contains("continue=");
            let mut response = inner.call(request).await?;
            if is_further && is_torn.load(Ordering::Relaxed) {
                *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            }
            Ok::<_, tower::BoxError>(response)
        }
    });
    Client::new(service, "default")
}

#[test]
fn a_list_that_never_gets_beyond_its_first_page_is_no_contact() {
    for code in [500, 429, 410] {
        virtually(async {
            let stage = Stage::new().await;
            stage.create(DEFINITION, &widgets()).await;
            secs(1).await;
            for n in 0..60 {
                widget(&stage, &format!("w{n}")).await;
            }
            stage.map("a", json!({"want": "1"})).await;
            let is_torn = Arc::new(AtomicBool::new(false));
            let toy = Toy {
                widgets: Some(Need::RequiredIfServed),
                ..Toy::default()
            };
            let environment = Environment::virtual_from(epoch(), 7);
            let client = tearing(&stage, code, &is_torn);
            let operator = Operator::new(environment, client, alone());
            let replica = Replica::run(operator.with(Arc::new(toy)));
            stage.until_have("a", "1", 5).await;
            assert!(replica.view.is_ready() && count(&replica) == 60);
            // The watch expires, and from now on no list of it comes to an end.
            is_torn.store(true, Ordering::Relaxed);
            let faults = stage.cluster.faults();
            let watch = about("", "toy.dev/widgets");
            faults.add_watch(watch, Frequency::once(), WatchFault::Gone);
            widget(&stage, "x").await;
            secs(20).await;
            assert!(replica.lacks(OUT_OF_SYNC), "{code}");
            secs(20).await;
            for second in 0..300 {
                let is_told = replica.lacks(OUT_OF_SYNC) && !replica.view.is_ready();
                assert!(is_told, "{code}, after {second} s");
                secs(1).await;
            }
            is_torn.store(false, Ordering::Relaxed);
            secs(10).await;
            assert!(replica.view.is_ready() && !replica.lacks(OUT_OF_SYNC));
            assert_eq!(count(&replica), 61);
        });
    }
}

#[test]
fn a_watch_that_is_closed_as_soon_as_it_is_opened_is_tried_with_pauses_and_is_no_contact() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::RequiredIfServed),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        secs(5).await;
        let faults = stage.cluster.faults();
        let kind = || about("", "toy.dev/widgets");
        faults.add_watch(kind(), Frequency::always(), WatchFault::Close);
        let watches = || {
            let all = stage.records(|r| r.agent == "one" && r.verb == "watch");
            all.iter()
                .filter(|r| r.resource.ends_with("widgets"))
                .count()
        };
        let before = watches();
        widget(&stage, "x").await;
        secs(60).await;
        let asked = watches() - before;
        assert!((5..=20).contains(&asked), "{asked} in a minute");
        assert!(!replica.view.is_ready() && replica.lacks(OUT_OF_SYNC));
        stage.cluster.faults().clear();
        let began = Instant::now();
        while !replica.view.is_ready() || replica.lacks(OUT_OF_SYNC) {
            assert!(began.elapsed() < Duration::from_secs(10), "for ever");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(count(&replica), 1);
    });
}

/// One is nothing bad: a server that ends says goodbye to whoever has just come.
#[test]
fn a_watch_that_is_closed_at_once_once_is_opened_again_without_a_pause() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        secs(5).await;
        let faults = stage.cluster.faults();
        let twice = Frequency::Count { skip: 0, times: 2 };
        faults.add_watch(about("", "/configmaps"), twice, WatchFault::Close);
        stage.want("a", "2").await;
        let took = stage.until_have("a", "2", 5).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(replica.view.is_ready());
    });
}
