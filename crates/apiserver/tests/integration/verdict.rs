//! What an answer of the API's kind is.

use serde_json::{Value, json};

/// Judges an answer by its code, media type and text: a failure has to be a `Status` that says the same code, or text.
pub(crate) fn judge(told: &str, code: u16, kind: &str, text: &str) {
    if code >= 400 && kind == "application/json" {
        let status: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (&status["kind"], &status["code"]),
            (&json!("Status"), &json!(code)),
            "{told}"
        );
        assert!(
            !status["message"].as_str().unwrap().is_empty(),
            "{told}: {text}"
        );
    } else if code >= 400 && kind != "application/yaml" {
        assert!(kind.starts_with("text/plain"), "{told}: {kind}");
    }
}

/// What the real server calls a failure of its own too, though it is the client's: reason and whole message, in which `*` is whatever the
/// request had there. Most are in the conformance suite's recordings, the others are errors of its strategic merge patch, of bindings
/// and of lists that have no status of their own.
const REAL_500: &[(&str, &str)] = &[
    ("", "content is not a list"),
    ("", "target.kind: Unsupported value: *: supported values: *"),
    ("", "target.name: Required value"),
    (
        "",
        "[target.kind: Unsupported value: *, target.name: Required value]",
    ),
    ("", "list element types are not identical: [*]"),
    ("", "no elements in any of the given slices"),
    ("", "value for key * is not a map"),
    (
        "",
        "merging an object in json but data type is not struct, instead is: map",
    ),
    (
        "",
        "unable to find api field in struct * for the json field *",
    ),
    ("", "expected slice or array type, but got: struct"),
    ("", "unexpected slice of slice"),
    (
        "",
        "The order in patch list:\n*\n doesn't match $setElementOrder list:\n*\n",
    ),
    ("", "cannot merge lists without merge key for struct"),
    ("", "merging lists cannot yet be specified in the patch"),
    (
        "",
        "resourceVersion should not be set on objects to be created",
    ),
    (
        "InternalError",
        "Internal error occurred: failed calling webhook *: *",
    ),
    (
        "",
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    ),
    ("", "map: * does not contain declared merge key: *"),
    (
        "InternalError",
        "Internal error occurred: the spec replicas field * does not exist",
    ),
    ("", "failed to create typed patch object (*): *"),
    ("", "unknown patch type: * in map: *"),
    ("", "expected a *, but received a *"),
    (
        "Timeout",
        "Timeout: Too large resource version: *, current: *",
    ),
    (
        "",
        "resourceVersion: Invalid value: *: strconv.ParseUint: parsing *: *",
    ),
];

/// Whether a failure of the server's own is one that the real server has too, by its whole reason and message.
pub(crate) fn is_real(text: &str) -> bool {
    let status: Value = serde_json::from_str(text)
        .or_else(|_| serde_saphyr::from_str(text).map_err(|_| ()))
        .unwrap_or_default();
    let said = |name: &str| status.get(name).and_then(Value::as_str).unwrap_or_default();
    let (reason, message) = (said("reason"), said("message"));
    let mut known = REAL_500.iter();
    known.any(|(real, shape)| *real == reason && fits(shape, message))
}

/// Whether a message is of this shape, from its beginning to its end.
fn fits(shape: &str, message: &str) -> bool {
    let mut parts = shape.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = message.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}
