//! U1–U10: one decision, and when it is looked at again.

use serde_json::json;

use super::foo_flipper;
use crate::objects::*;

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
