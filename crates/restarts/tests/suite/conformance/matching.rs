//! M1–M7: which policy decides about a workload.

use serde_json::json;
use slipway_restarts::stage::Stage;

use crate::objects::*;

/// Who decides about a Deployment, by asking for its explanation.
fn decider(stage: &Stage, namespace: &str, name: &str) -> Option<String> {
    let stores = stage.stores();
    let key = slipway_restarts::observe::sweep(&slipway_kernel::ClusterId::local());
    let world = stage.planner.observe(&stores, &stage.facts, &key).unwrap();
    let kind = slipway_kernel::identity::kinds::DEPLOYMENT;
    let object = slipway_kernel::ObjectRef::local(kind, namespace, name);
    let explained = stage.planner.explain(&world, &object, stage.now)?;
    let policy = explained.policy.map(|policy| policy.name);
    Some(policy.unwrap_or_else(|| "default".to_owned()))
}

/// No policy matches a Deployment.
fn is_unmanaged(stage: &Stage, namespace: &str, name: &str) -> bool {
    decider(stage, namespace, name).is_none()
}

#[test]
fn m1_default_criteria_match_mesh_true() {
    let mut stage = stage();
    stage.put(deployment("any", "a", MESH, Some(&ago(9))));
    assert_eq!(decider(&stage, "any", "a"), Some("default".to_owned()));
    let criteria = stage.planner.settings().default_criteria.clone().unwrap();
    assert_eq!(criteria.interval.as_secs(), 600);
    assert_eq!(criteria.labels.len(), 1);
    assert!(criteria.namespaces.is_empty());
}

#[test]
fn m2_any_label_and_the_namespace_match() {
    let mut stage = stage();
    let spec = json!({"match": {"labels": {"foo": "bar", "mesh": "true"}, "namespaces": ["data"]}});
    stage.put(flipper("default", "mesh-flipper", &spec));
    let mut orders = deployment("data", "orders", MESH, None);
    orders["metadata"]["labels"]["app"] = json!("orders");
    stage.put(orders);
    let found = decider(&stage, "data", "orders");
    assert_eq!(found, Some("mesh-flipper".to_owned()));
}

#[test]
fn m3_of_two_flippers_the_one_that_matches() {
    let mut stage = stage();
    let mesh = json!({"interval": "2m", "match": {"labels": {"foo": "bar", "mesh": "true"}, "namespaces": ["data"]}});
    let other = json!({"interval": "5m", "match": {"labels": {"foo": "bar", "mesh": "false"}, "namespaces": ["payment"]}});
    stage.put(flipper("default", "mesh-flipper", &mesh));
    stage.put(flipper("default", "non-mesh-flipper", &other));
    stage.put(deployment("data", "orders", MESH, None));
    let found = decider(&stage, "data", "orders");
    assert_eq!(found, Some("mesh-flipper".to_owned()));
}

#[test]
fn m4_no_namespaces_match_any() {
    let mut stage = stage();
    let spec = json!({"match": {"labels": {"mesh": "true"}, "namespaces": []}});
    stage.put(flipper("default", "f", &spec));
    stage.put(deployment("data", "a", MESH, None));
    assert!(!is_unmanaged(&stage, "data", "a"));
}

#[test]
fn m5_one_of_several_namespaces() {
    let mut stage = stage();
    let spec = json!({"match": {"namespaces": ["data", "inventory"]}});
    stage.put(flipper("default", "f", &spec));
    stage.put(deployment("data", "a", MESH, None));
    assert!(!is_unmanaged(&stage, "data", "a"));
}

#[test]
fn m6_no_label_in_common() {
    let mut stage = stage();
    let spec = json!({"match": {"labels": {"foo": "bar", "mesh": "true"}}});
    stage.put(flipper("default", "f", &spec));
    let mut orders = deployment("data", "orders", ("mesh", "false"), None);
    orders["metadata"]["labels"]["app"] = json!("orders");
    stage.put(orders);
    assert!(is_unmanaged(&stage, "data", "orders"));
}

#[test]
fn m7_another_namespace() {
    let mut stage = stage();
    let spec = json!({"match": {"labels": {"mesh": "true"}, "namespaces": ["data"]}});
    stage.put(flipper("default", "f", &spec));
    stage.put(deployment("search", "a", MESH, None));
    assert!(is_unmanaged(&stage, "search", "a"));
}
