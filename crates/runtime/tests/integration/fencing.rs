//! At most one effective writer: the enumeration of D-2.
//!
//! Replica A is stopped (not polled, as by SIGSTOP) at its k-th request, for every k, once before the request has left
//! and once after it has been answered; B takes over and works; then A wakes. Nothing that A sends after that commits.
//!
//! In a second enumeration A cannot renew its lease, and is stopped for almost as long as a request may take: its last
//! write is as late as it can be, and B must have waited it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::trace::Record;
use slipway_runtime::{Environment, Operator, Settings};
use tower::Service;

use crate::stage::{ADMIN, Pause, Replica, Stage, committed, epoch, one_of_many, secs, virtually};
use crate::toy::Toy;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    Before,
    After,
}

/// Which requests are counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Of {
    All,
    Writes,
}

/// A's client: pauses A at its k-th request.
fn pausing(
    stage: &Stage,
    pause: &Pause,
    (of, at): (Of, u64),
    when: When,
) -> (Client, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let (inner, pause, counter) = (
        stage.cluster.service(ADMIN).with_agent("a"),
        pause.clone(),
        count.clone(),
    );
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (mut inner, pause, counter) = (inner.clone(), pause.clone(), counter.clone());
        async move {
            let writes = [http::Method::PATCH, http::Method::DELETE];
            if of == Of::Writes && !writes.contains(request.method()) {
                return inner.call(request).await;
            }
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

/// Starts A, which pauses at one of its requests and writes one object after the other, and B, which begins at the
/// other end.
pub(crate) fn start(
    stage: &Stage,
    at: (Of, u64),
    when: When,
    toy: Toy,
) -> (Replica, Arc<AtomicU64>) {
    let pause = Pause::default();
    let (client, count) = pausing(stage, &pause, at, when);
    let environment = Environment::virtual_from(epoch(), 1);
    let settings = Settings {
        concurrency: 1,
        ..one_of_many("a")
    };
    let operator = Operator::new(environment, client, settings).with(Arc::new(toy));
    (Replica::run_with(operator, pause), count)
}

fn second(stage: &Stage) -> Replica {
    let toy = Toy {
        budget: 1,
        reverse: true,
        ..Toy::default()
    };
    stage.start(one_of_many("b"), toy)
}

pub(crate) fn slow(stage: &Stage, agent: &str, verb: &str, millis: u64) {
    let about = Match {
        agent: agent.to_owned(),
        verb: verb.to_owned(),
        ..Match::default()
    };
    let delay = Fault::Delay(Duration::from_millis(millis));
    stage
        .cluster
        .faults()
        .add(about, Frequency::always(), delay);
}

async fn all_have(stage: &Stage, count: usize, value: &str, what: &str) {
    for n in 0..count {
        assert_eq!(stage.have(&format!("m{n:02}")).await, value, "{what}");
    }
}

/// One schedule; gives how many requests A made.
fn schedule(at: u64, when: When) -> u64 {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..20 {
            stage.map(&format!("m{n:02}"), json!({"want": "1"})).await;
        }
        slow(&stage, "a", "patch", 100);
        slow(&stage, "b", "patch", 1_000);
        let (a, count) = start(&stage, (Of::All, at), when, Toy::default());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let b = second(&stage);
        // B has begun, and has not reached what A was about to write.
        secs(34).await;
        a.pause.set(false);
        secs(30).await;
        all_have(&stage, 20, "1", &format!("at {at} {when:?}")).await;
        assert_epochs_never_go_back(&stage);
        assert!(a.is_running() && b.is_running());
        count.load(Ordering::Relaxed)
    })
}

#[test]
fn no_write_of_a_former_leader_commits_after_the_first_of_the_next_g6() {
    let requests = schedule(u64::MAX, When::After).min(45);
    assert!(requests > 40, "{requests}");
    for at in 0..requests {
        for when in [When::Before, When::After] {
            schedule(at, when);
        }
    }
}

/// Lets A sleep for almost as long as a request may take, from its k-th write on.
pub(crate) async fn sleep_at(a: &Replica, count: &AtomicU64, at: u64) {
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if count.load(Ordering::Relaxed) > at {
            break;
        }
    }
    tokio::time::sleep(Duration::from_millis(9_500)).await;
    a.pause.set(false);
}

/// A cannot renew its lease.
pub(crate) fn no_renewals(stage: &Stage) {
    let renewals = Match {
        agent: "a".to_owned(),
        verb: "update".to_owned(),
        ..Match::default()
    };
    stage.refuse(renewals, 429, "TooManyRequests", Frequency::always());
}

/// A's renewals fail from the start, and it sleeps for 9.5 s at its k-th write.
fn late(at: u64, when: When) -> u64 {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..60 {
            stage.map(&format!("m{n:02}"), json!({"want": "1"})).await;
        }
        no_renewals(&stage);
        slow(&stage, "a", "patch", 300);
        slow(&stage, "b", "patch", 1_000);
        let (a, count) = start(&stage, (Of::Writes, at), when, Toy::default());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let b = second(&stage);
        sleep_at(&a, &count, at).await;
        secs(100).await;
        all_have(&stage, 60, "1", &format!("at {at}")).await;
        assert_epochs_never_go_back(&stage);
        let by_b = |w: &Record| w.context.contains("replica=b;");
        assert!(stage.writes().iter().any(by_b), "B has taken over");
        // By its own clock A has not been the leader for longer than its deadline.
        let began = stage.records(|r| r.agent == "a" && r.verb == "create")[0].at;
        let last = stage
            .writes()
            .iter()
            .filter(|w| !by_b(w))
            .map(|w| w.at)
            .max();
        let acted = last.unwrap().duration_since(began);
        let most = if when == When::Before { 20 } else { 10 };
        assert!(acted.as_secs() < most, "A has acted for {acted:?}, at {at}");
        drop((a, b));
        count.load(Ordering::Relaxed)
    })
}

#[test]
fn the_last_write_of_a_leader_that_cannot_renew_is_waited_out_g6() {
    let writes = late(u64::MAX, When::After);
    assert!(writes > 30, "{writes}");
    // The later ones are what matters.
    for at in (0..16).step_by(5).chain(16..writes) {
        late(at, When::Before);
        late(at, When::After);
    }
}
