#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::json;

use super::*;
use crate::builtin::rules::PLAIN;
use crate::field::FieldErrors;

fn texts(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at the calls")]
fn created(metadata: Value) -> Vec<String> {
    texts(&validate_create(
        &json!({"metadata": metadata}),
        true,
        &PLAIN,
    ))
}

#[test]
fn generated_names_have_five_characters_of_the_real_alphabet() {
    assert_eq!(generate_name("web-", 0), "web-bbbbb");
    assert_eq!(generate_name("web-", 26), "web-9bbbb");
    let long = generate_name(&"a".repeat(100), 28);
    assert_eq!(long.len(), 63);
    assert!(long.ends_with("aaccbbb"));
    let mut object = json!({"metadata": {"generateName": "x-"}});
    fill_name(&mut object, 0);
    assert_eq!(object["metadata"]["name"], "x-bbbbb");
}

#[test]
fn new_objects_are_judged() {
    assert_eq!(
        created(json!({"namespace": "n"})),
        ["metadata.name: Required value: name or generateName is required"]
    );
    assert_eq!(
        created(json!({"name": "a"})),
        ["metadata.namespace: Required value"]
    );
    let errors =
        created(json!({"name": "A_x", "generateName": "A_", "namespace": "n", "generation": -1}));
    assert!(
        errors[0].starts_with("metadata.generateName: Invalid value: \"A_\": a lowercase RFC 1123")
    );
    assert!(errors[1].starts_with("metadata.name: Invalid value: \"A_x\": a lowercase RFC 1123"));
    assert_eq!(
        errors[2],
        "metadata.generation: Invalid value: -1: must be greater than or equal to 0"
    );
    let cluster = validate_create(
        &json!({"metadata": {"name": "a", "namespace": "n"}}),
        false,
        &PLAIN,
    );
    assert_eq!(
        texts(&cluster),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
}

#[test]
fn owners_are_judged() {
    let owner = |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true});
    let errors = created(
        json!({"name": "o", "namespace": "n", "ownerReferences": [owner("a", "1"), owner("b", "2")]}),
    );
    assert_eq!(
        errors,
        [
            "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"a\",\"uid\":\"1\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"b\",\"uid\":\"2\",\"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for ConfigMap/a and ConfigMap/b"
        ]
    );
    let errors = created(json!({"name": "o", "namespace": "n", "ownerReferences": [{}]}));
    assert_eq!(
        errors,
        [
            "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ]
    );
    let event = json!({"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1"});
    let errors = created(json!({"name": "o", "namespace": "n", "ownerReferences": [event]}));
    assert_eq!(
        errors,
        [
            "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"a\",\"uid\":\"1\"}: /v1, Kind=Event is disallowed from being an owner"
        ]
    );
}

#[test]
fn finalizers_are_judged() {
    let errors = created(
        json!({"name": "o", "namespace": "n", "finalizers": ["orphan", "foregroundDeletion"]}),
    );
    assert_eq!(
        errors,
        [
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set"
        ]
    );
    assert_eq!(
        texts(&validate_standard_finalizers(
            &json!({"metadata": {"finalizers": ["a.b/c", "foo"]}})
        )),
        [
            "metadata.finalizers[1]: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
}

#[test]
fn annotations_have_a_total_size() {
    let annotations = json!({"a": "x".repeat(262_144)});
    assert_eq!(
        texts(&validate_annotations(&annotations, "metadata.annotations")),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
}

#[test]
fn managed_fields_are_judged() {
    let entry = json!({"manager": "a\u{7}", "operation": "x", "fieldsType": "y"});
    assert_eq!(
        created(json!({"name": "o", "namespace": "n", "managedFields": [entry]})),
        [
            "metadata.managedFields[0].operation: Invalid value: \"x\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"y\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
        ]
    );
}

#[test]
fn updates_keep_what_is_immutable() {
    let old = json!({"metadata": {
        "name": "a", "namespace": "n", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 3,
        "deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["example.com/x"],
    }});
    let mut new = json!({"metadata": {
        "name": "a", "namespace": "n", "generation": 9, "creationTimestamp": null, "selfLink": "x", "labels": {},
        "finalizers": ["example.com/z", "example.com/x", "example.com/y"],
    }});
    prepare_update(&mut new, &old);
    assert_eq!(new["metadata"]["generation"], 3);
    assert!(new["metadata"].get("selfLink").is_none());
    assert!(new["metadata"].get("labels").is_none());
    assert_eq!(
        texts(&validate_update(&new, &old)),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/y\", \"example.com/z\"}"
        ]
    );
}

#[test]
fn updates_refuse_what_is_immutable() {
    let old = json!({"metadata": {"name": "a", "namespace": "n", "uid": "1"}});
    let mut new = json!({"metadata": {
        "name": "a", "namespace": "n", "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5,
    }});
    prepare_update(&mut new, &old);
    assert_eq!(
        texts(&validate_update(&new, &old)),
        [
            "metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
        ]
    );
}

#[test]
fn creation_sets_what_the_server_sets() {
    let mut object = json!({"metadata": {
        "name": "a", "uid": "mine", "selfLink": "x", "deletionTimestamp": "2020-01-01T00:00:00Z", "labels": {},
        "ownerReferences": [], "deletionGracePeriodSeconds": 5, "creationTimestamp": "2020-01-01T00:00:00Z",
        "generation": 7,
    }});
    prepare_create(&mut object, "u", "2026-11-15T09:43:54.5Z".parse().unwrap());
    assert_eq!(
        object,
        json!({"metadata": {"name": "a", "uid": "u", "creationTimestamp": "2026-11-15T09:43:54Z", "generation": 7}})
    );
}

#[test]
fn names_and_namespaces_match_the_request() {
    let mut object = json!({"metadata": {"name": "b", "namespace": "x"}});
    assert_eq!(
        match_namespace(&mut object, "n").unwrap_err().message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    match_namespace(&mut object, "").unwrap();
    assert!(object["metadata"].get("namespace").is_none());
    match_namespace(&mut object, "n").unwrap();
    assert_eq!(object["metadata"]["namespace"], "n");
    assert_eq!(
        match_name(&object, "a").unwrap_err().message,
        "the name of the object (b) does not match the name on the URL (a)"
    );
    assert_eq!(
        match_name(&json!({}), "a").unwrap_err().message,
        "the name of the object (a based on URL) was undeterminable: name must be provided"
    );
}

#[test]
fn resource_versions() {
    let with =
        |version: &str| refuse_resource_version(&json!({"metadata": {"resourceVersion": version}}));
    let refused = with("5").unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (500, ""));
    assert!(with("x").is_ok());
    assert!(with("0").is_ok());
    assert_eq!(
        missing_resource_version("example.com", "widgets", "a").message,
        "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
}

#[test]
fn owners_are_there_once() {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"});
    let mut object = json!({"metadata": {"ownerReferences": [owner, owner]}});
    let warning = dedup_owner_references(&mut object).unwrap();
    assert!(warning.ends_with("duplicate UID(s) observed: 1"));
    assert_eq!(
        object["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(dedup_owner_references(&mut object), None);
}

#[test]
fn conditions_are_judged() {
    let condition = json!({"type": "Ready", "status": "Maybe", "reason": "-"});
    let errors = texts(&validate_conditions(
        &[condition.clone(), condition],
        "status.conditions",
    ));
    assert_eq!(
        errors[0],
        "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\""
    );
    assert_eq!(
        errors[1],
        "status.conditions[0].lastTransitionTime: Required value"
    );
    assert_eq!(
        errors[3],
        "status.conditions[1].type: Duplicate value: \"Ready\""
    );
}
