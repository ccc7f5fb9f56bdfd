//! Pod disruption budgets.

use serde_json::{Value, json};

use crate::builtin::apps::workload;
use crate::builtin::names;
use crate::builtin::pod::{check, condition, internal, labels, printing};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::FieldErrors;
use crate::resource::{Context, Part};
use crate::value::{at, has, items, put, text};

/// The rules of pod disruption budgets.
pub(super) const RULES: Rules = Rules {
    status: true,
    prepare_create,
    validate,
    validate_update,
    generation: Some(workload::spec_changed),
    // Alone among the workload kinds, budgets only need names that fit into a path.
    name: names::path_segment,
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("Min Available", "string", 0),
        ("Max Unavailable", "string", 0),
        ("Allowed Disruptions", "integer", 0),
        ("Age", "string", 0),
    ],
    cells,
    ..PLAIN
};

fn prepare_create(object: &mut Value, _cx: &Context<'_>) {
    let zero = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
    put(object, "status", zero);
}

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_spec(&mut errors, object, false);
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if part == Part::Status {
        let conditions = items(object, "status.conditions");
        errors.extend(crate::meta::validate_conditions(
            conditions,
            "status.conditions",
        ));
        let status = object.get("status").cloned().unwrap_or_default();
        let counts = [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ];
        check::non_negative_fields(&mut errors, &status, "status", &counts);
    } else {
        let lenient = !labels::is_usable(at(old, "spec.selector"));
        validate_spec(&mut errors, object, lenient);
    }
    errors
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let part = |path: &str| match at(object, path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    };
    vec![
        text(object, "metadata.name").into(),
        part("spec.minAvailable").into(),
        part("spec.maxUnavailable").into(),
        printing::count(object, "status.disruptionsAllowed"),
        condition::age(object, cx.now).into(),
    ]
}

fn validate_spec(errors: &mut FieldErrors, object: &Value, lenient: bool) {
    let nothing = Value::Null;
    let spec = object.get("spec").unwrap_or(&nothing);
    let fields = ["minAvailable", "maxUnavailable"];
    if fields.iter().all(|f| has(spec, f)) {
        errors.push(check::shown(
            "spec",
            internal::render("PodDisruptionBudgetSpec", spec),
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    for field in fields {
        if let Some(value) = spec.get(field).filter(|v| !v.is_null()) {
            let path = format!("spec.{field}");
            check::positive_int_or_percent(errors, &path, value);
            check::at_most_all(errors, &path, value);
        }
    }
    labels::validate(errors, "spec.selector", spec.get("selector"), lenient);
    if let Some(policy) = spec
        .get("unhealthyPodEvictionPolicy")
        .and_then(Value::as_str)
    {
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        check::one_of(errors, "spec.unhealthyPodEvictionPolicy", policy, &policies);
    }
}
