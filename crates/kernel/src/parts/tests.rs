#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{Part, Parts, Read};

fn object() -> Value {
    json!({
        "kind": "StatefulSet", "status": {"replicas": 3},
        "metadata": {"name": "a", "managedFields": [{"manager": "x"}]},
        "spec": {"replicas": 3, "status": "kept", "volumeClaimTemplates": [1],
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}},
    })
}

const LARGE: [(Part, &str); 4] = [
    (Part::ManagedFields, "/metadata/managedFields"),
    (Part::Status, "/status"),
    (Part::PodSpec, "/spec/template/spec"),
    (Part::ClaimTemplates, "/spec/volumeClaimTemplates"),
];

#[test]
fn what_is_declared_is_there_and_nothing_else_that_is_large() {
    for (declared, _) in LARGE {
        let parts = Parts::NONE.and(declared);
        let read = parts.of(&object()).into_owned();
        let mut kept = object();
        parts.keep(&mut kept);
        assert_eq!(read, kept);
        for (part, path) in LARGE {
            assert_eq!(read.pointer(path).is_some(), part == declared, "{path}");
        }
        let name = read.pointer("/spec/template/metadata/labels/a");
        assert_eq!(name, Some(&json!("b")));
        assert_eq!(read.pointer("/spec/status"), Some(&json!("kept")));
    }
}

#[test]
fn an_object_that_has_nothing_to_leave_out_is_not_copied() {
    let object = object();
    assert!(matches!(Parts::ALL.of(&object), Cow::Borrowed(_)));
    let lean = Parts::NONE.of(&object).into_owned();
    assert!(matches!(Parts::NONE.of(&lean), Cow::Borrowed(_)));
}

#[test]
fn parsing_leaves_out_what_a_copy_does() {
    const MOST: Parts = Parts::ALL.without(Part::ManagedFields);
    let text = object().to_string();
    let Read::<{ Parts::NONE.bits() }>(lean) = serde_json::from_str(&text).unwrap();
    assert_eq!(lean, Parts::NONE.of(&object()).into_owned());
    let Read::<{ MOST.bits() }>(most) = serde_json::from_str(&text).unwrap();
    assert_eq!(most, MOST.of(&object()).into_owned());
    let Read::<{ Parts::ALL.bits() }>(whole) = serde_json::from_str(&text).unwrap();
    assert_eq!(whole, object());
    let Read::<{ Parts::NONE.bits() }>(nothing) = serde_json::from_str("null").unwrap();
    assert_eq!(nothing, Value::Null);
}
