//! Config maps.

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::invalid_texts;
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

/// The most that the values of a config map or secret may weigh together.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Said of a change to what `immutable: true` protects.
pub const PROTECTED: &str = "field is immutable when `immutable` is set";

/// The rules of config maps.
pub const RULES: Rules = Rules {
    validate: |object, _| validate(object),
    validate_update,
    columns: &[
        ("Name", "string", 0),
        ("Data", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            (cells::count(object, "data") + cells::count(object, "binaryData")).into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

/// How many bytes a base64 text stands for.
pub fn decoded_len(text: &str) -> usize {
    let digits = text.bytes().filter(|b| *b != b'=').count();
    digits * 3 / 4
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut size = 0;
    let binary = value::map(object, "binaryData");
    for (key, text) in value::map(object, "data").into_iter().flatten() {
        let path = format!("data[{key}]");
        errors.extend(invalid_texts(&path, key, names::config_map_key(key)));
        if binary.is_some_and(|b| b.contains_key(key)) {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid_str(path, key, detail));
        }
        size += text.as_str().map_or(0, str::len);
    }
    for (key, bytes) in binary.into_iter().flatten() {
        let path = format!("binaryData[{key}]");
        errors.extend(invalid_texts(&path, key, names::config_map_key(key)));
        size += bytes.as_str().map_or(0, decoded_len);
    }
    if size > MAX_BYTES {
        // The real server complains about a field without a name, which it shows so.
        errors.push(FieldError::too_long("[]", MAX_BYTES));
    }
    errors
}

fn validate_update(_part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = frozen(object, old, &["data", "binaryData"]);
    errors.extend(validate(object));
    errors
}

/// Complaints about changes to `fields` of an object that is marked `immutable: true`, and to the mark itself.
pub fn frozen(object: &Value, old: &Value, fields: &[&str]) -> FieldErrors {
    let mut errors = Vec::new();
    if !value::flag(old, "immutable") {
        return errors;
    }
    if !value::flag(object, "immutable") {
        errors.push(FieldError::forbidden("immutable", PROTECTED));
    }
    for field in fields {
        let entries = |o| value::map(o, field).filter(|m| !m.is_empty());
        if entries(object) != entries(old) {
            errors.push(FieldError::forbidden(*field, PROTECTED));
        }
    }
    errors
}
