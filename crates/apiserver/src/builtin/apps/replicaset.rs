//! Replica sets.

use serde_json::{Value, json};

use super::workload;
use crate::builtin::pod::{check, condition, labels, printing};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::FieldErrors;
use crate::resource::{Context, Part};
use crate::value::{at, integer, put, put_default, text};

/// The rules of replica sets.
pub(super) const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create,
    validate,
    validate_update,
    warnings: |object, old| workload::warn(object, old, true),
    generation: Some(workload::spec_changed),
    selectable: &[("status.replicas", |object| {
        integer(object, "status.replicas").unwrap_or(0).to_string()
    })],
    columns: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells,
    ..PLAIN
};

fn default(object: &mut Value) {
    workload::default_template(object);
    put_default(object, "spec.replicas", 1);
}

fn prepare_create(object: &mut Value, _cx: &Context<'_>) {
    put(object, "status", json!({"replicas": 0}));
}

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_spec(&mut errors, object);
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if part == Part::Status {
        validate_status(&mut errors, object);
    } else {
        validate_spec(&mut errors, object);
        workload::immutable_selector(&mut errors, object, old);
    }
    errors
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let [names, images] = printing::container_cells(object, "spec.template.spec.containers");
    vec![
        text(object, "metadata.name").into(),
        printing::count(object, "spec.replicas"),
        printing::count(object, "status.replicas"),
        printing::count(object, "status.readyReplicas"),
        condition::age(object, cx.now).into(),
        names,
        images,
        labels::format(at(object, "spec.selector")).into(),
    ]
}

fn validate_spec(errors: &mut FieldErrors, object: &Value) {
    let nothing = Value::Null;
    let spec = object.get("spec").unwrap_or(&nothing);
    check::non_negative_fields(errors, spec, "spec", &["replicas", "minReadySeconds"]);
    // The real server says "deployment" here too.
    if workload::validate_selector(errors, spec, "deployment", "invalid label selector") {
        workload::validate_labels(errors, spec);
        workload::validate_template(errors, spec, "ReplicaSet");
    }
}

fn validate_status(errors: &mut FieldErrors, object: &Value) {
    let nothing = Value::Null;
    let status = object.get("status").unwrap_or(&nothing);
    check::non_negative_fields(
        errors,
        status,
        "status",
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
    );
    let fields = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    workload::within_replicas(errors, status, &fields);
    workload::available_within_ready(errors, status, "readyReplicas");
}
