//! Every message here was given by kube-apiserver v1.36.3.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::json;

use super::*;

fn target<'a>(group: &'a str, kind: &'a str) -> Target<'a> {
    Target {
        group,
        version: "v1",
        kind,
    }
}

fn decode(group: &str, kind: &str, body: &str) -> Outcome<Decoded> {
    let schema = table::kind(group, "v1", kind);
    builtin(body.as_bytes(), Media::Json, &target(group, kind), &schema)
}

fn config_map(body: &str) -> String {
    decode("", "ConfigMap", body).unwrap_err().message
}

fn pod(body: &str) -> String {
    let message = decode("", "Pod", body).unwrap_err().message;
    message
        .strip_prefix("Pod in version \"v1\" cannot be handled as a Pod: ")
        .unwrap_or(&message)
        .to_owned()
}

#[test]
fn bodies_that_are_no_objects() {
    let unrecognized = |text: &str| {
        format!(
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: {text}"
        )
    };
    assert_eq!(
        config_map(""),
        unrecognized("unexpected end of JSON input (<empty>)")
    );
    assert_eq!(
        config_map("[]"),
        unrecognized(
            r#"json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)"#
        )
    );
    assert_eq!(
        config_map("x"),
        unrecognized("invalid character 'x' looking for beginning of value (78)")
    );
    assert_eq!(
        config_map(r#"{"kind":1}"#),
        unrecognized(
            r#"json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1})"#
        )
    );
    let deep = "[".repeat(20_000);
    assert_eq!(
        config_map(&deep),
        unrecognized(
            "invalid character '[' exceeded max depth (5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b ...)"
        )
    );
}

#[test]
fn kind_and_version_are_filled_in_or_refused() {
    for body in ["{}", "null", r#"{"kind":""}"#, r#"{"apiVersion":"v1"}"#] {
        let value = decode("", "ConfigMap", body).unwrap().value;
        assert_eq!(
            value,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
        );
    }
    for (body, message) in [
        (
            r#"{"kind":"Pod"}"#,
            r#"Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion"#,
        ),
        (
            r#"{"kind":"Foo","apiVersion":"v1"}"#,
            r#"Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
        (
            r#"{"apiVersion":"foo/v1"}"#,
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "foo/v1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
        (
            r#"{"kind":"ConfigMap","apiVersion":"a/b/c","metadata":{}}"#,
            r#"the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({"kind":"ConfigMap","apiVersio ...)"#,
        ),
    ] {
        assert_eq!(config_map(body), message);
    }
    let message = |group, kind, body| decode(group, kind, body).unwrap_err().message;
    assert_eq!(
        message(
            "events.k8s.io",
            "Event",
            r#"{"apiVersion":"v1","kind":"Event"}"#
        ),
        "the API version in the data (v1) does not match the expected API version (events.k8s.io/v1)"
    );
    assert_eq!(
        message(
            "apps",
            "Deployment",
            r#"{"apiVersion":"apps/v1beta1","kind":"Deployment"}"#
        ),
        "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)"
    );
    assert_eq!(
        message(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            r#"{"apiVersion":"v1","kind":"Pod"}"#
        ),
        r#"Pod in version "v1" cannot be handled as a CustomResourceDefinition: no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#
    );
}

#[test]
fn wrong_types_are_named_as_go_names_them() {
    for (body, message) in [
        (
            r#"{"spec":"x"}"#,
            "string into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            r#"{"spec":{"containers":{"name":"x"}}}"#,
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            r#"{"spec":{"containers":["x"]}}"#,
            "string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            r#"{"spec":{"containers":[{"resources":{"limits":["cpu"]}}]}}"#,
            "array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            r#"{"spec":{"volumes":[{"emptyDir":{"medium":1}}]}}"#,
            "number into Go struct field EmptyDirVolumeSource.spec.volumes.VolumeSource.emptyDir.medium of type v1.StorageMedium",
        ),
        (
            r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":1.5}}}]}}"#,
            "number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":true}}}]}}"#,
            "bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            r#"{"spec":{"priority":3000000000}}"#,
            "number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            r#"{"spec":{"terminationGracePeriodSeconds":99999999999999999999}}"#,
            "number 99999999999999999999 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            r#"{"metadata":{"generation":1e400}}"#,
            "number 1e400 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            r#"{"metadata":{"generation":1.0}}"#,
            "number 1.0 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            r#"{"metadata":{"uid":1}}"#,
            "number into Go struct field ObjectMeta.metadata.uid of type types.UID",
        ),
        (
            r#"{"metadata":{"labels":{"a":1}}}"#,
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            r#"{"metadata":{"creationTimestamp":1}}"#,
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        // The first in the text, not the first by name.
        (
            r#"{"spec":{"hostNetwork":"x","containers":1}}"#,
            "string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
    ] {
        assert_eq!(
            pod(body),
            format!("json: cannot unmarshal {message}"),
            "{body}"
        );
    }
    assert_eq!(
        pod(r#"{"spec":{"hostNetwork":"x"},"metadata":{"creationTimestamp":"x"}}"#),
        r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#
    );
    assert_eq!(
        pod(r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":true}}}]}}"#),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn bytes_are_checked() {
    let secret = |body: &str| decode("", "Secret", body);
    let message = |body: &str| {
        let message = secret(body).unwrap_err().message;
        message.rsplit(": ").next().unwrap().to_owned()
    };
    for (text, at) in [("!!", 0), ("YWJ", 0), ("YWJj!abc", 4), ("YWJjYWJ", 4)] {
        assert_eq!(
            message(&format!(r#"{{"data":{{"a":"{text}"}}}}"#)),
            format!("illegal base64 data at input byte {at}"),
            "{text}"
        );
    }
    let value = secret(r#"{"data":{"a":[1,2],"b":"YW\nJj","c":null,"d":""}}"#)
        .unwrap()
        .value;
    assert_eq!(
        value["data"],
        json!({"a": "AQI=", "b": "YWJj", "c": "", "d": ""})
    );
}

#[test]
fn a_round_trip_leaves_what_go_leaves() {
    let body = json!({
        "metadata": {"name": "x", "labels": {}, "annotations": {"a": null}, "creationTimestamp": null},
        "spec": {
            "replicas": 0,
            "paused": false,
            "minReadySeconds": 0,
            "template": {"spec": {
                "containers": [{"name": "c", "command": [], "env": [{"name": "E", "value": ""}],
                    "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi", "x": "1n"}}}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "nodeSelector": {},
            }},
        },
    });
    let value = decode("apps", "Deployment", &body.to_string())
        .unwrap()
        .value;
    assert_eq!(
        value,
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "x", "annotations": {"a": ""}},
            "spec": {
                "replicas": 0,
                "selector": null,
                "strategy": {},
                "template": {"metadata": {}, "spec": {
                    "containers": [{"name": "c", "env": [{"name": "E"}],
                        "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "x": "1m"}}}],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                }},
            },
            "status": {},
        })
    );
    let again = decode("apps", "Deployment", &value.to_string())
        .unwrap()
        .value;
    assert_eq!(again, value);
}

#[test]
fn empty_lists_without_omitempty_become_null() {
    let role = decode(
        "rbac.authorization.k8s.io",
        "ClusterRole",
        r#"{"rules":[]}"#,
    )
    .unwrap();
    assert_eq!(role.value["rules"], Value::Null);
    assert!(role.value.as_object().unwrap().contains_key("rules"));
}

#[test]
fn strict_decoding_complains_in_the_order_of_the_text() {
    let body = r#"{"metadata":{"name":"x","zzz":1},"data":{"a":"b","a":"c"},"foo":1,"foo":2,"data":{"x":"y"}}"#;
    let strict = decode("", "ConfigMap", body).unwrap().strict;
    assert_eq!(
        strict,
        [
            "unknown field \"metadata.zzz\"",
            "duplicate field \"data.a\"",
            "unknown field \"foo\"",
            "duplicate field \"data\""
        ]
    );
    let judged = FieldValidation::Strict.judge(strict, "v1", "ConfigMap");
    assert_eq!(
        judged.unwrap_err().message,
        r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.zzz", duplicate field "data.a", unknown field "foo", duplicate field "data""#
    );
    let many: String = (0..150).map(|i| format!(r#","f{i}":1"#)).collect();
    let strict = decode("", "ConfigMap", &format!("{{\"data\":{{}}{many}}}"))
        .unwrap()
        .strict;
    assert_eq!(strict.len(), 100);
}

#[test]
fn yaml_duplicates_are_one_error_and_several_warnings() {
    let body = b"kind: ConfigMap\nmetadata:\n  name: y1\n  name: y2\nfoo: 1\nfoo: 2";
    let schema = table::kind("", "v1", "ConfigMap");
    let decoded = builtin(body, Media::Yaml, &target("", "ConfigMap"), &schema).unwrap();
    assert_eq!(decoded.value["metadata"]["name"], "y2");
    let judge = |how: FieldValidation| how.judge(decoded.strict.clone(), "v1", "ConfigMap");
    assert_eq!(
        judge(FieldValidation::Strict).unwrap_err().message,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n  line 4: key \"name\" already set in map\n  line 6: key \"foo\" already set in map, unknown field \"foo\""
    );
    assert_eq!(
        judge(FieldValidation::Warn).unwrap(),
        [
            "line 4: key \"name\" already set in map",
            "line 6: key \"foo\" already set in map",
            "unknown field \"foo\""
        ]
    );
    assert!(judge(FieldValidation::Ignore).unwrap().is_empty());
}

#[test]
fn field_validation_is_read_from_the_query() {
    assert_eq!(
        FieldValidation::parse("", "CreateOptions").unwrap(),
        FieldValidation::Warn
    );
    let status = FieldValidation::parse("Bad", "CreateOptions").unwrap_err();
    assert_eq!(status.code, 422);
    assert_eq!(
        status.message,
        r#"CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Bad": supported values: "", "Ignore", "Strict", "Warn""#
    );
}

#[test]
fn custom_resources_are_checked_without_their_schema() {
    let widget = Target {
        group: "schema.example",
        version: "v1",
        kind: "Widget",
    };
    let decode = |body: &str| custom(body.as_bytes(), Media::Json, &widget);
    for (body, message) in [
        (
            "{}",
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{}' ({})",
        ),
        (
            "null",
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in 'null' (6e756c6c)",
        ),
        (
            r#"{"kind":"Widget"}"#,
            "the API version in the data () does not match the expected API version (schema.example/v1)",
        ),
        (
            r#"{"kind":"Pod","apiVersion":"v1"}"#,
            "the API version in the data (v1) does not match the expected API version (schema.example/v1)",
        ),
        (
            r#"{"kind":"Widget","apiVersion":"schema.example/v1","metadata":"x"}"#,
            r#"Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal string into Go value of type v1.ObjectMeta"#,
        ),
        (
            r#"{"kind":"Widget","apiVersion":"schema.example/v1","metadata":{"name":1}}"#,
            r#"Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#,
        ),
        (
            r#"{"kind":"Widget","apiVersion":"schema.example/v1","spec":{"f":1e400}}"#,
            r#"Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number 1e400 into Go value of type float64"#,
        ),
    ] {
        assert_eq!(decode(body).unwrap_err().message, message);
    }
    let decoded = decode(
        r#"{"kind":"Widget","apiVersion":"schema.example/v1","metadata":{"name":"x","zz":1},"spec":{"foo":2,"foo":3.0}}"#,
    )
    .unwrap();
    assert_eq!(
        decoded.strict,
        [
            "duplicate field \"spec.foo\"",
            "unknown field \"metadata.zz\""
        ]
    );
    assert_eq!(decoded.value["spec"]["foo"], json!(3));
}

#[test]
fn delete_options_are_lenient_about_their_group() {
    let read = |body: &str| delete_options(body.as_bytes(), Media::Json);
    assert!(read(r#"{"kind":"DeleteOptions","apiVersion":"foo/v1","foo":1}"#).is_ok());
    assert_eq!(
        read("{").unwrap_err().message,
        "couldn't get version/kind; json parse error: unexpected end of JSON input"
    );
    assert_eq!(
        read(r#"{"kind":"Foo"}"#).unwrap_err().message,
        r#"no kind "Foo" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111""#
    );
    assert_eq!(
        read(r#"{"propagationPolicy":1}"#).unwrap_err().message,
        "json: cannot unmarshal number into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation"
    );
}

#[test]
fn schemas_in_definitions_are_typed_all_the_way_down() {
    let body = json!({"spec": {"group": "x", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "bogus": 1,
        "properties": {"a": {"type": "array", "items": {"type": "string", "bogus": 1, "minLength": 0}},
            "b": {"additionalProperties": true, "default": {"any": [1.0]}}},
    }}}]}});
    let decoded = decode(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &body.to_string(),
    )
    .unwrap();
    assert_eq!(
        decoded.strict,
        ["unknown field \"spec.versions[0].schema.openAPIV3Schema.bogus\""]
    );
    let properties =
        &decoded.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(
        properties["a"],
        json!({"type": "array", "items": {"type": "string", "minLength": 0}})
    );
    assert_eq!(properties["b"]["additionalProperties"], true);
}
