//! Canaries that are deleted: what they took is given back, all of it, and to whom it was taken from.

use serde_json::{Value, json};
use slipway_canary::stage::Stage;

use crate::obstacles::command;
use crate::planner::{controllers, push, settle, stage, until};

/// What a Canary that is deleted gave back: whether it still exists, and what its Service leads to.
fn given_back(stage: &mut Stage) -> (Value, Value, Value) {
    for _ in 0..20 {
        let plan = stage.step();
        controllers(stage);
        if plan.steps.is_empty() && plan.statuses.is_empty() {
            stage.now = plan.wake_at.unwrap_or(stage.now);
        }
    }
    let canary = stage.get("Canary", "shop", "web").unwrap();
    let apex = stage.get("Service", "shop", "web").unwrap();
    let target = stage.get("Deployment", "shop", "web").unwrap();
    (
        canary["metadata"]["finalizers"].clone(),
        apex["spec"]["selector"]["app"].clone(),
        target["spec"]["replicas"].clone(),
    )
}

#[test]
fn an_abort_that_was_written_before_a_deletion_is_not_for_it() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    let all_back = (json!([]), json!("web"), json!(3));
    // Both are seen at once.
    let mut both = stage(&json!({"revertOnDeletion": true}));
    until(&mut both, "Initialized");
    push(&mut both, "web:2");
    until(&mut both, "Progressing");
    command(&mut both, "abort");
    both.patch("Canary", "shop", "web", &deleted);
    assert_eq!(given_back(&mut both), all_back);
    // Nobody could hear it.
    let mut suspended = stage(&json!({"revertOnDeletion": true}));
    until(&mut suspended, "Initialized");
    let suspend = json!({"spec": {"suspend": true}});
    suspended.patch("Canary", "shop", "web", &suspend);
    command(&mut suspended, "abort");
    settle(&mut suspended, 200);
    suspended.patch("Canary", "shop", "web", &deleted);
    assert_eq!(given_back(&mut suspended), all_back);
}
