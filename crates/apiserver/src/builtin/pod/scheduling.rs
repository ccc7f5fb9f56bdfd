//! Where a pod may run: affinity, tolerations, topology spread, gates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{check, labels};
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, items, map, text};

/// Judges `affinity`.
pub(super) fn validate_affinity(errors: &mut FieldErrors, path: &str, affinity: &Value) {
    if let Some(node) = affinity.get("nodeAffinity").filter(|v| !v.is_null()) {
        validate_node_affinity(errors, &format!("{path}.nodeAffinity"), node);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(kind) else {
            continue;
        };
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for (i, term) in items(pods, required).iter().enumerate() {
            validate_pod_term(errors, &format!("{path}.{kind}.{required}[{i}]"), term);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (i, weighted) in items(pods, preferred).iter().enumerate() {
            let here = format!("{path}.{kind}.{preferred}[{i}]");
            validate_weight(errors, &here, weighted);
            let nothing = Value::Null;
            let term = weighted.get("podAffinityTerm").unwrap_or(&nothing);
            validate_pod_term(errors, &format!("{here}.podAffinityTerm"), term);
        }
    }
}

fn validate_weight(errors: &mut FieldErrors, path: &str, weighted: &Value) {
    let weight = crate::value::integer(weighted, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(check::number(
            &format!("{path}.weight"),
            weight,
            "must be in the range 1-100",
        ));
    }
}

fn validate_node_affinity(errors: &mut FieldErrors, path: &str, affinity: &Value) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if let Some(selector) = affinity.get(required).filter(|v| !v.is_null()) {
        let list = format!("{path}.{required}.nodeSelectorTerms");
        let terms = items(selector, "nodeSelectorTerms");
        if terms.is_empty() {
            errors.push(FieldError::required(
                &list,
                "must have at least one node selector term",
            ));
        }
        for (i, term) in terms.iter().enumerate() {
            validate_node_term(errors, &format!("{list}[{i}]"), term, false);
        }
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (i, weighted) in items(affinity, preferred).iter().enumerate() {
        let here = format!("{path}.{preferred}[{i}]");
        validate_weight(errors, &here, weighted);
        if let Some(term) = weighted.get("preference") {
            validate_node_term(errors, &format!("{here}.preference"), term, true);
        }
    }
}

fn validate_node_term(errors: &mut FieldErrors, path: &str, term: &Value, lenient: bool) {
    for (i, requirement) in items(term, "matchExpressions").iter().enumerate() {
        let here = format!("{path}.matchExpressions[{i}]");
        validate_node_requirement(errors, &here, requirement, lenient);
    }
    for (i, requirement) in items(term, "matchFields").iter().enumerate() {
        let here = format!("{path}.matchFields[{i}]");
        validate_node_field(errors, &here, requirement);
    }
}

fn validate_node_requirement(
    errors: &mut FieldErrors,
    path: &str,
    requirement: &Value,
    lenient: bool,
) {
    let values = items(requirement, "values");
    let at = format!("{path}.values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &at,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &at,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Gt" | "Lt" if values.len() != 1 => errors.push(FieldError::required(
            &at,
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(FieldError::invalid_str(
            format!("{path}.operator"),
            other,
            "not a valid selector operator",
        )),
    }
    check::qualified_name(errors, &format!("{path}.key"), text(requirement, "key"));
    if lenient {
        return;
    }
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        check::each(
            errors,
            &format!("{at}[{i}]"),
            value,
            names::label_value(value),
        );
    }
}

fn validate_node_field(errors: &mut FieldErrors, path: &str, requirement: &Value) {
    let values = items(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" => {
            if values.len() != 1 {
                errors.push(FieldError::required(
                    format!("{path}.values"),
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                ));
            }
        }
        other => errors.push(FieldError::invalid_str(
            format!("{path}.operator"),
            other,
            "not a valid selector operator",
        )),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        errors.push(FieldError::invalid_str(
            format!("{path}.key"),
            key,
            "not a valid field selector key",
        ));
        return;
    }
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        check::dns_subdomain(errors, &format!("{path}.values[{i}]"), value);
    }
}

fn validate_pod_term(errors: &mut FieldErrors, path: &str, term: &Value) {
    for field in ["labelSelector", "namespaceSelector"] {
        labels::validate(errors, &format!("{path}.{field}"), term.get(field), false);
    }
    for name in items(term, "namespaces") {
        let name = name.as_str().unwrap_or_default();
        check::dns_label(errors, &format!("{path}.namespace"), name);
    }
    validate_label_keys(errors, path, term);
    let key = text(term, "topologyKey");
    let at = format!("{path}.topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&at, "can not be empty"));
    }
    check::qualified_name(errors, &at, key);
}

/// `matchLabelKeys` and `mismatchLabelKeys` against each other and against the selector.
fn validate_label_keys(errors: &mut FieldErrors, path: &str, term: &Value) {
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

/// Judges `tolerations`.
pub(super) fn validate_tolerations(errors: &mut FieldErrors, path: &str, tolerations: &[Value]) {
    for (i, toleration) in tolerations.iter().enumerate() {
        let here = format!("{path}[{i}]");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        let operator_path = format!("{here}.operator");
        if key.is_empty() {
            if operator != "Exists" {
                errors.push(FieldError::invalid_str(
                    &operator_path,
                    operator,
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                ));
            }
        } else {
            check::qualified_name(errors, &format!("{here}.key"), key);
        }
        let effect_path = format!("{here}.effect");
        if crate::value::has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            errors.push(FieldError::invalid_str(
                &effect_path,
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        match operator {
            "Equal" | "" => {
                let found = names::label_value(value);
                if !found.is_empty() {
                    errors.push(FieldError::invalid_str(
                        &operator_path,
                        value,
                        found.join(";"),
                    ));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    errors.push(FieldError::invalid_str(
                        &operator_path,
                        value,
                        "value must be empty when `operator` is 'Exists'",
                    ));
                }
            }
            "Lt" | "Gt" => errors.push(FieldError::not_supported(
                &operator_path,
                &operator.into(),
                &["Equal", "Exists", "Lt", "Gt"],
            )),
            other => check::one_of(errors, &operator_path, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            check::one_of(errors, &effect_path, effect, &effects);
        }
    }
}

/// Judges `topologySpreadConstraints`.
pub(super) fn validate_spread(errors: &mut FieldErrors, path: &str, spec: &Value) {
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
        if let Some(domains) = crate::value::integer(constraint, "minDomains") {
            let at = format!("{here}.minDomains");
            check::positive(errors, &at, domains);
            if action != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
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
        validate_label_keys(errors, &here, constraint);
        let at = format!("{here}.labelSelector");
        labels::validate(errors, &at, constraint.get("labelSelector"), false);
    }
}

/// Judges `readinessGates` and `schedulingGates`.
pub(super) fn validate_gates(errors: &mut FieldErrors, path: &str, spec: &Value) {
    for (i, gate) in items(spec, "readinessGates").iter().enumerate() {
        let at = format!("{path}.readinessGates[{i}].conditionType");
        check::qualified_name(errors, &at, text(gate, "conditionType"));
    }
    let mut seen = BTreeSet::new();
    for (i, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let at = format!("{path}.schedulingGates[{i}]");
        let name = text(gate, "name");
        check::qualified_name(errors, &at, name);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(at, &name.into()));
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
