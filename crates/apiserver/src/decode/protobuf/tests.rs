//! Objects as a real server wrote them in protobuf and in JSON.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;
use crate::decode::{Target, builtin};
use crate::negotiate::Media;
use crate::schema::table::kind;

/// Both forms of an object, decoded as a body of that kind.
macro_rules! same {
    ($file:literal, $group:literal, $kind:literal) => {{
        let target = Target { group: $group, version: "v1", kind: $kind };
        let schema = kind($group, "v1", $kind);
        let binary = include_bytes!(concat!("testdata/", $file, ".pb"));
        let text = include_bytes!(concat!("testdata/", $file, ".json"));
        let binary = builtin(binary, Media::Protobuf, &target, &schema).unwrap();
        let text = builtin(text, Media::Json, &target, &schema).unwrap();
        assert_eq!(binary.strict, Vec::<String>::new());
        assert_eq!(binary.value, text.value);
    }};
}

#[test]
fn protobuf_and_json_are_one_object() {
    same!("deployment", "apps", "Deployment");
    same!("secret", "", "Secret");
    same!("budget", "policy", "PodDisruptionBudget");
    same!("lease", "coordination.k8s.io", "Lease");
    same!("revision", "apps", "ControllerRevision");
    same!("definition", "apiextensions.k8s.io", "CustomResourceDefinition");
}

#[test]
fn what_is_no_protobuf_is_refused() {
    let text = read(b"abc").unwrap_err();
    assert!(text.ends_with("expected prefix [107 56 115 0]"), "{text}");
    assert_eq!(read(b"k8s\0\x12\x05a").unwrap_err(), "unexpected EOF");
    assert_eq!(read(b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").unwrap_err(), "proto: integer overflow");
    assert_eq!(read(b"k8s\0").unwrap(), serde_json::json!({}));
}

#[test]
fn no_byte_changed_or_lost_makes_a_panic() {
    let whole = include_bytes!("testdata/deployment.pb");
    for end in 0..whole.len() {
        let _ = read(whole.get(..end).unwrap());
        let mut changed = whole.to_vec();
        *changed.get_mut(end).unwrap() ^= 0xff;
        let _ = read(&changed);
    }
}

#[test]
fn depth_is_bounded() {
    // A schema within a schema, as often as fits: JSONSchemaProps.not is field 28.
    let mut bytes = Vec::new();
    for _ in 0..2000 {
        let mut outer = vec![0xe2, 0x01];
        let mut length = bytes.len();
        while length > 0x7f {
            outer.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        outer.push(u8::try_from(length).unwrap());
        outer.extend(bytes);
        bytes = outer;
    }
    let message = table::message("apiextensions.v1.JSONSchemaProps").unwrap();
    assert_eq!(message.field(28).map(|field| field.name), Some("not"));
    assert_eq!(fill(&bytes, message, MAX_DEPTH, &mut Map::new()).unwrap_err(), "exceeded max depth");
}
