//! Lists that must not repeat themselves: sets, and lists that merge by keys.

use serde_json::{Map, Value};

use super::structural::Structural;
use crate::field::{FieldError, FieldErrors};

/// Judges all lists below `value`.
pub(super) fn validate(schema: &Structural, value: &Value, path: &str, errors: &mut FieldErrors) {
    match value {
        Value::Array(list) => {
            match &*schema.list_type {
                "set" => {
                    for i in repeated(list) {
                        let at = format!("{path}[{i}]");
                        errors.extend(list.get(i).map(|v| FieldError::duplicate(at, v)));
                    }
                }
                "map" => by_keys(schema, list, path, errors),
                _ => {}
            }
            if let Some(items) = schema.items.as_deref() {
                for (i, item) in list.iter().enumerate() {
                    validate(items, item, &format!("{path}[{i}]"), errors);
                }
            }
        }
        Value::Object(map) => {
            if let Some(values) = schema.values() {
                for (key, below) in map {
                    validate(values, below, &format!("{path}[{key}]"), errors);
                }
            }
            for (key, below) in map {
                if let Some(child) = schema.properties.get(key) {
                    let at = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    validate(child, below, &at, errors);
                }
            }
        }
        _ => {}
    }
}

/// The second place of every value that stands in more than one place.
fn repeated(list: &[Value]) -> Vec<usize> {
    let mut seen: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for (i, value) in list.iter().enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            found.push(i);
        }
    }
    found
}

fn by_keys(schema: &Structural, list: &[Value], path: &str, errors: &mut FieldErrors) {
    let strange = list
        .iter()
        .enumerate()
        .find(|(_, v)| !v.is_object() && !v.is_null());
    if let Some((i, item)) = strange {
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(format!("{path}[{i}]"), item, why));
        return;
    }
    let keys: Vec<Value> = list
        .iter()
        .map(|item| {
            let pairs = schema
                .map_keys
                .iter()
                .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(pairs.collect::<Map<_, _>>())
        })
        .collect();
    for i in repeated(&keys) {
        let at = format!("{path}[{i}]");
        errors.extend(keys.get(i).map(|key| FieldError::duplicate(at, key)));
    }
}
