#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::json;

use super::*;
use crate::schema::table;

const REJECTED: &str = "the server rejected our request due to an error in our request";

fn json_patch(doc: &Value, operations: &Value) -> Outcome<Value> {
    json(doc, operations.to_string().as_bytes())
}

#[test]
fn kinds_come_from_the_content_type() {
    let of = |header: &str, is_custom| PatchKind::of(Some(header), is_custom);
    assert_eq!(
        of("application/merge-patch+json; charset=utf-8", false).unwrap(),
        PatchKind::Merge
    );
    assert_eq!(
        of("application/apply-patch+yaml", true).unwrap(),
        PatchKind::Apply
    );
    for header in [
        "application/json",
        "",
        "*/*",
        "application/apply-patch+cbor",
    ] {
        let status = of(header, false).unwrap_err();
        assert_eq!(
            (status.code, status.message.as_str()),
            (415, "415: Unsupported Media Type")
        );
    }
    assert_eq!(
        of("application/strategic-merge-patch+json", true)
            .unwrap_err()
            .message,
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    assert_eq!(
        of("application/json-patch+json, application/foo", false)
            .unwrap_err()
            .message,
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"
    );
}

#[test]
fn json_patch_operations() {
    let doc = json!({"a": {"b": [1, 2, 3]}, "x/y": 1, "n": null});
    let patched = json_patch(
        &doc,
        &json!([
            {"op": "test", "path": "/a/b/1", "value": 2},
            {"op": "add", "path": "/a/b/-", "value": 4},
            {"op": "add", "path": "/a/b/0", "value": 0},
            {"op": "add", "path": "/a/b/-1", "value": 9},
            {"op": "remove", "path": "/a/b/1"},
            {"op": "replace", "path": "/x~1y", "value": 2},
            {"op": "replace", "path": "/new", "value": 3},
            {"op": "copy", "from": "/a", "path": "/c"},
            {"op": "move", "from": "/a/b/0", "path": "/first"},
            {"op": "test", "path": "/n", "value": null},
            {"op": "test", "path": "/absent", "value": null},
        ]),
    );
    assert_eq!(
        patched.unwrap(),
        json!({"a": {"b": [2, 3, 4, 9]}, "c": {"b": [0, 2, 3, 4, 9]}, "first": 0, "n": null, "new": 3, "x/y": 2})
    );
}

#[test]
fn json_patches_that_do_not_apply() {
    let doc = json!({"a": {"b": [1]}});
    for operation in [
        json!({"op": "test", "path": "/a/b/0", "value": 2}),
        json!({"op": "add", "path": "/x/y", "value": 1}),
        json!({"op": "add", "path": "", "value": 1}),
        json!({"op": "add", "path": "/a/b/5", "value": 1}),
        json!({"op": "add", "path": "/a/b/x", "value": 1}),
        json!({"op": "add", "value": 1}),
        json!({"op": "remove", "path": "/x"}),
        json!({"op": "remove", "path": "/a/b/-2"}),
        json!({"op": "replace", "path": "/a/b/1", "value": 1}),
        json!({"op": "replace", "path": "", "value": 7}),
        json!({"op": "move", "from": "/x", "path": "/y"}),
        json!({"op": "blah", "path": "/a"}),
        json!({}),
    ] {
        let status = json_patch(&doc, &json!([operation])).unwrap_err();
        assert_eq!(
            (status.code, status.reason.as_str(), status.message.as_str()),
            (422, "Invalid", REJECTED),
            "{operation}"
        );
    }
}

#[test]
fn json_patches_are_limited() {
    let operation = json!({"op": "test", "path": "/a", "value": 1});
    let status = json_patch(&json!({"a": 1}), &Value::from(vec![operation; 10_001])).unwrap_err();
    assert_eq!(
        (status.code, status.message.as_str()),
        (
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        )
    );
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let doc = json!({"a": ["x".repeat(1_000_000)]});
    assert_eq!(
        json_patch(&doc, &json!([double, double, double]))
            .unwrap_err()
            .code,
        422
    );
    let nest = json!({"op": "copy", "from": "/a", "path": "/a/a"});
    assert_eq!(
        json_patch(&json!({"a": {}}), &Value::from(vec![nest; 600]))
            .unwrap_err()
            .code,
        422
    );
}

#[test]
fn json_patches_that_do_not_decode() {
    let refused = |body: &str, reading| {
        let status = json::patch(&json!({}), body.as_bytes(), reading).unwrap_err();
        assert_eq!(status.code, 400);
        status.message
    };
    for (body, strict, lenient) in [
        (
            "{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            "[1]",
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
            "json: cannot unmarshal number into Go value of type jsonpatch.Operation",
        ),
        (
            "[{",
            "error decoding patch: unexpected end of JSON input",
            "unexpected end of JSON input",
        ),
        (
            "",
            "error decoding patch: unexpected end of JSON input",
            "unexpected end of JSON input",
        ),
    ] {
        assert_eq!(refused(body, Reading::Strict), strict);
        assert_eq!(refused(body, Reading::Lenient), lenient);
    }
    assert_eq!(
        refused(r#"[{"op":"add","path":1}]"#, Reading::Strict),
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string"
    );
    assert_eq!(json(&json!({"a": 1}), b"null").unwrap(), json!({"a": 1}));
    let odd = json::patch(
        &json!({}),
        br#"[{"op":"add","path":"/a","value":1,"foo":1}]"#,
        Reading::Strict,
    );
    assert_eq!(
        odd.unwrap().complaints,
        ["json patch unknown field \"[0].foo\""]
    );
}

#[test]
fn merge_patches() {
    let merged = |doc: Value, patch: &str| merge(&doc, patch.as_bytes()).unwrap();
    assert_eq!(
        merged(
            json!({"a": {"b": 1, "c": 2}, "d": [1]}),
            r#"{"a":{"b":null,"e":{"f":null}},"d":[{"x":null},null]}"#
        ),
        json!({"a": {"c": 2, "e": {}}, "d": [{}, null]})
    );
    assert_eq!(
        merged(json!({"a": 1}), r#"{"a":{"b":null,"c":1}}"#),
        json!({"a": {"c": 1}})
    );
    let refused =
        |patch: &str, reading| merge::patch(&json!({}), patch.as_bytes(), reading).unwrap_err();
    assert_eq!(
        refused("null", Reading::Strict).message,
        "Invalid JSON Patch"
    );
    assert_eq!(refused("{", Reading::Lenient).message, "Invalid JSON Patch");
    assert_eq!(
        refused("{", Reading::Strict).message,
        "error decoding patch: unexpected end of JSON input"
    );
    assert_eq!(
        refused("[1]", Reading::Strict).message,
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
    );
    let status = refused("[1]", Reading::Lenient);
    assert_eq!(status.code, 422);
    assert!(status.message.starts_with(" \"\" is invalid: patch: Invalid value: \"[1]\": couldn't get version/kind; json parse error: json: cannot unmarshal array"));
}

/// Containers c1, c2, c3 in a Deployment.
fn deployment() -> Value {
    json!({
        "metadata": {"name": "d", "finalizers": ["example.com/a"], "labels": {"x": "1"}},
        "spec": {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {"spec": {"containers": [
                {
                    "name": "c1", "image": "i1", "args": ["x", "y"],
                    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "UDP"}],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                },
                {"name": "c2", "image": "i2"},
                {"name": "c3", "image": "i3"},
            ]}},
        },
    })
}

fn patched(patch: &Value) -> Outcome<Value> {
    strategic(
        &table::kind("apps", "v1", "Deployment"),
        &deployment(),
        patch,
    )
}

fn pod_spec(patch: &Value) -> Outcome<Value> {
    patched(&json!({"spec": {"template": {"spec": patch}}}))
        .map(|object| object["spec"]["template"]["spec"].clone())
}

fn order(patch: &Value) -> Vec<String> {
    let spec = pod_spec(patch).unwrap();
    let containers = spec["containers"].as_array().unwrap().iter();
    containers
        .map(|c| {
            format!(
                "{}:{}",
                c["name"].as_str().unwrap(),
                c["image"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn lists_merge_by_key_and_keep_their_order() {
    assert_eq!(
        order(
            &json!({"containers": [{"name": "c2", "image": "new"}, {"name": "c0", "image": "zero"}]})
        ),
        ["c1:i1", "c2:new", "c0:zero", "c3:i3"]
    );
    let spec = pod_spec(&json!({"containers": [
        {"name": "c1", "args": ["z"], "env": null, "ports": [{"containerPort": 80, "name": "http"}]},
    ]}));
    let first = spec.unwrap()["containers"][0].clone();
    assert_eq!(first["args"], json!(["z"]));
    assert!(first.get("env").is_none());
    assert_eq!(
        first["ports"],
        json!([{"containerPort": 80, "name": "http", "protocol": "TCP"}, {"containerPort": 81, "protocol": "UDP"}])
    );
}

#[test]
fn items_carry_directives() {
    assert_eq!(
        order(&json!({"containers": [{"name": "c2", "$patch": "delete"}]})),
        ["c1:i1", "c3:i3"]
    );
    assert_eq!(
        order(&json!({"containers": [{"$patch": "replace"}, {"name": "q", "image": "q"}]})),
        ["q:q"]
    );
}

#[test]
fn element_order_is_set() {
    let by =
        |names: &[&str]| Value::from(names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>());
    assert_eq!(
        order(&json!({"$setElementOrder/containers": by(&["c3", "c1", "c2"])})),
        ["c3:i3", "c1:i1", "c2:i2"]
    );
    assert_eq!(
        order(
            &json!({"$setElementOrder/containers": by(&["c3", "c1"]), "containers": [{"name": "c1", "image": "z"}]})
        ),
        ["c2:i2", "c3:i3", "c1:z"]
    );
    assert_eq!(
        order(
            &json!({"$setElementOrder/containers": by(&["c3", "n", "c1"]), "containers": [{"name": "n", "image": "z"}]})
        ),
        ["c2:i2", "c3:i3", "n:z", "c1:i1"]
    );
    let env = pod_spec(&json!({"containers": [
        {"name": "c1", "$setElementOrder/env": by(&["B", "A"]), "env": [{"name": "A", "value": "9"}]},
    ]}));
    assert_eq!(
        env.unwrap()["containers"][0]["env"],
        json!([{"name": "B", "value": "2"}, {"name": "A", "value": "9"}])
    );
}

#[test]
fn primitive_lists_merge() {
    let metadata = |patch: Value| patched(&json!({"metadata": patch})).unwrap()["metadata"].clone();
    assert_eq!(
        metadata(json!({"finalizers": ["example.com/b", "example.com/a"]}))["finalizers"],
        json!(["example.com/b", "example.com/a"])
    );
    assert_eq!(
        metadata(json!({"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}))["finalizers"],
        json!([])
    );
    assert_eq!(
        metadata(
            json!({"$deleteFromPrimitiveList/finalizers": ["example.com/a"], "finalizers": ["example.com/c"]})
        )["finalizers"],
        json!(["example.com/c"])
    );
}

#[test]
fn objects_carry_directives() {
    let labels = |patch: Value| {
        patched(&json!({"metadata": {"labels": patch}})).unwrap()["metadata"]["labels"].clone()
    };
    assert_eq!(labels(json!({"y": "2"})), json!({"x": "1", "y": "2"}));
    assert_eq!(
        labels(json!({"$patch": "replace", "y": "2"})),
        json!({"y": "2"})
    );
    assert_eq!(labels(json!({"$patch": "delete"})), json!({}));
    assert_eq!(labels(json!({"x": null, "z": null})), json!({}));
    assert_eq!(
        patched(&json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}))
            .unwrap()["spec"]["strategy"],
        json!({"type": "Recreate"})
    );
    assert_eq!(patched(&Value::Null).unwrap(), deployment());
    let new = pod_spec(
        &json!({"volumes": [{"name": "v", "emptyDir": {}, "secret": null}, {"$patch": "delete", "name": "w"}]}),
    );
    assert_eq!(
        new.unwrap()["volumes"],
        json!([{"name": "v", "emptyDir": {}}])
    );
}

/// What kube-apiserver 1.36.3 says.
#[test]
fn strategic_refusals_are_the_real_ones() {
    for (patch, code, message) in [
        (
            json!({"containers": [{"$patch": "merge", "name": "q"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": [{"$patch": "foo", "name": "q"}]}),
            500,
            "unknown patch type: foo in map: map[$patch:foo name:q]",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"image": "x"}]}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "c1"}], "containers": [{"name": "c2", "image": "z"}]}),
            500,
            "The order in patch list:\n[map[image:z name:c2]]\n doesn't match $setElementOrder list:\n[map[name:c1]]\n",
        ),
        (
            json!({"$setElementOrder/containers": 7}),
            500,
            "expected a []interface {}, but received a int64",
        ),
        (
            json!({"$setElementOrder/containers": ["a"]}),
            500,
            "value for key 0 is not a map",
        ),
        (
            json!({"$setElementOrder/foo": [{"name": "a"}]}),
            500,
            "unable to find api field in struct PodSpec for the json field \"foo\"",
        ),
        (
            json!({"$setElementOrder": [{"name": "a"}]}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"$deleteFromPrimitiveList": [7]}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!({"$retainKeys": "type"}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"$retainKeys": ["a"], "hostname": "b"}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"containers": [[]]}),
            500,
            "list element types are not identical: [[map[args:[x y] env:[map[name:A value:1] map[name:B value:2]] image:i1 name:c1 ports:[map[containerPort:80 protocol:TCP] map[containerPort:81 protocol:UDP]]] map[image:i2 name:c2] map[image:i3 name:c3]] [[]]]",
        ),
    ] {
        let status = pod_spec(&patch).unwrap_err();
        assert_eq!(
            (status.code, status.message.as_str()),
            (code, message),
            "{patch}"
        );
    }
    assert_eq!(
        patched(&json!([1])).unwrap_err().message,
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    );
}

#[test]
fn values_print_as_in_go() {
    assert_eq!(
        go_print(&json!({"b": [1, 1.5, 1e21, 1e-7, true, null], "a": "x"})),
        "map[a:x b:[1 1.5 1e+21 1e-07 true <nil>]]"
    );
}

#[test]
fn an_undecodable_object_is_shown() {
    assert_eq!(
        undecodable("map[data:7]", "cannot restore map from int64").message,
        " \"\" is invalid: patch: Invalid value: \"map[data:7]\": cannot restore map from int64"
    );
}

fn settled(kind: PatchKind, body: &str, validation: FieldValidation) -> Outcome<Settled> {
    let schema = table::kind("apps", "v1", "Deployment");
    let target = decode::Target {
        group: "apps",
        version: "v1",
        kind: "Deployment",
    };
    let doc = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"a": "b"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}},
    });
    settle(
        patch(kind, &schema, &doc, body.as_bytes(), validation)?,
        &schema,
        &target,
        validation,
    )
}

#[test]
fn strategic_patches_that_do_not_fit_the_kind() {
    for (body, why) in [
        (
            r#"{"spec":{"replicas":"x"}}"#,
            "\"map[spec:map[replicas:x]]\": unrecognized type: int32",
        ),
        (
            r#"{"metadata":{"labels":{"x":{"y":"z"}}}}"#,
            "\"map[metadata:map[labels:map[x:map[y:z]]]]\": unrecognized type: string",
        ),
        (
            r#"{"metadata":[1]}"#,
            "\"map[metadata:[1]]\": cannot restore struct from: slice",
        ),
        (
            r#"{"metadata":{"labels":7}}"#,
            "\"map[metadata:map[labels:7]]\": cannot restore map from int64",
        ),
        (
            r#"{"spec":{"template":{"spec":{"containers":"x"}}}}"#,
            "\"map[spec:map[template:map[spec:map[containers:x]]]]\": cannot restore slice from string",
        ),
    ] {
        let status = settled(PatchKind::Strategic, body, FieldValidation::Warn).unwrap_err();
        assert_eq!(
            (status.code, status.message),
            (
                422,
                format!(" \"\" is invalid: patch: Invalid value: {why}")
            )
        );
    }
}

#[test]
fn what_is_odd_in_a_patch_is_a_warning_or_an_error() {
    let odd =
        r#"{"foo":{"a":"1"},"metadata":{"labels":{"a":"1"}},"metadata":{"labels":{"a":"2"}}}"#;
    for kind in [PatchKind::Merge, PatchKind::Strategic] {
        let settled_object = settled(kind, odd, FieldValidation::Warn).unwrap();
        assert_eq!(
            settled_object.warnings,
            ["duplicate field \"metadata\"", "unknown field \"foo\""]
        );
        assert!(settled_object.object.get("foo").is_none());
        assert_eq!(settled_object.object["metadata"]["labels"]["a"], "2");
        assert!(
            settled(kind, odd, FieldValidation::Ignore)
                .unwrap()
                .warnings
                .is_empty()
        );
        let refused = settled(kind, odd, FieldValidation::Strict).unwrap_err();
        assert_eq!(refused.code, 422);
        assert!(refused.message.ends_with(
            ": strict decoding error: duplicate field \"metadata\", unknown field \"foo\""
        ));
    }
}

#[test]
fn a_patch_does_not_change_the_kind() {
    let refused = settled(
        PatchKind::Merge,
        r#"{"apiVersion":"v1","kind":"Pod"}"#,
        FieldValidation::Warn,
    )
    .unwrap_err();
    assert!(
        refused
            .message
            .starts_with(" \"\" is invalid: patch: Invalid value: \"{")
    );
    assert!(
        refused
            .message
            .ends_with("converting (v1.Pod) to (apps.Deployment): unknown conversion"),
        "{}",
        refused.message
    );
    let kept = settled(
        PatchKind::Strategic,
        r#"{"kind":"Pod"}"#,
        FieldValidation::Warn,
    )
    .unwrap();
    assert_eq!(kept.object["kind"], "Deployment");
}
