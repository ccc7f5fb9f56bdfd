//! What the API refuses for a while: told once, and gone on from as soon as it is done.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_canary::Canaries;
use slipway_canary::stage::Stage;
use slipway_kernel::fact::{Cause, Refusal};
use slipway_kernel::{ClusterId, Controller, ObjectRef};

use crate::planner::{stage, status};

/// A workload with a config, of which there is no copy yet.
fn configured() -> Stage {
    let mut stage = stage(&json!({}));
    stage.put(map("conf"));
    let env = json!([{"configMapRef": {"name": "conf"}}]);
    let containers = json!([{"name": "c", "image": "web:1", "envFrom": env}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.patch("Deployment", "shop", "web", &patch);
    stage
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop"}, "data": {"k": "1"}})
}

#[test]
fn a_refusal_that_ends_in_the_middle_of_a_second_is_told_once() {
    let mut stage = configured();
    let refusal = Refusal {
        cause: Cause::Rejected,
        reason: "TooManyRequests".to_owned(),
        message: "the server has too much to do".to_owned(),
        attempts: 1,
        since: stage.now + Duration::from_millis(30),
        retry_at: stage.now + Duration::from_millis(300_250),
    };
    let kind = slipway_canary::kinds::CONFIG_MAP;
    let copy = ObjectRef::local(kind, "shop", "conf-primary");
    stage.facts.refusals.insert(copy, refusal);
    let mut written = Vec::new();
    for _ in 0..20 {
        stage.now += Duration::from_secs(1);
        let mut plan = stage.plan();
        plan.steps.clear();
        stage.execute(&plan);
        written.extend(plan.statuses.into_iter().map(|status| status.body));
    }
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "RefusedByApi");
    assert!(
        written.iter().all(|body| *body != json!({})),
        "a request that changes nothing: {written:#?}"
    );
}

/// Whose work a change of a `ConfigMap` is.
fn work(stage: &Stage, map: &str) -> Vec<String> {
    let (stores, home) = (stage.stores(), ClusterId::local());
    let kind = slipway_canary::kinds::CONFIG_MAP;
    let mut interests = Canaries::default().interests_in(&stores, &home).into_iter();
    let interest = interests.find(|interest| interest.kind == kind).unwrap();
    let of_kind = stores.of_kind(&home, &kind);
    let mut found = of_kind.filter_map(|(_, store)| store.get("shop", map));
    let work = (interest.triggers)(&home, &found.next().unwrap().meta, &stores);
    work.into_iter().map(|key| key.name).collect()
}

#[test]
fn the_copy_of_a_config_is_work_for_whom_it_is_made() {
    let mut stage = configured();
    stage.put(map("conf-primary"));
    let told = "nothing else tells that the copy can be made now";
    assert_eq!(work(&stage, "conf-primary"), ["web"], "{told}");
}

/// The version that is taken back was configured with something of another name, which no template names by then.
#[test]
fn the_copy_of_a_config_of_what_serves_is_work_whatever_the_workload_names() {
    let mut stage = configured();
    let first = stage.plan();
    stage.execute(&first);
    let served = json!({"status": {"run": {"promotedConfigs": {"configmap/conf-a": "1"}}}});
    stage.patch("Canary", "shop", "web", &served);
    for name in [
        "conf-a",
        "conf-a-primary",
        "conf-a-primary-former",
        "conf-b",
    ] {
        stage.put(map(name));
    }
    for name in ["conf-a", "conf-a-primary", "conf-a-primary-former"] {
        assert_eq!(work(&stage, name), ["web"], "{name}");
    }
    assert!(work(&stage, "conf-b").is_empty());
}
