//! Rules: which requests a webhook or policy is asked about.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::{self, child, each};
use crate::field::{FieldError, FieldErrors};
use crate::value;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// A rule with its operations, at `at`.
pub(super) fn with_operations(at: &str, rule: &Value) -> FieldErrors {
    let mut errors = list(at, rule, "operations", "operations");
    for (at, operation) in each(rule, at, "operations") {
        let text = operation.as_str().unwrap_or_default();
        if !OPERATIONS.contains(&text) {
            errors.push(FieldError::not_supported(at, operation, &OPERATIONS));
        }
    }
    errors.extend(list(at, rule, "apiGroups", "API groups"));
    errors.extend(list(at, rule, "apiVersions", "API versions"));
    for (at, version) in each(rule, at, "apiVersions") {
        if version == "" {
            errors.push(FieldError::required(at, ""));
        }
    }
    errors.extend(resources(at, rule));
    let scope = value::text(rule, "scope");
    let scopes = ["*", "Cluster", "Namespaced"];
    errors.extend(checks::optional_one_of(&child(at, "scope"), scope, &scopes));
    errors
}

/// A list that must not be empty, and in which `*` stands alone.
fn list(at: &str, rule: &Value, field: &str, noun: &str) -> FieldErrors {
    let path = child(at, field);
    let all = value::items(rule, field);
    if all.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if all.len() > 1 && all.iter().any(|item| item == "*") {
        let detail = format!("if '*' is present, must not specify other {noun}");
        return vec![FieldError::invalid(path, &all.to_vec().into(), detail)];
    }
    Vec::new()
}

fn resources(at: &str, rule: &Value) -> FieldErrors {
    let path = child(at, "resources");
    let shown: Value = value::items(rule, "resources").to_vec().into();
    let all: Vec<&str> = cells::strings(rule, "resources").collect();
    let mut errors = Vec::new();
    if all.is_empty() {
        errors.push(FieldError::required(path.as_str(), ""));
    }
    let (mut whole, mut anywhere) = (BTreeSet::new(), BTreeSet::new());
    // As in the real server, only the last resource without a slash counts.
    let mut plain = false;
    for (i, text) in all.iter().enumerate() {
        let at = format!("{path}[{i}]");
        if text.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let Some((resource, sub)) = text.split_once('/') else {
            plain = *text != "*";
            continue;
        };
        if whole.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(FieldError::invalid_str(at.as_str(), text, detail));
        }
        if anywhere.contains(sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {text}");
            errors.push(FieldError::invalid_str(at, text, detail));
        }
        if sub == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            anywhere.insert(sub);
        }
    }
    if all.len() > 1 && all.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path.as_str(), &shown, detail));
    }
    if all.contains(&"*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, &shown, detail));
    }
    errors
}
