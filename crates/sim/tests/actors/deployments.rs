//! Deployments and their `ReplicaSets`, as a user sees them.

use crate::stage::{condition, play, workload};
use serde_json::{Value, json};

fn rolling(surge: Value, unavailable: Value) -> Value {
    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}})
}

fn revision(object: &Value) -> &str {
    let annotations = &object["metadata"]["annotations"];
    annotations["deployment.kubernetes.io/revision"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn a_deployment_gets_its_pods_and_says_so() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 3, "web:1", json!({})))
            .await;
        stage.settle().await;
        let web = stage.get("Deployment", "web").await;
        assert_eq!(revision(&web), "1");
        let status = &web["status"];
        for count in [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ] {
            assert_eq!(status[count], 3, "{count}");
        }
        assert_eq!(status["terminatingReplicas"], 0);
        assert_eq!(status["observedGeneration"], web["metadata"]["generation"]);
        assert!(status["unavailableReplicas"].is_null());
        let done = ("NewReplicaSetAvailable".to_owned(), "True".to_owned());
        assert_eq!(condition(&web, "Progressing"), done);
        assert_eq!(condition(&web, "Available").1, "True");

        let sets = stage.list("ReplicaSet").await;
        assert_eq!(sets.len(), 1);
        let hash = sets[0]["metadata"]["labels"]["pod-template-hash"]
            .as_str()
            .unwrap();
        assert_eq!(sets[0]["metadata"]["name"], format!("web-{hash}"));
        assert_eq!(
            sets[0]["spec"]["selector"]["matchLabels"]["pod-template-hash"],
            hash
        );
        let nodes: Vec<_> = stage
            .list("Pod")
            .await
            .iter()
            .map(|p| p["spec"]["nodeName"].clone())
            .collect();
        for node in ["node-0", "node-1", "node-2"] {
            assert!(nodes.contains(&json!(node)), "{nodes:?}");
        }
    });
}

#[test]
fn a_rolling_update_never_leaves_its_bounds() {
    let cases = [
        (4, json!(1), json!(0), 5, 4),
        (4, json!(0), json!(1), 4, 3),
        (10, json!("25%"), json!("25%"), 13, 8),
        (3, json!("0%"), json!("10%"), 3, 2),
        (5, json!(5), json!(5), 10, 0),
    ];
    for (seed, (replicas, surge, unavailable, most, fewest)) in (0..).zip(cases) {
        play(seed, "{}", |stage| async move {
            let strategy = rolling(surge, unavailable);
            stage
                .create(workload("Deployment", "web", replicas, "web:1", strategy))
                .await;
            stage.settle().await;
            let watcher = stage.watch_pods().await;
            stage.set_image("Deployment", "web", "web:2").await;
            stage.settle().await;
            let (seen_most, seen_fewest) = watcher.extremes();
            assert!(seen_most <= most, "{seen_most} pods at once");
            assert!(seen_fewest >= fewest, "only {seen_fewest} ready");
            assert!(stage.images().await.values().all(|image| image == "web:2"));
            assert_eq!(stage.pods().await.len(), usize::try_from(replicas).unwrap());
            assert_eq!(revision(&stage.get("Deployment", "web").await), "2");
        });
    }
}

#[test]
fn going_back_uses_the_old_replica_set_under_a_new_revision() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 2, "web:1", json!({})))
            .await;
        stage.settle().await;
        let first = stage.list("ReplicaSet").await[0]["metadata"]["name"].clone();
        stage.set_image("Deployment", "web", "web:2").await;
        stage.settle().await;
        stage.set_image("Deployment", "web", "web:1").await;
        stage.settle().await;
        let sets = stage.list("ReplicaSet").await;
        assert_eq!(sets.len(), 2);
        let old = sets
            .iter()
            .find(|set| set["metadata"]["name"] == first)
            .unwrap();
        assert_eq!(revision(old), "3");
        assert_eq!(
            old["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"],
            "1"
        );
        assert_eq!(old["spec"]["replicas"], 2);
        assert_eq!(revision(&stage.get("Deployment", "web").await), "3");
    });
}

#[test]
fn a_crashing_image_stops_the_rollout_and_is_reported_late() {
    let script = "pods: [{match: {image: 'web:2'}, crash: {}}]";
    play(1, script, |stage| async move {
        let mut spec = rolling(json!(1), json!(1));
        spec["progressDeadlineSeconds"] = json!(120);
        stage
            .create(workload("Deployment", "web", 4, "web:1", spec))
            .await;
        stage.settle().await;
        let watcher = stage.watch_pods().await;
        stage.set_image("Deployment", "web", "web:2").await;
        stage.pass(600).await;
        let web = stage.get("Deployment", "web").await;
        let late = ("ProgressDeadlineExceeded".to_owned(), "False".to_owned());
        assert_eq!(condition(&web, "Progressing"), late);
        assert_eq!(condition(&web, "Available").1, "True");
        let (most, fewest) = watcher.extremes();
        assert!(most <= 5 && fewest >= 3, "{most} {fewest}");
        let old = stage
            .images()
            .await
            .values()
            .filter(|image| *image == "web:1")
            .count();
        assert_eq!(old, 3);
        let pods = stage.list("Pod").await;
        let crashing = pods
            .iter()
            .find(|p| p["spec"]["containers"][0]["image"] == "web:2")
            .unwrap();
        let container = &crashing["status"]["containerStatuses"][0];
        assert_eq!(container["state"]["waiting"]["reason"], "CrashLoopBackOff");
        assert!(
            container["restartCount"].as_i64().unwrap() >= 4,
            "{container}"
        );

        // Back to the image that works.
        stage.set_image("Deployment", "web", "web:1").await;
        stage.settle().await;
        let web = stage.get("Deployment", "web").await;
        assert_eq!(condition(&web, "Progressing").0, "NewReplicaSetAvailable");
        assert!(watcher.extremes().1 >= 3);
    });
}

#[test]
fn recreate_never_runs_two_versions_at_once() {
    play(1, "{}", |stage| async move {
        let strategy = json!({"strategy": {"type": "Recreate"}});
        stage
            .create(workload("Deployment", "web", 3, "web:1", strategy))
            .await;
        stage.settle().await;
        let first = stage.pods().await;
        let watcher = stage.watch_pods().await;
        stage.set_image("Deployment", "web", "web:2").await;
        stage.settle().await;
        for moment in watcher.moments() {
            let here: Vec<_> = moment.active.iter().chain(&moment.going).collect();
            let old = here.iter().filter(|pod| first.contains(pod)).count();
            assert!(old == 0 || old == here.len(), "{moment:?}");
        }
        assert_eq!(stage.pods().await.len(), 3);
    });
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("Deployment", "web", 2, "web:1", json!({})))
            .await;
        stage.settle().await;
        stage
            .patch("Deployment", "web", json!({"spec": {"paused": true}}))
            .await;
        stage.set_image("Deployment", "web", "web:2").await;
        stage.scale("Deployment", "web", 4).await;
        stage.settle().await;
        assert_eq!(stage.list("ReplicaSet").await.len(), 1);
        assert_eq!(
            stage
                .images()
                .await
                .values()
                .filter(|i| *i == "web:1")
                .count(),
            4
        );
        let web = stage.get("Deployment", "web").await;
        assert_eq!(condition(&web, "Progressing").0, "DeploymentPaused");
        stage
            .patch("Deployment", "web", json!({"spec": {"paused": false}}))
            .await;
        stage.settle().await;
        assert!(stage.images().await.values().all(|image| image == "web:2"));
    });
}

#[test]
fn scaling_in_the_middle_of_a_rollout_is_shared_in_proportion() {
    let script = "pods: [{match: {image: 'web:2'}, ready: never}]";
    play(1, script, |stage| async move {
        let strategy = rolling(json!(2), json!(2));
        stage
            .create(workload("Deployment", "web", 10, "web:1", strategy))
            .await;
        stage.settle().await;
        stage.set_image("Deployment", "web", "web:2").await;
        stage.settle().await;
        let sizes = |sets: Vec<Value>| -> Vec<i64> {
            sets.iter()
                .map(|set| set["spec"]["replicas"].as_i64().unwrap())
                .collect()
        };
        let mut before = sizes(stage.list("ReplicaSet").await);
        before.sort_unstable();
        assert_eq!(before, [4, 8]);
        stage.scale("Deployment", "web", 20).await;
        stage.settle().await;
        let mut after = sizes(stage.list("ReplicaSet").await);
        after.sort_unstable();
        // 22 in all: 8/12 and 4/12 of them, the rounding goes to the larger.
        assert_eq!(after, [7, 15]);
    });
}

#[test]
fn only_so_much_history_is_kept() {
    play(1, "{}", |stage| async move {
        let spec = json!({"revisionHistoryLimit": 2});
        stage
            .create(workload("Deployment", "web", 1, "web:1", spec))
            .await;
        for version in 2..=5 {
            stage.settle().await;
            stage
                .set_image("Deployment", "web", &format!("web:{version}"))
                .await;
        }
        stage.settle().await;
        let sets = stage.list("ReplicaSet").await;
        let mut revisions: Vec<&str> = sets.iter().map(revision).collect();
        revisions.sort_unstable();
        assert_eq!(revisions, ["3", "4", "5"]);
    });
}

#[test]
fn min_ready_seconds_slows_a_rollout_down() {
    play(1, "{}", |stage| async move {
        let mut spec = rolling(json!(1), json!(0));
        spec["minReadySeconds"] = json!(30);
        stage
            .create(workload("Deployment", "web", 2, "web:1", spec))
            .await;
        stage.pass(20).await;
        let web = stage.get("Deployment", "web").await;
        assert_eq!(web["status"]["readyReplicas"], 2);
        assert!(web["status"]["availableReplicas"].is_null());
        stage.pass(60).await;
        let web = stage.get("Deployment", "web").await;
        assert_eq!(web["status"]["availableReplicas"], 2);
        stage.set_image("Deployment", "web", "web:2").await;
        stage.pass(50).await;
        let old = stage
            .images()
            .await
            .values()
            .filter(|image| *image == "web:1")
            .count();
        assert!(old >= 1, "two steps of 30 s cannot be over");
        stage.pass(60).await;
        assert!(stage.images().await.values().all(|image| image == "web:2"));
    });
}

#[test]
fn annotations_go_to_the_replica_set_but_not_the_last_applied_one() {
    play(1, "{}", |stage| async move {
        let mut web = workload("Deployment", "web", 1, "web:1", json!({}));
        web["metadata"]["annotations"] = json!({
            "team": "shop", "kubectl.kubernetes.io/last-applied-configuration": "{}",
        });
        stage.create(web).await;
        stage.settle().await;
        let annotations = stage.list("ReplicaSet").await[0]["metadata"]["annotations"].clone();
        assert_eq!(
            annotations,
            json!({
                "team": "shop",
                "deployment.kubernetes.io/revision": "1",
                "deployment.kubernetes.io/desired-replicas": "1",
                "deployment.kubernetes.io/max-replicas": "2",
            })
        );
    });
}
