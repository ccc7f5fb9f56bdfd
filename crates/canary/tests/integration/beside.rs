//! Flagger itself, beside us.

use serde_json::json;

use crate::stage::{DEPLOYMENTS, play, secs};

/// Two programs never act on one Canary: while Flagger runs without sharing our Lease, nothing is touched.
#[test]
fn a_canary_is_held_while_flagger_runs() {
    play(|stage| async move {
        let flagger = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "flagger"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "flagger"}},
                "template": {"metadata": {"labels": {"app": "flagger"}},
                    "spec": {"containers": [{"name": "flagger", "image": "ghcr.io/fluxcd/flagger:1.43.0"}]}}},
        });
        stage.create(DEPLOYMENTS, &flagger).await;
        stage.workload("web:1").await;
        stage.canary(&json!({"analysis": {"iterations": 1}})).await;
        let _operator = stage.operate();
        secs(60).await;
        assert_eq!(stage.waits().await, ["FlaggerRuns"]);
        assert_eq!(stage.replicas("web").await, 3);
        let path = format!("{DEPLOYMENTS}/flagger");
        stage.patch(&path, &json!({"spec": {"replicas": 0}})).await;
        // With the next heartbeat at the latest.
        stage.until("Initialized", 400).await;
    });
}
