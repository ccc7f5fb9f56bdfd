//! Validating admission policies and their bindings: stored with their defaults, not run. Expressions are not
//! compiled.

use serde_json::{Value, json};

use super::{rule, webhook};
use crate::builtin::cells;
use crate::builtin::checks::{child, each, optional_one_of};
use crate::builtin::rules::{BesideStatus, PLAIN, Rules, spec_changed};
use crate::field::{FieldError, FieldErrors};
use crate::resource::Part;
use crate::value;

pub(super) const POLICY: Rules = Rules {
    status: true,
    beside_status: BesideStatus::Nothing,
    default: |object| {
        value::put_default(object, "spec.failurePolicy", "Fail");
        default_match(object, "spec.matchConstraints");
    },
    validate: |object, _| validate_policy(object),
    validate_update: |part, object, _, _| match part {
        Part::Status => Vec::new(),
        _ => validate_policy(object),
    },
    generation: Some(spec_changed),
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("Validations", "integer", 0),
        ("ParamKind", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        let kind = if value::has(object, "spec.paramKind") {
            format!(
                "{}/{}",
                value::text(object, "spec.paramKind.apiVersion"),
                value::text(object, "spec.paramKind.kind")
            )
        } else {
            "<unset>".to_owned()
        };
        vec![
            cells::name(object),
            cells::count(object, "spec.validations").into(),
            kind.into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

pub(super) const BINDING: Rules = Rules {
    default: |object| default_match(object, "spec.matchResources"),
    validate: |object, _| validate_binding(object),
    validate_update: |_, object, _, _| validate_binding(object),
    generation: Some(spec_changed),
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("PolicyName", "string", 0),
        ("ParamRef", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        let name = value::text(object, "spec.paramRef.name");
        let shown = match (name, value::text(object, "spec.paramRef.namespace")) {
            ("", _) => "<unset>".to_owned(),
            (name, "") => format!("*/{name}"),
            (name, namespace) => format!("{namespace}/{name}"),
        };
        vec![
            cells::name(object),
            value::text(object, "spec.policyName").into(),
            shown.into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

fn default_match(object: &mut Value, path: &str) {
    let Some(constraints) = value::at_mut(object, path).filter(|c| c.is_object()) else {
        return;
    };
    value::put_default(constraints, "matchPolicy", "Equivalent");
    value::put_default(constraints, "namespaceSelector", json!({}));
    value::put_default(constraints, "objectSelector", json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in value::items_mut(constraints, list) {
            value::put_default(rule, "scope", "*");
        }
    }
}

fn validate_policy(object: &Value) -> FieldErrors {
    let policy = value::text(object, "spec.failurePolicy");
    let mut errors = optional_one_of("spec.failurePolicy", policy, &["Fail", "Ignore"]);
    if value::has(object, "spec.paramKind") {
        for field in ["apiVersion", "kind"] {
            let path = format!("spec.paramKind.{field}");
            if value::text(object, &path).is_empty() {
                errors.push(FieldError::required(path, ""));
            }
        }
    }
    let constraints = "spec.matchConstraints";
    if value::has(object, constraints) {
        let rules = format!("{constraints}.resourceRules");
        if value::items(object, &rules).is_empty() {
            errors.push(FieldError::required(rules.as_str(), ""));
        }
        for (at, found) in each(object, "", &rules) {
            errors.extend(rule::with_operations(&at, found));
        }
    } else {
        errors.push(FieldError::required(constraints, ""));
    }
    let spec = value::at(object, "spec").unwrap_or(&Value::Null);
    errors.extend(webhook::match_conditions("spec", spec));
    let has = |list: &str| !value::items(spec, list).is_empty();
    if !has("validations") && !has("auditAnnotations") {
        let detail = "validations or auditAnnotations must contain at least one item";
        for list in ["validations", "auditAnnotations"] {
            errors.push(FieldError::required(child("spec", list), detail));
        }
    }
    for (at, validation) in each(object, "", "spec.validations") {
        if value::text(validation, "expression").trim().is_empty() {
            let detail = "expression is not specified";
            errors.push(FieldError::required(child(&at, "expression"), detail));
        }
    }
    errors
}

fn validate_binding(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    if value::text(object, "spec.policyName").is_empty() {
        errors.push(FieldError::required("spec.policyName", ""));
    }
    if value::items(object, "spec.validationActions").is_empty() {
        let detail = "at least one validation action is required";
        errors.push(FieldError::required("spec.validationActions", detail));
    }
    for (at, action) in each(object, "", "spec.validationActions") {
        let actions = ["Audit", "Deny", "Warn"];
        let text = action.as_str().unwrap_or_default();
        errors.extend(optional_one_of(&at, text, &actions));
    }
    errors
}
