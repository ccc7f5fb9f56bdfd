//! The behaviour of the controller that this replaces, by the numbers of its conformance list: M1–M7 matching, U1–U10
//! one decision, C1–C11 additions, I1–I4 a running controller, D1–D4 its demo.

use serde_json::json;
use slipway_api::names;
use slipway_kernel::Facts;
use slipway_restarts::stage::Stage;

use crate::objects::*;

/// Who decides about a Deployment, by asking for its explanation.
fn decider(stage: &Stage, namespace: &str, name: &str) -> Option<Option<String>> {
    let world = stage.world().unwrap();
    let kind = slipway_kernel::identity::kinds::DEPLOYMENT;
    let object = slipway_kernel::ObjectRef::local(kind, namespace, name);
    let explained = stage.restarts.explain(&world, &object, stage.now)?;
    Some(explained.policy.map(|policy| policy.name))
}

/// No policy matches a Deployment.
fn is_unmanaged(stage: &Stage, namespace: &str, name: &str) -> bool {
    decider(stage, namespace, name).is_none()
}

#[test]
fn m1_default_criteria_match_mesh_true() {
    let mut stage = stage();
    stage.put(deployment("any", "a", MESH, Some(&ago(9))));
    assert_eq!(decider(&stage, "any", "a"), Some(None));
    let criteria = stage.restarts.settings().default_criteria.clone().unwrap();
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
    assert_eq!(found, Some(Some("mesh-flipper".to_owned())));
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
    assert_eq!(found, Some(Some("mesh-flipper".to_owned())));
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

#[test]
fn u1_overdue_is_restarted_and_looked_at_after_a_full_interval() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    let plan = stage.step();
    let now = template_stamp(&stage, "d", "a").unwrap();
    assert_eq!(now, "2026-03-04T12:00:00Z");
    assert_eq!(wait(&plan, noon()), Some(minutes(10)));
}

#[test]
fn u2_first_seen_is_stamped_and_not_restarted() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, None));
    let plan = stage.step();
    assert_eq!(template_stamp(&stage, "d", "a"), None);
    assert_eq!(own_stamp(&stage, "d", "a").unwrap(), "2026-03-04T12:00:00Z");
    assert_eq!(wait(&plan, noon()), Some(minutes(10)));
}

#[test]
fn u3_not_yet() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(2))));
    let plan = stage.step();
    assert_eq!(template_stamp(&stage, "d", "a").unwrap(), ago(2));
    let wait = wait(&plan, noon()).unwrap();
    assert!(wait < minutes(10) && wait > minutes(7), "{wait}");
}

#[test]
fn u4_a_stamp_that_is_no_rfc_3339_time_is_no_error() {
    let mut stage = stage();
    stage.put(deployment(
        "d",
        "a",
        MESH,
        Some("Wed, 04 Mar 2026 11:50:00 UTC"),
    ));
    let plan = stage.step();
    assert!(restarted(&plan).is_empty());
    assert_eq!(wait(&plan, noon()), Some(minutes(10)));
}

#[test]
fn u5_a_stamp_in_the_future_waits_a_full_interval() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(-5))));
    let plan = stage.step();
    assert_eq!(template_stamp(&stage, "d", "a").unwrap(), ago(-5));
    assert_eq!(own_stamp(&stage, "d", "a").unwrap(), ago(-5));
    assert_eq!(wait(&plan, noon()), Some(minutes(10)));
}

#[test]
fn u6_another_label_is_left_alone_for_good() {
    let mut stage = stage();
    stage.put(deployment("d", "a", ("mesh", "false"), Some(&ago(11))));
    let plan = stage.step();
    assert_eq!(template_stamp(&stage, "d", "a").unwrap(), ago(11));
    assert_eq!(wait(&plan, noon()), None);
}

fn foo_flipper() -> serde_json::Value {
    let spec =
        json!({"interval": "3m", "match": {"labels": {"foo": "bar"}, "namespaces": ["service"]}});
    flipper("default", "foo-flipper", &spec)
}

#[test]
fn u7_a_flipper_restarts_by_its_own_interval() {
    let mut stage = stage();
    stage.put(foo_flipper());
    stage.put(deployment("service", "a", ("foo", "bar"), Some(&ago(11))));
    let plan = stage.step();
    assert_eq!(restarted(&plan), ["service/a"]);
    assert_eq!(wait(&plan, noon()), Some(minutes(3)));
}

#[test]
fn u8_another_namespace_is_left_alone_for_good() {
    let mut stage = stage();
    stage.put(foo_flipper());
    stage.put(deployment("random", "a", ("foo", "bar"), Some(&ago(11))));
    let plan = stage.step();
    assert!(plan.steps.is_empty());
    assert_eq!(wait(&plan, noon()), None);
}

#[test]
fn u9_no_deployment_is_no_error() {
    let plan = stage().step();
    assert!(plan.steps.is_empty());
    assert_eq!(wait(&plan, noon()), None);
}

#[test]
fn u10_one_that_is_being_deleted_is_left_alone() {
    let mut stage = stage();
    let mut object = deployment("d", "a", MESH, None);
    object["metadata"]["deletionTimestamp"] = json!("2026-03-04T11:00:00Z");
    object["metadata"]["finalizers"] = json!(["x/y"]);
    stage.put(object);
    let plan = stage.step();
    assert!(plan.steps.is_empty());
    assert_eq!(wait(&plan, noon()), None);
}

#[test]
fn c1_equality_restarts_and_a_second_less_waits() {
    let mut stage = stage();
    stage.now = at("2026-03-04T12:00:00Z");
    stage.put(deployment("d", "equal", MESH, Some("2026-03-04T11:50:00Z")));
    stage.put(deployment("d", "less", MESH, Some("2026-03-04T11:50:01Z")));
    let plan = stage.step();
    assert_eq!(restarted(&plan), ["d/equal"]);
    assert_eq!(wait(&plan, stage.now).unwrap().as_secs(), 1);
}

#[test]
fn c2_one_patch_writes_both_keys_with_the_same_value() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    let plan = stage.plan();
    let bodies = bodies(&plan);
    let [body] = bodies.as_slice() else {
        panic!("one patch, but {bodies:?}");
    };
    let value = "2026-03-04T12:00:00Z";
    assert_eq!(body["metadata"]["annotations"][names::LAST_RESTART], value);
    let template = json!({"template": {"metadata": {"annotations": {names::RESTARTED_AT: value}}}});
    assert_eq!(body["spec"], template);
    let claim = body["metadata"]["annotations"][names::DISRUPTION_CLAIM]
        .as_str()
        .unwrap();
    assert_eq!(
        claim,
        r#"{"holder":"restarts","until":"2026-03-04T12:10:00Z"}"#
    );
    assert_eq!(
        body["metadata"]["annotations"].as_object().unwrap().len(),
        2
    );
}

#[test]
fn c3_a_stamp_touches_only_the_workloads_own_metadata() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, None));
    let expected =
        json!({"metadata": {"annotations": {names::LAST_RESTART: "2026-03-04T12:00:00Z"}}});
    assert_eq!(bodies(&stage.plan()), [&expected]);
}

#[test]
fn c4_an_empty_stamp_is_none() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some("")));
    let plan = stage.step();
    assert_eq!(stamped(&plan), ["d/a"]);
    assert!(!news(&plan).contains(&"StampRepaired"));
}

#[test]
fn c5_a_stamp_that_is_no_time_is_repaired_and_told() {
    let mut stage = stage();
    stage.put(deployment(
        "d",
        "a",
        MESH,
        Some("Wed, 04 Mar 2026 11:50:00 UTC"),
    ));
    let plan = stage.step();
    assert_eq!(own_stamp(&stage, "d", "a").unwrap(), "2026-03-04T12:00:00Z");
    assert!(news(&plan).contains(&"StampRepaired"));
}

#[test]
fn c6_the_default_returns_when_the_last_flipper_goes() {
    let mut stage = stage();
    stage.put(foo_flipper());
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert!(restarted(&stage.step()).is_empty());
    stage.delete("Flipper", "default", "foo-flipper");
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

#[test]
fn c7_the_default_does_not_return_while_another_flipper_is_there() {
    let mut stage = stage();
    stage.put(foo_flipper());
    stage.put(flipper(
        "default",
        "other",
        &json!({"match": {"labels": {"x": "y"}}}),
    ));
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    stage.step();
    stage.delete("Flipper", "default", "foo-flipper");
    for _ in 0..30 {
        stage.now += minutes(1);
        assert!(restarted(&stage.step()).is_empty());
    }
}

#[test]
fn c8_a_new_flipper_is_followed_at_once() {
    let mut stage = stage();
    stage.put(deployment("service", "a", ("foo", "bar"), Some(&ago(11))));
    assert!(restarted(&stage.step()).is_empty());
    stage.put(foo_flipper());
    assert_eq!(restarted(&stage.step()), ["service/a"]);
}

#[test]
fn c9_a_changed_interval_is_followed_at_once() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"interval": "1h"})));
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert!(restarted(&stage.step()).is_empty());
    let shorter = json!({"spec": {"interval": "5m"}});
    stage.patch("Flipper", "default", "f", &shorter);
    assert_eq!(restarted(&stage.step()), ["d/a"]);
    let longer = json!({"spec": {"interval": "2h"}});
    stage.patch("Flipper", "default", "f", &longer);
    stage.now += minutes(6);
    assert!(restarted(&stage.step()).is_empty());
}

#[test]
fn c10_a_new_process_keeps_the_phase() {
    let mut before = stage();
    before.put(deployment("d", "a", MESH, Some(&ago(3))));
    before.put(deployment("d", "b", MESH, Some(&ago(7))));
    before.now += minutes(2);
    // A planner remembers nothing, so another one over the same objects is a new process.
    assert!(restarted(&before.step()).is_empty());
    before.now += minutes(1);
    assert_eq!(restarted(&before.step()), ["d/b"]);
    before.now += minutes(4);
    assert_eq!(restarted(&before.step()), ["d/a"]);
}

#[test]
fn c11_labels_of_the_pod_template_do_not_match() {
    let mut stage = stage();
    let mut object = deployment("d", "a", ("app", "a"), Some(&ago(11)));
    object["spec"]["template"]["metadata"]["labels"] = json!({"mesh": "true"});
    stage.put(object);
    assert!(stage.step().steps.is_empty());
}

/// Lets time pass in steps of ten seconds; how often each workload was restarted meanwhile.
fn pass(stage: &mut Stage, minutes: i64) -> Vec<(String, usize)> {
    let mut all = std::collections::BTreeMap::new();
    for _ in 0..minutes * 6 {
        stage.now += jiff::SignedDuration::from_secs(10);
        for name in restarted(&stage.step()) {
            *all.entry(name).or_default() += 1;
        }
    }
    all.into_iter().collect()
}

fn times(name: &str, times: usize) -> (String, usize) {
    (name.to_owned(), times)
}

#[test]
fn i1_an_old_stamp_is_restarted() {
    let mut stage = stage();
    stage.step();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert_eq!(pass(&mut stage, 1), [times("d/a", 1)]);
}

#[test]
fn i2_without_the_label_never_during_an_hour() {
    let mut stage = stage();
    stage.put(deployment("d", "a", ("mesh", "false"), Some(&ago(11))));
    assert_eq!(pass(&mut stage, 60), []);
}

#[test]
fn i3_a_young_stamp_never_during_its_interval() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(1))));
    assert_eq!(pass(&mut stage, 8), []);
    assert_eq!(pass(&mut stage, 2), [times("d/a", 1)]);
}

#[test]
fn i4_a_flipper_replaces_the_default_for_the_whole_time() {
    let mut stage = stage();
    let spec = json!({"interval": "3m", "match": {"labels": {"foo": "true"}}});
    stage.put(flipper("default", "foo-flipper", &spec));
    stage.put(deployment("d", "a", ("foo", "true"), Some(&ago(11))));
    stage.put(deployment("d", "b", MESH, Some(&ago(11))));
    assert_eq!(pass(&mut stage, 30), [times("d/a", 10)]);
}

#[test]
fn d1_to_d4_the_demo() {
    let mut stage = stage();
    stage.put(deployment("inventory", "orders", MESH, None));
    stage.put(deployment("data", "search", MESH, None));
    stage.step();
    // D1: no Flipper, both every ten minutes.
    let both = [times("data/search", 2), times("inventory/orders", 2)];
    assert_eq!(pass(&mut stage, 20), both);
    // D2: orders every two minutes, search no more.
    let mesh = json!({"interval": "2m", "match": {"labels": {"mesh": "true"}, "namespaces": ["inventory"]}});
    stage.put(flipper("default", "mesh-flipper", &mesh));
    assert_eq!(pass(&mut stage, 20), [times("inventory/orders", 10)]);
    // D3: another Flipper for others, and orders goes on.
    stage.put(deployment("payment", "credits", ("mesh", "false"), None));
    stage.put(deployment("payment", "debits", ("mesh", "false"), None));
    let other = json!({"interval": "2m", "match": {"labels": {"mesh": "false"}, "namespaces": ["payment"]}});
    stage.put(flipper("default", "non-mesh-flipper", &other));
    let all = pass(&mut stage, 20);
    assert_eq!(all[0], times("inventory/orders", 10));
    assert!(all[1..].iter().all(|(_, times)| *times >= 9), "{all:?}");
    assert_eq!(all.len(), 3);
    // D4: one Flipper gone, the other is still there: no default. Both gone: the default is back.
    stage.delete("Flipper", "default", "mesh-flipper");
    let left = pass(&mut stage, 20);
    assert!(
        left.iter().all(|(name, _)| name.starts_with("payment/")),
        "{left:?}"
    );
    stage.delete("Flipper", "default", "non-mesh-flipper");
    let both = [times("data/search", 2), times("inventory/orders", 2)];
    assert_eq!(pass(&mut stage, 20), both);
}

#[test]
fn default_criteria_never_act_before_the_flippers_are_known() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    let mut stores = slipway_kernel::Stores::default();
    let listed = stage.stores();
    let local = slipway_kernel::ClusterId::local();
    use slipway_kernel::{Capability, Controller, identity::kinds};
    let deployments = [stage.get("Deployment", "d", "a").unwrap().clone()];
    for interest in Controller::interests(&stage.restarts) {
        let key = stores.open(&local, &interest);
        if interest.kind == kinds::DEPLOYMENT {
            stores
                .store_mut(&key)
                .unwrap()
                .observe_list(&deployments, "9");
        } else if interest.kind != kinds::FLIPPER {
            stores.store_mut(&key).unwrap().observe_list(&[], "9");
        }
    }
    let key = slipway_restarts::observe::sweep(&local);
    let plan =
        |stores, facts: &Facts| Capability::plan(&stage.restarts, stores, facts, &key, noon());
    assert!(plan(&stores, &Facts::default()).is_none());
    let mut facts = Facts::default();
    facts.missing.insert("watch flippers".to_owned());
    assert_eq!(restarted(&plan(&stores, &facts).unwrap()), ["d/a"]);
    assert_eq!(
        restarted(&plan(&listed, &Facts::default()).unwrap()),
        ["d/a"]
    );
}
