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

pub(super) fn decode(group: &str, kind: &str, body: &str) -> Outcome<Decoded> {
    let schema = table::kind(group, "v1", kind);
    builtin(body.as_bytes(), Media::Json, &target(group, kind), &schema)
}

fn config_map(body: &str) -> String {
    decode("", "ConfigMap", body).unwrap_err().message
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
    let judged = FieldValidation::Strict.judge(&strict, "v1", "ConfigMap");
    assert_eq!(
        judged.unwrap_err().message,
        r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.zzz", duplicate field "data.a", unknown field "foo", duplicate field "data""#
    );
    let many: Vec<String> = (0..150).map(|i| format!(r#""f{i}":1"#)).collect();
    let strict = decode("", "ConfigMap", &format!("{{{}}}", many.join(",")))
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
    let judge = |how: FieldValidation| how.judge(&decoded.strict, "v1", "ConfigMap");
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
