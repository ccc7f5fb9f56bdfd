//! `x-kubernetes-list-type`, `x-kubernetes-list-map-keys` and `x-kubernetes-map-type`.

use serde_json::Value;

use crate::field::{FieldError, FieldErrors};
use crate::value;

const LIST: &str = "x-kubernetes-list-type";
const KEYS: &str = "x-kubernetes-list-map-keys";
const MAP: &str = "x-kubernetes-map-type";

/// Judges the merge types of one schema.
pub(super) fn validate(schema: &Value, path: &str, errors: &mut FieldErrors) {
    map_type(schema, path, errors);
    list_type(schema, path, errors);
    keys(schema, path, errors);
    key_defaults(schema, path, errors);
}

/// `type` must be `wanted` if `because` is set.
fn wrong_type(schema: &Value, wanted: &str, because: &str, path: &str) -> Option<FieldError> {
    let kind = value::text(schema, "type");
    let at = format!("{path}.type");
    let why = format!("must be {wanted} if {because} is specified");
    match kind {
        _ if kind == wanted => None,
        "" => Some(FieldError::required(at, why)),
        _ => Some(FieldError::invalid_str(at, kind, why)),
    }
}

fn map_type(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let Some(given) = schema.get(MAP).filter(|v| !v.is_null()) else {
        return;
    };
    errors.extend(wrong_type(schema, "object", MAP, path));
    if !matches!(given.as_str(), Some("atomic" | "granular")) {
        let at = format!("{path}.{MAP}");
        errors.push(FieldError::not_supported_text(
            at,
            given,
            &["atomic", "granular"],
        ));
    }
}

fn list_type(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let Some(given) = schema.get(LIST).filter(|v| !v.is_null()) else {
        return;
    };
    let items = schema.get("items").filter(|v| v.is_object());
    match (wrong_type(schema, "array", LIST, path), items) {
        (Some(error), _) => errors.push(error),
        (None, Some(items)) if given == "set" => set_items(items, path, errors),
        _ => {}
    }
    if !matches!(given.as_str(), Some("atomic" | "set" | "map")) {
        let at = format!("{path}.{LIST}");
        errors.push(FieldError::not_supported_text(
            at,
            given,
            &["atomic", "set", "map"],
        ));
    }
}

/// The items of a set are compared as a whole.
fn set_items(items: &Value, path: &str, errors: &mut FieldErrors) {
    let key = match value::text(items, "type") {
        "array" if !matches!(value::text(items, LIST), "" | "atomic") => LIST,
        "object" if value::text(items, MAP) != "atomic" => MAP,
        _ => return,
    };
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let shown = items.get(LIST).unwrap_or(&Value::Null);
    errors.push(FieldError::invalid(
        format!("{path}.items.{key}"),
        shown,
        why,
    ));
}

fn keys(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let kind = value::text(schema, LIST);
    let keys = value::items(schema, KEYS);
    if !keys.is_empty() && kind != "map" {
        let (at, why) = (
            format!("{path}.{LIST}"),
            "must be map if x-kubernetes-list-map-keys is non-empty",
        );
        errors.push(if kind.is_empty() {
            FieldError::required(at, why)
        } else {
            FieldError::invalid_str(at, kind, why)
        });
    }
    if kind != "map" {
        return;
    }
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{path}.{KEYS}"), why));
    }
    match schema.get("items").filter(|v| v.is_object()) {
        None => {
            let why = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(format!("{path}.items"), why));
        }
        Some(items) if value::text(items, "type") == "object" => {
            key_properties(items, keys, path, errors);
        }
        Some(items) => {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            let kind = value::text(items, "type");
            errors.push(FieldError::invalid_str(
                format!("{path}.items.type"),
                kind,
                why,
            ));
        }
    }
}

fn key_properties(items: &Value, keys: &[Value], path: &str, errors: &mut FieldErrors) {
    let all = Value::from(keys);
    for (i, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let at = format!("{path}.{KEYS}");
        match value::map(items, "properties").and_then(|p| p.get(name)) {
            Some(sub) if matches!(value::text(sub, "type"), "array" | "object") => {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let at = format!("{path}.items.properties[{name}].type");
                errors.push(FieldError::invalid_str(at, value::text(items, "type"), why));
            }
            Some(_) => {}
            None => {
                let why = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&*at, &all, why));
            }
        }
        if keys.iter().take(i).any(|other| other == key) {
            errors.push(FieldError::invalid(
                at,
                &all,
                "must not contain duplicate entries",
            ));
        }
    }
}

/// Keys must always have a value, and items must be there.
fn key_defaults(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let kind = value::text(schema, LIST);
    let Some(items) = schema
        .get("items")
        .filter(|v| v.is_object() && matches!(kind, "set" | "map"))
    else {
        return;
    };
    if value::flag(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), why));
    }
    if kind != "map" {
        return;
    }
    let required = value::items(items, "required");
    for key in value::items(schema, KEYS) {
        let name = key.as_str().unwrap_or_default();
        let Some(sub) = value::map(items, "properties").and_then(|p| p.get(name)) else {
            continue;
        };
        let at = format!("{path}.items.properties[{name}]");
        if !required.contains(key) && !value::has(sub, "default") {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{at}.default"), why));
        }
        if value::flag(sub, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{at}.nullable"), why));
        }
    }
}
