//! Which pods a Deployment has: replaced, placed and taken away.

use crate::stage::{condition, play, workload};
use serde_json::json;

#[test]
fn a_pod_that_is_deleted_is_replaced_and_counted_while_it_goes() {
    let script = "stop: 10s";
    play(1, script, |stage| async move {
        stage
            .create(workload("Deployment", "web", 2, "web:1", json!({})))
            .await;
        stage.settle().await;
        let first = stage.pods().await;
        stage.delete("Pod", &first[0]).await;
        stage.pass(5).await;
        let set = &stage.list("ReplicaSet").await[0];
        assert_eq!(set["status"]["terminatingReplicas"], 1);
        assert_eq!(set["status"]["replicas"], 2);
        stage.settle().await;
        let second = stage.pods().await;
        assert_eq!(second.len(), 2);
        assert!(!second.contains(&first[0]) && second.contains(&first[1]));
        let web = stage.get("Deployment", "web").await;
        assert_eq!(web["status"]["terminatingReplicas"], 0);
    });
}

#[test]
fn pods_that_no_node_takes_stay_pending_until_one_does() {
    let script = "pods: [{match: {namePrefix: web-}, until: 2m, unschedulable: true}]";
    play(1, script, |stage| async move {
        stage
            .create(workload("Deployment", "web", 1, "web:1", json!({})))
            .await;
        stage.pass(60).await;
        let pod = &stage.list("Pod").await[0];
        assert_eq!(condition(pod, "PodScheduled").0, "Unschedulable");
        assert_eq!(pod["status"]["phase"], "Pending");
        stage.pass(70).await;
        assert_eq!(stage.list("Pod").await[0]["status"]["phase"], "Running");
    });
}

#[test]
fn scaling_down_takes_the_pods_that_serve_least() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 2, "web:1", json!({})))
            .await;
        stage.settle().await;
        let first = stage.pods().await;
        stage.scale("Deployment", "web", 4).await;
        stage.pass(1).await;
        stage.scale("Deployment", "web", 2).await;
        stage.settle().await;
        // The two that had not started yet.
        assert_eq!(stage.pods().await, first);
        let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}});
        stage.patch("Pod", &first[1], cost).await;
        stage.scale("Deployment", "web", 1).await;
        stage.settle().await;
        assert_eq!(stage.pods().await, [first[0].clone()]);
    });
}

#[test]
fn a_name_that_is_taken_is_not_the_end() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 1, "web:1", json!({})))
            .await;
        stage.settle().await;
        let name = stage.list("ReplicaSet").await[0]["metadata"]["name"].clone();
        stage.delete("Deployment", "web").await;
        stage.settle().await;
        let taken = workload(
            "ReplicaSet",
            name.as_str().unwrap(),
            0,
            "other:1",
            json!({}),
        );
        stage.create(taken).await;
        stage
            .create(workload("Deployment", "web", 1, "web:1", json!({})))
            .await;
        stage.settle().await;
        let web = stage.get("Deployment", "web").await;
        assert_eq!(web["status"]["collisionCount"], 1);
        assert_eq!(web["status"]["availableReplicas"], 1);
    });
}

#[test]
fn scaling_down_takes_a_pod_that_is_not_ready_before_a_younger_one() {
    let script = "pods: [{match: {labels: {sick: 'yes'}}, ready: never}]";
    play(1, script, |stage| async move {
        stage
            .create(workload("Deployment", "web", 2, "web:1", json!({})))
            .await;
        stage.settle().await;
        let old = stage.pods().await;
        stage.scale("Deployment", "web", 4).await;
        stage.settle().await;
        let sick = json!({"metadata": {"labels": {"sick": "yes"}}});
        stage.patch("Pod", &old[0], sick).await;
        stage.pass(1).await;
        assert_eq!(
            condition(&stage.get("Pod", &old[0]).await, "Ready").1,
            "False"
        );
        stage.scale("Deployment", "web", 3).await;
        stage.settle().await;
        let left = stage.pods().await;
        assert!(
            !left.contains(&old[0]) && left.contains(&old[1]),
            "{left:?}"
        );
    });
}
