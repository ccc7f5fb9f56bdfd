//! Control planes that know less than clusters have, and control planes that are two: no workload goes because of it.

use serde_json::{Value, json};

use crate::stage::{CLUSTERS, Fleet, rollout, secs, virtually};

async fn uids(fleet: &Fleet, sync: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for cluster in CLUSTERS {
        let found = fleet.kustomization(cluster, sync).await;
        all.push(found.unwrap_or_default()["metadata"]["uid"].clone());
    }
    all
}

async fn annotate(fleet: &Fleet, cluster: &str, name: &str, value: &str) {
    let patch = json!({"metadata": {"annotations": {name: value}}});
    fleet.change("remoteassemblages", cluster, &patch).await;
}

/// Two control planes have the same clusters, with another Rollout each: the second one writes nothing and says why, and takes nothing
/// away when a person lets it take the first one's place.
#[test]
fn a_cluster_belongs_to_one_control_plane() {
    virtually(async {
        let mut fleet = Fleet::settled("Replace", "v1").await;
        let before = uids(&fleet, "web").await;
        let mut other = fleet.another_hub().await;
        for cluster in CLUSTERS {
            other.register(cluster).await;
        }
        other.start();
        other
            .make("rollouts", "app", &rollout("Replace", "v1"))
            .await;
        other
            .until("told", 60, async |other: &Fleet| {
                let told = other.reachable("berlin").await?;
                (told["reason"] == "OtherHub").then_some(())
            })
            .await;
        secs(30).await;
        let writes = fleet.leaves["berlin"].writes().len();
        secs(120).await;
        assert_eq!(fleet.leaves["berlin"].writes().len(), writes, "it rests");
        assert_eq!(uids(&fleet, "web").await, before);
        assert_eq!(uids(&fleet, "app").await, vec![Value::Null; 3]);
        // One that is not ours is not cleared when it is given up.
        other.delete("remoteassemblages", "paris").await;
        secs(60).await;
        assert_eq!(uids(&fleet, "web").await, before);
        // The first one is switched off, and a person says so.
        fleet.replica = None;
        let system = fleet.hub.get("/api/v1/namespaces/kube-system").await;
        let hub = system["metadata"]["uid"].as_str().unwrap();
        annotate(&other, "berlin", "fleet.squaremo.dev/take-over", hub).await;
        other
            .until("taken over", 60, async |other: &Fleet| {
                other.kustomization("berlin", "app").await.map(drop)
            })
            .await;
        secs(30).await;
        assert_eq!(uids(&fleet, "web").await, before);
        let kept = other.condition("berlin", "Assigned").await.unwrap();
        assert_eq!(kept["status"], "False");
        assert!(kept["message"].as_str().unwrap().contains("web"), "{kept}");
        let found = other.get("remoteassemblages", "berlin").await.unwrap();
        let word = &found["metadata"]["annotations"]["fleet.squaremo.dev/take-over"];
        assert_eq!(word, &Value::Null, "a word is good once");
        let word = "fleet.squaremo.dev/confirm-unassign";
        annotate(&other, "berlin", word, "1").await;
        other
            .until("gone", 60, async |other: &Fleet| {
                let is_gone = other.kustomization("berlin", "web").await.is_none();
                let is_told = other.condition("berlin", "Assigned").await.is_none();
                (is_gone && is_told).then_some(())
            })
            .await;
        assert!(other.kustomization("berlin", "app").await.is_some());
    });
}

/// The control plane is put back to how it was before a Rollout was made.
#[test]
fn a_control_plane_that_was_put_back_takes_nothing_away() {
    virtually(async {
        let mut fleet = Fleet::settled("Replace", "v1").await;
        let earlier = fleet.hub.cluster.snapshot();
        fleet
            .make("rollouts", "late", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("late", 60).await;
        let before = uids(&fleet, "late").await;
        fleet.replica = None;
        fleet.hub.cluster.restore(&earlier);
        fleet.start();
        secs(120).await;
        assert_eq!(uids(&fleet, "late").await, before);
        // It goes on, and still takes nothing away.
        fleet.roll("web", "v2").await;
        fleet.until_ready("web", 120).await;
        secs(30).await;
        assert_eq!(uids(&fleet, "late").await, before);
        // Somebody makes it again: it is the same object, and everybody's again.
        fleet
            .make("rollouts", "late", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("late", 60).await;
        assert_eq!(uids(&fleet, "late").await, before);
        assert_eq!(fleet.condition("berlin", "Assigned").await, None);
        fleet.delete("rollouts", "late").await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                (uids(fleet, "late").await == vec![Value::Null; 3]).then_some(())
            })
            .await;
    });
}
