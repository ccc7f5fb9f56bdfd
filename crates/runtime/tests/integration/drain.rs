//! Ending in good order, and not.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::trace::Ending;
use slipway_runtime::{Environment, Operator};

use crate::stage::{Replica, Stage, epoch, one_of_many, secs, virtually};
use crate::toy::Toy;

fn slow(stage: &Stage, by: u64) {
    let about = Match {
        agent: "one".to_owned(),
        verb: "patch".to_owned(),
        ..Match::default()
    };
    stage.cluster.faults().add(
        about,
        Frequency::always(),
        Fault::Delay(Duration::from_secs(by)),
    );
}

async fn busy(writes_take: u64) -> (Stage, Replica) {
    let stage = Stage::new().await;
    slow(&stage, writes_take);
    for n in 0..50 {
        stage.map(&format!("m{n:02}"), json!({"want": "1"})).await;
    }
    let replica = stage.start(one_of_many("one"), Toy::default());
    secs(1).await;
    (stage, replica)
}

/// L-6.
#[test]
fn a_stop_waits_for_answers_starts_nothing_and_then_releases_the_lease() {
    virtually(async {
        let (stage, replica) = busy(5).await;
        replica.stop().await;
        let writes = stage.writes();
        assert_eq!(writes.len(), 16, "those under way, no new ones");
        assert!(writes.iter().all(|w| w.ending == Ending::Answered(200)));
        let all = stage.records(|r| r.agent == "one" && r.verb != "get");
        let release = all.iter().rposition(|r| r.verb == "update").unwrap();
        let last = all.iter().rposition(|r| r.verb == "patch").unwrap();
        assert!(last < release);
        let lease = stage
            .get("/apis/coordination.k8s.io/v1/namespaces/slipway-system/leases/toy")
            .await;
        assert_eq!(lease["spec"]["holderIdentity"], "");
        let after = stage.cluster.trace().len();
        secs(600).await;
        assert_eq!(
            stage
                .records(|r| r.index >= after && r.agent == "one")
                .len(),
            0,
            "nothing survives it"
        );
    });
}

#[test]
fn a_stop_does_not_release_what_may_still_be_written() {
    virtually(async {
        let (_stage, replica) = busy(3_600).await;
        let began = tokio::time::Instant::now();
        replica.stop().await;
        assert!(
            began.elapsed() <= Duration::from_secs(30),
            "{:?}",
            began.elapsed()
        );
    });
}

/// Somebody else leads at once; meanwhile webhooks are served to API servers that have not heard of the end yet, and what
/// they decide on must not be old.
#[test]
fn one_that_ends_is_not_ready_gives_up_its_lease_and_watches_until_its_webhooks_are_shut() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("m", json!({"want": "1"})).await;
        let (shut, is_shut) = tokio::sync::oneshot::channel::<()>();
        let environment = Environment::virtual_from(epoch(), 7);
        let client = stage.client("one");
        let operator = Operator::new(environment, client, one_of_many("one"))
            .with(Arc::new(Toy::default()))
            .outlasting(async {
                let _ = is_shut.await;
            });
        let replica = Replica::run(operator);
        let view = replica.view.clone();
        stage.until_have("m", "1", 10).await;
        assert!(view.is_ready());
        let ending = tokio::spawn(replica.stop());
        secs(1).await;
        assert!(!view.is_ready(), "nobody is to be sent here any more");
        let lease = "/apis/coordination.k8s.io/v1/namespaces/slipway-system/leases/toy";
        let lease = stage.get(lease).await;
        assert_eq!(lease["spec"]["holderIdentity"], "");
        stage.want("m", "2").await;
        let version = stage.get("/api/v1/namespaces/default/configmaps/m").await;
        secs(20).await;
        assert!(!ending.is_finished(), "webhooks are still served");
        assert!(view.is_healthy());
        let (stores, mut known) = (view.stores(), Vec::new());
        for (_, store) in stores.iter() {
            known.extend(store.objects().map(|seen| seen.meta.version.clone()));
        }
        let version = version["metadata"]["resourceVersion"].as_str().unwrap();
        assert!(known.iter().any(|known| known == version), "{known:?}");
        assert_eq!(stage.have("m").await, "1", "it does not act any more");
        drop(shut);
        secs(1).await;
        assert!(ending.is_finished());
        assert_eq!(stage.cluster.watches(), 0);
    });
}

#[test]
fn a_crash_leaves_nothing_behind() {
    virtually(async {
        let (stage, replica) = busy(5).await;
        drop(replica);
        tokio::task::yield_now().await;
        let after = stage.cluster.trace().len();
        let version = stage.cluster.version();
        secs(600).await;
        let later = stage.records(|r| r.index >= after && r.agent == "one");
        assert!(
            later.iter().all(|r| r.ending == Ending::GivenUp),
            "{later:#?}"
        );
        assert_eq!(stage.cluster.version(), version);
        assert_eq!(stage.cluster.watches(), 0);
        assert!(stage.writes().iter().all(|w| w.ending == Ending::GivenUp));
    });
}
