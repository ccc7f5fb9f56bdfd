//! Merge patch.

use serde_json::{Map, Value};

use super::{Patched, Reading, go, object_only};
use crate::decode::{self, Media};
use crate::status::{Outcome, Status};

pub(super) fn patch(doc: &Value, body: &[u8], reading: Reading) -> Outcome<Patched> {
    let lenient = reading == Reading::Lenient;
    let invalid = || Box::new(Status::bad_request("Invalid JSON Patch"));
    let refuse =
        |why: String| Box::new(Status::bad_request(format!("error decoding patch: {why}")));
    let parsed = decode::parse(body, Media::Json).map_err(|error| {
        if lenient {
            invalid()
        } else {
            refuse(error.to_string())
        }
    })?;
    match parsed.value {
        Value::Object(changes) => {
            let mut object = doc.as_object().cloned().unwrap_or_default();
            merge(&mut object, changes);
            Ok(Patched {
                object: Value::Object(object),
                complaints: parsed.duplicates,
                shown: None,
            })
        }
        Value::Null => Err(invalid()),
        other if !lenient => Err(refuse(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_type(&other)
        ))),
        // A list would become the object.
        list @ Value::Array(_) => object_only(list).map(|object| Patched {
            object,
            complaints: Vec::new(),
            shown: None,
        }),
        _ => Err(invalid()),
    }
}

fn merge(doc: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, mut change) in patch {
        if change.is_null() {
            doc.remove(&key);
            continue;
        }
        let current = doc.remove(&key).unwrap_or(Value::Null);
        let merged = match (current, change) {
            (Value::Object(mut current), Value::Object(change)) => {
                merge(&mut current, change);
                Value::Object(current)
            }
            (Value::Object(_), other) => other,
            (_, new) => {
                change = new;
                prune_nulls(&mut change);
                change
            }
        };
        doc.insert(key, merged);
    }
}

/// Removes `null` from objects, also inside lists; a `null` item of a list stays.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}
