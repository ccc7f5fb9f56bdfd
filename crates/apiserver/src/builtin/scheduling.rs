//! The `scheduling.k8s.io` kinds: priority classes.

use std::sync::Arc;

use serde_json::Value;

use super::cells;
use super::checks::{immutable, optional_one_of};
use super::describe::resource;
use super::rules::{PLAIN, Rules, never};
use crate::field::{FieldError, FieldErrors};
use crate::resource::Resource;
use crate::value;

/// The greatest value that is not the system's.
const HIGHEST_USER_VALUE: i64 = 1_000_000_000;

/// The classes that every cluster has.
const SYSTEM: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

const RULES: Rules = Rules {
    default: |object| value::put_default(object, "preemptionPolicy", "PreemptLowerPriority"),
    validate: |object, _| validate(object),
    validate_update: |_, object, old, _| validate_update(object, old),
    generation: Some(never),
    columns: &[
        ("Name", "string", 0),
        ("Value", "integer", 0),
        ("Global-Default", "boolean", 0),
        ("Age", "string", 0),
        ("PreemptionPolicy", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::integer(object, "value").unwrap_or_default().into(),
            value::flag(object, "globalDefault").into(),
            cells::age(object, cx),
            value::text(object, "preemptionPolicy").into(),
        ]
    },
    ..PLAIN
};

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let name = value::text(object, "metadata.name");
    let number = value::integer(object, "value").unwrap_or_default();
    if name.starts_with("system-") {
        if let Some(why) = not_system(name, number, value::flag(object, "globalDefault")) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            errors.push(FieldError::forbidden("metadata.name", detail));
        }
    } else if number > HIGHEST_USER_VALUE {
        let detail =
            format!("maximum allowed value of a user defined priority is {HIGHEST_USER_VALUE}");
        errors.push(FieldError::forbidden("value", detail));
    }
    let policy = value::text(object, "preemptionPolicy");
    let policies = ["PreemptLowerPriority", "Never"];
    errors.extend(optional_one_of("preemptionPolicy", policy, &policies));
    errors
}

fn not_system(name: &str, number: i64, global_default: bool) -> Option<String> {
    match SYSTEM.iter().find(|(known, _)| *known == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, value)) if *value != number => {
            Some(format!("value of {name} PriorityClass must be {value}"))
        }
        Some(_) if global_default => Some(format!(
            "globalDefault of {name} PriorityClass must be false"
        )),
        Some(_) => None,
    }
}

fn validate_update(object: &Value, old: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    if value::integer(object, "value") != value::integer(old, "value") {
        let detail = "may not be changed in an update.";
        errors.push(FieldError::forbidden("value", detail));
    }
    errors.extend(immutable(object, old, "preemptionPolicy"));
    errors
}

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let class = resource(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        Arc::new(RULES),
    );
    vec![class.cluster_scoped().short(&["pc"]).build()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(errors: &FieldErrors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn high_values_and_system_names_are_the_systems() {
        let class =
            json!({"metadata": {"name": "mine"}, "value": 1_000_000_001, "preemptionPolicy": "X"});
        assert_eq!(
            texts(&validate(&class)),
            [
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
                "preemptionPolicy: Unsupported value: \"X\": supported values: \"PreemptLowerPriority\", \"Never\""
            ]
        );
        let class = json!({"metadata": {"name": "system-x"}, "value": 1});
        assert_eq!(
            texts(&validate(&class)),
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class"
            ]
        );
    }

    #[test]
    fn value_and_policy_stay() {
        let old = json!({"value": 1, "preemptionPolicy": "PreemptLowerPriority"});
        let new = json!({"value": 2, "preemptionPolicy": "Never"});
        assert_eq!(
            texts(&validate_update(&new, &old)),
            [
                "value: Forbidden: may not be changed in an update.",
                "preemptionPolicy: Invalid value: \"Never\": field is immutable"
            ]
        );
    }
}
