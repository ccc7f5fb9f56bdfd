//! Whole objects inside a custom resource (`x-kubernetes-embedded-resource`): their type and metadata follow the
//! rules of all objects, which no schema has to repeat.

use serde_json::{Map, Value};

use super::structural::Structural;
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::schema::View;
use crate::value;

/// The fields of `metav1.ObjectMeta`.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Those of them that are plain text.
const TEXTS: [&str; 6] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "selfLink",
];

/// Removes unknown fields from the metadata of embedded objects and gives their paths.
pub(super) fn prune(root: View<'_>, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let walked = each(root, object, "", &mut |map, path| {
        unknown.extend(prune_map(map, &format!("{path}.")));
        Ok(())
    });
    debug_assert!(walked.is_ok(), "pruning refuses nothing");
    unknown
}

/// Removes unknown fields from the metadata of one object and gives their paths.
pub(super) fn prune_metadata(object: &mut Value, prefix: &str) -> Vec<String> {
    object
        .as_object_mut()
        .map(|map| prune_map(map, prefix))
        .unwrap_or_default()
}

fn prune_map(object: &mut Map<String, Value>, prefix: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, value| {
            let known = METADATA.contains(&key.as_str());
            if !known {
                unknown.push(format!("{prefix}metadata.{key}"));
            }
            known && !value.is_null()
        });
    }
    unknown
}

/// Whether type and metadata of embedded objects can be read at all; if not, the request is malformed (400), with
/// this error's text after `Kind in version "v1" cannot be handled as a Kind: `.
pub fn readable(root: View<'_>, object: &Value) -> Result<(), Box<FieldError>> {
    let mut copy = object.clone();
    each(root, &mut copy, "", &mut |map, path| {
        for key in ["apiVersion", "kind"] {
            if let Some(bad) = map.get(key).filter(|v| !v.is_string()) {
                let at = format!("{path}.{key}");
                return Err(Box::new(FieldError::invalid(at, bad, "must be a string")));
            }
        }
        match map.get("metadata") {
            Some(metadata) => metadata_error(metadata, path).map_or(Ok(()), Err),
            None => Ok(()),
        }
    })
}

fn metadata_error(metadata: &Value, path: &str) -> Option<Box<FieldError>> {
    let go_kind = |v: &Value| match v {
        Value::Null | Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let refuse = |text: String| {
        Some(Box::new(FieldError::invalid(
            format!("{path}.metadata"),
            metadata,
            text,
        )))
    };
    let Value::Object(map) = metadata else {
        let kind = go_kind(metadata);
        return refuse(format!(
            "json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta"
        ));
    };
    let wrong = |key: &str, value: &Value, wanted: &str| {
        let kind = go_kind(value);
        refuse(format!(
            "json: cannot unmarshal {kind} into Go struct field ObjectMeta.{key} of type {wanted}"
        ))
    };
    for (key, value) in map.iter().filter(|(_, v)| !v.is_null()) {
        if TEXTS.contains(&key.as_str()) && !value.is_string() {
            let wanted = if key == "uid" { "types.UID" } else { "string" };
            return wrong(key, value, wanted);
        }
        if matches!(key.as_str(), "labels" | "annotations") {
            let Value::Object(entries) = value else {
                return wrong(key, value, "map[string]string");
            };
            if let Some(bad) = entries.values().find(|v| !v.is_string()) {
                return wrong(key, bad, "string");
            }
        }
    }
    None
}

/// Calls `visit` for every embedded object below `value`, by name.
fn each<F>(
    schema: View<'_>,
    value: &mut Value,
    path: &str,
    visit: &mut F,
) -> Result<(), Box<FieldError>>
where
    F: FnMut(&mut Map<String, Value>, &str) -> Result<(), Box<FieldError>>,
{
    match value {
        Value::Object(map) => {
            if schema.node.embedded {
                visit(map, path)?;
            }
            for (key, below) in map.iter_mut() {
                let known = schema.field(key).map(|(_, child)| child);
                let (child, at) = match known {
                    Some(child) if path.is_empty() => (child, key.clone()),
                    Some(child) => (child, format!("{path}.{key}")),
                    None => match schema.values() {
                        Some(values) => (values, format!("{path}[{key}]")),
                        None => continue,
                    },
                };
                each(child, below, &at, visit)?;
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.items() {
                for (i, item) in list.iter_mut().enumerate() {
                    each(items, item, &format!("{path}[{i}]"), visit)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Judges type and metadata of embedded objects.
pub(crate) fn validate(schema: &Structural, value: &Value, path: &str, errors: &mut FieldErrors) {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                validate_one(value, path, errors);
            }
            for (key, below) in map {
                if let Some(child) = schema.properties.get(key) {
                    let at = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    validate(child, below, &at, errors);
                } else if let Some(values) = schema.values() {
                    validate(values, below, &format!("{path}[{key}]"), errors);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.items.as_deref() {
                for (i, item) in list.iter().enumerate() {
                    validate(items, item, &format!("{path}[{i}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn validate_one(object: &Value, path: &str, errors: &mut FieldErrors) {
    for key in ["apiVersion", "kind"] {
        if object.get(key).is_none() {
            errors.push(FieldError::required(format!("{path}.{key}"), ""));
        }
    }
    let mut text = |key: &str, judge: &dyn Fn(&str) -> Option<String>| {
        let at = format!("{path}.{key}");
        match object.get(key) {
            None => {}
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid_str(at, "", "must not be empty"));
            }
            Some(Value::String(text)) => {
                errors.extend(judge(text).map(|why| FieldError::invalid_str(at, text, why)));
            }
            Some(other) => errors.push(FieldError::invalid(at, other, "must be a string")),
        }
    };
    text("apiVersion", &|v| {
        (v.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {v}"))
    });
    text("kind", &|kind| {
        let found = names::label_1035(&kind.to_lowercase());
        (!found.is_empty()).then(|| {
            format!(
                "may have mixed case, but should otherwise match: {}",
                found.join(",")
            )
        })
    });
    if value::has(object, "metadata") {
        validate_metadata(object, path, errors);
    }
}

/// Name, namespace, labels and annotations; the rest is not judged.
fn validate_metadata(object: &Value, path: &str, errors: &mut FieldErrors) {
    let at = |key: &str| format!("{path}.metadata.{key}");
    for (key, prefix) in [("generateName", true), ("name", false)] {
        let name = value::text(object, &format!("metadata.{key}"));
        if !name.is_empty() {
            for why in names::path_segment(name, prefix) {
                errors.push(FieldError::invalid_str(at(key), name, why));
            }
        }
    }
    let namespace = value::text(object, "metadata.namespace");
    if !namespace.is_empty() {
        for why in names::label(namespace) {
            errors.push(FieldError::invalid_str(at("namespace"), namespace, why));
        }
    }
    for (key, label) in value::map(object, "metadata.labels").into_iter().flatten() {
        for why in names::label_key(key) {
            errors.push(FieldError::invalid_str(at("labels"), key, why));
        }
        let text = label.as_str().unwrap_or_default();
        for why in names::label_value(text) {
            errors.push(FieldError::invalid_str(at("labels"), text, why));
        }
    }
    for (key, _) in value::map(object, "metadata.annotations")
        .into_iter()
        .flatten()
    {
        for why in names::annotation_key(key) {
            errors.push(FieldError::invalid_str(at("annotations"), key, why));
        }
    }
}
