//! Claims: nobody else disrupts a workload for as long as its run goes on, and anybody may afterwards.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_canary::stage::Stage;
use slipway_kernel::Action;
use slipway_kernel::claim::Claim;
use slipway_kernel::plan::Step;

use crate::obstacles::command;
use crate::planner::{phase, push, settle, stage, until};

const CLAIM: &str = "slipway.dev/disruption-claim";

/// Who has a claim on a workload that holds now.
fn holder(stage: &Stage, name: &str, now: Timestamp) -> Option<String> {
    let object = stage.get("Deployment", "shop", name).unwrap();
    let claim = object["metadata"]["annotations"].get(CLAIM)?;
    Some(Claim::read(claim.as_str().unwrap(), now)?.holder)
}

fn gated() -> Stage {
    let hooks =
        json!([{"name": "gate", "type": "confirm-promotion", "url": "http://gate.test/gate"}]);
    let mut stage = stage(&json!({"analysis": {"webhooks": hooks}}));
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    for _ in 0..10 {
        settle(&mut stage, 403);
        stage.now += Duration::from_secs(10);
    }
    assert_eq!(phase(&stage), "WaitingPromotion");
    stage
}

/// A claim is for the time of a run that nobody holds up, which a gate may do for days, a person, or a mistake.
#[test]
fn a_claim_lasts_as_long_as_its_run() {
    let scaler = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web"});
    let wrong = json!({"spec": {"autoscalerRef": scaler}});
    for patch in [json!({}), json!({"spec": {"suspend": true}}), wrong] {
        let mut stage = gated();
        stage.patch("Canary", "shop", "web", &patch);
        for hour in 0..72 {
            settle(&mut stage, 403);
            // Who looks a little before the operator does again finds it as well.
            let then = stage.now + Duration::from_secs(9);
            assert_eq!(
                holder(&stage, "web", then).as_deref(),
                Some("canary"),
                "hour {hour} with {patch}"
            );
            stage.now += Duration::from_hours(1);
        }
    }
}

/// Its run is left as it is when its spec cannot be read any more, and its status says which one that is.
#[test]
fn a_claim_lasts_though_its_canary_cannot_be_read() {
    let mut stage = gated();
    let number = json!({"spec": {"targetRef": {"name": 7}}});
    stage.patch("Canary", "shop", "web", &number);
    for hour in 0..72 {
        settle(&mut stage, 403);
        let then = stage.now + Duration::from_secs(9);
        let held = holder(&stage, "web", then);
        assert_eq!(held.as_deref(), Some("canary"), "hour {hour}");
        stage.now += Duration::from_hours(1);
    }
    // One that is in the middle of nothing leaves the claims on its workload to who is.
    let mut idle = gated();
    command(&mut idle, "abort");
    for _ in 0..5 {
        let plans = settle(&mut idle, 200);
        idle.now = plans.last().unwrap().wake_at.unwrap_or(idle.now);
    }
    assert_eq!(phase(&idle), "Failed");
    assert_eq!(holder(&idle, "web", idle.now), None);
    let other = json!({"holder": "canary", "until": "2099-01-01T00:00:00Z"}).to_string();
    let claimed = json!({"metadata": {"annotations": {CLAIM: other}}});
    idle.patch("Deployment", "shop", "web", &claimed);
    idle.patch("Canary", "shop", "web", &number);
    settle(&mut idle, 200);
    let held = holder(&idle, "web", idle.now);
    assert_eq!(held.as_deref(), Some("canary"));
}

/// A run that waits renews its claim in time, and no more often than it has to.
#[test]
fn a_claim_is_renewed_in_the_middle_of_its_time() {
    let mut stage = gated();
    command(&mut stage, "pause");
    settle(&mut stage, 200);
    let mut renewed = 0;
    for _ in 0..20 {
        let plans = settle(&mut stage, 200);
        renewed += plans.iter().filter(|plan| !plan.steps.is_empty()).count();
        let last = plans.last().unwrap();
        let Some(wake) = last.wake_at else {
            panic!("nobody looks at it again: {last:#?}");
        };
        let until = stage.get("Deployment", "shop", "web").unwrap();
        let until: Value =
            serde_json::from_str(until["metadata"]["annotations"][CLAIM].as_str().unwrap())
                .unwrap();
        let until: Timestamp = until["until"].as_str().unwrap().parse().unwrap();
        assert!(stage.now < wake && wake < until, "{wake} {until}");
        stage.now = wake;
    }
    assert!((15..=20).contains(&renewed), "{renewed}");
}

/// Whether a step claims what is promoted into.
fn claims_copy(step: &Step) -> bool {
    let body = match &step.action {
        Action::Patch { target, body, .. } if target.object().name == "web-primary" => body,
        _ => return false,
    };
    let claim = &body["metadata"]["annotations"][CLAIM];
    claim.as_str().is_some_and(|claim| claim.contains("canary"))
}

/// Who is named from the next run on is not who has the claims of this one.
#[test]
fn a_claim_ends_with_its_run_whatever_workload_is_named_by_then() {
    let mut stage = gated();
    let named = json!({"spec": {"targetRef": {"name": "api"}}});
    stage.patch("Canary", "shop", "web", &named);
    let mut was_claimed = false;
    for _ in 0..40 {
        let plans = settle(&mut stage, 200);
        let mut steps = plans.iter().flat_map(|plan| &plan.steps);
        was_claimed |= steps.any(claims_copy);
        stage.now = plans.last().unwrap().wake_at.unwrap_or(stage.now);
    }
    assert!(was_claimed);
    assert_eq!(phase(&stage), "Succeeded");
    for name in ["web", "web-primary"] {
        assert_eq!(holder(&stage, name, stage.now), None, "{name}");
    }
}

/// What serves is nobody's when the run is over.
#[test]
fn a_claim_ends_with_its_run() {
    let mut good = stage(&json!({}));
    until(&mut good, "Initialized");
    push(&mut good, "web:2");
    let plans = until(&mut good, "Succeeded");
    let mut steps = plans.iter().flat_map(|plan| &plan.steps);
    assert!(steps.any(claims_copy), "what is promoted into is claimed");
    settle(&mut good, 200);
    for name in ["web", "web-primary"] {
        assert_eq!(holder(&good, name, good.now), None, "{name}");
    }
    let plan = good.plan();
    assert!(plan.steps.is_empty() && plan.wake_at.is_none(), "{plan:#?}");
    // The same of one that is sent back in the middle of its promotion.
    let mut bad = gated();
    command(&mut bad, "abort");
    for _ in 0..5 {
        let plans = settle(&mut bad, 200);
        bad.now = plans.last().unwrap().wake_at.unwrap_or(bad.now);
    }
    assert_eq!(phase(&bad), "Failed");
    for name in ["web", "web-primary"] {
        assert_eq!(holder(&bad, name, bad.now), None, "{name}");
    }
}
