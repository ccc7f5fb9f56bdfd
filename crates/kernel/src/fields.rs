//! Fields of objects that nobody has checked: what is not of the expected type counts as absent.

use std::collections::BTreeMap;

use serde_json::Value;

/// What is at a JSON pointer. Nearly all have nothing escaped in them, and `Value::pointer` copies each name of a path twice to find
/// that out: planners look at tens of thousands of fields.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    if path.contains('~') {
        return object.pointer(path);
    }
    let Some(names) = path.strip_prefix('/') else {
        return path.is_empty().then_some(object);
    };
    names
        .split('/')
        .try_fold(object, |value, name| match value {
            Value::Object(fields) => fields.get(name),
            Value::Array(_) => value.pointer(&format!("/{name}")),
            _ => None,
        })
}

/// The strings in an object's map.
pub fn strings(object: &Value, path: &str) -> BTreeMap<String, String> {
    let map = at(object, path).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// An integer.
pub fn integer(object: &Value, path: &str) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// A text.
pub fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    at(object, path).and_then(Value::as_str)
}

/// The elements of a list.
pub fn list<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = at(object, path).and_then(Value::as_array);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::at;

    #[test]
    fn a_path_leads_where_a_json_pointer_leads() {
        let object = json!({"a": {"b": [{"c": 1}, 2], "": {"d": 3}, "e/f": 4, "~": 5}, "": 6});
        let paths = [
            "", "/", "a", "/a", "/a/", "/a/b", "/a/b/0", "/a/b/0/c", "/a/b/01", "/a/b/-", "/a/b/2",
            "/a/b/+1", "/a//d", "/a/e~1f", "/a/e/f", "/a/~0", "/a/~", "/a/b/1/x", "/x", "/a/x",
            "//",
        ];
        for path in paths {
            assert_eq!(at(&object, path), object.pointer(path), "{path:?}");
        }
    }
}
