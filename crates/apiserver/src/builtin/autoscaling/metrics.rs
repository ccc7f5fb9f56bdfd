//! What an autoscaler scales by, and how fast.

use serde_json::{Value, json};

use crate::builtin::names;
use crate::builtin::pod::{amount, check, resources};
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, has, integer, items, put, put_default, text};

const KINDS: [&str; 5] = [
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

/// The field that holds a metric of this kind.
fn field_of(kind: &str) -> &'static str {
    match kind {
        "ContainerResource" => "containerResource",
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        _ => "",
    }
}

/// Fills in rules for scaling, once there are any.
pub(super) fn default_behavior(behavior: &mut Value) {
    if !behavior.is_object() {
        return;
    }
    put_default(behavior, "scaleUp.stabilizationWindowSeconds", 0);
    for direction in ["scaleUp", "scaleDown"] {
        put_default(behavior, &format!("{direction}.selectPolicy"), "Max");
        let path = format!("{direction}.policies");
        if !at(behavior, &path).is_some_and(Value::is_array) {
            let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
            let policies = if direction == "scaleUp" {
                json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent])
            } else {
                json!([percent])
            };
            put(behavior, &path, policies);
        }
    }
}

/// Judges a reference to an object of any group. `core` allows one without a group.
pub(super) fn validate_reference(
    errors: &mut FieldErrors,
    path: &str,
    reference: &Value,
    core: bool,
) {
    for field in ["kind", "name"] {
        if check::required(errors, reference, path, field) {
            let value = text(reference, field);
            let found = names::path_segment(value, false);
            check::each(errors, &format!("{path}.{field}"), value, found);
        }
    }
    let version = text(reference, "apiVersion");
    let detail = if version.matches('/').count() > 1 {
        format!("unexpected GroupVersion string: {version}")
    } else if !core && !version.contains('/') {
        "apiVersion must specify API group".to_owned()
    } else {
        return;
    };
    errors.push(FieldError::invalid_str(
        format!("{path}.apiVersion"),
        version,
        detail,
    ));
}

/// Judges one metric.
pub(super) fn validate(errors: &mut FieldErrors, path: &str, metric: &Value) {
    let kind = text(metric, "type");
    let at = format!("{path}.type");
    if kind.is_empty() {
        let detail = "must specify a metric source type";
        errors.push(FieldError::required(&at, detail));
    }
    check::one_of(errors, &at, kind, &KINDS);
    let present: Vec<&str> = [
        "object",
        "external",
        "pods",
        "resource",
        "containerResource",
    ]
    .into_iter()
    .filter(|f| has(metric, f))
    .collect();
    if let Some(first) = present.first()
        && let Some(source) = metric.get(*first)
    {
        validate_source(errors, &format!("{path}.{first}"), first, source);
    }
    let expected = field_of(kind);
    if expected.is_empty() {
        check::one_of(errors, &at, kind, &KINDS);
    } else if !has(metric, expected) {
        errors.push(FieldError::required(
            format!("{path}.{expected}"),
            "must populate information for the given metric source",
        ));
    }
    if present.len() != 1 {
        for field in present.iter().filter(|f| **f != expected) {
            errors.push(FieldError::forbidden(
                format!("{path}.{field}"),
                "must populate the given metric source only",
            ));
        }
    }
}

fn validate_source(errors: &mut FieldErrors, path: &str, field: &str, source: &Value) {
    let target = format!("{path}.target");
    let set = |f: &str| has(source, &format!("target.{f}"));
    match field {
        "resource" | "containerResource" => {
            validate_resource(errors, path, field, source);
            validate_target(errors, &target, source);
            if !set("averageUtilization") && !set("averageValue") {
                let detail = "must set either a target raw value or a target utilization";
                let at = format!("{target}.averageUtilization");
                errors.push(FieldError::required(at, detail));
            }
            if set("averageUtilization") && set("averageValue") {
                let detail = "may not set both a target raw value and a target utilization";
                errors.push(FieldError::forbidden(
                    format!("{target}.averageValue"),
                    detail,
                ));
            }
            return;
        }
        "object" => {
            let nothing = Value::Null;
            let described = source.get("describedObject").unwrap_or(&nothing);
            validate_reference(errors, &format!("{path}.describedObject"), described, true);
        }
        _ => {}
    }
    validate_identifier(errors, &format!("{path}.metric.name"), source);
    validate_target(errors, &target, source);
    let at = format!("{target}.averageValue");
    let missing = match field {
        "object" if !set("value") && !set("averageValue") => {
            "must set either a target value or averageValue"
        }
        "external" if !set("value") && !set("averageValue") => {
            "must set either a target value for metric or a per-pod target"
        }
        "pods" if !set("averageValue") => "must specify a positive target averageValue",
        _ => "",
    };
    if !missing.is_empty() {
        errors.push(FieldError::required(at, missing));
    }
    if field == "external" && set("value") && set("averageValue") {
        errors.push(FieldError::forbidden(
            format!("{target}.value"),
            "may not set both a target value for metric and a per-pod target",
        ));
    }
}

fn validate_resource(errors: &mut FieldErrors, path: &str, field: &str, source: &Value) {
    let name = text(source, "name");
    let at = format!("{path}.name");
    let of_container = field == "containerResource";
    if name.is_empty() {
        errors.push(FieldError::required(&at, "must specify a resource name"));
    } else if of_container {
        resources::validate_name(errors, &at, name);
    }
    if of_container {
        let container = text(source, "container");
        let at = format!("{path}.container");
        if container.is_empty() {
            errors.push(FieldError::required(at, "must specify a container"));
        } else {
            check::dns_label(errors, &at, container);
        }
    }
}

fn validate_identifier(errors: &mut FieldErrors, path: &str, source: &Value) {
    let name = text(source, "metric.name");
    if name.is_empty() {
        errors.push(FieldError::required(path, "must specify a metric name"));
    } else {
        check::each(errors, path, name, names::path_segment(name, false));
    }
}

fn validate_target(errors: &mut FieldErrors, path: &str, source: &Value) {
    let nothing = Value::Null;
    let target = source.get("target").unwrap_or(&nothing);
    let kind = text(target, "type");
    let at = format!("{path}.type");
    if kind.is_empty() {
        let detail = "must specify a metric target type";
        errors.push(FieldError::required(&at, detail));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid_str(&at, kind, detail));
    }
    for field in ["value", "averageValue"] {
        if let Some(value) = target.get(field).filter(|v| !amount::is_positive(v)) {
            errors.push(FieldError::invalid_str(
                format!("{path}.{field}"),
                &amount::shown(value),
                "must be positive",
            ));
        }
    }
    if let Some(percent) = integer(target, "averageUtilization").filter(|p| *p < 1) {
        let at = format!("{path}.averageUtilization");
        errors.push(check::number(&at, percent, "must be greater than 0"));
    }
}

/// Judges the rules for scaling in one direction.
pub(super) fn validate_rules(errors: &mut FieldErrors, path: &str, rules: &Value) {
    let at = format!("{path}.stabilizationWindowSeconds");
    match integer(rules, "stabilizationWindowSeconds") {
        Some(window) if window < 0 => {
            let detail = "must be greater than or equal to zero";
            errors.push(check::number(&at, window, detail));
        }
        Some(window) if window > 3600 => {
            let detail = "must be less than or equal to 3600";
            errors.push(check::number(&at, window, detail));
        }
        _ => {}
    }
    if has(rules, "selectPolicy") {
        let at = format!("{path}.selectPolicy");
        let policies = ["Disabled", "Max", "Min"];
        check::one_of(errors, &at, text(rules, "selectPolicy"), &policies);
    }
    let policies = items(rules, "policies");
    let list = format!("{path}.policies");
    if policies.is_empty() {
        let detail = "must specify at least one Policy";
        errors.push(FieldError::required(&list, detail));
    }
    for (i, policy) in policies.iter().enumerate() {
        let here = format!("{list}[{i}]");
        let kinds = ["Percent", "Pods"];
        check::one_of(
            errors,
            &format!("{here}.type"),
            text(policy, "type"),
            &kinds,
        );
        let number = |field: &str| integer(policy, field).unwrap_or(0);
        check::positive(errors, &format!("{here}.value"), number("value"));
        let (at, period) = (format!("{here}.periodSeconds"), number("periodSeconds"));
        check::positive(errors, &at, period);
        if period > 1800 {
            let detail = "must be less than or equal to 1800";
            errors.push(check::number(&at, period, detail));
        }
    }
    if let Some(tolerance) = rules.get("tolerance").filter(|t| amount::is_negative(t)) {
        errors.push(FieldError::invalid_str(
            format!("{path}.tolerance"),
            &amount::shown(tolerance),
            check::NOT_NEGATIVE,
        ));
    }
}

/// Current and wanted values of the metrics, as tables show them: two at most.
pub(super) fn format(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let shown: Vec<String> = specs
        .iter()
        .take(2)
        .enumerate()
        .map(|(i, spec)| format_one(spec, statuses.get(i)))
        .collect();
    let shown = shown.join(", ");
    if specs.len() > 2 {
        format!("{shown} + {} more...", specs.len() - 2)
    } else {
        shown
    }
}

fn format_one(spec: &Value, status: Option<&Value>) -> String {
    let field = field_of(text(spec, "type"));
    if field.is_empty() {
        return "<unknown type>".to_owned();
    }
    let quantity = |value: Option<&Value>| value.map_or("0".to_owned(), amount::shown);
    let target = |name: &str| at(spec, &format!("{field}.target.{name}"));
    let current = |name: &str| {
        let source = status.and_then(|s| s.get(field)).filter(|s| !s.is_null())?;
        at(source, &format!("current.{name}"))
    };
    let unknown = || "<unknown>".to_owned();
    let average = target("averageValue");
    if matches!(field, "resource" | "containerResource") {
        let name = text(spec, &format!("{field}.name"));
        if average.is_some() {
            let now = current("averageValue").map_or_else(unknown, amount::shown);
            return format!("{name}: {now}/{}", quantity(average));
        }
        let percent = |value: Option<&Value>, none: &str| {
            let value = value.and_then(Value::as_i64);
            value.map_or_else(|| none.to_owned(), |p| format!("{p}%"))
        };
        let now = percent(current("averageUtilization"), "<unknown>");
        let wanted = percent(target("averageUtilization"), "<auto>");
        return format!("{name}: {now}/{wanted}");
    }
    if average.is_some() {
        let now = current("averageValue").map_or_else(unknown, amount::shown);
        let suffix = if field == "pods" { "" } else { " (avg)" };
        return format!("{now}/{}{suffix}", quantity(average));
    }
    let now = current("value").map_or_else(unknown, amount::shown);
    format!("{now}/{}", quantity(target("value")))
}
