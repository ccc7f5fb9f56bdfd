//! Single cases with the texts and entries that the real server gives for them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::json;

use super::tests::{schema_of, widget};
use super::*;
use crate::field::aggregate;
use crate::schema::table;

fn config_map() -> Schema {
    table::kind("", "v1", "ConfigMap")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn owner(manager: &str, operation: Operation, seconds: i64) -> Owner<'_> {
    Owner {
        manager,
        operation,
        api_version: "v1",
        subresource: "",
        now: at(seconds),
    }
}

fn one(data: impl Into<Value>) -> Value {
    let data = data.into();
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" }, "data": data })
}

fn applied(
    live: Option<&Value>,
    data: impl Into<Value>,
    manager: &str,
    seconds: i64,
) -> Outcome<Value> {
    let owner = owner(manager, Operation::Apply, seconds);
    apply(&config_map(), live, &one(data), &owner, false, &[])
}

fn updated(old: Option<&Value>, mut new: Value, manager: &str, seconds: i64) -> Value {
    let owner = owner(manager, Operation::Update, seconds);
    track_update(&config_map(), old, &mut new, &owner, &[]);
    new
}

/// `manager operation fields` of each entry, with a `?` where there is no time.
fn entries(object: &Value) -> Vec<String> {
    value::items(object, "metadata.managedFields")
        .iter()
        .map(|entry| {
            format!(
                "{} {}{} {}",
                value::text(entry, "manager"),
                value::text(entry, "operation"),
                if value::has(entry, "time") { "" } else { "?" },
                entry["fieldsV1"]
            )
        })
        .collect()
}

fn refused(outcome: Outcome<Value>) -> (u16, String) {
    let status = outcome.unwrap_err();
    (status.code, status.message.clone())
}

#[test]
fn an_apply_that_changes_nothing_shares_fields_without_a_time() {
    let first = applied(None, json!({ "a": "1" }), "m1", 0).unwrap();
    let second = applied(Some(&first), json!({ "a": "1" }), "m2", 5).unwrap();
    let m1 = r#"m1 Apply {"f:data":{"f:a":{}}}"#;
    assert_eq!(entries(&second), [r#"m2 Apply? {"f:data":{"f:a":{}}}"#, m1]);
    let third = applied(Some(&second), json!({ "a": "1" }), "m2", 9).unwrap();
    assert_eq!(third, second);
}

#[test]
fn conflicts_name_every_owner_and_field() {
    let first = applied(None, json!({ "a": "1" }), "m1", 0).unwrap();
    let (code, text) = refused(applied(Some(&first), json!({ "a": "2" }), "m2", 1));
    assert_eq!(code, 409);
    assert_eq!(
        text,
        "Apply failed with 1 conflict: conflict with \"m1\": .data.a"
    );
    let mut changed = first.clone();
    value::put(&mut changed, "data", json!({ "a": "3", "b": "4" }));
    let changed = updated(Some(&first), changed, "m4", 2);
    let shared = applied(Some(&changed), json!({ "a": "3" }), "m5", 3).unwrap();
    let status = applied(Some(&shared), json!({ "a": "5", "b": "6" }), "m3", 4).unwrap_err();
    assert_eq!(
        status.message,
        "Apply failed with 3 conflicts: conflicts with \"m4\" using v1:\n- .data.a\n- .data.b\n\
         conflicts with \"m5\":\n- .data.a"
    );
    let causes = &status.details.as_ref().unwrap().causes;
    assert_eq!(causes[1].reason, "FieldManagerConflict");
    assert_eq!(causes[1].message, "conflict with \"m4\" using v1");
    assert_eq!(causes[1].field, ".data.b");
}

#[test]
fn an_empty_entry_stops_tracking_until_the_next_apply() {
    let first = applied(None, json!({ "a": "1" }), "m1", 0).unwrap();
    for sent in [json!([]), json!([{}])] {
        let mut new = first.clone();
        value::put(&mut new, "metadata.managedFields", sent);
        let bare = updated(Some(&first), new, "m2", 1);
        assert!(!value::has(&bare, "metadata.managedFields"));
        let again = updated(Some(&bare), one(json!({ "a": "1", "b": "2" })), "m2", 2);
        assert!(!value::has(&again, "metadata.managedFields"));
        let tracked = applied(Some(&again), json!({ "a": "1" }), "m3", 3).unwrap();
        let before = r#"before-first-apply Update {"f:data":{".":{},"f:a":{},"f:b":{}}}"#;
        assert_eq!(
            entries(&tracked),
            [r#"m3 Apply? {"f:data":{"f:a":{}}}"#, before]
        );
    }
}

#[test]
fn entries_that_cannot_be_read_are_ignored() {
    let first = applied(None, json!({ "a": "1" }), "m1", 0).unwrap();
    let mut new = first.clone();
    value::put(
        &mut new,
        "metadata.managedFields",
        json!([{ "manager": "x" }]),
    );
    assert_eq!(updated(Some(&first), new, "m2", 1), first);
}

#[test]
fn old_updates_are_merged_beyond_ten() {
    let mut live = updated(None, one(json!({ "k0": "v" })), "u0", 0);
    for i in 1..=11 {
        let mut new = live.clone();
        value::put(&mut new, &format!("data.k{i}"), "v");
        live = updated(Some(&live), new, &format!("u{i}"), i);
    }
    let entries = entries(&live);
    assert_eq!(entries.len(), 10);
    assert_eq!(
        entries[0],
        r#"ancient-changes Update {"f:data":{".":{},"f:k0":{},"f:k1":{},"f:k2":{}}}"#
    );
    assert!(entries[1].starts_with("u3 "));
}

#[test]
fn kubectl_takes_over_from_client_side_apply() {
    let last =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1"}}"#;
    let key = "kubectl.kubernetes.io/last-applied-configuration";
    let mut new = one(json!({ "a": "1", "b": "2" }));
    value::put(&mut new, "metadata.annotations", json!({ key: last }));
    let live = updated(None, new, "kubectl-client-side-apply", 0);
    let text = refused(applied(
        Some(&live),
        json!({ "a": "9", "b": "9" }),
        "kubectl",
        1,
    ))
    .1;
    assert_eq!(
        text,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.b"
    );
    let live = applied(Some(&live), json!({ "a": "<9>" }), "kubectl", 1).unwrap();
    assert_eq!(
        live["metadata"]["annotations"][key],
        "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"\\u003c9\\u003e\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\"}}\n"
    );
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    let schema = config_map();
    let text = |config: Value| {
        refused(apply(
            &schema,
            None,
            &config,
            &owner("m", Operation::Apply, 0),
            false,
            &[],
        ))
    };
    let bad = |why: &str| {
        (
            500,
            format!("failed to create typed patch object (/one; /v1, Kind=ConfigMap): {why}"),
        )
    };
    assert_eq!(
        text(one(json!({ "a": 2, "b": true }))),
        bad(
            "errors:\n  .data.a: expected string, got &value.valueUnstructured{Value:2}\n  \
             .data.b: expected string, got &value.valueUnstructured{Value:true}"
        )
    );
    let mut config = one(json!([1]));
    value::put(&mut config, "foo", "x");
    assert_eq!(
        text(config),
        bad("errors:\n  .data: expected map, got &{[1]}\n  .foo: field not declared in schema")
    );
    let mut config = one(json!({}));
    value::put(&mut config, "metadata.finalizers", json!(["a/b", "a/b"]));
    assert_eq!(
        text(config),
        bad(".metadata.finalizers: duplicate entries for key [=\"a/b\"]")
    );
    let mut config = one(json!({}));
    value::put(&mut config, "metadata.managedFields", json!([]));
    assert_eq!(
        text(config),
        (400, "metadata.managedFields must be nil".to_owned())
    );
    assert_eq!(
        text(json!({ "apiVersion": "v1", "kind": "Secret" })),
        (400, "invalid object type: /v1, Kind=Secret".to_owned())
    );
    assert_eq!(
        text(json!({})),
        (400, "invalid object type: /, Kind=".to_owned())
    );
}

#[test]
fn items_without_keys_are_refused() {
    let config = json!({
        "apiVersion": "applyx.dev/v1", "kind": "Widget", "metadata": { "name": "w" },
        "spec": { "items": [{ "value": "x" }] },
    });
    let owner = Owner {
        api_version: "applyx.dev/v1",
        ..owner("m", Operation::Apply, 0)
    };
    let text = refused(apply(&widget(), None, &config, &owner, false, &[])).1;
    assert_eq!(
        text,
        "failed to create typed patch object (/w; applyx.dev/v1, Kind=Widget): .spec.items: element 0: \
         associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have \
         default values for any key fields)"
    );
}

#[test]
fn embedded_and_open_objects_merge_by_what_is_known_of_them() {
    let text = json!({ "type": "string" });
    let inner = |name: &str| json!({ "type": "object", "properties": { name: text } });
    let schema = schema_of(&json!({ "type": "object", "properties": {
        "apiVersion": text, "kind": text, "metadata": inner("name"),
        "closed": { "type": "object", "x-kubernetes-embedded-resource": true, "properties": { "spec": inner("a") } },
        "half": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "in": inner("a") },
        },
        "bare": { "x-kubernetes-preserve-unknown-fields": true },
    } }));
    let config = json!({
        "apiVersion": "v1", "kind": "Emb", "metadata": { "name": "e" },
        "closed": {
            "apiVersion": "v1", "kind": "X", "spec": { "a": "x" },
            "metadata": { "labels": { "a": "b" }, "finalizers": ["a/b"] },
        },
        "half": { "in": { "a": "x", "b": { "c": [1] } }, "k": 1 },
        "bare": { "x": { "y": [1] } },
    });
    let object = apply(
        &schema,
        None,
        &config,
        &owner("m", Operation::Apply, 0),
        false,
        &[],
    )
    .unwrap();
    assert_eq!(
        object["metadata"]["managedFields"][0]["fieldsV1"],
        json!({
            "f:bare": { "f:x": { ".": {}, "f:y": {} } },
            "f:closed": {
                "f:apiVersion": {}, "f:kind": {}, "f:spec": { "f:a": {} },
                "f:metadata": { "f:finalizers": { "v:\"a/b\"": {} }, "f:labels": { "f:a": {} } },
            },
            "f:half": { "f:in": { "f:a": {}, "f:b": { ".": {}, "f:c": {} } }, "f:k": {} },
        })
    );
}

#[test]
fn managers_are_validated() {
    let text =
        |manager: &str, is_apply, force| aggregate(&validate_manager(manager, is_apply, force));
    assert!(validate_manager("kubectl", true, Some(true)).is_empty());
    assert!(validate_manager("", false, None).is_empty());
    // Found by fuzzing: an error a character, each with the whole name in it.
    assert_eq!(
        validate_manager(&"\0".repeat(100_000), false, None).len(),
        1
    );
    assert!(validate_manager("ä ñ \"q\" 日本", false, None).is_empty());
    assert_eq!(
        text("", true, None),
        "fieldManager: Required value: is required for apply patch"
    );
    assert_eq!(
        text("m", false, Some(false)),
        "force: Forbidden: may not be specified for non-apply patch"
    );
    assert_eq!(
        text(&"a".repeat(129), false, None),
        "fieldManager: Too long: may not be more than 128 bytes"
    );
    assert_eq!(
        text("a\0b\nc", true, None),
        "[fieldManager: Invalid value: \"a\\x00b\\nc\": invalid character U+0000 (at position 1), \
         fieldManager: Invalid value: \"a\\x00b\\nc\": invalid character U+000A (at position 3)]"
    );
}

#[test]
fn managers_without_a_name_come_from_the_user_agent() {
    assert_eq!(manager_name("m", "kubectl/v1"), "m");
    assert_eq!(manager_name("", "kubectl/v1 (linux)"), "kubectl");
    assert_eq!(manager_name("", ""), "");
    let object = updated(None, one(json!({})), "", 0);
    assert_eq!(entries(&object), [r#"unknown Update {"f:data":{}}"#]);
}

#[test]
fn scaling_moves_the_replicas() {
    let fields = json!({ "f:spec": { "f:replicas": {}, "f:selector": {} } });
    let mut object = json!({ "metadata": { "managedFields": [{
        "manager": "owner", "operation": "Apply", "apiVersion": "apps/v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
    }] } });
    let schema = table::kind("autoscaling", "v1", "Scale");
    let mut scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": { "name": "x", "uid": "u" }, "spec": { "replicas": 0 }, "status": { "replicas": 0 },
    });
    entries_into_scale(&object, "spec.replicas", &mut scale);
    assert_eq!(
        entries(&scale),
        [r#"owner Apply {"f:spec":{"f:replicas":{}}}"#]
    );
    let old = scale.clone();
    value::put(&mut scale, "spec.replicas", 3);
    let scaler = Owner {
        api_version: "autoscaling/v1",
        subresource: "scale",
        ..owner("scaler", Operation::Update, 0)
    };
    track_update(&schema, Some(&old), &mut scale, &scaler, &[]);
    entries_from_scale(&mut object, "spec.replicas", &scale, "apps/v1");
    assert_eq!(
        entries(&object),
        [
            r#"owner Apply {"f:spec":{"f:selector":{}}}"#,
            r#"scaler Update? {"f:spec":{"f:replicas":{}}}"#
        ]
    );
    let entry = &object["metadata"]["managedFields"][1];
    assert_eq!(entry["apiVersion"], "apps/v1");
    assert_eq!(entry["subresource"], "scale");
}
