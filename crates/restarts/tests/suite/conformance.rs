//! The behaviour of the controller that this replaces, by the numbers of `docs/conformance/restarts.md`: M1–M7 matching, U1–U10
//! one decision, C1–C11 additions, I1–I4 a running controller, D1–D4 its demo.

#[path = "conformance/additions.rs"]
mod additions;
#[path = "conformance/decisions.rs"]
mod decisions;
#[path = "conformance/matching.rs"]
mod matching;
#[path = "conformance/running.rs"]
mod running;

use serde_json::json;

use crate::objects::flipper;

fn foo_flipper() -> serde_json::Value {
    let spec =
        json!({"interval": "3m", "match": {"labels": {"foo": "bar"}, "namespaces": ["service"]}});
    flipper("default", "foo-flipper", &spec)
}
