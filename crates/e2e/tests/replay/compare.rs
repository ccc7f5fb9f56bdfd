//! Two answers, field by field.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_e2e::record::Content;

use crate::drawn::Drawn;

/// What is not compared, and why.
pub(crate) const MASKS: &[(&str, &str)] = &[
    (
        "metadata.resourceVersion",
        "each server counts its own writes; used in later requests by the write it stands for",
    ),
    (
        "metadata.creationTimestamp, metadata.deletionTimestamp, managedFields[].time",
        "the moment of the write",
    ),
    (
        "metadata.continue, metadata.remainingItemCount of pages",
        "a server's own token; used in later requests",
    ),
    (
        "metadata.uid, spec.clusterIP",
        "drawn by the server; not masked but exchanged: the same object has the same one everywhere",
    ),
    (
        "metadata.name after generateName",
        "drawn by the server; the replay asks for the recorded name",
    ),
    (
        "managedFields of objects from before the recording",
        "who wrote them is not in the recording",
    ),
    (
        "lastTransitionTime of conditions that the server sets (definitions; PodScheduled by binding)",
        "the moment of the write",
    ),
];

/// A place where answers differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) recorded: Value,
    pub(crate) found: Value,
}

/// All places where `found` differs from what was recorded.
pub(crate) fn differences(recorded: &Value, found: &Value, drawn: &Drawn) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("", recorded, found, drawn, &mut all);
    all
}

fn compare(path: &str, recorded: &Value, found: &Value, drawn: &Drawn, all: &mut Vec<Difference>) {
    match (recorded, found) {
        (Value::Object(a), Value::Object(b)) => {
            let is_old = found
                .get("uid")
                .and_then(Value::as_str)
                .is_some_and(|uid| drawn.is_old(uid));
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                if is_masked(path, key) || (is_old && key == "managedFields") {
                    continue;
                }
                let nothing = Value::Null;
                compare(
                    &format!("{path}.{key}"),
                    a.get(key).unwrap_or(&nothing),
                    b.get(key).unwrap_or(&nothing),
                    drawn,
                    all,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let (mut a, mut b) = (keyed(a), keyed(b));
            let keys: Vec<String> = a.keys().chain(b.keys()).cloned().collect();
            for key in keys {
                let (Some(a), b) = (a.remove(&key), b.remove(&key)) else {
                    continue;
                };
                match b {
                    Some(b) => compare(&format!("{path}[{key}]"), a, b, drawn, all),
                    None => all.push(difference(&format!("{path}[{key}]"), a, &Value::Null)),
                }
            }
            for (key, b) in b {
                all.push(difference(&format!("{path}[{key}]"), &Value::Null, b));
            }
        }
        (a, b) if a == b => {}
        (a, b) => all.push(difference(path, a, b)),
    }
}

fn difference(path: &str, recorded: &Value, found: &Value) -> Difference {
    Difference {
        path: path.to_owned(),
        recorded: recorded.clone(),
        found: found.clone(),
    }
}

fn is_masked(path: &str, key: &str) -> bool {
    match key {
        "resourceVersion" | "creationTimestamp" | "deletionTimestamp" | "continue"
        | "remainingItemCount" => path.ends_with(".metadata"),
        "time" => path.contains(".managedFields["),
        "lastTransitionTime" => path.contains(".status.conditions[") && is_set_by_server(path),
        _ => false,
    }
}

/// Conditions of definitions, and that of a pod that was bound.
fn is_set_by_server(path: &str) -> bool {
    [
        "PodScheduled",
        "Established",
        "NamesAccepted",
        "NonStructuralSchema",
        "KubernetesAPIApprovalPolicyConformant",
    ]
    .iter()
    .any(|kind| path.ends_with(&format!("[{kind}]")))
}

/// The items of a list by what tells them apart, or else by their place.
pub(crate) fn keyed(items: &[Value]) -> BTreeMap<String, &Value> {
    let by_name: BTreeMap<String, &Value> = items
        .iter()
        .filter_map(|item| Some((key(item)?, item)))
        .collect();
    if by_name.len() == items.len() {
        return by_name;
    }
    let by_place = items.iter().enumerate();
    by_place
        .map(|(index, item)| (format!("{index:03}"), item))
        .collect()
}

fn key(item: &Value) -> Option<String> {
    if let Some(name) = item.pointer("/metadata/name").and_then(Value::as_str) {
        let namespace = item.pointer("/metadata/namespace").and_then(Value::as_str);
        return Some(format!("{}/{name}", namespace.unwrap_or_default()));
    }
    if let (Some(manager), Some(operation)) = (item.get("manager"), item.get("operation")) {
        let part = item.get("subresource").unwrap_or(&Value::Null);
        return Some(format!("{manager}{operation}{part}").replace('"', " "));
    }
    let names = [
        "resource",
        "subresource",
        "version",
        "groupVersion",
        "type",
        "name",
    ];
    let found = names.iter().find_map(|name| item.get(name));
    found.and_then(Value::as_str).map(str::to_owned)
}

/// The message of a refusal.
pub(crate) fn message(answer: &Content) -> String {
    let Content::Json(answer) = answer else {
        return String::new();
    };
    let text = answer.get("message").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
