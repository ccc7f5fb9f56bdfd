//! Daemon sets.

use serde_json::{Value, json};

use super::workload;
use crate::builtin::pod::{check, condition, internal, labels, printing};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value::{at, at_mut, has, map, put, put_default, slot, take, text};

/// Where this version keeps what older ones had in the spec.
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// The rules of daemon sets.
pub(super) const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create,
    validate,
    prepare_update,
    validate_update,
    warnings: |object, old| workload::warn(object, old, false),
    generation: Some(workload::spec_changed),
    columns: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Up-to-date", "integer", 0),
        ("Available", "integer", 0),
        ("Node Selector", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells,
    trim_row: drop_generation,
    ..PLAIN
};

fn default(object: &mut Value) {
    workload::default_template(object);
    if text(object, "spec.updateStrategy.type").is_empty() {
        put(object, "spec.updateStrategy.type", "RollingUpdate");
    }
    if text(object, "spec.updateStrategy.type") == "RollingUpdate" {
        put_default(
            object,
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
            1,
        );
        put_default(object, "spec.updateStrategy.rollingUpdate.maxSurge", 0);
    }
    put_default(object, "spec.revisionHistoryLimit", 10);
    // What older versions had in the spec is an annotation here; who writes the object owns it.
    let generation = template_generation(object);
    set_template_generation(object, generation);
}

fn prepare_create(object: &mut Value, _cx: &Context<'_>) {
    let zero = json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0});
    put(object, "status", zero);
    let generation = template_generation(object).max(1);
    set_template_generation(object, generation);
}

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_spec(&mut errors, object, false);
    errors
}

fn prepare_update(_part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
    const TEMPLATE: &str = "spec.template";
    let changed = !check::same(at(object, TEMPLATE), at(old, TEMPLATE));
    let generation = template_generation(old) + i64::from(changed);
    set_template_generation(object, generation);
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if part == Part::Status {
        validate_status(&mut errors, object, old);
    } else {
        workload::immutable_selector(&mut errors, object, old);
        validate_spec(
            &mut errors,
            object,
            !labels::is_usable(at(old, "spec.selector")),
        );
    }
    errors
}

/// The annotation is added only to what is served whole.
fn drop_generation(shown: &mut Value) {
    const ANNOTATIONS: &str = "metadata.annotations";
    if let Some(map) = at_mut(shown, ANNOTATIONS).and_then(Value::as_object_mut)
        && map.remove(GENERATION).is_some()
        && map.is_empty()
    {
        take(shown, ANNOTATIONS);
    }
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let [names, images] = printing::container_cells(object, "spec.template.spec.containers");
    let count = |field: &str| printing::count(object, &format!("status.{field}"));
    let nodes = labels::format_labels(map(object, "spec.template.spec.nodeSelector"));
    vec![
        text(object, "metadata.name").into(),
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        nodes.into(),
        condition::age(object, cx.now).into(),
        names,
        images,
        labels::format(at(object, "spec.selector")).into(),
    ]
}

fn template_generation(object: &Value) -> i64 {
    map(object, "metadata.annotations")
        .and_then(|a| a.get(GENERATION))
        .and_then(Value::as_str)
        .and_then(|g| g.parse().ok())
        .unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(annotations) = slot(object, "metadata.annotations") {
        if annotations.is_null() {
            *annotations = json!({});
        }
        if let Some(map) = annotations.as_object_mut() {
            map.insert(GENERATION.to_owned(), generation.to_string().into());
        }
    }
}

fn validate_spec(errors: &mut FieldErrors, object: &Value, lenient: bool) {
    let nothing = Value::Null;
    let spec = object.get("spec").unwrap_or(&nothing);
    let selector = spec.get("selector").filter(|s| !s.is_null());
    labels::validate(errors, "spec.selector", selector, lenient);
    let own = map(spec, "template.metadata.labels");
    if labels::is_usable(selector) && !labels::matches(selector, own) {
        errors.push(workload::mismatch(spec, "spec.template.metadata.labels"));
    }
    if selector.is_some_and(labels::is_empty) {
        errors.push(check::shown(
            "spec.selector",
            labels::render(selector),
            "empty selector is invalid for daemonset",
        ));
    }
    workload::validate_template(errors, spec, "DaemonSet");
    check::non_negative_fields(errors, spec, "spec", &["minReadySeconds"]);
    validate_strategy(errors, spec);
    check::non_negative_fields(errors, spec, "spec", &["revisionHistoryLimit"]);
}

fn validate_strategy(errors: &mut FieldErrors, spec: &Value) {
    const PATH: &str = "spec.updateStrategy";
    let nothing = Value::Null;
    let strategy = spec.get("updateStrategy").unwrap_or(&nothing);
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            if !has(strategy, "rollingUpdate") {
                errors.push(FieldError::required(format!("{PATH}.rollingUpdate"), ""));
                return;
            }
            let zero = Value::from(0);
            let part = |field: &str| {
                at(strategy, &format!("rollingUpdate.{field}"))
                    .unwrap_or(&zero)
                    .clone()
            };
            let parts = ["maxUnavailable", "maxSurge"]
                .map(|field| (format!("{PATH}.rollingUpdate.{field}"), part(field)));
            for (path, value) in &parts {
                check::positive_int_or_percent(errors, path, value);
            }
            for (path, value) in &parts {
                check::at_most_all(errors, path, value);
            }
            let [(first, unavailable), (second, surge)] = &parts;
            let has_unavailable = check::int_or_percent(unavailable) != 0;
            let has_surge = check::int_or_percent(surge) != 0;
            if has_unavailable && has_surge {
                errors.push(FieldError::invalid(
                    second,
                    surge,
                    "may not be set when maxUnavailable is non-zero",
                ));
            } else if !has_unavailable && !has_surge {
                errors.push(FieldError::required(
                    first,
                    "cannot be 0 when maxSurge is 0",
                ));
            }
        }
        _ => {
            let kinds = ["RollingUpdate", "OnDelete"];
            let mut error = FieldError::not_supported(PATH, &Value::Null, &kinds);
            error.shown = internal::render("DaemonSetUpdateStrategy", strategy);
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
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    );
    workload::collisions(errors, object, old);
}
