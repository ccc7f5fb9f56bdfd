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

/// What the real server calls a failure of its own too, though it is the client's.
const REAL_500: [&str; 5] = [
    "failed to create typed patch object",
    "unknown patch type: ",
    "expected a []interface {}, but received a ",
    "Too large resource version",
    "strconv.ParseUint: parsing",
];

pub(crate) fn is_real(text: &str) -> bool {
    REAL_500.iter().any(|real| text.contains(real))
}
