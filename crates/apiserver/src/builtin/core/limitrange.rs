//! Limit ranges: stored, defaulted and judged, not enforced.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::quota::resource_name;
use crate::builtin::checks::{child, each, invalid_texts};
use crate::builtin::names;
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::{CREATED_AT, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::value;

/// The rules of limit ranges.
pub const RULES: Rules = Rules {
    default,
    validate: |object, _| validate(object),
    validate_update: |_, object, _, _| validate(object),
    create_on_update: true,
    ..CREATED_AT
};

fn amounts(limit: &Value, list: &str) -> Map<String, Value> {
    value::map(limit, list).cloned().unwrap_or_default()
}

/// For containers: limits default to the maximum, requests to the limits and then to the minimum.
fn default(object: &mut Value) {
    for limit in value::items_mut(object, "spec.limits") {
        if value::text(limit, "type") != "Container" {
            continue;
        }
        let mut limits = amounts(limit, "default");
        let mut requests = amounts(limit, "defaultRequest");
        for (name, quantity) in amounts(limit, "max") {
            limits.entry(name).or_insert(quantity);
        }
        for (name, quantity) in limits.clone().into_iter().chain(amounts(limit, "min")) {
            requests.entry(name).or_insert(quantity);
        }
        for (list, filled) in [("default", limits), ("defaultRequest", requests)] {
            if !filled.is_empty() {
                value::put(limit, list, json!(filled));
            }
        }
    }
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, limit) in each(object, "", "spec.limits") {
        let kind = value::text(limit, "type");
        let path = child(&at, "type");
        let wrong = names::label_key(kind);
        let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind);
        if wrong.is_empty() && !kind.contains('/') && !standard {
            let detail = "must be a standard limit type or fully qualified";
            errors.push(FieldError::invalid_str(path.as_str(), kind, detail));
        }
        errors.extend(invalid_texts(&path, kind, wrong));
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(path, &kind.into()));
        }
        errors.extend(validate_limit(&at, limit, kind));
    }
    errors
}

fn validate_limit(at: &str, limit: &Value, kind: &str) -> FieldErrors {
    let mut errors = Vec::new();
    let mut names: BTreeSet<&String> = BTreeSet::new();
    for list in [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ] {
        if list == "maxLimitRequestRatio" && kind == "PersistentVolumeClaim" {
            let has = |list| value::map(limit, list).is_some_and(|m| m.contains_key("storage"));
            if !has("min") && !has("max") {
                let detail =
                    "either minimum or maximum storage value is required, but neither was provided";
                errors.push(FieldError::required(child(at, "limits"), detail));
            }
        }
        let found = value::map(limit, list);
        if kind == "Pod" && list.starts_with("default") {
            if found.is_some_and(|m| !m.is_empty()) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(child(at, list), detail));
            }
            continue;
        }
        for (name, _) in found.into_iter().flatten() {
            let path = format!("{at}.{list}[{name}]");
            errors.extend(limited_name(&path, name, kind));
            names.insert(name);
        }
    }
    for name in names {
        errors.extend(validate_amounts(at, limit, name, kind == "Pod"));
    }
    errors
}

fn limited_name(path: &str, name: &str, kind: &str) -> FieldErrors {
    let mut errors = resource_name(path, name);
    let container =
        ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
    let narrow = ["Pod", "Container"].contains(&kind);
    if narrow && !name.contains('/') && !container {
        let detail = "must be a standard resource for containers";
        errors.push(FieldError::invalid_str(path, name, detail));
    }
    errors
}

fn validate_amounts(at: &str, limit: &Value, name: &str, pod: bool) -> FieldErrors {
    let amount = |list: &str| {
        if pod && list.starts_with("default") {
            return None;
        }
        Quantity::from_value(value::map(limit, list)?.get(name)?).ok()
    };
    let (min, max) = (amount("min"), amount("max"));
    let (limits, requests) = (amount("default"), amount("defaultRequest"));
    let mut errors = Vec::new();
    // Two amounts of which the first may not be the greater, where to complain, which value to show, and the text.
    let pairs = [
        (&min, &max, "min", &min, ("min", "max")),
        (
            &min,
            &requests,
            "defaultRequest",
            &requests,
            ("min", "default request"),
        ),
        (
            &requests,
            &max,
            "defaultRequest",
            &requests,
            ("default request", "max"),
        ),
        (
            &requests,
            &limits,
            "defaultRequest",
            &requests,
            ("default request", "default limit"),
        ),
        (&min, &limits, "default", &min, ("min", "default")),
        (&limits, &max, "default", &max, ("default", "max")),
    ];
    for (low, high, list, shown, (low_name, high_name)) in pairs {
        if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
            && low > high
        {
            errors.push(FieldError::invalid_str(
                format!("{at}.{list}[{name}]"),
                &shown.to_string(),
                format!("{low_name} value {low} is greater than {high_name} value {high}"),
            ));
        }
    }
    if let Some(ratio) = amount("maxLimitRequestRatio") {
        errors.extend(
            ratio_text(&ratio, min.as_ref(), max.as_ref()).map(|detail| {
                let path = format!("{at}.maxLimitRequestRatio[{name}]");
                FieldError::invalid_str(path, &ratio.to_string(), detail)
            }),
        );
    }
    errors
}

/// What is wrong with the greatest ratio of limit to request.
fn ratio_text(ratio: &Quantity, min: Option<&Quantity>, max: Option<&Quantity>) -> Option<String> {
    if ratio.millis() < 1000 {
        return Some(format!("ratio {ratio} is less than 1"));
    }
    let (min, max) = (min?.millis(), max?.millis());
    // Amounts fit a float well enough for a message.
    #[allow(clippy::cast_precision_loss, reason = "as the real server computes it")]
    let (most, given) = (max as f64 / min as f64, ratio.millis() as f64 / 1000.0);
    (given > most).then(|| format!("ratio {ratio} is greater than max/min = {most:.6}"))
}
