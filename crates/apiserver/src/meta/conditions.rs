//! What is wrong with `metav1.Condition`s.

use serde_json::{Map, Value};

use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::value::text;

/// Judges a list of `metav1.Condition`.
pub fn validate_conditions(conditions: &[Value], path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    let mut seen: Vec<&str> = Vec::new();
    for (i, condition) in conditions.iter().enumerate() {
        let here = format!("{path}[{i}]");
        let condition_type = text(condition, "type");
        if seen.contains(&condition_type) {
            wrong.push(FieldError::duplicate(
                format!("{here}.type"),
                &Value::from(condition_type),
            ));
        } else {
            seen.push(condition_type);
        }
        if let Some(condition) = condition.as_object() {
            wrong.extend(validate_condition(condition, &here));
        }
    }
    wrong
}

fn validate_condition(condition: &Map<String, Value>, path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    let get = |field: &str| {
        condition
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    for why in names::label_key(get("type")) {
        wrong.push(FieldError::invalid_str(
            format!("{path}.type"),
            get("type"),
            why,
        ));
    }
    let statuses = ["False", "True", "Unknown"];
    if !statuses.contains(&get("status")) {
        let status = Value::from(get("status"));
        wrong.push(FieldError::not_supported(
            format!("{path}.status"),
            &status,
            &statuses,
        ));
    }
    if let Some(generation) = condition
        .get("observedGeneration")
        .filter(|g| g.as_i64() < Some(0))
    {
        let why = "must be greater than or equal to zero";
        wrong.push(FieldError::invalid(
            format!("{path}.observedGeneration"),
            generation,
            why,
        ));
    }
    if get("lastTransitionTime").is_empty() {
        wrong.push(FieldError::required(
            format!("{path}.lastTransitionTime"),
            "",
        ));
    }
    let reason = get("reason");
    if reason.is_empty() {
        wrong.push(FieldError::required(format!("{path}.reason"), ""));
    } else {
        for why in names::condition_reason(reason) {
            wrong.push(FieldError::invalid_str(
                format!("{path}.reason"),
                reason,
                why,
            ));
        }
        if reason.len() > 1024 {
            wrong.push(FieldError::too_long(format!("{path}.reason"), 1024));
        }
    }
    if get("message").len() > 32 * 1024 {
        wrong.push(FieldError::too_long(format!("{path}.message"), 32 * 1024));
    }
    wrong
}
