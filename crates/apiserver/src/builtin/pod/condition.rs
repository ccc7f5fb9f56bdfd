//! Conditions of pods, and the times in them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::meta::timestamp;
use crate::value::{items, put, slot, text};

/// The time at `path`, if there is one.
pub fn moment(object: &Value, path: &str) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// How long ago the time at `path` was, as tables show it.
pub fn since(object: &Value, path: &str, now: Timestamp) -> String {
    moment(object, path).map_or_else(|| "<unknown>".to_owned(), |t| crate::table::age(t, now))
}

/// The age of an object, as tables show it.
pub fn age(object: &Value, now: Timestamp) -> String {
    since(object, "metadata.creationTimestamp", now)
}

/// Whether a condition of this type is true.
pub fn is_true(object: &Value, kind: &str) -> bool {
    items(object, "status.conditions")
        .iter()
        .any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

/// Adds or replaces a condition of a pod; the time of transition stays where the status does.
pub fn set(pod: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    let mut condition = json!({
        "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": timestamp(now),
    });
    if !reason.is_empty() {
        put(&mut condition, "reason", reason);
    }
    if !message.is_empty() {
        put(&mut condition, "message", message);
    }
    let Some(list) = slot(pod, "status.conditions") else {
        return;
    };
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else {
        return;
    };
    match list.iter_mut().find(|c| text(c, "type") == kind) {
        Some(old) => {
            if text(old, "status") == status {
                let before = old.get("lastTransitionTime").cloned().unwrap_or_default();
                put(&mut condition, "lastTransitionTime", before);
            }
            *old = condition;
        }
        None => list.push(condition),
    }
}
