//! C1–C11: what the original does and does not test.

use serde_json::json;
use slipway_api::names;

use super::foo_flipper;
use crate::objects::*;

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
