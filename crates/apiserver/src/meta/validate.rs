//! What is wrong with metadata.

use serde_json::Value;

use crate::builtin::names;
use crate::field::{Fault, FieldError, FieldErrors};
use crate::resource::Strategy;
use crate::value::{at, flag, integer, items, text};

/// Judges the metadata of a new object whose name has been generated if it had to be.
pub fn validate_create(object: &Value, namespaced: bool, strategy: &dyn Strategy) -> FieldErrors {
    new_metadata(object, namespaced, |name, prefix| {
        strategy.check_name(name, prefix)
    })
}

/// Judges the metadata of an updated object against the stored one; the name rule of the kind is not asked again.
pub fn validate_update(object: &Value, old: &Value) -> FieldErrors {
    let namespaced = !text(old, "metadata.namespace").is_empty();
    let mut wrong = new_metadata(object, namespaced, names::path_segment);
    wrong.extend(unchangeable(object, old));
    wrong
}

/// What an update may not change.
pub(super) fn unchangeable(object: &Value, old: &Value) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    if at(old, "metadata.deletionTimestamp").is_some_and(|t| !t.is_null()) {
        wrong.extend(new_finalizers(object, old));
    }
    let generation = |o| integer(o, "metadata.generation").unwrap_or_default();
    if generation(object) < generation(old) {
        let shown = Value::from(generation(object));
        let why = "must not be decremented";
        wrong.push(FieldError::invalid("metadata.generation", &shown, why));
    }
    for field in ["name", "namespace", "uid"] {
        let path = format!("metadata.{field}");
        if text(object, &path) != text(old, &path) {
            let why = "field is immutable";
            wrong.push(FieldError::invalid_str(
                path.clone(),
                text(object, &path),
                why,
            ));
        }
    }
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let path = format!("metadata.{field}");
        let (new, before) = (
            at(object, &path).unwrap_or(&Value::Null),
            at(old, &path).unwrap_or(&Value::Null),
        );
        if new != before {
            wrong.push(FieldError::invalid(path, new, "field is immutable"));
        }
    }
    wrong.extend(labels_and_annotations(object));
    wrong.extend(owner_references(object));
    wrong.extend(managed_fields(object));
    wrong
}

pub(super) fn new_metadata(
    object: &Value,
    namespaced: bool,
    check_name: impl Fn(&str, bool) -> Vec<String>,
) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    let prefix = text(object, "metadata.generateName");
    if !prefix.is_empty() {
        for why in check_name(prefix, true) {
            wrong.push(FieldError::invalid_str(
                "metadata.generateName",
                prefix,
                why,
            ));
        }
    }
    let name = text(object, "metadata.name");
    if name.is_empty() {
        let why = "name or generateName is required";
        wrong.push(FieldError::required("metadata.name", why));
    } else {
        for why in check_name(name, false) {
            wrong.push(FieldError::invalid_str("metadata.name", name, why));
        }
    }
    wrong.extend(namespace(object, namespaced));
    let generation = integer(object, "metadata.generation").unwrap_or_default();
    if generation < 0 {
        let why = "must be greater than or equal to 0";
        wrong.push(FieldError::invalid(
            "metadata.generation",
            &Value::from(generation),
            why,
        ));
    }
    wrong.extend(labels_and_annotations(object));
    wrong.extend(owner_references(object));
    wrong.extend(finalizers(object));
    wrong.extend(managed_fields(object));
    wrong
}

fn namespace(object: &Value, namespaced: bool) -> FieldErrors {
    let path = "metadata.namespace";
    let namespace = text(object, path);
    match (namespaced, namespace.is_empty()) {
        (true, true) => vec![FieldError::required(path, "")],
        (true, false) => names::dns_label(namespace, false)
            .into_iter()
            .map(|why| FieldError::invalid_str(path, namespace, why))
            .collect(),
        (false, false) => vec![FieldError::forbidden(path, "not allowed on this type")],
        (false, true) => Vec::new(),
    }
}

fn labels_and_annotations(object: &Value) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    if let Some(labels) = at(object, "metadata.labels") {
        wrong.extend(validate_labels(labels, "metadata.labels"));
    }
    if let Some(annotations) = at(object, "metadata.annotations") {
        wrong.extend(validate_annotations(annotations, "metadata.annotations"));
    }
    wrong
}

/// Judges a map of labels at `path`.
pub fn validate_labels(labels: &Value, path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        for why in names::label_key(key) {
            wrong.push(FieldError::invalid_str(path, key, why));
        }
        let value = value.as_str().unwrap_or_default();
        for why in names::label_value(value) {
            wrong.push(FieldError::invalid_str(path, value, why));
        }
    }
    wrong
}

/// Judges a map of annotations at `path`: keys, and the size of all together.
pub fn validate_annotations(annotations: &Value, path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        for why in names::annotation_key(key) {
            wrong.push(FieldError::invalid_str(path, key, why));
        }
    }
    if size > names::ANNOTATIONS_MAX {
        wrong.push(FieldError::too_long(path, names::ANNOTATIONS_MAX));
    }
    wrong
}

fn owner_references(object: &Value) -> FieldErrors {
    let path = "metadata.ownerReferences";
    let references = items(object, path);
    let mut wrong = FieldErrors::new();
    let mut controller: Option<String> = None;
    for reference in references {
        wrong.extend(owner_reference(reference, path));
        if !flag(reference, "controller") {
            continue;
        }
        let this = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        match &controller {
            Some(first) => wrong.push(FieldError {
                fault: Fault::Invalid,
                path: path.to_owned(),
                shown: show_references(references),
                detail: format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                ),
            }),
            None => controller = Some(this),
        }
    }
    wrong
}

fn owner_reference(reference: &Value, path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    let api_version = text(reference, "apiVersion");
    // `group/version`; a text with two slashes has no version at all.
    let (group, version) = match api_version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => ("", ""),
        Some(pair) => pair,
        None => ("", api_version),
    };
    if version.is_empty() {
        let why = "version must not be empty";
        wrong.push(FieldError::invalid_str(
            format!("{path}.apiVersion"),
            api_version,
            why,
        ));
    }
    for field in ["kind", "name", "uid"] {
        if text(reference, field).is_empty() {
            wrong.push(FieldError::invalid_str(
                format!("{path}.{field}"),
                "",
                "must not be empty",
            ));
        }
    }
    if (group, version, text(reference, "kind")) == ("", "v1", "Event") {
        wrong.push(FieldError {
            fault: Fault::Invalid,
            path: path.to_owned(),
            shown: show_reference(reference),
            detail: "/v1, Kind=Event is disallowed from being an owner".to_owned(),
        });
    }
    wrong
}

/// Messages show owner references in the order of the API's fields, not by name.
fn show_references(references: &[Value]) -> String {
    let shown: Vec<String> = references.iter().map(show_reference).collect();
    format!("[{}]", shown.join(","))
}

fn show_reference(reference: &Value) -> String {
    let always = ["apiVersion", "kind", "name", "uid"].map(|field| {
        let value = Value::from(text(reference, field));
        Some(format!("\"{field}\":{value}"))
    });
    let optional = ["controller", "blockOwnerDeletion"].map(|field| {
        let value = reference.get(field).filter(|v| !v.is_null())?;
        Some(format!("\"{field}\":{value}"))
    });
    let parts: Vec<String> = always.into_iter().chain(optional).flatten().collect();
    format!("{{{}}}", parts.join(","))
}

fn finalizers(object: &Value) -> FieldErrors {
    let path = "metadata.finalizers";
    let all = items(object, path);
    let mut wrong = FieldErrors::new();
    for name in all.iter().filter_map(Value::as_str) {
        for why in names::label_key(name) {
            wrong.push(FieldError::invalid_str(path, name, why));
        }
    }
    let has = |name: &str| all.iter().any(|f| f == name);
    if has("orphan") && has("foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        wrong.push(FieldError::invalid(path, &Value::from(all.to_vec()), why));
    }
    wrong
}

/// Most built-in kinds, right after [`validate_create`] and with all that judges an update again: finalizers are qualified names.
/// Custom resources get a warning instead.
pub fn validate_standard_finalizers(object: &Value) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    for (i, name) in items(object, "metadata.finalizers").iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        for why in names::standard_finalizer(name) {
            wrong.push(FieldError::invalid_str(
                format!("metadata.finalizers[{i}]"),
                name,
                why,
            ));
        }
    }
    wrong
}

fn new_finalizers(object: &Value, old: &Value) -> Option<FieldError> {
    let path = "metadata.finalizers";
    let before = items(old, path);
    let mut extra: Vec<String> = items(object, path)
        .iter()
        .filter(|f| !before.contains(f))
        .filter_map(Value::as_str)
        .map(crate::field::quote)
        .collect();
    extra.sort();
    extra.dedup();
    if extra.is_empty() {
        return None;
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        extra.join(", ")
    );
    Some(FieldError::forbidden(path, why))
}

fn managed_fields(object: &Value) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    for (i, entry) in items(object, "metadata.managedFields").iter().enumerate() {
        let path = format!("metadata.managedFields[{i}]");
        let operation = text(entry, "operation");
        if operation != "Apply" && operation != "Update" {
            let why = "must be `Apply` or `Update`";
            wrong.push(FieldError::invalid_str(
                format!("{path}.operation"),
                operation,
                why,
            ));
        }
        let fields_type = text(entry, "fieldsType");
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            let why = "must be `FieldsV1`";
            wrong.push(FieldError::invalid_str(
                format!("{path}.fieldsType"),
                fields_type,
                why,
            ));
        }
        wrong.extend(validate_field_manager(
            text(entry, "manager"),
            &format!("{path}.manager"),
        ));
        if text(entry, "subresource").len() > 256 {
            wrong.push(FieldError::too_long(format!("{path}.subresource"), 256));
        }
    }
    wrong
}

/// Judges the name of a field manager, in managedFields or as `?fieldManager=`.
pub fn validate_field_manager(manager: &str, path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    if manager.len() > 128 {
        wrong.push(FieldError::too_long(path, 128));
    }
    for (i, c) in manager.char_indices() {
        if c.is_control() || (c.is_whitespace() && c != ' ') {
            let why = format!("invalid character U+{:04X} (at position {i})", u32::from(c));
            wrong.push(FieldError::invalid_str(path, manager, why));
        }
    }
    wrong
}
