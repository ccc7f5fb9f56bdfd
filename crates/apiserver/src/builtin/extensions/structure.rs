//! What makes a schema structural: every field has a type, and logical junctors only restrict what is specified
//! outside of them.

mod complete;

use serde_json::Value;

use super::regexp;
use crate::field::{FieldError, FieldErrors};
use crate::value;

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Judges a schema that has none of the constructs that [`unsupported`] names. Errors come sorted by their text.
pub(crate) fn validate(schema: &Value, path: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if !schema.is_object() {
        return errors;
    }
    invariants(schema, Level::Root, path, &mut errors);
    complete::validate(schema, schema, path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// The first construct that no structural schema can have, in the words of the server.
pub(crate) fn unsupported(schema: &Value) -> Option<String> {
    let present = |key: &str| match schema.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        Some(_) => true,
    };
    let keys = [
        "id",
        "$schema",
        "$ref",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
    ];
    if let Some(key) = keys.into_iter().find(|key| present(key)) {
        let name = if key == "$schema" { "schema" } else { key };
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let text =
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(text.to_owned());
    }
    children(schema).into_iter().find_map(unsupported)
}

/// All schemas directly below one.
pub(crate) fn children(schema: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for key in ["items", "not", "additionalProperties", "additionalItems"] {
        match schema.get(key) {
            Some(one @ Value::Object(_)) => found.push(one),
            Some(Value::Array(many)) => found.extend(many),
            _ => {}
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        found.extend(value::items(schema, key));
    }
    for key in [
        "properties",
        "patternProperties",
        "definitions",
        "dependencies",
    ] {
        let map = schema.get(key).and_then(Value::as_object);
        found.extend(
            map.into_iter()
                .flatten()
                .map(|(_, v)| v)
                .filter(|v| v.is_object()),
        );
    }
    found
}

fn invariants(schema: &Value, level: Level, path: &str, errors: &mut FieldErrors) {
    let kind = value::text(schema, "type");
    match schema.get("items").filter(|v| v.is_object()) {
        Some(items) => invariants(items, Level::Item, &format!("{path}.items"), errors),
        None if kind == "array" => {
            errors.push(FieldError::required(
                format!("{path}.items"),
                "must be specified",
            ));
        }
        None => {}
    }
    for (key, sub) in value::map(schema, "properties").into_iter().flatten() {
        invariants(
            sub,
            Level::Field,
            &format!("{path}.properties[{key}]"),
            errors,
        );
    }
    let additional = schema.get("additionalProperties").filter(|v| !v.is_null());
    let additional_path = format!("{path}.additionalProperties");
    if let Some(additional) = additional {
        if level == Level::Root {
            errors.push(FieldError::forbidden(
                &*additional_path,
                "must not be used at the root",
            ));
        }
        if additional.is_object() {
            invariants(additional, Level::Field, &additional_path, errors);
        }
    }
    extensions(schema, path, errors);
    let any_of = is_int_or_string(value::items(schema, "anyOf"));
    let first = value::items(schema, "allOf").first();
    let all_of = first.is_some_and(|f| is_int_or_string(value::items(f, "anyOf")));
    junctors(schema, any_of, all_of, path, errors);
    types(schema, level, path, errors);
    let embedded = value::flag(schema, "x-kubernetes-embedded-resource");
    if embedded && additional.is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(additional_path, why));
    }
    meta_fields(schema, level, path, errors);
    let preserve = value::flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded
        && !preserve
        && value::map(schema, "properties").is_none_or(serde_json::Map::is_empty)
    {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), why));
    }
}

fn extensions(schema: &Value, path: &str, errors: &mut FieldErrors) {
    if !value::flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for key in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if value::flag(schema, key) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(
                format!("{path}.{key}"),
                &Value::Bool(true),
                why,
            ));
        }
    }
}

fn types(schema: &Value, level: Level, path: &str, errors: &mut FieldErrors) {
    let at = format!("{path}.type");
    let kind = value::text(schema, "type");
    let untyped = value::flag(schema, "x-kubernetes-int-or-string")
        || value::flag(schema, "x-kubernetes-preserve-unknown-fields");
    if value::flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&*at, why)
        } else {
            FieldError::invalid_str(&*at, kind, why)
        });
    } else if kind.is_empty() && !untyped {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&*at, why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid_str(
            at,
            kind,
            "must be object at the root",
        ));
    }
}

/// `apiVersion`, `kind` and `metadata` of whole objects.
fn meta_fields(schema: &Value, level: Level, path: &str, errors: &mut FieldErrors) {
    let whole = level == Level::Root || value::flag(schema, "x-kubernetes-embedded-resource");
    let Some(properties) = value::map(schema, "properties") else {
        return;
    };
    for key in ["kind", "apiVersion"] {
        if let Some(sub) = properties.get(key).filter(|_| whole) {
            let kind = value::text(sub, "type");
            if kind != "string" {
                let at = format!("{path}.properties[{key}].type");
                errors.push(FieldError::invalid_str(at, kind, "must be string"));
            }
        }
    }
    let Some(metadata) = properties.get("metadata") else {
        return;
    };
    let at = format!("{path}.properties[metadata]");
    let kind = value::text(metadata, "type");
    if whole && kind != "object" {
        errors.push(FieldError::invalid_str(
            format!("{at}.type"),
            kind,
            "must be object",
        ));
    }
    if level == Level::Root && says_more_than_names(metadata) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(at, why));
    }
}

fn says_more_than_names(metadata: &Value) -> bool {
    let empty = |v: &Value| match v {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    metadata
        .as_object()
        .into_iter()
        .flatten()
        .any(|(key, v)| match key.as_str() {
            "type" | "default" => false,
            "properties" => v
                .as_object()
                .into_iter()
                .flatten()
                .any(|(name, _)| !matches!(name.as_str(), "name" | "generateName")),
            _ => !empty(v),
        })
}

/// `anyOf: [{type: integer}, {type: string}]`, the one place where a junctor may name types.
fn is_int_or_string(any_of: &[Value]) -> bool {
    let only = |v: &Value, kind: &str| {
        v.as_object().is_some_and(|m| m.len() == 1) && value::text(v, "type") == kind
    };
    matches!(any_of, [a, b] if only(a, "integer") && only(b, "string"))
}

fn junctors(
    schema: &Value,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &str,
    errors: &mut FieldErrors,
) {
    if !skip_any_of {
        for (i, sub) in value::items(schema, "anyOf").iter().enumerate() {
            nested(sub, false, &format!("{path}.anyOf[{i}]"), errors);
        }
    }
    for (i, sub) in value::items(schema, "allOf").iter().enumerate() {
        nested(
            sub,
            skip_first_all_of && i == 0,
            &format!("{path}.allOf[{i}]"),
            errors,
        );
    }
    for (i, sub) in value::items(schema, "oneOf").iter().enumerate() {
        nested(sub, false, &format!("{path}.oneOf[{i}]"), errors);
    }
    if let Some(not) = schema.get("not").filter(|v| v.is_object()) {
        nested(not, false, &format!("{path}.not"), errors);
    }
    let pattern = value::text(schema, "pattern");
    if let Some(why) = regexp::error(pattern) {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid_str(
            format!("{path}.pattern"),
            pattern,
            why,
        ));
    }
}

/// A schema inside a junctor may only restrict.
fn nested(schema: &Value, skip_any_of: bool, path: &str, errors: &mut FieldErrors) {
    junctors(schema, skip_any_of, false, path, errors);
    if let Some(items) = schema.get("items").filter(|v| v.is_object()) {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (key, sub) in value::map(schema, "properties").into_iter().flatten() {
        nested(sub, false, &format!("{path}.properties[{key}]"), errors);
    }
    let set = |key: &str| match schema.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    let rules = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        (
            "x-kubernetes-preserve-unknown-fields",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-int-or-string",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-list-map-keys",
            "must be empty to be structural",
        ),
        (
            "x-kubernetes-list-type",
            "must be undefined to be structural",
        ),
        (
            "x-kubernetes-map-type",
            "must be undefined to be structural",
        ),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (key, why) in rules {
        if set(key) {
            errors.push(FieldError::forbidden(format!("{path}.{key}"), why));
        }
    }
    if value::map(schema, "properties").is_some_and(|p| p.contains_key("metadata")) {
        let why = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(
            format!("{path}.properties[metadata]"),
            why,
        ));
    }
}
