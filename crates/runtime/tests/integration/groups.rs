//! What metrics show of rollout groups and of zone-aware budgets as these come and go.

use serde_json::{Value, json};

use crate::role::{BUDGETS, SETS, define_budgets, design, grant, rule, start, zone};
use crate::stage::{Replica, Stage, secs, virtually};

const GROUP: &str = "rollout-operator.grafana.com";

async fn operated() -> (Stage, Replica) {
    let stage = Stage::new().await;
    define_budgets(&stage).await;
    let mut rules = design();
    rules.push(rule(GROUP, BUDGETS, &["get", "list", "watch"]));
    grant(&stage, "rollout-operator-role", rules).await;
    let replica = start(&stage);
    // It acts when it has been kept from its Lease for long enough.
    secs(20).await;
    assert!(replica.view.is_ready());
    (stage, replica)
}

/// The value of a series; none if there is none.
fn value(replica: &Replica, series: &str) -> Option<f64> {
    let text = replica.view.metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(series))?;
    line.trim().parse().ok()
}

fn budget(name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"rollout-group": "ingester"}});
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// As the original's observer counts them: added, changed, wrong, seen again, deleted.
#[test]
fn budgets_are_counted_as_they_come_change_and_go() {
    virtually(async {
        let (stage, replica) = operated().await;
        let path = format!("/apis/{GROUP}/v1/namespaces/default/{BUDGETS}");
        let observed = |result: &str| {
            let name = "rollout_operator_zpdb_configurations_observed_total";
            value(&replica, &format!("{name}{{result=\"{result}\"}}")).unwrap_or_default()
        };
        stage
            .create(&path, &budget("a", &json!({"maxUnavailable": 1})))
            .await;
        secs(1).await;
        assert!((observed("updated") - 1.0).abs() < 0.1);
        let changed = json!({"spec": {"maxUnavailable": 2}});
        stage.send("PATCH", &format!("{path}/a"), &changed).await;
        secs(1).await;
        assert!((observed("updated") - 2.0).abs() < 0.1);
        // The schema lets it pass; it makes no sense all the same.
        let wrong = budget("b", &json!({"crossZoneEvictionDelay": "20m"}));
        stage.create(&path, &wrong).await;
        secs(1).await;
        assert!((observed("invalid") - 1.0).abs() < 0.1);
        assert!(observed("ignored") < 0.1, "nothing has been seen twice");
        stage
            .send("DELETE", &format!("{path}/a"), &Value::Null)
            .await;
        secs(1).await;
        assert!((observed("deleted") - 1.0).abs() < 0.1);
        assert!((observed("updated") - 2.0).abs() < 0.1);
    });
}

/// `…ShouldDeleteMetricsForDecommissionedRolloutGroups`, and D11: a group that fails for ever keeps the series of
/// a group that is gone, and is tried every five seconds, in the original.
#[test]
fn defect_11_a_group_that_fails_for_ever_disturbs_no_other() {
    virtually(async {
        let (stage, replica) = operated().await;
        for (name, group) in [("good", "good"), ("bad", "bad")] {
            zone(&stage, name).await;
            let label = json!({"metadata": {"labels": {"rollout-group": group}}});
            stage.send("PATCH", &format!("{SETS}/{name}"), &label).await;
        }
        let wrong = json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}});
        stage.send("PATCH", &format!("{SETS}/bad"), &wrong).await;
        secs(10).await;
        let total = |group: &str| {
            let name = "rollout_operator_group_reconciles_total";
            value(&replica, &format!("{name}{{rollout_group=\"{group}\"}}"))
        };
        let failed = "rollout_operator_group_reconciles_failed_total{rollout_group=\"bad\"}";
        assert!(value(&replica, failed).unwrap() > 0.5);
        assert!(total("good").is_some());
        stage
            .send("DELETE", &format!("{SETS}/good"), &Value::Null)
            .await;
        secs(5).await;
        assert_eq!(total("good"), None);
        assert!(
            !replica.view.metrics().contains("\"good\""),
            "{}",
            replica.view.metrics()
        );
        let before = total("bad").unwrap();
        secs(600).await;
        let passes = total("bad").unwrap() - before;
        // One for each heartbeat, and it does come: the time of the last success must not grow old.
        assert!(
            (1.5..6.0).contains(&passes),
            "{passes} passes in ten minutes"
        );
    });
}
