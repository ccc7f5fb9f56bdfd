//! Reading and writing JSON values by path, so that rules read as sentences.
//!
//! Paths are dotted field names: `spec.template.metadata`. They reach through objects only, never into lists.

use serde_json::{Map, Value};

/// The value at `path`, if every step is there.
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |here, step| here.get(step))
}

/// The text at `path`; empty if it is absent or no text.
pub fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at `path`.
pub fn integer(value: &Value, path: &str) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// The boolean at `path`; false if absent.
pub fn flag(value: &Value, path: &str) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The items at `path`; none if it is absent or no list.
pub fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The object at `path`.
pub fn map<'a>(value: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// The fields of an object but for one.
pub fn all_but<'a>(
    fields: &'a Map<String, Value>,
    left: &'a str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    fields.iter().filter(move |(name, _)| *name != left)
}

/// Whether something other than `null` stands at `path`.
pub fn has(value: &Value, path: &str) -> bool {
    at(value, path).is_some_and(|v| !v.is_null())
}

/// The place at `path`, for writing; objects on the way are made.
/// `None` if something on the way is neither absent, `null` nor an object.
pub fn slot<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut here = value;
    for step in path.split('.') {
        if here.is_null() {
            *here = Value::Object(Map::new());
        }
        here = here.as_object_mut()?.entry(step).or_insert(Value::Null);
    }
    Some(here)
}

/// Writes `new` at `path`, making objects on the way.
pub fn put(value: &mut Value, path: &str, new: impl Into<Value>) {
    if let Some(slot) = slot(value, path) {
        *slot = new.into();
    }
}

/// Writes `new` at `path` if nothing or `null` stands there.
pub fn put_default(value: &mut Value, path: &str, new: impl Into<Value>) {
    if !has(value, path) {
        put(value, path, new);
    }
}

/// Removes what stands at `path` and gives it back.
pub fn take(value: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = match path.rsplit_once('.') {
        Some((parent, last)) => (at_mut(value, parent)?, last),
        None => (value, path),
    };
    parent.as_object_mut()?.remove(last)
}

/// Makes what stands at `path` in `value` the same as in `from`: copied, or removed where `from` has nothing.
pub fn copy(value: &mut Value, from: &Value, path: &str) {
    match at(from, path) {
        Some(old) => put(value, path, old.clone()),
        None => {
            take(value, path);
        }
    }
}

/// The value at `path`, for writing, if every step is there.
pub fn at_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.')
        .try_fold(value, |here, step| here.get_mut(step))
}

/// The items at `path`, for writing.
pub fn items_mut<'a>(value: &'a mut Value, path: &str) -> &'a mut [Value] {
    at_mut(value, path)
        .and_then(Value::as_array_mut)
        .map(Vec::as_mut_slice)
        .unwrap_or_default()
}
