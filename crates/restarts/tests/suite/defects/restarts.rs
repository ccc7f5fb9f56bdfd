//! B9–B11: when workloads are restarted, and when not.

use serde_json::{Value, json};
use slipway_api::names;

use crate::objects::*;

/// A Deployment whose controller says that all is well.
pub(crate) fn healthy(name: &str, stamp: Option<&str>) -> Value {
    let mut object = deployment("d", name, MESH, stamp);
    object["spec"]["replicas"] = json!(2);
    object["status"] = json!({
        "observedGeneration": 1_000_000, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    });
    object
}

#[test]
fn b9_b16_a_backlog_is_drained_within_the_limit_the_oldest_first() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"maxConcurrent": 2})));
    for (name, age) in [("a", 11), ("b", 500), ("c", 30), ("d", 70), ("e", 12)] {
        stage.put(healthy(name, Some(&ago(age))));
    }
    let mut order = Vec::new();
    for _ in 0..10 {
        let begun = restarted(&stage.step());
        assert!(begun.len() <= 2);
        for name in &begun {
            let name = name.trim_start_matches("d/");
            stage.patch(
                "Deployment",
                "d",
                name,
                &json!({"status": {"updatedReplicas": 1}}),
            );
        }
        // Nothing more begins while these roll.
        assert!(restarted(&stage.step()).is_empty());
        for name in &begun {
            let name = name.trim_start_matches("d/");
            stage.patch(
                "Deployment",
                "d",
                name,
                &json!({"status": {"updatedReplicas": 2}}),
            );
        }
        order.extend(begun);
        stage.now += jiff::SignedDuration::from_secs(5);
    }
    assert_eq!(order, ["d/b", "d/d", "d/c", "d/e", "d/a"]);
}

#[test]
fn b9_jitter_spreads_workloads_that_were_stamped_together() {
    let mut stage = stage();
    stage.put(flipper(
        "default",
        "f",
        &json!({"interval": "10m", "jitter": "10m"}),
    ));
    for number in 0..40 {
        stage.put(deployment("d", &format!("w{number}"), MESH, Some(&ago(10))));
    }
    let mut most = 0;
    let mut all = 0;
    for _ in 0..=60 {
        let begun = restarted(&stage.step()).len();
        most = most.max(begun);
        all += begun;
        stage.now += jiff::SignedDuration::from_secs(10);
    }
    assert_eq!(all, 40, "each once within the jitter");
    assert!(most <= 6, "{most} at once");
}

#[test]
fn b10_a_rollout_is_waited_for_and_a_failed_one_is_not_hidden() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({})));
    let mut rolling = healthy("rolling", Some(&ago(11)));
    rolling["status"]["updatedReplicas"] = json!(1);
    let mut failed = healthy("failed", Some(&ago(11)));
    failed["status"]["updatedReplicas"] = json!(1);
    failed["status"]["conditions"] =
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    let mut lagging = healthy("lagging", Some(&ago(11)));
    lagging["metadata"]["generation"] = json!(7);
    lagging["status"]["observedGeneration"] = json!(6);
    let mut paused = healthy("paused", Some(&ago(11)));
    paused["spec"]["paused"] = json!(true);
    let mut empty = healthy("empty", Some(&ago(11)));
    empty["spec"]["replicas"] = json!(0);
    for object in [rolling, failed, lagging, paused, empty] {
        stage.put(object);
    }
    for _ in 0..60 {
        assert!(stage.step().steps.is_empty());
        stage.now += minutes(1);
    }
    assert_eq!(
        condition(&stage, "default", "f", "Ready").unwrap(),
        ("False".to_owned(), "RolloutFailed".to_owned())
    );
    let mut reasons = waiting(&stage, "default", "f");
    reasons.sort();
    assert_eq!(
        reasons,
        [
            "Paused",
            "RolloutFailed",
            "RolloutInProgress",
            "RolloutInProgress"
        ]
    );
    stage.patch(
        "Flipper",
        "default",
        "f",
        &json!({"spec": {"whenRolloutInProgress": "Ignore"}}),
    );
    assert_eq!(
        restarted(&stage.step()),
        ["d/failed", "d/lagging", "d/rolling"]
    );
}

#[test]
fn b11_a_restart_by_a_person_counts() {
    let mut stage = stage();
    let mut object = deployment("d", "a", MESH, Some(&ago(11)));
    object["spec"]["template"]["metadata"]["annotations"][names::RESTARTED_AT] = json!(ago(2));
    stage.put(object);
    let plan = stage.step();
    assert!(restarted(&plan).is_empty());
    assert_eq!(plan.wake_at, Some(at(&ago(2)) + minutes(10)));
    // One in the future, or one that is no time, counts as none.
    for other in [ago(-5), "yesterday".to_owned()] {
        let change = json!({"spec": {"template": {"metadata": {"annotations": {names::RESTARTED_AT: other}}}}});
        stage.patch("Deployment", "d", "a", &change);
        assert_eq!(restarted(&stage.plan()), ["d/a"], "{other}");
    }
}

#[test]
fn b11_going_back_to_an_earlier_revision_brings_no_restart_at_once() {
    let mut stage = stage();
    let mut object = deployment("d", "a", MESH, Some(&ago(300)));
    let stamp = format!("f:{}", names::LAST_RESTART);
    object["metadata"]["managedFields"] = json!([
        {"manager": "slipway", "operation": "Update", "time": ago(20), "fieldsV1": {"f:metadata": {"f:annotations": {"f:other": {}}}}},
        {"manager": "kubectl", "operation": "Update", "time": ago(4), "fieldsV1": {"f:metadata": {"f:annotations": {stamp: {}}}}},
    ]);
    stage.put(object.clone());
    let plan = stage.step();
    assert!(plan.steps.is_empty());
    assert_eq!(plan.wake_at, Some(at(&ago(4)) + minutes(10)));
    // A person who writes an old stamp by hand wants a restart.
    object["metadata"]["managedFields"][1]["manager"] = json!("kubectl-annotate");
    stage.put(object);
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}
