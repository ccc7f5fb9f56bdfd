//! Gateway API: a version gets more and more of the traffic while what is measured is good.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{DEPLOYMENTS, ROUTES, Stage, play, secs};

fn by_weights(steps: &Value) -> Value {
    json!({
        "provider": "gatewayapi:v1",
        "service": {"port": 80, "gatewayRefs": [{"name": "gateway", "namespace": "default"}]},
        "analysis": {"stepWeights": steps,
            "metrics": [{"name": "errors", "interval": "1m", "thresholdRange": {"max": 1},
                "query": "sum(rate(errors{app=\"{{ target }}\"}[{{ interval }}]))"}]},
    })
}

async fn set_up(stage: &Stage, steps: &Value) {
    stage.workload("web:1").await;
    stage.world.measure("0.5");
    stage.canary(&by_weights(steps)).await;
}

/// All shares of the traffic that the new version has until a phase is reached, and what follows from that is done.
async fn shares(stage: &Stage, phase: &str, at_most: u64) -> Vec<i64> {
    let mut all = vec![stage.share().await];
    let mut left = at_most * 10;
    while left > 0 {
        if stage.phase().await == phase {
            left = left.min(10);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let share = stage.share().await;
        if all.last() != Some(&share) {
            all.push(share);
        }
        left -= 1;
    }
    assert_eq!(stage.phase().await, phase, "{:#}", stage.status().await);
    all
}

#[test]
fn a_good_version_is_promoted_step_by_step() {
    play(|stage| async move {
        set_up(&stage, &json!([10, 30, 60])).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        let shares = shares(&stage, "Succeeded", 200).await;
        assert_eq!(shares, [0, 10, 30, 60, 0]);
        assert_eq!(stage.image("web-primary").await, "web:2");
        assert_eq!(stage.replicas("web").await, 0);
        let queries = stage.world.queries();
        assert!(!queries.is_empty());
        assert!(
            queries
                .iter()
                .all(|one| one.contains("web") && one.contains("1m")),
            "{queries:?}"
        );
        let status = stage.status().await;
        assert_eq!(status["checks"][0]["verdict"], "Passed");
        assert_eq!(status["checks"][0]["value"], 0.5);
    });
}

/// Scenario 65: a bad measure halts, and as many as may be send the version back at once.
#[test]
fn a_bad_version_goes_back_when_enough_checks_have_failed() {
    play(|stage| async move {
        set_up(&stage, &json!([10, 30, 60])).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        while stage.share().await < 30 {
            secs(1).await;
        }
        stage.world.measure("7");
        let shares = shares(&stage, "Failed", 60).await;
        assert_eq!(shares, [30, 0]);
        let status = stage.status().await;
        assert_eq!(status["failedChecks"], 2);
        assert_eq!(status["conditions"][0]["status"], "False");
        secs(10).await;
        assert_eq!(stage.image("web-primary").await, "web:1");
        assert_eq!(stage.replicas("web").await, 0);
        // The same version does not come again by itself.
        secs(120).await;
        assert_eq!(stage.phase().await, "Failed");
    });
}

/// Scenario 67: nothing measured is no good measure.
#[test]
fn without_data_the_check_fails_unless_it_is_to_hold() {
    play(|stage| async move {
        stage.workload("web:1").await;
        let mut spec = by_weights(&json!([50]));
        spec["analysis"]["metrics"][0]["noData"] = json!("hold");
        stage.canary(&spec).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        while stage.share().await < 50 {
            secs(1).await;
        }
        secs(60).await;
        assert_eq!(stage.share().await, 50);
        assert_eq!(stage.status().await["failedChecks"], 0);
        assert_eq!(stage.waits().await, ["NoData"]);
        stage.world.measure("0");
        stage.until("Succeeded", 60).await;
    });
}

/// D7: a version that comes in the middle gets no traffic before it is analysed.
#[test]
fn a_newer_version_in_the_middle_begins_anew() {
    play(|stage| async move {
        set_up(&stage, &json!([20, 40, 60])).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        while stage.share().await < 40 {
            secs(1).await;
        }
        stage.push("web:3").await;
        secs(1).await;
        assert_eq!(stage.share().await, 0, "it is taken out at once");
        let shares = shares(&stage, "Succeeded", 200).await;
        assert_eq!(shares, [0, 20, 40, 60, 0]);
        assert_eq!(stage.image("web-primary").await, "web:3");
    });
}

/// D2: who puts the old version back in the middle has cancelled the run.
#[test]
fn the_serving_version_in_the_middle_ends_the_run() {
    play(|stage| async move {
        set_up(&stage, &json!([20, 40, 60])).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        while stage.share().await < 40 {
            secs(1).await;
        }
        stage.push("web:1").await;
        let shares = shares(&stage, "Succeeded", 60).await;
        assert_eq!(shares, [40, 0]);
        assert_eq!(stage.image("web-primary").await, "web:1");
        secs(120).await;
        assert_eq!(stage.phase().await, "Succeeded", "no second run begins");
    });
}

/// Somebody who edits the route does not begin the analysis anew, and the weights are kept.
#[test]
fn a_route_that_somebody_edits_keeps_its_weights() {
    play(|stage| async move {
        set_up(&stage, &json!([20, 40, 60])).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        while stage.share().await < 20 {
            secs(1).await;
        }
        stage
            .patch(
                &format!("{ROUTES}/web"),
                &json!({"spec": {"hostnames": ["a.example"]}}),
            )
            .await;
        let shares = shares(&stage, "Succeeded", 200).await;
        assert_eq!(shares, [20, 40, 60, 0]);
    });
}

/// The primary rolls with what its strategy allows: it is never without pods (the stage looks), and the target is there until
/// the traffic has moved.
#[test]
fn the_target_stays_until_the_copy_has_the_traffic() {
    play(|stage| async move {
        set_up(&stage, &json!([50, 100])).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        stage.until("Promoting", 120).await;
        loop {
            let (share, phase) = (stage.share().await, stage.phase().await);
            if phase == "Succeeded" {
                break;
            }
            let target = stage.get(&format!("{DEPLOYMENTS}/web")).await;
            if share > 0 {
                assert_eq!(target["spec"]["replicas"], 3);
            }
            secs(1).await;
        }
    });
}

/// Without the kinds of its provider, a Canary says so and touches nothing.
#[test]
fn a_provider_whose_kinds_are_not_served_is_named() {
    play(|stage| async move {
        stage.workload("web:1").await;
        stage
            .canary(&json!({"provider": "istio", "analysis": {"stepWeight": 10}}))
            .await;
        let _operator = stage.operate();
        secs(60).await;
        assert_eq!(stage.waits().await, ["RouteNotFound"]);
        assert_eq!(stage.replicas("web").await, 3);
    });
}
