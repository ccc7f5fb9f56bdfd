//! Scenario 89: an operator that is killed again and again comes to the same end.

use std::time::Duration;

use serde_json::json;

use crate::stage::play;

#[test]
fn an_operator_that_is_killed_twenty_times_goes_on_where_it_was() {
    play(|stage| async move {
        stage.workload("web:1").await;
        stage.world.measure("0");
        stage
            .canary(&json!({
                "provider": "gatewayapi:v1",
                "service": {"port": 80, "gatewayRefs": [{"name": "gateway"}]},
                "analysis": {"stepWeights": [20, 60], "stepWeightPromotion": 30,
                    "metrics": [{"name": "errors", "query": "errors", "thresholdRange": {"max": 1}}]},
            }))
            .await;
        let operator = stage.operate();
        stage.until("Initialized", 60).await;
        drop(operator);
        stage.push("web:2").await;
        let mut weights = Vec::new();
        for n in 0..20_u64 {
            let _operator = stage.operate();
            // A little longer each time, so that each crash comes at another moment.
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(370 + 31 * n)).await;
                let weight = stage.share().await;
                if weights.last() != Some(&weight) {
                    weights.push(weight);
                }
            }
        }
        let _operator = stage.operate();
        stage.until("Succeeded", 200).await;
        assert_eq!(stage.image("web-primary").await, "web:2");
        assert_eq!(stage.replicas("web").await, 0);
        let rises = [0, 20, 60];
        assert!(
            weights.starts_with(&rises[..weights.len().min(3)]),
            "{weights:?}"
        );
    });
}
