//! Where a pod may run: affinity, tolerations, gates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{check, labels, spread};
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::value::{items, text};

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
        other => errors.push(FieldError::invalid_typed(
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
        other => errors.push(FieldError::invalid_typed(
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
    spread::validate_label_keys(errors, path, term);
    let key = text(term, "topologyKey");
    let at = format!("{path}.topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&at, "can not be empty"));
    }
    check::qualified_name(errors, &at, key);
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
