//! Deployments.

use serde_json::Value;

use super::workload;
use crate::builtin::pod::{check, condition, internal, labels, printing};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value::{at, copy, has, integer, put, put_default, text};

/// The rules of deployments.
pub(super) const RULES: Rules = Rules {
    status: true,
    default,
    validate,
    prepare_update,
    validate_update,
    warnings: |object, old| workload::warn(object, old, true),
    generation: Some(generation_changed),
    reset: |part| match part {
        Part::Status => vec!["metadata.labels"],
        _ => Vec::new(),
    },
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Up-to-date", "string", 0),
        ("Available", "string", 0),
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
    if text(object, "spec.strategy.type").is_empty() {
        put(object, "spec.strategy.type", "RollingUpdate");
    }
    if text(object, "spec.strategy.type") == "RollingUpdate" {
        put_default(object, "spec.strategy.rollingUpdate.maxUnavailable", "25%");
        put_default(object, "spec.strategy.rollingUpdate.maxSurge", "25%");
    }
    put_default(object, "spec.revisionHistoryLimit", 10);
    put_default(object, "spec.progressDeadlineSeconds", 600);
}

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_spec(&mut errors, object);
    errors
}

fn prepare_update(part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
    if part == Part::Status {
        copy(object, old, "metadata.labels");
    }
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if part == Part::Status {
        validate_status(&mut errors, object, old);
    } else {
        validate_spec(&mut errors, object);
        workload::immutable_selector(&mut errors, object, old);
    }
    errors
}

fn generation_changed(object: &Value, old: &Value) -> bool {
    const ANNOTATIONS: &str = "metadata.annotations";
    workload::spec_changed(object, old)
        || !check::same(at(object, ANNOTATIONS), at(old, ANNOTATIONS))
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let number = |path: &str| integer(object, path).unwrap_or(0);
    let [names, images] = printing::container_cells(object, "spec.template.spec.containers");
    let selector = at(object, "spec.selector");
    let selector = if labels::is_usable(selector) {
        selector.map(labels::expression).unwrap_or_default()
    } else {
        "<invalid>".to_owned()
    };
    vec![
        text(object, "metadata.name").into(),
        format!(
            "{}/{}",
            number("status.readyReplicas"),
            number("spec.replicas")
        )
        .into(),
        number("status.updatedReplicas").into(),
        number("status.availableReplicas").into(),
        condition::age(object, cx.now).into(),
        names,
        images,
        selector.into(),
    ]
}

fn validate_spec(errors: &mut FieldErrors, object: &Value) {
    let nothing = Value::Null;
    let spec = object.get("spec").unwrap_or(&nothing);
    check::non_negative_fields(errors, spec, "spec", &["replicas"]);
    if workload::validate_selector(errors, spec, "deployment", "invalid label selector") {
        workload::validate_labels(errors, spec);
        workload::validate_template(errors, spec, "ReplicaSet");
    }
    validate_strategy(errors, spec);
    check::non_negative_fields(
        errors,
        spec,
        "spec",
        &["minReadySeconds", "revisionHistoryLimit"],
    );
    if let Some(deadline) = integer(spec, "progressDeadlineSeconds") {
        const PATH: &str = "spec.progressDeadlineSeconds";
        check::non_negative(errors, PATH, deadline);
        if deadline <= integer(spec, "minReadySeconds").unwrap_or(0) {
            let detail = "must be greater than minReadySeconds";
            errors.push(check::number(PATH, deadline, detail));
        }
    }
}

fn validate_strategy(errors: &mut FieldErrors, spec: &Value) {
    const PATH: &str = "spec.strategy";
    let nothing = Value::Null;
    let strategy = spec.get("strategy").unwrap_or(&nothing);
    match text(strategy, "type") {
        "Recreate" => {
            if has(strategy, "rollingUpdate") {
                errors.push(FieldError::forbidden(
                    format!("{PATH}.rollingUpdate"),
                    "may not be specified when strategy `type` is 'Recreate'",
                ));
            }
        }
        "RollingUpdate" => {
            let zero = Value::from(0);
            let part = |field: &str| {
                at(strategy, &format!("rollingUpdate.{field}"))
                    .unwrap_or(&zero)
                    .clone()
            };
            let (unavailable, surge) = (part("maxUnavailable"), part("maxSurge"));
            let path = format!("{PATH}.rollingUpdate.maxUnavailable");
            check::positive_int_or_percent(errors, &path, &unavailable);
            let surge_path = format!("{PATH}.rollingUpdate.maxSurge");
            check::positive_int_or_percent(errors, &surge_path, &surge);
            if check::int_or_percent(&unavailable) == 0 && check::int_or_percent(&surge) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(&path, &unavailable, detail));
            }
            check::at_most_all(errors, &path, &unavailable);
        }
        _ => {
            let mut error =
                FieldError::not_supported(PATH, &Value::Null, &["Recreate", "RollingUpdate"]);
            error.shown = internal::render("DeploymentStrategy", strategy);
            errors.push(error);
        }
    }
}

fn validate_status(errors: &mut FieldErrors, object: &Value, old: &Value) {
    let nothing = Value::Null;
    let status = object.get("status").unwrap_or(&nothing);
    check::non_negative_fields(
        errors,
        status,
        "status",
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
    );
    let fields = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    workload::within_replicas(errors, status, &fields);
    workload::available_within_ready(errors, status, "readyReplicas");
    workload::collisions(errors, object, old);
}
