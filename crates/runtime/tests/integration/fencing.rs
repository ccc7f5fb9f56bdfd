//! At most one effective writer: the enumeration of D2.
//!
//! Replica A is stopped (not polled, as by SIGSTOP) at its k-th request, for every k, once before the request has left
//! and once after it has been answered; B takes over and works; then A wakes. Nothing that A sends after that commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use serde_json::json;
use slipway_apiserver::trace::Record;
use slipway_runtime::{Environment, Operator};
use tower::Service;

use crate::stage::{ADMIN, Pause, Replica, Stage, committed, epoch, one_of_many, secs, virtually};
use crate::toy::Toy;

#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Before,
    After,
}

/// A's client: pauses A at its k-th request.
fn pausing(stage: &Stage, pause: &Pause, at: u64, when: When) -> (Client, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let (inner, pause, counter) = (
        stage.cluster.service(ADMIN).with_agent("a"),
        pause.clone(),
        count.clone(),
    );
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (mut inner, pause, counter) = (inner.clone(), pause.clone(), counter.clone());
        async move {
            let n = counter.fetch_add(1, Ordering::Relaxed);
            if n == at && when == When::Before {
                pause.set(true);
                // A is not polled from here on; what follows happens after it wakes, if at all.
                tokio::task::yield_now().await;
            }
            let response = inner.call(request).await;
            if n == at && when == When::After {
                pause.set(true);
                tokio::task::yield_now().await;
            }
            response
        }
    });
    (Client::new(service, "default"), count)
}

fn epoch_of(record: &Record) -> i64 {
    let epoch = record
        .context
        .split(';')
        .find_map(|part| part.strip_prefix("epoch="));
    epoch.unwrap().parse().unwrap()
}

/// G6.
pub(crate) fn assert_epochs_never_go_back(stage: &Stage) {
    let mut newest = 0;
    for write in stage.writes().iter().filter(|w| committed(w)) {
        let epoch = epoch_of(write);
        assert!(
            epoch >= newest,
            "a write of epoch {epoch} after one of {newest}: {write:#?}"
        );
        newest = epoch;
    }
}

/// One schedule; gives how many requests A made.
fn schedule(at: u64, when: When) -> u64 {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..6 {
            stage.map(&format!("m{n}"), json!({"want": "1"})).await;
        }
        let pause = Pause::default();
        let (client, count) = pausing(&stage, &pause, at, when);
        let environment = Environment::virtual_from(epoch(), 1);
        // One write per plan, so that there are many points to stop at.
        let toy = Toy {
            budget: 1,
            ..Toy::default()
        };
        let operator =
            Operator::new(environment, client, one_of_many("a")).with(Arc::new(toy.clone()));
        let a = Replica::run_with(operator, pause.clone());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let b = stage.start(one_of_many("b"), toy);
        secs(2).await;
        for n in 0..6 {
            stage.want(&format!("m{n}"), "2").await;
        }
        secs(60).await;
        for n in 0..3 {
            stage.want(&format!("m{n}"), "3").await;
        }
        secs(10).await;
        pause.set(false);
        for n in 0..6 {
            stage.want(&format!("m{n}"), "4").await;
        }
        secs(60).await;
        for n in 0..6 {
            assert_eq!(stage.have(&format!("m{n}")).await, "4", "at {at} {when:?}");
        }
        assert_epochs_never_go_back(&stage);
        assert!(a.is_running() && b.is_running());
        count.load(Ordering::Relaxed)
    })
}

#[test]
fn no_write_of_a_former_leader_commits_after_the_first_of_the_next_g6() {
    let requests = schedule(u64::MAX, When::After);
    let interesting = 60.min(requests);
    assert!(interesting > 40, "{interesting}");
    for at in 0..interesting {
        for when in [When::Before, When::After] {
            schedule(at, when);
        }
    }
}
