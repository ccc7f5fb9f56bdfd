//! Namespaces.
//!
//! The label `kubernetes.io/metadata.name` follows the name, so a generated name must be there before
//! [`Strategy::prepare_create`](crate::resource::Strategy::prepare_create). Deletion (the phase, the content, the
//! `kubernetes` finalizer) belongs to the server; [`prepare_finalize`] and [`validate_finalize`] are the rules of
//! the `finalize` subresource.

use serde_json::{Value, json};

use crate::builtin::cells;
use crate::builtin::checks::{each, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

/// The finalizer in `spec.finalizers` that holds a namespace until its content is gone.
pub const FINALIZER: &str = "kubernetes";

/// The label that holds the namespace's name.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The rules of namespaces.
pub const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create,
    prepare_update,
    validate: |object, _| validate_finalizers(object, false),
    validate_update,
    selectable: &[("status.phase", |o| {
        value::text(o, "status.phase").to_owned()
    })],
    name: names::dns_label,
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::text(object, "status.phase").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

fn default(object: &mut Value) {
    label_name(object);
    value::put_default(object, "status.phase", "Active");
}

fn label_name(object: &mut Value) {
    let name = value::text(object, "metadata.name").to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) = value::slot(object, "metadata.labels") {
        if !labels.is_object() {
            *labels = json!({});
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(NAME_LABEL.to_owned(), name.into());
        }
    }
}

fn prepare_create(object: &mut Value, _cx: &Context<'_>) {
    label_name(object);
    value::put(object, "status", json!({"phase": "Active"}));
    let mut finalizers = value::items(object, "spec.finalizers").to_vec();
    if !finalizers.iter().any(|f| f == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    value::put(object, "spec.finalizers", finalizers);
}

fn prepare_update(part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
    if part != Part::Status {
        value::copy(object, old, "spec.finalizers");
        label_name(object);
    }
}

/// Before a write to `finalize`: only the spec's finalizers change.
pub fn prepare_finalize(object: &mut Value, old: &Value) {
    value::copy(object, old, "status");
    label_name(object);
}

/// Judges a write to `finalize`.
pub fn validate_finalize(object: &Value) -> FieldErrors {
    validate_finalizers(object, true)
}

fn validate_finalizers(object: &Value, indexed: bool) -> FieldErrors {
    let mut errors = Vec::new();
    for (at, finalizer) in each(object, "", "spec.finalizers") {
        let path = if indexed { &at } else { "spec.finalizers" };
        let name = finalizer.as_str().unwrap_or_default();
        errors.extend(invalid_texts(path, name, names::label_key(name)));
        errors.extend(invalid_texts(path, name, names::standard_finalizer(name)));
    }
    errors
}

fn validate_update(part: Part, object: &Value, _old: &Value, _cx: &Context<'_>) -> FieldErrors {
    if part != Part::Status {
        return validate_finalizers(object, false);
    }
    let phase = value::text(object, "status.phase");
    let (wanted, detail) = if value::has(object, "metadata.deletionTimestamp") {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };
    if phase == wanted {
        Vec::new()
    } else {
        vec![FieldError::invalid_str("status.Phase", phase, detail)]
    }
}
