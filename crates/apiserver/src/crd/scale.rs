//! The paths of the `scale` subresource, and what is wrong with the values there.

use serde_json::Value;

use super::check::number::go_float;
use crate::field::FieldError;
use crate::resource::Scale;
use crate::value;

/// The `scale` subresource of a version of a definition.
pub(super) fn of(version: &Value) -> Option<Scale> {
    let scale = value::at(version, "subresources.scale").filter(|v| v.is_object())?;
    Some(Scale {
        spec_replicas: value::text(scale, "specReplicasPath").to_owned(),
        status_replicas: value::text(scale, "statusReplicasPath").to_owned(),
        selector: value::text(scale, "labelSelectorPath").to_owned(),
    })
}

/// What is wrong with a count of replicas.
pub(super) fn replicas_error(object: &Value, path: &str) -> Option<FieldError> {
    let found = value::at(object, path.trim_start_matches('.'))?;
    let Some(count) = found.as_i64() else {
        let why = accessor_error(path, found, "int64");
        return Some(FieldError::invalid(path, &Value::from(0), why));
    };
    let why = if count < 0 {
        "should be a non-negative integer".to_owned()
    } else if count > i64::from(i32::MAX) {
        format!("should be less than or equal to {}", i32::MAX)
    } else {
        return None;
    };
    Some(FieldError::invalid(path, found, why))
}

/// How Go's accessors complain of a value of the wrong type.
pub(super) fn accessor_error(path: &str, found: &Value, wanted: &str) -> String {
    let kind = match found {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let shown = go_value(found);
    format!("{path} accessor error: {shown} is of the type {kind}, expected {wanted}")
}

/// A value as Go's `%v` prints it.
fn go_value(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => go_float(n.as_f64().unwrap_or_default()),
        Value::Array(list) => format!("[{}]", joined(list.iter().map(go_value).collect())),
        Value::Object(map) => {
            let pairs = map.iter().map(|(k, v)| format!("{k}:{}", go_value(v)));
            format!("map[{}]", joined(pairs.collect()))
        }
        other => other.to_string(),
    }
}
