//! `StatefulSets`, as a user sees them.

use crate::stage::{Stage, play, workload};
use serde_json::{Value, json};

async fn revisions(stage: &Stage) -> (Value, Value) {
    let status = stage.get("StatefulSet", "db").await["status"].clone();
    (
        status["currentRevision"].clone(),
        status["updateRevision"].clone(),
    )
}

#[test]
fn pods_start_in_order_each_when_the_one_before_is_ready() {
    play(1, "{}", |stage| async move {
        let watcher = stage.watch_pods().await;
        stage
            .create(workload("StatefulSet", "db", 3, "db:1", json!({})))
            .await;
        stage.settle().await;
        assert_eq!(stage.pods().await, ["db-0", "db-1", "db-2"]);
        for moment in watcher.moments() {
            let waiting = moment.active.len() - moment.ready.len();
            assert!(waiting <= 1, "{moment:?}");
        }
        let db = stage.get("StatefulSet", "db").await;
        let status = &db["status"];
        for count in [
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "currentReplicas",
            "updatedReplicas",
        ] {
            assert_eq!(status[count], 3, "{count}");
        }
        assert_eq!(status["currentRevision"], status["updateRevision"]);
        assert_eq!(status["observedGeneration"], 1);
        let pod = stage.get("Pod", "db-1").await;
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-1");
        assert_eq!(labels["apps.kubernetes.io/pod-index"], "1");
        assert_eq!(
            labels["controller-revision-hash"],
            status["currentRevision"]
        );
        assert_eq!(pod["spec"]["hostname"], "db-1");
        assert_eq!(pod["spec"]["subdomain"], "db");
        assert_eq!(stage.list("ControllerRevision").await.len(), 1);
    });
}

#[test]
fn parallel_pods_start_at_once() {
    play(1, "{}", |stage| async move {
        let spec = json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}});
        stage
            .create(workload("StatefulSet", "db", 3, "db:1", spec))
            .await;
        stage.pass(1).await;
        assert_eq!(stage.pods().await, ["db-5", "db-6", "db-7"]);
        stage.settle().await;
        stage.scale("StatefulSet", "db", 1).await;
        stage.settle().await;
        assert_eq!(stage.pods().await, ["db-5"]);
    });
}

#[test]
fn a_rolling_update_goes_from_the_last_to_the_first_one_at_a_time() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("StatefulSet", "db", 4, "db:1", json!({})))
            .await;
        stage.settle().await;
        let before = revisions(&stage).await;
        let watcher = stage.watch_pods().await;
        stage.set_image("StatefulSet", "db", "db:2").await;
        stage.settle().await;
        assert!(watcher.extremes().1 >= 3);
        let mut order = Vec::new();
        for moment in watcher.moments() {
            for pod in moment.going {
                if !order.contains(&pod) {
                    order.push(pod);
                }
            }
        }
        assert_eq!(order, ["db-3", "db-2", "db-1", "db-0"]);
        let after = revisions(&stage).await;
        assert_eq!(after.0, after.1);
        assert_ne!(after.0, before.0);
        assert_eq!(stage.list("ControllerRevision").await.len(), 2);

        // Back again: the old revision with a new number.
        stage.set_image("StatefulSet", "db", "db:1").await;
        stage.settle().await;
        assert_eq!(revisions(&stage).await, before);
        let known = stage.list("ControllerRevision").await;
        let numbers: Vec<_> = known
            .iter()
            .map(|r| r["revision"].as_i64().unwrap())
            .collect();
        assert!(numbers.contains(&2) && numbers.contains(&3), "{numbers:?}");
    });
}

#[test]
fn a_partition_holds_the_update_back() {
    play(1, "{}", |stage| async move {
        let spec =
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
        stage
            .create(workload("StatefulSet", "db", 4, "db:1", spec))
            .await;
        stage.settle().await;
        stage.set_image("StatefulSet", "db", "db:2").await;
        stage.settle().await;
        let images: Vec<_> = stage.images().await.into_values().collect();
        assert_eq!(images, ["db:1", "db:1", "db:2", "db:2"]);
        let status = stage.get("StatefulSet", "db").await["status"].clone();
        assert_eq!(
            (&status["currentReplicas"], &status["updatedReplicas"]),
            (&json!(2), &json!(2))
        );
        assert_ne!(status["currentRevision"], status["updateRevision"]);

        // A pod below the partition comes back as it was.
        stage.delete("Pod", "db-0").await;
        stage.settle().await;
        assert_eq!(stage.images().await["db-0"], "db:1");
        let partition = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
        stage.patch("StatefulSet", "db", partition).await;
        stage.settle().await;
        assert!(stage.images().await.values().all(|image| image == "db:2"));
    });
}

#[test]
fn on_delete_waits_for_somebody_to_delete() {
    play(1, "{}", |stage| async move {
        let spec = json!({"updateStrategy": {"type": "OnDelete"}});
        stage
            .create(workload("StatefulSet", "db", 3, "db:1", spec))
            .await;
        stage.settle().await;
        let watcher = stage.watch_pods().await;
        stage.set_image("StatefulSet", "db", "db:2").await;
        stage.pass(3600).await;
        assert_eq!(watcher.extremes(), (3, 3));
        assert!(stage.images().await.values().all(|image| image == "db:1"));
        stage.delete("Pod", "db-1").await;
        stage.settle().await;
        let images: Vec<_> = stage.images().await.into_values().collect();
        assert_eq!(images, ["db:1", "db:2", "db:1"]);
        let status = stage.get("StatefulSet", "db").await["status"].clone();
        assert_eq!(status["updatedReplicas"], 1);
        assert_ne!(status["currentRevision"], status["updateRevision"]);
    });
}

#[test]
fn scaling_down_takes_the_last_first_and_waits_for_each() {
    play(1, "stop: 5s", |stage| async move {
        stage
            .create(workload("StatefulSet", "db", 4, "db:1", json!({})))
            .await;
        stage.settle().await;
        let watcher = stage.watch_pods().await;
        stage.scale("StatefulSet", "db", 1).await;
        stage.settle().await;
        assert_eq!(stage.pods().await, ["db-0"]);
        for moment in watcher.moments() {
            assert!(moment.going.len() <= 1, "{moment:?}");
            assert!(moment.active.contains(&"db-0".to_owned()));
        }
    });
}

#[test]
fn a_crashing_update_stops_at_the_first_pod() {
    let script = "pods: [{match: {image: 'db:2'}, crash: {}}]";
    play(1, script, |stage| async move {
        stage
            .create(workload("StatefulSet", "db", 3, "db:1", json!({})))
            .await;
        stage.settle().await;
        let watcher = stage.watch_pods().await;
        stage.set_image("StatefulSet", "db", "db:2").await;
        stage.pass(3600).await;
        assert!(watcher.extremes().1 >= 2);
        let images: Vec<_> = stage.images().await.into_values().collect();
        assert_eq!(images, ["db:1", "db:1", "db:2"]);
    });
}

#[test]
fn each_pod_keeps_its_own_claim() {
    play(1, "{}", |stage| async move {
        let claims = json!({"volumeClaimTemplates": [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }]});
        stage
            .create(workload("StatefulSet", "db", 2, "db:1", claims))
            .await;
        stage.settle().await;
        stage.delete("Pod", "db-1").await;
        stage.settle().await;
        let pod = stage.get("Pod", "db-1").await;
        let volume = &pod["spec"]["volumes"][0];
        assert_eq!(volume["name"], "data");
        assert_eq!(volume["persistentVolumeClaim"]["claimName"], "data-db-1");
        assert_eq!(pod["status"]["phase"], "Running");
        assert_eq!(stage.list("PersistentVolumeClaim").await.len(), 2);
    });
}

#[test]
fn an_update_of_parallel_pods_still_goes_one_at_a_time_and_stops_at_a_bad_one() {
    let script = "pods: [{match: {image: 'db:2', namePrefix: db-1}, ready: never}]";
    play(1, script, |stage| async move {
        let spec = json!({"podManagementPolicy": "Parallel"});
        stage
            .create(workload("StatefulSet", "db", 4, "db:1", spec))
            .await;
        stage.settle().await;
        let watcher = stage.watch_pods().await;
        stage.set_image("StatefulSet", "db", "db:2").await;
        stage.pass(600).await;
        assert!(watcher.extremes().1 >= 3);
        let images: Vec<_> = stage.images().await.into_values().collect();
        assert_eq!(images, ["db:1", "db:2", "db:2", "db:2"]);
    });
}
