//! Topology spread, and label keys that stand for a pod's own labels.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{check, labels};
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, items, map, text};

/// Judges `topologySpreadConstraints`.
pub(super) fn validate(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let constraints = items(spec, "topologySpreadConstraints");
    let pair = |c: &Value| {
        (
            text(c, "topologyKey").to_owned(),
            text(c, "whenUnsatisfiable").to_owned(),
        )
    };
    for (i, constraint) in constraints.iter().enumerate() {
        let here = format!("{path}[{i}]");
        let skew = crate::value::integer(constraint, "maxSkew").unwrap_or(0);
        check::positive(errors, &format!("{here}.maxSkew"), skew);
        if text(constraint, "topologyKey").is_empty() {
            errors.push(FieldError::required(
                format!("{here}.topologyKey"),
                "can not be empty",
            ));
        }
        let action = text(constraint, "whenUnsatisfiable");
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        check::one_of(
            errors,
            &format!("{here}.whenUnsatisfiable"),
            action,
            &actions,
        );
        let (key, when) = pair(constraint);
        if constraints
            .iter()
            .skip(i + 1)
            .any(|other| pair(other) == (key.clone(), when.clone()))
        {
            errors.push(FieldError::duplicate(
                format!("{here}.{{topologyKey, whenUnsatisfiable}}"),
                &Value::String(format!("{{{key}, {when}}}")),
            ));
        }
        validate_options(errors, &here, constraint);
        validate_label_keys(errors, &here, constraint);
        let at = format!("{here}.labelSelector");
        labels::validate(errors, &at, constraint.get("labelSelector"), false);
    }
}

fn validate_options(errors: &mut FieldErrors, here: &str, constraint: &Value) {
    let action = text(constraint, "whenUnsatisfiable");
    if let Some(domains) = crate::value::integer(constraint, "minDomains") {
        let at = format!("{here}.minDomains");
        check::positive(errors, &at, domains);
        if action != "DoNotSchedule" {
            let detail =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            errors.push(check::number(&at, domains, &detail));
        }
    }
    for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        let policy = text(constraint, field);
        if !policy.is_empty() {
            check::one_of(
                errors,
                &format!("{here}.{field}"),
                policy,
                &["Honor", "Ignore"],
            );
        }
    }
}

/// `matchLabelKeys` and `mismatchLabelKeys` against each other and against the selector.
pub(super) fn validate_label_keys(errors: &mut FieldErrors, path: &str, term: &Value) {
    let selector = term.get("labelSelector").filter(|v| !v.is_null());
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = items(term, field);
        if keys.is_empty() {
            continue;
        }
        let at = format!("{path}.{field}");
        if selector.is_none() {
            errors.push(FieldError::forbidden(
                at,
                "must not be specified when labelSelector is not set",
            ));
            continue;
        }
        for (i, key) in keys.iter().enumerate() {
            let key = key.as_str().unwrap_or_default();
            check::qualified_name(errors, &format!("{at}[{i}]"), key);
        }
    }
    let keys: Vec<&str> = items(term, "matchLabelKeys")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if let Some(selector) = selector {
        let mut seen: BTreeSet<&str> = map(selector, "matchLabels")
            .into_iter()
            .flatten()
            .map(|(k, _)| k.as_str())
            .collect();
        for expression in items(selector, "matchExpressions") {
            let key = text(expression, "key");
            if let Some(i) = keys.iter().position(|k| *k == key)
                && seen.contains(key)
            {
                errors.push(FieldError::invalid_str(
                    format!("{path}[{i}]"),
                    key,
                    "exists in both matchLabelKeys and labelSelector",
                ));
            }
            seen.insert(key);
        }
    }
    for (i, key) in keys.iter().enumerate() {
        if items(term, "mismatchLabelKeys").iter().any(|k| k == key) {
            errors.push(FieldError::invalid_str(
                format!("{path}.matchLabelKeys[{i}]"),
                key,
                "exists in both matchLabelKeys and mismatchLabelKeys",
            ));
        }
    }
}

/// Copies label keys of affinity terms and spread constraints into their selectors, as a new pod gets them.
pub(super) fn merge_label_keys(pod: &mut Value) {
    let own = at(pod, "metadata.labels").cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else {
        return;
    };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let required = format!("affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution");
        for term in crate::value::items_mut(spec, &required) {
            merge_into(term, &own);
        }
        let preferred = format!("affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution");
        for weighted in crate::value::items_mut(spec, &preferred) {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                merge_into(term, &own);
            }
        }
    }
    for constraint in crate::value::items_mut(spec, "topologySpreadConstraints") {
        merge_into(constraint, &own);
    }
}

fn merge_into(term: &mut Value, own: &Value) {
    if !crate::value::has(term, "labelSelector") {
        return;
    }
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys: Vec<String> = items(term, field)
            .iter()
            .filter_map(|k| k.as_str().map(str::to_owned))
            .collect();
        for key in keys {
            let Some(value) = own.get(&key) else { continue };
            let requirement =
                serde_json::json!({"key": key, "operator": operator, "values": [value]});
            let slot = crate::value::slot(term, "labelSelector.matchExpressions");
            let Some(slot) = slot else { continue };
            match slot {
                Value::Array(list) => list.push(requirement),
                other => *other = Value::Array(vec![requirement]),
            }
        }
    }
}
