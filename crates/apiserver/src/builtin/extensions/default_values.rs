//! The defaults in a schema must fit the schema.

use serde_json::Value;

use crate::crd::rules::Rules;
use crate::crd::structural::Structural;
use crate::crd::{build, check, embedded, prune};
use crate::field::{FieldError, FieldErrors};

/// Judges all defaults below a structural schema. `schema` and `structural` are the same.
pub(super) fn validate(schema: &Value, structural: &Structural, path: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    walk(schema, structural, path, &mut errors);
    errors
}

fn walk(schema: &Value, structural: &Structural, path: &str, errors: &mut FieldErrors) {
    if let Some(default) = &structural.default {
        one(
            schema,
            structural,
            default,
            &format!("{path}.default"),
            errors,
        );
    }
    if let (Some(items), Some(below)) = (schema.get("items"), structural.items.as_deref()) {
        walk(items, below, &format!("{path}.items"), errors);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, sub) in properties.into_iter().flatten() {
        if let Some(below) = structural.properties.get(key) {
            walk(sub, below, &format!("{path}.properties[{key}]"), errors);
        }
    }
}

fn one(
    schema: &Value,
    structural: &Structural,
    default: &Value,
    path: &str,
    errors: &mut FieldErrors,
) {
    let arena = build::part(schema);
    let mut pruned = default.clone();
    prune::below(arena.view(), &mut pruned);
    if &pruned != default {
        errors.push(FieldError::invalid(
            path,
            default,
            "must not have unknown fields",
        ));
    }
    let mut found = FieldErrors::new();
    embedded::validate(structural, default, path, &mut found);
    if found.is_empty() {
        found = check::check(structural, default, path, None);
    }
    if found.is_empty()
        && let Some(rules) = Rules::compile(structural, false)
    {
        found = rules.run(structural, default, Some(default), path).errors;
        if found.is_empty() {
            found = rules.run(structural, default, None, path).errors;
        }
    }
    errors.append(&mut found);
}
