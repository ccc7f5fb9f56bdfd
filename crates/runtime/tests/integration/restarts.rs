//! Restarts on real watches: what people do to a workload with kubectl is seen as it comes over the wire.

use std::sync::Arc;

use serde_json::{Value, json};
use slipway_api::names::{LAST_RESTART, RESTARTED_AT};
use slipway_restarts::Restarts;
use slipway_runtime::{Environment, Operator};

use crate::stage::{Replica, Stage, alone, epoch, secs, virtually};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const FLIPPER: &str = "/apis/flipper.io.github.com/v1alpha1/namespaces/default/flippers/often";
const INTERVAL: u64 = 600;

/// An operator that restarts `web` every ten minutes, after its first restart.
async fn restarted() -> (Stage, Replica) {
    let stage = Stage::new().await;
    let mut all = slipway_api::crds::crds().into_iter();
    let definition = all.find(|one| one.spec.names.plural == "flippers").unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = serde_json::to_value(definition).unwrap();
    stage.create(definitions, &definition).await;
    secs(1).await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"mesh": "true"}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}},
    });
    stage
        .create(DEPLOYMENT.trim_end_matches("/web"), &deployment)
        .await;
    let flipper = json!({
        "apiVersion": "flipper.io.github.com/v1alpha1", "kind": "Flipper", "metadata": {"name": "often"},
        "spec": {"interval": "10m", "match": {"labels": {"mesh": "true"}}},
    });
    stage
        .create(FLIPPER.trim_end_matches("/often"), &flipper)
        .await;
    let environment = Environment::virtual_from(epoch(), 7);
    let operator = Operator::new(environment, stage.client("slipway"), alone());
    let replica = Replica::run(operator.with(Arc::new(Restarts::default())));
    secs(5).await;
    assert!(stamp(&stage).await.is_some(), "it has been seen");
    assert_eq!(restarted_at(&stage).await, None);
    secs(INTERVAL).await;
    assert!(restarted_at(&stage).await.is_some(), "the first restart");
    (stage, replica)
}

async fn stamp(stage: &Stage) -> Option<String> {
    let found = stage.get(DEPLOYMENT).await;
    let stamp = found["metadata"]["annotations"].get(LAST_RESTART)?.as_str();
    stamp.map(str::to_owned)
}

async fn restarted_at(stage: &Stage) -> Option<String> {
    let found = stage.get(DEPLOYMENT).await;
    let template = &found["spec"]["template"]["metadata"];
    let at = template["annotations"].get(RESTARTED_AT)?.as_str();
    at.map(str::to_owned)
}

/// Asserts that nothing is restarted for so long.
async fn quiet(stage: &Stage, seconds: u64) {
    let before = restarted_at(stage).await;
    for second in 0..seconds {
        secs(1).await;
        assert_eq!(restarted_at(stage).await, before, "after {second} s");
    }
}

/// B11. kubectl brings the old stamp back together with the old pod template.
#[test]
fn kubectl_rollout_undo_is_not_followed_by_a_restart() {
    virtually(async {
        let (stage, _replica) = restarted().await;
        let earlier = restarted_at(&stage).await;
        secs(INTERVAL).await;
        assert_ne!(restarted_at(&stage).await, earlier, "the second restart");
        secs(60).await;
        let undo = json!({
            "metadata": {"annotations": {LAST_RESTART: earlier}},
            "spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: earlier}}}},
        });
        let path = format!("{DEPLOYMENT}?fieldManager=kubectl-rollout");
        stage.send("PATCH", &path, &undo).await;
        quiet(&stage, INTERVAL - 5).await;
        assert_eq!(restarted_at(&stage).await, earlier);
        secs(10).await;
        assert_ne!(restarted_at(&stage).await, earlier, "an interval later");
    });
}

/// B17. Somebody who removes our stamp is not fought with, and the next restart comes when it would have.
#[test]
fn a_stamp_that_is_removed_stays_so_and_delays_nothing() {
    virtually(async {
        let (stage, _replica) = restarted().await;
        let first = restarted_at(&stage).await;
        secs(60).await;
        let removal = json!({"metadata": {"annotations": {LAST_RESTART: Value::Null}}});
        let path = format!("{DEPLOYMENT}?fieldManager=gitops");
        stage.send("PATCH", &path, &removal).await;
        for _ in 0..INTERVAL / 60 - 2 {
            secs(60).await;
            assert_eq!(stamp(&stage).await, None, "it is not written again");
            assert_eq!(restarted_at(&stage).await, first);
        }
        let status = stage.get(FLIPPER).await;
        let waits = status["status"]["waitingFor"].as_array().unwrap();
        let told = waits.iter().any(|wait| wait["reason"] == "StampRemoved");
        assert!(told, "{waits:?}");
        secs(60).await;
        assert_ne!(restarted_at(&stage).await, first, "it comes in time");
    });
}
