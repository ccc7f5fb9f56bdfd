//! Fields of objects that nobody has checked: what is not of the expected type counts as absent.

use std::collections::BTreeMap;

use serde_json::Value;

/// The strings in an object's map.
pub fn strings(object: &Value, path: &str) -> BTreeMap<String, String> {
    let map = object.pointer(path).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// An integer.
pub fn integer(object: &Value, path: &str) -> Option<i64> {
    object.pointer(path).and_then(Value::as_i64)
}

/// A text.
pub fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    object.pointer(path).and_then(Value::as_str)
}

/// The elements of a list.
pub fn list<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = object.pointer(path).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Changes an object by a merge patch (RFC 7386).
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Some(fields) = target.as_object_mut() else {
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}
