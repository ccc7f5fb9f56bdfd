//! The rules of an `openAPIV3Schema` beyond being structural: what the API does not support, list and map types,
//! and CEL rules.

mod budget;
mod lists;
mod rules;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

use self::budget::Budget;
use super::{default_values, show, structure};
use crate::crd::structural::Structural;
use crate::field::{FieldError, FieldErrors};
use crate::value;

/// The fields that a root schema may have beside a `status` subresource, by their Go names.
const AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Schemas that were judged before and found good, by their digests, and whether they stood beside a `status` subresource.
/// Many clusters of a process get the same definitions, and each of them again with every update.
static GOOD: Mutex<BTreeSet<(bool, [u8; 32])>> = Mutex::new(BTreeSet::new());
/// How many are remembered: those of a few hundred definitions.
const REMEMBERED: usize = 1_000;

/// As [`judge`], without judging the same schema twice.
pub(super) fn validate(schema: &Value, has_status: bool, known: bool, parent: &str) -> FieldErrors {
    let digest = Sha256::digest(serde_json::to_vec(schema).unwrap_or_default());
    let judged = (has_status, digest.into());
    let good = || GOOD.lock().unwrap_or_else(PoisonError::into_inner);
    if good().contains(&judged) {
        return FieldErrors::new();
    }
    let errors = judge(schema, has_status, known, parent);
    // What is only tolerated because it was there before is not good.
    if errors.is_empty() && !known {
        let mut good = good();
        if good.len() >= REMEMBERED {
            good.clear();
        }
        good.insert(judged);
    }
    errors
}

/// Judges the schema of a version; `parent` leads to its parent. `known` says that it was accepted before.
fn judge(schema: &Value, has_status: bool, known: bool, parent: &str) -> FieldErrors {
    let path = format!("{parent}.openAPIV3Schema");
    let mut errors = FieldErrors::new();
    if has_status {
        errors.extend(root_with_status(schema, &path));
    }
    if value::flag(schema, "nullable") {
        let why = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(format!("{path}.nullable"), why));
    }
    let unreadable = structure::unsupported(schema);
    let mut check_rules = false;
    let structural = Structural::read(schema);
    if unreadable.is_none() {
        let mut found = structure::validate(schema, &path);
        if found.is_empty() {
            found = default_values::validate(schema, &structural, &path);
        }
        check_rules = found.is_empty();
        errors.extend(found);
    }
    let mut found = Found::default();
    found.budget.known = known;
    let walk = Walk {
        structural: check_rules.then_some(&structural),
        is_root: true,
        cardinality: Some(1),
        ..Walk::default()
    };
    walk_schema(schema, &path, &walk, &mut found);
    errors.extend(found.schema);
    errors.extend(found.rules);
    if let Some(why) = unreadable.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid_str(&*path, "", why));
    }
    errors.extend(found.budget.close(&path));
    errors
}

/// Beside a status subresource the root may only say what does not lose the schema of the status.
fn root_with_status(schema: &Value, path: &str) -> Option<FieldError> {
    for field in show::fields_set(schema) {
        let kind = value::text(schema, "type");
        if field == "Type" && kind != "object" {
            let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            return Some(FieldError::invalid_str(format!("{path}.type"), kind, why));
        }
        if !AT_ROOT.contains(&field) {
            let allowed = AT_ROOT.join(" ");
            let mut error = FieldError::invalid_str(
                path,
                "",
                format!(
                    "only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
                ),
            );
            error.shown = show::schema(schema);
            return Some(error);
        }
    }
    None
}

/// Errors about schemas come before errors about rules.
#[derive(Debug, Default)]
struct Found {
    schema: FieldErrors,
    rules: FieldErrors,
    budget: Budget,
}

/// What holds at one place of the walk.
#[derive(Debug, Clone, Default)]
struct Walk<'a> {
    /// The same place in the compiled schema, where rules can be compiled.
    structural: Option<&'a Structural>,
    is_root: bool,
    /// Why defaults are forbidden here, if they are.
    no_defaults: Option<String>,
    /// Inside type or metadata of a whole object.
    in_meta: bool,
    /// The schema below which old and new values cannot be matched.
    unmatched: Option<String>,
    /// How often a value can stand here in one object; none if nothing limits that.
    cardinality: Option<u64>,
}

impl<'a> Walk<'a> {
    /// A step below `schema`.
    fn below(
        &self,
        schema: &Value,
        structural: impl FnOnce(&'a Structural) -> Option<&'a Structural>,
    ) -> Self {
        let times = budget::multiplicity(schema);
        Self {
            structural: self.structural.and_then(structural),
            is_root: false,
            cardinality: self
                .cardinality
                .zip(times)
                .map(|(outer, times)| outer.saturating_mul(times)),
            ..self.clone()
        }
    }

    /// Inside a junctor there are no rules to compile.
    fn inside(&self) -> Self {
        Self {
            structural: None,
            is_root: false,
            ..self.clone()
        }
    }
}

fn walk_schema(schema: &Value, path: &str, walk: &Walk<'_>, found: &mut Found) {
    let before = found.schema.len();
    supported(schema, path, walk, &mut found.schema);
    if value::flag(schema, "uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found
            .schema
            .push(FieldError::forbidden(format!("{path}.uniqueItems"), why));
    }
    walk_additional(schema, path, walk, found);
    walk_properties(schema, path, walk, found);
    if let Some(not) = schema.get("not").filter(|v| v.is_object()) {
        walk_schema(not, &format!("{path}.not"), &walk.inside(), found);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (i, sub) in value::items(schema, key).iter().enumerate() {
            walk_schema(sub, &format!("{path}.{key}[{i}]"), &walk.inside(), found);
        }
    }
    for (key, sub) in value::map(schema, "definitions").into_iter().flatten() {
        walk_schema(
            sub,
            &format!("{path}.definitions[{key}]"),
            &walk.inside(),
            found,
        );
    }
    walk_items(schema, path, walk, found);
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = format!("{path}.x-kubernetes-preserve-unknown-fields");
        found.schema.push(FieldError::invalid(
            at,
            &Value::Bool(false),
            "must be true or undefined",
        ));
    }
    lists::validate(schema, path, &mut found.schema);
    rules::texts(schema, path, &mut found.schema);
    if found.schema.len() == before
        && let Some(structural) = walk.structural
    {
        let place = rules::Place {
            structural,
            root: walk.is_root || structural.embedded,
            path,
            unmatched: walk.unmatched.as_deref(),
            cardinality: walk.cardinality,
        };
        rules::compile(schema, place, &mut found.budget, &mut found.rules);
    }
}

fn walk_additional(schema: &Value, path: &str, walk: &Walk<'_>, found: &mut Found) {
    let Some(additional) = schema.get("additionalProperties").filter(|v| !v.is_null()) else {
        return;
    };
    let at = format!("{path}.additionalProperties");
    let named = value::map(schema, "properties").is_some_and(|p| !p.is_empty());
    if named && additional != &Value::Bool(true) {
        let why = "additionalProperties and properties are mutual exclusive";
        found.schema.push(FieldError::forbidden(&*at, why));
    }
    if additional.is_object() {
        let mut below = walk.below(schema, Structural::values);
        if walk.in_meta {
            below.no_defaults =
                Some("inside additionalProperties applying to object metadata".to_owned());
        }
        walk_schema(additional, &at, &below, found);
    }
}

fn walk_properties(schema: &Value, path: &str, walk: &Walk<'_>, found: &mut Found) {
    let whole = walk.is_root || value::flag(schema, "x-kubernetes-embedded-resource");
    for (key, sub) in value::map(schema, "properties").into_iter().flatten() {
        let mut below = walk.below(schema, |s| s.property(key));
        if !matches!(
            value::text(schema, "x-kubernetes-map-type"),
            "" | "granular" | "atomic"
        ) {
            below.unmatched = below.unmatched.or_else(|| Some(path.to_owned()));
        }
        if whole && matches!(key.as_str(), "metadata" | "kind" | "apiVersion") {
            below.in_meta = true;
            if walk.is_root {
                below.no_defaults = Some(format!("in top-level {key}"));
            }
        }
        walk_schema(sub, &format!("{path}.properties[{key}]"), &below, found);
    }
}

fn walk_items(schema: &Value, path: &str, walk: &Walk<'_>, found: &mut Found) {
    let mut below = walk.below(schema, |s| s.items.as_deref());
    // Items can be matched only where keys identify them.
    if value::text(schema, "x-kubernetes-list-type") != "map" {
        below.unmatched = below.unmatched.or_else(|| Some(path.to_owned()));
    }
    match schema.get("items") {
        Some(one @ Value::Object(_)) => walk_schema(one, &format!("{path}.items"), &below, found),
        Some(Value::Array(many)) => {
            for (i, one) in many.iter().enumerate() {
                walk_schema(one, &format!("{path}.items[{i}]"), &below, found);
            }
        }
        _ => {}
    }
}

/// Types that there are, defaults where they may be, and nothing that the API does not support.
fn supported(schema: &Value, path: &str, walk: &Walk<'_>, errors: &mut FieldErrors) {
    let kind = value::text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        let at = format!("{path}.type");
        errors.push(FieldError::not_supported_text(
            at,
            &Value::from(kind),
            &TYPES,
        ));
    }
    if let (Some(reason), true) = (&walk.no_defaults, value::has(schema, "default")) {
        let at = format!("{path}.default");
        errors.push(FieldError::forbidden(
            at,
            format!("must not be set {reason}"),
        ));
    }
    let set = |key: &str| match schema.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(map)) => !map.is_empty() || key == "dependencies",
        Some(_) => true,
    };
    for key in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if set(key) {
            errors.push(FieldError::forbidden(
                format!("{path}.{key}"),
                format!("{key} is not supported"),
            ));
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{path}.type"), why));
    }
    if schema
        .get("items")
        .and_then(Value::as_array)
        .is_some_and(|l| !l.is_empty())
    {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{path}.items"), why));
    }
    if walk.in_meta && value::flag(schema, "x-kubernetes-embedded-resource") {
        let at = format!("{path}.x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(
            at,
            "must not be used inside of resource meta",
        ));
    }
}
