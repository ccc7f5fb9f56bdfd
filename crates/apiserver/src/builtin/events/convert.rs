//! Events between their two forms.

use serde_json::{Value, json};

use crate::value;

/// Field names: in `events.k8s.io`, and in core.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];

const EVENTS: &str = "events.k8s.io/v1";

/// The core form, which is also the stored one.
pub fn to_core(event: &Value) -> Value {
    let mut out = event.clone();
    if value::text(event, "apiVersion") != EVENTS && !is_events_form(event) {
        return out;
    }
    for (theirs, ours) in NAMES {
        rename(&mut out, theirs, ours);
    }
    if value::has(&out, "apiVersion") {
        value::put(&mut out, "apiVersion", "v1");
    }
    // What the core type always writes, and the other one leaves out when empty.
    for (field, empty) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        if value::at(&out, field).is_none() {
            value::put(&mut out, field, empty);
        }
    }
    out
}

/// The `events.k8s.io` form.
pub fn to_events(event: &Value) -> Value {
    let mut out = event.clone();
    if value::text(event, "apiVersion") == EVENTS || is_events_form(event) {
        return out;
    }
    for (theirs, ours) in NAMES {
        rename(&mut out, ours, theirs);
    }
    if value::has(&out, "apiVersion") {
        value::put(&mut out, "apiVersion", EVENTS);
    }
    for field in ["reportingController", "reportingInstance", "note"] {
        if value::text(&out, field).is_empty() {
            value::take(&mut out, field);
        }
    }
    out
}

/// Objects inside lists and tables carry no `apiVersion`; their fields tell.
fn is_events_form(event: &Value) -> bool {
    value::text(event, "apiVersion").is_empty()
        && NAMES.iter().any(|(theirs, _)| event.get(theirs).is_some())
}

fn rename(event: &mut Value, from: &str, to: &str) {
    if let Some(found) = value::take(event, from) {
        value::put(event, to, found);
    }
}
