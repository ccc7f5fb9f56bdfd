//! Applying a webhook's JSON patch. Unlike a patch in a request, one that does not apply is answered with the reason.

use serde_json::{Map, Value};

use super::call::Failure;
use crate::value;

/// Applies `operations` to `object`.
pub(super) fn apply(operations: &[Value], object: &Value) -> Result<Value, Failure> {
    run(operations, object).map_err(|()| Failure::internal(explain(operations, object)))
}

fn run(operations: &[Value], object: &Value) -> Result<Value, ()> {
    let body = Value::from(operations.to_vec()).to_string();
    crate::patch::json(object, body.as_bytes()).map_err(drop)
}

/// Why the first operation that does not apply does not. Only operations that are known to apply are run again.
fn explain(operations: &[Value], object: &Value) -> String {
    let mut doc = object.clone();
    for operation in operations {
        match run(std::slice::from_ref(operation), &doc) {
            Ok(next) => doc = next,
            Err(()) => return why(operation, &doc),
        }
    }
    "invalid state detected".to_owned()
}

fn why(operation: &Value, doc: &Value) -> String {
    let empty = Map::new();
    let fields = operation.as_object().unwrap_or(&empty);
    let op = value::text(operation, "op");
    let path = value::text(operation, "path");
    let from = value::text(operation, "from");
    if !matches!(op, "add" | "remove" | "replace" | "test" | "move" | "copy") {
        let kind = if op.is_empty() { "unknown" } else { op };
        return format!("Unexpected kind: {kind}");
    }
    if matches!(op, "move" | "copy") {
        if !fields.contains_key("from") {
            return format!(
                "{op} operation failed to decode from: operation, missing from field: missing value"
            );
        }
        let Some((container, key)) = container(doc, from) else {
            return format!(
                "{op} operation does not apply: doc is missing from path: {from}: missing value"
            );
        };
        if let Some(why) = access(container, &key) {
            return if op == "move" {
                format!("error in move for path: '{key}': {why}")
            } else {
                format!("error in copy for from: '{from}': {why}")
            };
        }
        return format!(
            "{op} operation does not apply: doc is missing destination path: {path}: missing value"
        );
    }
    if !fields.contains_key("path") {
        let field = match op {
            "add" | "remove" => "missing value",
            _ => "operation missing path field: missing value",
        };
        return format!("{op} operation failed to decode path: {field}");
    }
    let found = container(doc, path);
    match (op, found) {
        ("add" | "remove", None) => {
            format!("{op} operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        ("replace", None) => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        ("test", None) => {
            format!("test operation does not apply: is missing path: {path}: missing value")
        }
        ("replace", Some(_)) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        ("test", Some(_)) => format!("testing value {path} failed: test failed"),
        (_, Some((container, key))) => {
            let why = access(container, &key).unwrap_or_else(|| "missing value".to_owned());
            format!("error in {op} for path: '{path}': {why}")
        }
        (_, None) => "missing value".to_owned(),
    }
}

/// What holds the thing that `path` names, and the last step.
fn container<'a>(doc: &'a Value, path: &str) -> Option<(&'a Value, String)> {
    let unescape = |step: &str| step.replace("~1", "/").replace("~0", "~");
    let (parents, last) = path.rsplit_once('/')?;
    let mut here = doc;
    for step in parents.split('/').skip(1) {
        here = match here {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            other => other.get(unescape(step))?,
        };
    }
    (here.is_object() || here.is_array()).then(|| (here, unescape(last)))
}

/// Why `key` cannot be reached in `container`, if so.
fn access(container: &Value, key: &str) -> Option<String> {
    match container {
        Value::Array(items) => match key.parse::<i64>() {
            Ok(index) => {
                let fits = usize::try_from(index).is_ok_and(|index| index < items.len());
                (!fits).then(|| {
                    format!("Unable to access invalid index: {index}: invalid index referenced")
                })
            }
            Err(_) => Some(format!(
                "strconv.Atoi: parsing {}: invalid syntax",
                crate::field::quote(key)
            )),
        },
        other => other
            .get(key)
            .is_none()
            .then(|| format!("Unable to remove nonexistent key: {key}: missing value")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    #[test]
    fn reasons() {
        let doc = json!({"kind": "Pod", "list": [1]});
        for (operation, text) in [
            (
                json!({"op": "remove", "path": "/nope"}),
                "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value",
            ),
            (
                json!({"op": "test", "path": "/kind", "value": "x"}),
                "testing value /kind failed: test failed",
            ),
            (
                json!({"op": "add", "path": "/a/b", "value": 1}),
                "add operation does not apply: doc is missing path: \"/a/b\": missing value",
            ),
            (
                json!({"op": "remove", "path": "/list/4"}),
                "error in remove for path: '/list/4': Unable to access invalid index: 4: invalid index referenced",
            ),
            (
                json!({"op": "copy", "from": "/x/y", "path": "/z"}),
                "copy operation does not apply: doc is missing from path: /x/y: missing value",
            ),
            (json!({"op": "jump", "path": "/z"}), "Unexpected kind: jump"),
        ] {
            let fine = json!({"op": "add", "path": "/fine", "value": 1});
            let operations = [fine, operation];
            assert_eq!(explain(&operations, &doc), text);
            assert!(apply(&operations, &doc).is_err());
        }
    }
}
