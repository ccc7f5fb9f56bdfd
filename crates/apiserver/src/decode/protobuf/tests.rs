#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::decode;

const NOTHING: Target<'_> = Target {
    group: "",
    version: "",
    kind: "",
};
const CONFIG_MAP: Target<'_> = Target {
    group: "",
    version: "v1",
    kind: "ConfigMap",
};

/// Bodies that Go wrote, with the JSON of the same objects beside them.
fn recorded() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/decode/testdata");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "pb"))
        .collect();
    found.sort();
    found
}

fn conformed(mut value: Value) -> Value {
    let text = |name: &str| value[name].as_str().unwrap().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let schema = schema(group, version, &kind).unwrap();
    let unknown = decode::shape(&schema, &mut value).unwrap();
    assert_eq!(unknown, Vec::<String>::new());
    value
}

#[test]
fn bodies_say_what_their_json_says() {
    let all = recorded();
    assert!(all.len() >= 25);
    for path in all {
        let found = to_json(&std::fs::read(&path).unwrap(), &NOTHING)
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let json = std::fs::read(path.with_extension("json")).unwrap();
        let wanted: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(conformed(found), conformed(wanted), "{}", path.display());
    }
}

fn refusal(body: &[u8]) -> String {
    let schema = table::kind("", "v1", "ConfigMap");
    decode::builtin(body, Media::Protobuf, &CONFIG_MAP, &schema)
        .unwrap_err()
        .message
}

#[test]
fn broken_envelopes_are_unrecognized() {
    for (body, text) in [
        (
            &b"random"[..],
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (72616e646f6d)",
        ),
        (b"", "empty data (<empty>)"),
        (b"k8s\0", "empty body (6b387300)"),
        (b"k8s\0\x0a", "unexpected EOF (6b3873000a)"),
        (
            b"k8s\0\x00\x01",
            "proto: Unknown: illegal tag 0 (wire type 0) (6b3873000001)",
        ),
        (
            b"k8s\0\x0c",
            "proto: Unknown: wiretype end group for non-group (6b3873000c)",
        ),
        (
            b"k8s\0\x09aaa",
            "proto: wrong wireType = 1 for field TypeMeta (6b38730009616161)",
        ),
    ] {
        let wanted =
            format!("the object provided is unrecognized (must be of type ConfigMap): {text}");
        assert_eq!(refusal(body), wanted);
    }
}

#[test]
fn broken_objects_cannot_be_handled() {
    for (body, text) in [
        (
            &b"k8s\0\x12\x02\x0a\x05"[..],
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF"#,
        ),
        (
            b"k8s\0\x12\x02\x08\x05",
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta"#,
        ),
        (
            b"k8s\0\x0a\x06\x0a\x04/v/v\x12\x02\x0a\x05",
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF"#,
        ),
        (
            b"k8s\0\x0a\x05\x12\x03Foo\x12\x02\x0a\x05",
            r#"Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
        (
            b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x00",
            r#"Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion"#,
        ),
        (
            b"k8s\0\x0a\x03\x0a\x01a\x12\x02\x0a\x00",
            r#"ConfigMap in version "a" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "a" in scheme "pkg/runtime/scheme.go:111""#,
        ),
    ] {
        assert_eq!(refusal(body), text);
    }
}

#[test]
fn options_of_a_delete() {
    let options = |body: &[u8]| decode::delete_options(body, Media::Protobuf);
    let good = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x02\x08\x05";
    assert_eq!(options(good).unwrap()["gracePeriodSeconds"], json!(5));
    for (body, text) in [
        (&b"k8s\0"[..], "empty body"),
        (
            b"k8s\0\x0a\x05\x12\x03Foo\x12\x02\x0a\x05",
            r#"no kind "Foo" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
        (
            b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x02\x0a\x05",
            "proto: wrong wireType = 2 for field GracePeriodSeconds",
        ),
    ] {
        assert_eq!(options(body).unwrap_err().message, text);
    }
}

#[test]
fn custom_resources_have_no_protobuf() {
    let status = decode::custom(b"k8s\0", Media::Protobuf, &CONFIG_MAP).unwrap_err();
    assert_eq!(status.code, 415);
}

/// A message with `data` in field `number`.
fn piece(number: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = data.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(data);
    out
}

fn config_map(raw: &[u8]) -> Result<Value, ParseError> {
    to_json(&[MAGIC, &piece(2, raw)].concat(), &CONFIG_MAP)
}

#[test]
fn later_pieces_add_to_earlier_ones() {
    let meta = |number, text: &str| piece(1, &piece(number, text.as_bytes()));
    let raw = [meta(1, "a"), meta(3, "ns"), meta(1, "b")].concat();
    let found = config_map(&raw).unwrap();
    assert_eq!(found["metadata"], json!({"name": "b", "namespace": "ns"}));
}

#[test]
fn unknown_fields_are_skipped() {
    // A group with a varint inside, then the metadata.
    let raw = [&[0xfb, 0x07, 0x08, 0x01, 0xfc, 0x07][..], &piece(1, b"")].concat();
    assert_eq!(config_map(&raw).unwrap()["metadata"], json!({}));
    let error = config_map(&[0xfb, 0x07, 0x08]).unwrap_err();
    assert_eq!(error.to_string(), "unexpected EOF");
}

#[test]
fn numbers_come_packed_or_one_by_one() {
    // supplementalGroups, field 4 of the security context, field 14 of a pod's spec.
    let pod = Target {
        kind: "Pod",
        ..CONFIG_MAP
    };
    for groups in [&[0x22, 3, 1, 0xac, 2][..], &[0x20, 1, 0x20, 0xac, 2]] {
        let raw = piece(2, &piece(2, &piece(14, groups)));
        let found = to_json(&[MAGIC, &raw].concat(), &pod).unwrap();
        let context = &found["spec"]["securityContext"];
        assert_eq!(context["supplementalGroups"], json!([1, 300]));
    }
}

#[test]
fn nesting_is_bounded() {
    let crd = Target {
        group: "apiextensions.k8s.io",
        version: "v1",
        kind: "CustomResourceDefinition",
    };
    let nested = |levels: usize| {
        // `not`, field 28, in one another; two bytes of tag.
        let mut schema = Vec::new();
        for _ in 0..levels {
            let inner = piece(1, &schema);
            schema = [&[0xe2, 0x01], &inner[1..]].concat();
        }
        let version = piece(4, &piece(1, &schema));
        let raw = piece(2, &piece(2, &piece(7, &version)));
        to_json(&[MAGIC, &raw].concat(), &crd)
    };
    assert!(nested(100).is_ok());
    assert!(nested(100_000).is_err());
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let raw = |text: &str| special::raw(&piece(1, text.as_bytes()), "JSON", 100);
    assert!(raw(&deep).is_err());
    assert!(raw("[[[]]]").is_ok());
}

proptest! {
    #[test]
    fn random_bytes_are_harmless(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = to_json(&body, &CONFIG_MAP);
        let _ = to_json(&[MAGIC, &body].concat(), &CONFIG_MAP);
        let _ = config_map(&body);
        let pod = Target { kind: "Pod", ..CONFIG_MAP };
        let _ = to_json(&[MAGIC, &piece(2, &body)].concat(), &pod);
    }

    #[test]
    fn damaged_bodies_are_harmless(
        which in any::<prop::sample::Index>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let all = recorded();
        let mut body = std::fs::read(which.get(&all)).unwrap();
        for (at, byte) in damage {
            *at.get_mut(&mut body) = byte;
        }
        if cut {
            body.truncate(end.index(body.len()));
        }
        if let Ok(mut value) = to_json(&body, &NOTHING) {
            let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            if let Some(schema) = schema(group, version, &kind) {
                let _ = decode::shape(&schema, &mut value);
            }
        }
    }
}
