//! The loop around the actors: the same for the same seed, quiet when nothing happens, and never at a loss.

use crate::stage::{play, workload};
use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_apiserver::status::Status;

fn by_actors(verb: &str) -> Match {
    Match {
        agent: "actors".to_owned(),
        verb: verb.to_owned(),
        ..Match::default()
    }
}

fn refuse(code: u16) -> Fault {
    Fault::Refuse(Box::new(Status::failure(code, "Refused", "not now")))
}

/// A rollout of everything, as the hash of all requests.
fn story(seed: u64) -> (String, usize) {
    play(seed, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 4, "web:1", json!({})))
            .await;
        stage
            .create(workload("StatefulSet", "db", 3, "db:1", json!({})))
            .await;
        stage
            .create(workload("DaemonSet", "agent", 0, "agent:1", json!({})))
            .await;
        stage.settle().await;
        stage.set_image("Deployment", "web", "web:2").await;
        stage.set_image("StatefulSet", "db", "db:2").await;
        stage.set_image("DaemonSet", "agent", "agent:2").await;
        stage.settle().await;
        (stage.cluster.trace().hash(), stage.requests().len())
    })
}

#[test]
fn the_same_seed_makes_the_same_requests() {
    assert_eq!(story(3), story(3));
    assert_ne!(story(3).0, story(4).0);
}

#[test]
fn nothing_is_asked_or_written_while_nothing_happens() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 3, "web:1", json!({})))
            .await;
        stage
            .create(workload("StatefulSet", "db", 3, "db:1", json!({})))
            .await;
        stage.settle().await;
        let before = stage.requests().len();
        stage.pass(20 * 3600).await;
        assert_eq!(stage.requests().len(), before);
    });
}

#[test]
fn a_rollout_takes_few_requests() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 3, "web:1", json!({})))
            .await;
        stage.settle().await;
        let before = stage.requests().len();
        stage.set_image("Deployment", "web", "web:2").await;
        stage.settle().await;
        let made = stage.requests().split_off(before);
        // Three pods are made, bound, started, deleted and removed: 15. The rest is scaling and counting.
        assert!(made.len() <= 50, "{}: {made:#?}", made.len());
        assert!(
            made.iter().all(|request| request.contains("Answered(20")),
            "{made:#?}"
        );
    });
}

#[test]
fn lost_answers_refusals_and_cut_watches_are_survived() {
    let faults = [
        Fault::Lose,
        Fault::Unreachable,
        refuse(500),
        refuse(409),
        refuse(429),
    ];
    for (seed, fault) in (0..).zip(faults) {
        play(seed, "{}", |stage| async move {
            let faults = stage.cluster.faults();
            for verb in ["create", "patch", "delete"] {
                faults.add(by_actors(verb), Frequency::seeded(200, seed), fault.clone());
            }
            for (rate, fault) in [
                (60, WatchFault::Close),
                (30, WatchFault::Gone),
                (60, WatchFault::Duplicate),
            ] {
                faults.add_watch(by_actors("watch"), Frequency::seeded(rate, seed), fault);
            }
            stage
                .create(workload("Deployment", "web", 4, "web:1", json!({})))
                .await;
            stage
                .create(workload("StatefulSet", "db", 3, "db:1", json!({})))
                .await;
            stage.pass(120).await;
            stage.set_image("Deployment", "web", "web:2").await;
            stage.set_image("StatefulSet", "db", "db:2").await;
            stage.pass(120).await;
            faults.clear();
            stage.pass(1200).await;
            let images = stage.images().await;
            assert_eq!(images.len(), 7, "{images:?}");
            assert!(
                images.values().all(|image| image.ends_with(":2")),
                "{images:?}"
            );
            let web = stage.get("Deployment", "web").await;
            assert_eq!(web["status"]["availableReplicas"], 4);
            assert_eq!(web["status"]["updatedReplicas"], 4);
            let db = stage.get("StatefulSet", "db").await;
            assert_eq!(
                db["status"]["currentRevision"],
                db["status"]["updateRevision"]
            );
        });
    }
}

#[test]
fn pods_that_the_server_refuses_are_reported_on_the_replica_set_and_the_deployment() {
    play(1, "{}", |stage| async move {
        let pods = Match {
            resource: "/pods".to_owned(),
            ..by_actors("create")
        };
        stage
            .cluster
            .faults()
            .add(pods, Frequency::always(), refuse(403));
        stage
            .create(workload("Deployment", "web", 2, "web:1", json!({})))
            .await;
        stage.pass(30).await;
        for kind in ["ReplicaSet", "Deployment"] {
            let object = &stage.list(kind).await[0];
            let failure = crate::stage::condition(object, "ReplicaFailure");
            assert_eq!(
                failure,
                ("FailedCreate".to_owned(), "True".to_owned()),
                "{kind}"
            );
        }
        stage.cluster.faults().clear();
        stage.pass(600).await;
        assert_eq!(stage.pods().await.len(), 2);
        let web = stage.get("Deployment", "web").await;
        let conditions = web["status"]["conditions"].as_array().unwrap();
        assert!(
            conditions.iter().all(|c| c["type"] != "ReplicaFailure"),
            "{conditions:?}"
        );
    });
}

#[test]
fn orphans_are_adopted_and_pods_that_no_longer_match_are_let_go() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("ReplicaSet", "web", 2, "web:1", json!({})))
            .await;
        stage.settle().await;
        let first = stage.pods().await;
        stage
            .patch(
                "Pod",
                &first[0],
                json!({"metadata": {"labels": {"app": "other"}}}),
            )
            .await;
        stage.settle().await;
        let free = stage.get("Pod", &first[0]).await;
        assert!(free["metadata"]["ownerReferences"].is_null());
        assert_eq!(stage.pods().await.len(), 3);
        stage
            .patch(
                "Pod",
                &first[0],
                json!({"metadata": {"labels": {"app": "web"}}}),
            )
            .await;
        stage.settle().await;
        assert_eq!(stage.pods().await.len(), 2);
    });
}
