//! Hashes that stay the same: of what an object says, and not of how a program holds it.

use serde_json::Value;
use sha2::{Digest, Sha256};
use slipway_api::flagger::SCALE_TO_ZERO;

/// How many bytes of a hash are kept.
const KEPT: usize = 8;

/// The hash of a workload's pod template: 16 hexadecimal digits.
pub fn template(workload: &Value) -> String {
    let mut template = workload
        .pointer("/spec/template")
        .cloned()
        .unwrap_or_default();
    normalise(&mut template);
    let mut text = String::new();
    canonical(&template, &mut text);
    digest(text.as_bytes())
}

/// Whether a hash in a status is of ours: Flagger's are shorter.
pub fn is_ours(hash: &str) -> bool {
    hash.len() == 2 * KEPT && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The first bytes of a SHA-256, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let kept = hash.iter().take(KEPT);
    kept.fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// A template without what says nothing: how a `DaemonSet` is at zero, and maps without anything.
pub(crate) fn normalise(template: &mut Value) {
    let selector = template.pointer_mut("/spec/nodeSelector");
    if let Some(selector) = selector.and_then(Value::as_object_mut) {
        selector.remove(SCALE_TO_ZERO);
    }
    prune(template);
}

/// Takes out nulls and empty maps, which the API may leave out or put there.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for field in fields.values_mut() {
                prune(field);
            }
            // An empty volume source or security context says something by being there.
            let says_nothing = ["nodeSelector", "annotations", "labels", "metadata"];
            fields.retain(|name, field| {
                let is_empty = field.as_object().is_some_and(serde_json::Map::is_empty);
                !(field.is_null() || is_empty && says_nothing.contains(&name.as_str()))
            });
        }
        Value::Array(all) => all.iter_mut().for_each(prune),
        _ => {}
    }
}

/// JSON with the names of fields in order, whatever order they are held in.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            text.push('{');
            for name in names {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                if let Some(field) = fields.get(name) {
                    canonical(field, text);
                }
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(all) => {
            text.push('[');
            for one in all {
                canonical(one, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}
