//! Validation of a `CustomResourceDefinition`.
//!
//! The paths in errors are those of Go's internal type: what is the same in all versions stands above them
//! (`spec.validation`, `spec.subresources`, …), even if the client wrote it below each.

mod conversion;
mod versions;

use std::collections::BTreeMap;

use serde_json::Value;

use super::show::{self, Hoisted};
use super::{approval, openapi};
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::value;

/// Judges a new definition.
pub(super) fn create(crd: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let name = value::text(crd, "metadata.name");
    let required = format!(
        "{}.{}",
        value::text(crd, "spec.names.plural"),
        value::text(crd, "spec.group")
    );
    if name != required {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid_str("metadata.name", name, why));
    }
    errors.extend(spec(crd, None, true));
    errors.extend(status(crd));
    errors.extend(stored_versions(crd));
    errors.extend(approval::validate(crd, None));
    errors.extend(preserve_unknown(crd, None));
    errors
}

/// Judges a change to a definition.
pub(super) fn update(crd: &Value, old: &Value) -> FieldErrors {
    let established = crate::crd::is_established(old);
    let old_bundle = value::text(old, "spec.conversion.webhook.clientConfig.caBundle");
    let any_bundle =
        !established || (!old_bundle.is_empty() && !approval::is_ca_bundle(old_bundle));
    let mut errors = spec(crd, Some(old), any_bundle);
    let mut immutable = |path: &str| {
        let (new, old) = (value::text(crd, path), value::text(old, path));
        if new != old {
            errors.push(FieldError::invalid_str(path, new, "field is immutable"));
        }
    };
    if established {
        immutable("spec.scope");
        immutable("spec.names.kind");
    }
    immutable("spec.group");
    immutable("spec.names.plural");
    errors.extend(status(crd));
    errors.extend(stored_versions(crd));
    errors.extend(approval::validate(crd, Some(old)));
    errors.extend(preserve_unknown(crd, Some(old)));
    errors
}

/// Judges a change to the status of a definition.
pub(super) fn status(crd: &Value) -> FieldErrors {
    let names = value::at(crd, "status.acceptedNames");
    names
        .map(|n| judge_names(n, "status.acceptedNames"))
        .unwrap_or_default()
}

fn spec(crd: &Value, old: Option<&Value>, any_bundle: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    group(value::text(crd, "spec.group"), &mut errors);
    match value::text(crd, "spec.scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let known = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported_text(
                "spec.scope",
                &Value::from(other),
                &known,
            ));
        }
    }
    versions::validate(crd, old, &mut errors);
    for key in ["plural", "singular", "kind", "listKind"] {
        let path = format!("spec.names.{key}");
        if value::text(crd, &path).is_empty() {
            errors.push(FieldError::required(path, ""));
        }
    }
    let names = value::at(crd, "spec.names").unwrap_or(&Value::Null);
    errors.extend(judge_names(names, "spec.names"));
    versions::validate_hoisted(crd, old, &mut errors);
    conversion::validate(crd, any_bundle, &mut errors);
    errors
}

fn group(group: &str, errors: &mut FieldErrors) {
    let found = names::subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !found.is_empty() {
        errors.push(FieldError::invalid_str(
            "spec.group",
            group,
            found.join(","),
        ));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid_str("spec.group", group, why));
    }
}

fn judge_names(given: &Value, path: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut label = |at: String, text: &str, lower: bool| {
        let judged = if lower {
            text.to_lowercase()
        } else {
            text.to_owned()
        };
        let found = names::label_1035(&judged);
        if !found.is_empty() {
            let mixed = if lower {
                "may have mixed case, but should otherwise match: "
            } else {
                ""
            };
            errors.push(FieldError::invalid_str(
                at,
                text,
                format!("{mixed}{}", found.join(",")),
            ));
        }
    };
    for (key, lower) in [
        ("plural", false),
        ("singular", false),
        ("kind", true),
        ("listKind", true),
    ] {
        let text = value::text(given, key);
        if !text.is_empty() {
            label(format!("{path}.{key}"), text, lower);
        }
    }
    for (i, name) in value::items(given, "shortNames").iter().enumerate() {
        label(
            format!("{path}.shortNames[{i}]"),
            name.as_str().unwrap_or_default(),
            false,
        );
    }
    let (kind, list) = (value::text(given, "kind"), value::text(given, "listKind"));
    if !kind.is_empty() && kind == list {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid_str(
            format!("{path}.listKind"),
            list,
            why,
        ));
    }
    for (i, name) in value::items(given, "categories").iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let found = names::label_1035(name);
        if !found.is_empty() {
            let at = format!("{path}.categories[{i}]");
            errors.push(FieldError::invalid_str(at, name, found.join(",")));
        }
    }
    errors
}

fn stored_versions(crd: &Value) -> FieldErrors {
    let path = "status.storedVersions";
    let stored = value::items(crd, path);
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid(path, &Value::Null, why)];
    }
    let mut errors = FieldErrors::new();
    let mut left: BTreeMap<&str, usize> = stored
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str().unwrap_or_default(), i))
        .collect();
    for version in value::items(crd, "spec.versions") {
        let name = value::text(version, "name");
        // A stored version answers for one version only: a second one of its name finds none.
        if left.remove(name).is_none() && value::flag(version, "storage") {
            let why = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(path, &Value::from(stored), why));
        }
    }
    for (v, i) in left {
        let why = format!(
            "missing from spec.versions; {v} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {v} and removes {v} from status.storedVersions"
        );
        errors.push(FieldError::invalid_str(format!("{path}[{i}]"), v, why));
    }
    errors
}

fn preserve_unknown(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let path = "spec.preserveUnknownFields";
    if old.is_some_and(|old| value::flag(old, path)) || !value::flag(crd, path) {
        return None;
    }
    let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    Some(FieldError::invalid(path, &Value::Bool(true), why))
}

/// Which parts are the same in all versions.
fn hoisted(versions: &[Value]) -> Hoisted {
    let same = |key: &str| {
        let first = versions.first().and_then(|v| v.get(key));
        versions.iter().all(|v| v.get(key) == first)
    };
    Hoisted {
        schema: same("schema"),
        subresources: same("subresources"),
        columns: same("additionalPrinterColumns"),
        selectable: same("selectableFields"),
    }
}
