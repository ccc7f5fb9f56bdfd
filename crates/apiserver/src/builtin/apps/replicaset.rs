//! Replica sets.

use serde_json::{Value, json};

use super::workload;
use crate::builtin::pod::{check, condition, labels, printing};
use crate::field::FieldErrors;
use crate::resource::{Context, Part, Strategy};
use crate::table::Column;
use crate::value::{at, integer, put_default, text};

/// The rules of replica sets.
#[derive(Debug)]
pub(super) struct ReplicaSets;

impl Strategy for ReplicaSets {
    fn default(&self, object: &mut Value, _cx: &Context<'_>) {
        workload::default_template(object);
        put_default(object, "spec.replicas", 1);
    }

    fn prepare_create(&self, object: &mut Value, _cx: &Context<'_>) {
        workload::clear_status(object, json!({"replicas": 0}));
    }

    fn validate(&self, object: &Value, _cx: &Context<'_>) -> FieldErrors {
        let mut errors = FieldErrors::new();
        validate_spec(&mut errors, object);
        errors
    }

    fn prepare_update(&self, part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
        workload::keep_other_part(part, object, old);
    }

    fn validate_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        _cx: &Context<'_>,
    ) -> FieldErrors {
        let mut errors = FieldErrors::new();
        if part == Part::Status {
            validate_status(&mut errors, object);
        } else {
            validate_spec(&mut errors, object);
            workload::immutable_selector(&mut errors, object, old);
        }
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>, _cx: &Context<'_>) -> Vec<String> {
        workload::warn(object, old, true)
    }

    fn generation_changed(&self, object: &Value, old: &Value) -> bool {
        workload::spec_changed(object, old)
    }

    fn reset_fields(&self, part: Part) -> Vec<&'static str> {
        workload::reset(part)
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let replicas = integer(object, "status.replicas").unwrap_or(0);
        vec![("status.replicas", replicas.to_string())]
    }

    fn selectable_names(&self) -> Vec<String> {
        vec!["status.replicas".to_owned()]
    }

    fn columns(&self, _version: &str) -> Vec<Column> {
        printing::columns(&[
            ("Name", "string", 0),
            ("Desired", "integer", 0),
            ("Current", "integer", 0),
            ("Ready", "integer", 0),
            ("Age", "string", 0),
            ("Containers", "string", 1),
            ("Images", "string", 1),
            ("Selector", "string", 1),
        ])
    }

    fn cells(&self, object: &Value, cx: &Context<'_>) -> Vec<Value> {
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
