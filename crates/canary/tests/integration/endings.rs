//! What is left of a Canary that is deleted.

use serde_json::{Value, json};

use crate::stage::{CANARIES, DEPLOYMENTS, SERVICES, play, secs};

/// Scenario 110.
#[test]
fn the_workload_is_given_back_where_that_is_asked_for() {
    play(|stage| async move {
        stage.workload("web:1").await;
        stage
            .canary(&json!({"revertOnDeletion": true, "analysis": {"iterations": 1}}))
            .await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        let canary = stage.get(&format!("{CANARIES}/web")).await;
        assert_eq!(
            canary["metadata"]["finalizers"],
            json!(["finalizer.flagger.app"])
        );
        stage
            .send("DELETE", &format!("{CANARIES}/web"), &Value::Null)
            .await;
        let mut was_served = true;
        for _ in 0..300 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let of = |one: Option<Value>| {
                one.map_or(0, |one| {
                    one["status"]["availableReplicas"].as_i64().unwrap_or(0)
                })
            };
            let target = of(stage.find(&format!("{DEPLOYMENTS}/web")).await);
            let primary = of(stage.find(&format!("{DEPLOYMENTS}/web-primary")).await);
            let apex = stage.find(&format!("{SERVICES}/web")).await;
            let leads = apex.map(|apex| apex["spec"]["selector"]["app"].clone());
            was_served &= match leads.as_ref().and_then(Value::as_str) {
                Some("web-primary") => primary > 0,
                Some("web") => target > 0,
                _ => true,
            };
        }
        assert!(was_served, "somebody serves at every moment");
        assert!(stage.find(&format!("{CANARIES}/web")).await.is_none());
        assert_eq!(stage.replicas("web").await, 3);
        assert!(
            stage
                .find(&format!("{DEPLOYMENTS}/web-primary"))
                .await
                .is_none()
        );
    });
}

/// Scenario 111, as in Flagger: without it nothing is reverted, and what is ours goes.
#[test]
fn a_canary_without_a_guard_goes_at_once() {
    play(|stage| async move {
        stage.workload("web:1").await;
        stage.canary(&json!({"analysis": {"iterations": 1}})).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage
            .send("DELETE", &format!("{CANARIES}/web"), &Value::Null)
            .await;
        secs(30).await;
        assert!(stage.find(&format!("{CANARIES}/web")).await.is_none());
        assert!(
            stage
                .find(&format!("{DEPLOYMENTS}/web-primary"))
                .await
                .is_none()
        );
        assert_eq!(stage.replicas("web").await, 0);
    });
}
