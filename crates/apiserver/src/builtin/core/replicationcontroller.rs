//! Replication controllers. Their pod template is judged and filled in as everywhere.

use serde_json::{Value, json};

use crate::builtin::cells;
use crate::builtin::checks::not_negative;
use crate::builtin::rules::{PLAIN, Rules, spec_changed};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

/// The rules of replication controllers.
pub const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create: |object, _| value::put(object, "status", json!({"replicas": 0})),
    validate: |object, _| validate(object),
    validate_update,
    generation: Some(spec_changed),
    selectable: &[("status.replicas", |o| {
        value::integer(o, "status.replicas")
            .unwrap_or_default()
            .to_string()
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
    let labels = value::at(object, "spec.template.metadata.labels").cloned();
    if let Some(labels) = labels {
        let empty =
            |o: &Value, path: &str| value::map(o, path).is_none_or(serde_json::Map::is_empty);
        for path in ["spec.selector", "metadata.labels"] {
            if empty(object, path) {
                value::put(object, path, labels.clone());
            }
        }
    }
    value::put_default(object, "spec.replicas", 1);
    super::podtemplate::default_template(object, "spec.template");
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = not_negative(object, "spec.minReadySeconds");
    let selector = value::map(object, "spec.selector").filter(|s| !s.is_empty());
    if selector.is_none() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    errors.extend(not_negative(object, "spec.replicas"));
    let path = "spec.template";
    if !value::has(object, path) {
        errors.push(FieldError::required(path, ""));
        return errors;
    }
    let labels = value::at(object, "spec.template.metadata.labels");
    let matches =
        |(key, wanted): (&String, &Value)| labels.and_then(|l| l.get(key)) == Some(wanted);
    if selector.is_some_and(|s| !s.iter().all(matches)) {
        let detail = "`selector` does not match template `labels`";
        let shown = labels.unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            shown,
            detail,
        ));
    }
    errors.extend(super::podtemplate::validate_template(object, path));
    let policy = value::text(object, "spec.template.spec.restartPolicy");
    if policy != "Always" {
        let path = "spec.template.spec.restartPolicy";
        errors.push(FieldError::not_supported(path, &policy.into(), &["Always"]));
    }
    let deadline = "spec.template.spec.activeDeadlineSeconds";
    if value::has(object, deadline) {
        let detail = "activeDeadlineSeconds in ReplicationController is not Supported";
        errors.push(FieldError::forbidden(deadline, detail));
    }
    errors
}

fn validate_update(part: Part, object: &Value, _old: &Value, _cx: &Context<'_>) -> FieldErrors {
    if part != Part::Status {
        return validate(object);
    }
    let mut errors = Vec::new();
    for field in [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    ] {
        errors.extend(not_negative(object, &format!("status.{field}")));
    }
    let count =
        |field: &str| value::integer(object, &format!("status.{field}")).unwrap_or_default();
    let mut at_most = |field: &str, limit: &str, detail: &str| {
        if count(field) > count(limit) {
            let path = format!("status.{field}");
            errors.push(FieldError::invalid(path, &count(field).into(), detail));
        }
    };
    for field in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        at_most(field, "replicas", "cannot be greater than status.replicas");
    }
    at_most(
        "availableReplicas",
        "readyReplicas",
        "cannot be greater than readyReplicas",
    );
    errors
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let number = |path| value::integer(object, path).unwrap_or_default().into();
    let (names, images) = cells::containers(object, "spec.template.spec");
    vec![
        cells::name(object),
        number("spec.replicas"),
        number("status.replicas"),
        number("status.readyReplicas"),
        cells::age(object, cx),
        names.into(),
        images.into(),
        cells::labels(object, "spec.selector").into(),
    ]
}
