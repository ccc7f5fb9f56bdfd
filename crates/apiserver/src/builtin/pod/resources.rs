//! Resource requests and limits.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{amount, check};
use crate::builtin::names;
use crate::field::{Fault, FieldError, FieldErrors};
use crate::value::{items, map, text};

const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::label_key(&format!("requests.{name}")).is_empty()
}

/// Judges `limits`, `requests` and `claims`. `pod_level` is for the resources of a whole pod.
pub(super) fn validate(
    errors: &mut FieldErrors,
    path: &str,
    requirements: &Value,
    claims: &BTreeSet<&str>,
    pod_level: bool,
) {
    let (mut computes, mut huge) = (false, false);
    for kind in ["limits", "requests"] {
        for (name, value) in map(requirements, kind).into_iter().flatten() {
            let here = format!("{path}.{kind}[{name}]");
            if pod_level {
                validate_pod_name(errors, &here, name);
            } else {
                validate_name(errors, &here, name);
            }
            validate_amount(errors, &here, name, value);
            if kind == "requests" {
                hold_against_limit(errors, path, name, value, requirements);
            }
            if is_huge_page(name) {
                huge = true;
                divisible(errors, &here, name, value);
            }
            computes |= name == "cpu" || name == "memory";
        }
    }
    if huge && !computes {
        errors.push(FieldError::forbidden(
            path,
            "HugePages require cpu or memory",
        ));
    }
    validate_claims(errors, &format!("{path}.claims"), requirements, claims);
}

fn validate_amount(errors: &mut FieldErrors, path: &str, name: &str, value: &Value) {
    if amount::is_negative(value) {
        errors.push(FieldError::invalid_str(
            path,
            &amount::shown(value),
            check::NOT_NEGATIVE,
        ));
    }
    if is_extended(name) && !amount::is_whole(value) {
        errors.push(FieldError::invalid_str(
            path,
            &amount::shown(value),
            "must be an integer",
        ));
    }
}

fn hold_against_limit(
    errors: &mut FieldErrors,
    path: &str,
    name: &str,
    value: &Value,
    requirements: &Value,
) {
    let limit = map(requirements, "limits").and_then(|l| l.get(name));
    let request_path = format!("{path}.requests");
    let Some(limit) = limit else {
        if !may_overcommit(name) {
            errors.push(FieldError::required(
                format!("{path}.limits"),
                "Limit must be set for non overcommitable resources",
            ));
        }
        return;
    };
    let (asked, most) = (amount::of(value), amount::of(limit));
    let detail = if asked != most && !may_overcommit(name) {
        format!("must be equal to {name} limit of {}", amount::shown(limit))
    } else if asked > most {
        format!(
            "must be less than or equal to {name} limit of {}",
            amount::shown(limit)
        )
    } else {
        return;
    };
    errors.push(FieldError::invalid_str(
        request_path,
        &amount::shown(value),
        detail,
    ));
}

fn divisible(errors: &mut FieldErrors, path: &str, name: &str, value: &Value) {
    let size = name.strip_prefix("hugepages-").unwrap_or_default();
    let size = amount::of(&Value::String(size.to_owned())).units();
    let units = amount::of(value).units();
    if size <= 0 || units <= 0 || !amount::is_whole(value) || units % size != 0 {
        let shown = amount::shown(value);
        let detail = format!("{shown} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid_str(path, &shown, detail));
    }
}

/// What is wrong with the name of any resource.
fn judge_name(name: &str) -> Vec<String> {
    let found = names::label_key(name);
    let known = name.contains('/')
        || STANDARD.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-");
    if found.is_empty() && !known {
        return vec!["must be a standard resource type or fully qualified".to_owned()];
    }
    found
}

/// The name of a resource, judged as containers use it.
pub fn validate_name(errors: &mut FieldErrors, path: &str, name: &str) {
    check::each(errors, path, name, judge_name(name));
    let detail = if !name.contains('/') {
        if matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_page(name) {
            return;
        }
        "must be a standard resource for containers"
    } else if is_native(name) || is_extended(name) {
        return;
    } else {
        "doesn't follow extended resource name standard"
    };
    errors.push(FieldError::invalid_str(path, name, detail));
}

fn validate_pod_name(errors: &mut FieldErrors, path: &str, name: &str) {
    let found = judge_name(name);
    if !found.is_empty() {
        check::each(errors, path, name, found);
    } else if !is_huge_page(name) {
        check::one_of(errors, path, name, &["cpu", "memory"]);
    }
}

fn validate_claims(
    errors: &mut FieldErrors,
    path: &str,
    requirements: &Value,
    claims: &BTreeSet<&str>,
) {
    let mut seen = BTreeSet::new();
    for (i, claim) in items(requirements, "claims").iter().enumerate() {
        let here = format!("{path}[{i}]");
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(here, ""));
            continue;
        }
        if !seen.insert((name, request)) || seen.contains(&(name, "")) && !request.is_empty() {
            errors.push(FieldError::duplicate(&here, &name.into()));
        }
        if !claims.contains(name) {
            let detail = if claims.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                let names: Vec<&str> = claims.iter().copied().collect();
                format!(
                    "must be one of the names in pod.spec.resourceClaims: {}",
                    names.join(", ")
                )
            };
            errors.push(FieldError {
                fault: Fault::NotFound,
                path: here,
                shown: crate::field::quote(name),
                detail,
            });
        }
    }
}
