//! Faults of watches: what comes out of the stream, and that kube's watcher recovers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use serde_json::json;
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};

use super::stage::{Steady, client, cluster, map, maps, virtually};

use k8s_openapi::api::core::v1::ConfigMap;

/// What a watch from the beginning tells of three new maps when `fault` hits the second.
async fn told(cluster: &Arc<Cluster>, fault: WatchFault) -> Vec<String> {
    let api = maps(&client(cluster, "test"));
    let second = Match {
        name: "b".to_owned(),
        ..Match::default()
    };
    cluster.faults().add_watch(second, Frequency::once(), fault);
    let start = cluster.version().to_string();
    let params = WatchParams::default().timeout(100);
    let events = pin!(api.watch(&params, &start).await.unwrap());
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &map(name, "1"))
            .await
            .unwrap();
    }
    events
        .map_ok(|event| match event {
            WatchEvent::Added(map) => map.metadata.name.unwrap(),
            WatchEvent::Error(status) => format!("{} {}", status.code, status.reason),
            WatchEvent::Bookmark(_) => "bookmark".to_owned(),
            other => format!("{other:?}"),
        })
        .try_filter(|event| std::future::ready(event != "bookmark"))
        .try_collect()
        .await
        .unwrap()
}

#[test]
fn each_fault_shows_in_the_stream() {
    let late = WatchFault::Delay(Duration::from_secs(30));
    let cases: [(WatchFault, &[&str], u64); 5] = [
        (WatchFault::Drop, &["a", "c"], 100),
        (WatchFault::Duplicate, &["a", "b", "b", "c"], 100),
        (late, &["a", "b", "c"], 100),
        (WatchFault::Close, &["a"], 0),
        (WatchFault::Gone, &["a", "410 Expired"], 0),
    ];
    for (fault, expected, lasts) in cases {
        virtually(async {
            let (cluster, start) = (cluster(), tokio::time::Instant::now());
            assert_eq!(told(&cluster, fault.clone()).await, expected, "{fault:?}");
            assert_eq!(start.elapsed().as_secs(), lasts, "{fault:?}");
        });
    }
}

#[test]
fn a_late_event_holds_up_those_behind_it() {
    virtually(async {
        let cluster = cluster();
        let api = maps(&client(&cluster, "test"));
        let first = Frequency::once();
        cluster.faults().add_watch(
            Match::default(),
            first,
            WatchFault::Delay(Duration::from_secs(30)),
        );
        let start = cluster.version().to_string();
        let mut events = pin!(api.watch(&WatchParams::default(), &start).await.unwrap());
        let began = tokio::time::Instant::now();
        for name in ["a", "b"] {
            api.create(&PostParams::default(), &map(name, "1"))
                .await
                .unwrap();
        }
        for _ in 0..2 {
            events.try_next().await.unwrap().unwrap();
            assert_eq!(began.elapsed().as_secs(), 30);
        }
    });
}

/// A reflector under this fault, hit three times, holds what the cluster holds in the end.
async fn recovers(fault: WatchFault, config: watcher::Config) {
    let cluster = cluster();
    let faults = Frequency::Count { skip: 1, times: 3 };
    cluster.faults().add_watch(
        Match {
            agent: "reflector".to_owned(),
            ..Match::default()
        },
        faults,
        fault,
    );
    let (store, writer) = reflector::store::<ConfigMap>();
    let watched = maps(&client(&cluster, "reflector"));
    let stream = watcher(watched, config)
        .backoff(Steady(Duration::from_secs(1)))
        .reflect(writer);
    let task = tokio::spawn(stream.for_each(|_| async {}));
    let api = maps(&client(&cluster, "writer"));
    for n in 0..6 {
        let name = format!("m{n}");
        api.create(&PostParams::default(), &map(&name, "1"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let change = Patch::Merge(json!({"data": {"k": "2"}}));
        api.patch(&name, &PatchParams::default(), &change)
            .await
            .unwrap();
        if n % 2 == 0 {
            api.delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }
    tokio::time::sleep(Duration::from_mins(10)).await;
    let mut seen: Vec<_> = store
        .state()
        .iter()
        .map(|m| {
            (
                m.metadata.name.clone().unwrap(),
                m.data.clone().unwrap()["k"].clone(),
            )
        })
        .collect();
    seen.sort();
    let expected = ["m1", "m3", "m5"].map(|name| (name.to_owned(), "2".to_owned()));
    assert_eq!(seen, expected);
    task.abort();
}

#[test]
fn the_watcher_recovers() {
    let late = WatchFault::Delay(Duration::from_secs(30));
    for fault in [
        WatchFault::Duplicate,
        late,
        WatchFault::Close,
        WatchFault::Gone,
    ] {
        for streaming in [false, true] {
            let config = watcher::Config::default();
            let config = if streaming {
                config.streaming_lists()
            } else {
                config
            };
            virtually(recovers(fault.clone(), config));
        }
    }
}

#[test]
fn a_dropped_event_is_missing_until_the_next_list() {
    virtually(async {
        let cluster = cluster();
        let watches = Match {
            agent: "reflector".to_owned(),
            name: "a".to_owned(),
            ..Match::default()
        };
        cluster
            .faults()
            .add_watch(watches, Frequency::once(), WatchFault::Drop);
        let (store, writer) = reflector::store::<ConfigMap>();
        let watched = maps(&client(&cluster, "reflector"));
        let stream = watcher(watched, watcher::Config::default())
            .backoff(Steady(Duration::from_secs(1)))
            .reflect(writer);
        let task = tokio::spawn(stream.for_each(|_| async {}));
        store.wait_until_ready().await.unwrap();
        // The list is there before the watch is.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let api = maps(&client(&cluster, "writer"));
        for name in ["a", "b"] {
            api.create(&PostParams::default(), &map(name, "1"))
                .await
                .unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1000)).await;
        assert_eq!(store.state().len(), 1, "the watch went on behind it");
        let after = Match {
            agent: "reflector".to_owned(),
            ..Match::default()
        };
        cluster
            .faults()
            .add_watch(after, Frequency::once(), WatchFault::Gone);
        api.create(&PostParams::default(), &map("c", "1"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(store.state().len(), 3);
        task.abort();
    });
}

#[test]
fn a_partition_ends_and_the_watcher_catches_up() {
    virtually(async {
        let cluster = cluster();
        let (store, writer) = reflector::store::<ConfigMap>();
        let watched = maps(&client(&cluster, "reflector"));
        let stream = watcher(watched, watcher::Config::default())
            .default_backoff()
            .reflect(writer);
        let task = tokio::spawn(stream.for_each(|_| async {}));
        store.wait_until_ready().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let cut = Match {
            agent: "reflector".to_owned(),
            ..Match::default()
        };
        cluster
            .faults()
            .add(cut.clone(), Frequency::always(), Fault::Unreachable);
        cluster
            .faults()
            .add_watch(cut, Frequency::always(), WatchFault::Close);
        let api = maps(&client(&cluster, "writer"));
        api.create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_mins(15)).await;
        assert!(store.state().is_empty(), "nothing comes through");
        cluster.faults().clear();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(store.state().len(), 1);
        task.abort();
    });
}
