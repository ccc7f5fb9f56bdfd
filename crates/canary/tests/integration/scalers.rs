//! A workload with a `HorizontalPodAutoscaler`.

use serde_json::{Value, json};

use crate::stage::{DEPLOYMENTS, Stage, play, secs};

const SCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

async fn set_up(stage: &Stage, more: &Value) {
    stage.workload("web:1").await;
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}});
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"minReplicas": 2, "maxReplicas": 8, "metrics": [cpu],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    });
    stage.create(SCALERS, &scaler).await;
    let mut spec = json!({
        "analysis": {"iterations": 1},
        "autoscalerRef": {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "web"},
    });
    slipway_kernel::fields::merge(&mut spec, more);
    stage.canary(&spec).await;
}

/// Scenarios 94 and 95.
#[test]
fn the_copy_gets_an_autoscaler_that_follows_with_each_promotion() {
    play(|stage| async move {
        set_up(
            &stage,
            &json!({"autoscalerRef": {"primaryScalerReplicas": {"minReplicas": 3}}}),
        )
        .await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        let copy = stage.get(&format!("{SCALERS}/web-primary")).await;
        assert_eq!(copy["spec"]["scaleTargetRef"]["name"], "web-primary");
        assert_eq!(
            (&copy["spec"]["minReplicas"], &copy["spec"]["maxReplicas"]),
            (&json!(3), &json!(8))
        );
        stage
            .patch(
                &format!("{SCALERS}/web"),
                &json!({"spec": {"maxReplicas": 9}}),
            )
            .await;
        secs(60).await;
        let copy = stage.get(&format!("{SCALERS}/web-primary")).await;
        assert_eq!(copy["spec"]["maxReplicas"], 8, "not before a promotion");
        stage.push("web:2").await;
        stage.until("Succeeded", 120).await;
        let copy = stage.get(&format!("{SCALERS}/web-primary")).await;
        assert_eq!(copy["spec"]["maxReplicas"], 9);
    });
}

/// Without its autoscaler a Canary waits, and the workload keeps its pods.
#[test]
fn a_missing_autoscaler_is_named_and_nothing_is_scaled() {
    play(|stage| async move {
        set_up(&stage, &json!({"autoscalerRef": {"name": "other"}})).await;
        let _operator = stage.operate();
        secs(60).await;
        assert_eq!(stage.waits().await, ["AutoscalerNotFound"]);
        let workload = stage.get(&format!("{DEPLOYMENTS}/web")).await;
        assert!(workload["spec"]["replicas"].as_i64().unwrap() >= 2);
    });
}
