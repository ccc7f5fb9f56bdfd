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

/// What the real server calls a failure of its own too, though it is the client's: most are in the conformance
/// suite's recordings, the others are errors of its strategic merge patch, of bindings and of lists that have no status of their own.
const REAL_500: [&str; 23] = [
    "content is not a list",
    "target.kind: Unsupported value",
    "target.name: Required value",
    "list element types are not identical",
    "no elements in any of the given slices",
    "is not a map",
    "merging an object in json but data type is not struct",
    "unable to find api field in struct",
    "expected slice or array type, but got: struct",
    "unexpected slice of slice",
    "The order in patch list",
    "cannot merge lists without merge key",
    "merging lists cannot yet be specified",
    "resourceVersion should not be set on objects to be created",
    "failed calling webhook",
    "This pod has more than one PodDisruptionBudget",
    "does not contain declared merge key",
    "Internal error occurred: the spec replicas field",
    "failed to create typed patch object",
    "unknown patch type: ",
    ", but received a ",
    "Too large resource version",
    "strconv.ParseUint: parsing",
];

pub(crate) fn is_real(text: &str) -> bool {
    REAL_500.iter().any(|real| text.contains(real))
}
