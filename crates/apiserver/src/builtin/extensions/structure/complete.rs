//! What junctors restrict must be specified outside of them.

use serde_json::Value;

use crate::field::{FieldError, FieldErrors};
use crate::value;

/// What a junctor restricts must be specified outside of it. As in the real server only the junctors of the root
/// are looked at.
pub(super) fn validate(
    junction: &Value,
    schema: &Value,
    schema_path: &str,
    path: &str,
    errors: &mut FieldErrors,
) {
    if let Some(not) = junction.get("not").filter(|v| v.is_object()) {
        nested(
            not,
            Some(schema),
            schema_path,
            &format!("{path}.not"),
            errors,
        );
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (i, sub) in value::items(junction, key).iter().enumerate() {
            nested(
                sub,
                Some(schema),
                schema_path,
                &format!("{path}.{key}[{i}]"),
                errors,
            );
        }
    }
}

fn nested(
    inner: &Value,
    schema: Option<&Value>,
    schema_path: &str,
    path: &str,
    errors: &mut FieldErrors,
) {
    let Some(schema) = schema else {
        let why = format!("because it is defined in {path}");
        errors.push(FieldError::required(schema_path, why));
        return;
    };
    validate(inner, schema, schema_path, path, errors);
    if let Some(items) = inner.get("items").filter(|v| v.is_object()) {
        let outside = schema.get("items").filter(|v| v.is_object());
        let (at, from) = (format!("{schema_path}.items"), format!("{path}.items"));
        nested(items, outside, &at, &from, errors);
    }
    for (key, sub) in value::map(inner, "properties").into_iter().flatten() {
        let outside = value::map(schema, "properties").and_then(|p| p.get(key));
        let (at, from) = (
            format!("{schema_path}.properties[{key}]"),
            format!("{path}.properties[{key}]"),
        );
        nested(sub, outside, &at, &from, errors);
    }
}
