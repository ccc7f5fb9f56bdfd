//! `spec.versions`: names, schemas, subresources, columns and selectable fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::structure;
use super::{hoisted, openapi, show};
use crate::builtin::names;
use crate::crd::fieldpath;
use crate::crd::structural::Structural;
use crate::field::{FieldError, FieldErrors};
use crate::value;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// How many fields a version may make selectable.
const MAX_SELECTABLE: usize = 8;

/// Judges each version, then the versions together.
pub(super) fn validate(crd: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let versions = value::items(crd, "spec.versions");
    for (i, version) in versions.iter().enumerate() {
        if !value::has(version, "schema.openAPIV3Schema") {
            let path = format!("spec.versions[{i}].schema.openAPIV3Schema");
            errors.push(FieldError::required(path, ""));
        }
    }
    let schemas = versions
        .iter()
        .filter_map(|v| value::at(v, "schema.openAPIV3Schema"));
    if value::flag(crd, "spec.preserveUnknownFields") && schemas.into_iter().any(has_defaults) {
        let why = "must be false in order to use defaults in the schema";
        let path = "spec.preserveUnknownFields";
        errors.push(FieldError::invalid(path, &Value::Bool(true), why));
    }
    let up = hoisted(versions);
    for (i, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{i}]");
        let name = value::text(version, "name");
        let found = names::label_1035(name);
        if !found.is_empty() {
            errors.push(FieldError::invalid_str(
                format!("{path}.name"),
                name,
                found.join(","),
            ));
        }
        deprecation(version, &path, errors);
        if !up.schema {
            schema(version, versions, old, &format!("{path}.schema"), errors);
        }
        if !up.subresources {
            subresources(version, &format!("{path}.subresources"), errors);
        }
        if !up.columns {
            columns(version, &format!("{path}.additionalPrinterColumns"), errors);
        }
        if !up.selectable {
            selectable(version, &format!("{path}.selectableFields"), errors);
        }
    }
    together(crd, versions, errors);
}

fn has_defaults(schema: &Value) -> bool {
    value::has(schema, "default") || structure::children(schema).into_iter().any(has_defaults)
}

fn together(crd: &Value, versions: &[Value], errors: &mut FieldErrors) {
    let given = value::at(crd, "spec.versions").and_then(Value::as_array);
    let mut refuse = |why: &str| {
        let mut error = FieldError::invalid_str("spec.versions", "", why);
        error.shown = show::versions(given.map(Vec::as_slice), hoisted(versions));
        errors.push(error);
    };
    let unique: BTreeSet<&str> = versions.iter().map(|v| value::text(v, "name")).collect();
    if unique.len() != versions.len() {
        refuse("must contain unique version names");
    }
    if versions
        .iter()
        .filter(|v| value::flag(v, "storage"))
        .count()
        != 1
    {
        refuse("must have exactly one version marked as storage version");
    }
    if let Some(first) = versions.first() {
        let name = value::text(first, "name");
        let found = names::label_1035(name);
        if !name.is_empty() && !found.is_empty() {
            errors.push(FieldError::invalid_str(
                "spec.version",
                name,
                found.join(","),
            ));
        }
    }
}

/// Judges what is the same in all versions.
pub(super) fn validate_hoisted(crd: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let versions = value::items(crd, "spec.versions");
    let up = hoisted(versions);
    let Some(first) = versions.first() else {
        return;
    };
    if up.schema {
        schema(first, versions, old, "spec.validation", errors);
    }
    if up.subresources {
        subresources(first, "spec.subresources", errors);
    }
    if up.columns {
        columns(first, "spec.additionalPrinterColumns", errors);
    }
    if up.selectable {
        selectable(first, "spec.selectableFields", errors);
    }
}

fn schema(
    version: &Value,
    versions: &[Value],
    old: Option<&Value>,
    path: &str,
    errors: &mut FieldErrors,
) {
    let Some(openapi) = value::at(version, "schema.openAPIV3Schema").filter(|v| !v.is_null())
    else {
        return;
    };
    let status = |v: &Value| value::has(v, "subresources.status");
    // A schema that stands for all versions is held to the strictest of them.
    let has_status = if path == "spec.validation" {
        versions.iter().any(status)
    } else {
        status(version)
    };
    let known = old.is_some_and(|old| {
        let mut before = value::items(old, "spec.versions").iter();
        before.any(|v| {
            v.get("name") == version.get("name")
                && value::at(v, "schema.openAPIV3Schema") == Some(openapi)
        })
    });
    errors.extend(openapi::validate(openapi, has_status, known, path));
}

fn deprecation(version: &Value, path: &str, errors: &mut FieldErrors) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let mut refuse = |why: String| {
        errors.push(FieldError::invalid_str(
            format!("{path}.deprecationWarning"),
            warning,
            why,
        ));
    };
    if !value::flag(version, "deprecated") {
        refuse("can only be set for deprecated versions".to_owned());
        return;
    }
    if warning.len() > 256 {
        refuse("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        refuse(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

fn simple_path(path: &str, at: &str) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!path.starts_with('.')).then(|| FieldError::invalid_str(at, path, why))
}

fn subresources(version: &Value, path: &str, errors: &mut FieldErrors) {
    let Some(scale) = value::at(version, "subresources.scale").filter(|v| v.is_object()) else {
        return;
    };
    let mut one = |key: &str, under: &[&str], required: bool| {
        let at = format!("{path}.scale.{key}");
        let given = value::text(scale, key);
        if given.is_empty() {
            errors.extend(required.then(|| FieldError::required(at, "")));
            return;
        }
        if let Some(error) = simple_path(given, &at) {
            errors.push(error);
        } else if !under
            .iter()
            .any(|prefix| given.starts_with(&format!("{prefix}.")))
        {
            let either = if under.len() > 1 { "either " } else { "" };
            let why = format!("should be a json path under {either}{}", under.join(" or "));
            errors.push(FieldError::invalid_str(at, given, why));
        }
    };
    one("specReplicasPath", &[".spec"], true);
    one("statusReplicasPath", &[".status"], true);
    one("labelSelectorPath", &[".spec", ".status"], false);
}

fn columns(version: &Value, path: &str, errors: &mut FieldErrors) {
    for (i, column) in value::items(version, "additionalPrinterColumns")
        .iter()
        .enumerate()
    {
        let at = |key: &str| format!("{path}[{i}].{key}");
        if value::text(column, "name").is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        }
        let kinds = format!("must be one of {}", COLUMN_TYPES.join(","));
        match value::text(column, "type") {
            "" => errors.push(FieldError::required(at("type"), kinds)),
            kind if COLUMN_TYPES.contains(&kind) => {}
            kind => errors.push(FieldError::invalid_str(at("type"), kind, kinds)),
        }
        let format = value::text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid_str(at("format"), format, why));
        }
        match value::text(column, "jsonPath") {
            "" => errors.push(FieldError::required(at("JSONPath"), "")),
            path => errors.extend(simple_path(path, &at("JSONPath"))),
        }
    }
}

fn selectable(version: &Value, path: &str, errors: &mut FieldErrors) {
    let fields = value::items(version, "selectableFields");
    let openapi = value::at(version, "schema.openAPIV3Schema");
    let (false, Some(openapi)) = (fields.is_empty(), openapi) else {
        return;
    };
    let schema = Structural::read(openapi);
    let mut seen = BTreeSet::new();
    for (i, field) in fields.iter().enumerate() {
        let at = format!("{path}[{i}].jsonPath");
        let given = value::text(field, "jsonPath");
        if given.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match fieldpath::resolve(given, &schema, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid_str(
                    at,
                    given,
                    format!("is an invalid path: {why}"),
                ));
                continue;
            }
        };
        if found.first == "metadata" {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid_str(&*at, given, why));
        }
        if !matches!(&*found.schema.kind, "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid_str(&*at, given, why));
        }
        if !seen.insert(found.path) {
            errors.push(FieldError::duplicate(at, &Value::from(given)));
        }
    }
    if seen.len() > MAX_SELECTABLE {
        errors.push(FieldError::too_many(path, seen.len(), MAX_SELECTABLE));
    }
}
