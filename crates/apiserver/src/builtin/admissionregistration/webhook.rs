//! Webhook configurations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{client, rule};
use crate::builtin::cells;
use crate::builtin::checks::{self, child, each, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::crd::rules::typecheck;
use crate::field::{FieldError, FieldErrors};
use crate::value;

pub(super) const VALIDATING: Rules = Rules {
    default: |object| default(object, false),
    validate: |object, _| validate(object, None),
    validate_update: |_, object, old, _| validate(object, Some(old)),
    generation: Some(|object, old| value::at(object, "webhooks") != value::at(old, "webhooks")),
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("Webhooks", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            cells::count(object, "webhooks").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

pub(super) const MUTATING: Rules = Rules {
    default: |object| default(object, true),
    ..VALIDATING
};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const HARMLESS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const MAX_CONDITIONS: usize = 64;

fn default(object: &mut Value, mutating: bool) {
    for hook in value::items_mut(object, "webhooks") {
        value::put_default(hook, "failurePolicy", "Fail");
        value::put_default(hook, "matchPolicy", "Equivalent");
        value::put_default(hook, "namespaceSelector", json!({}));
        value::put_default(hook, "objectSelector", json!({}));
        value::put_default(hook, "timeoutSeconds", 10);
        if mutating {
            value::put_default(hook, "reinvocationPolicy", "Never");
        }
        if value::has(hook, "clientConfig.service") {
            value::put_default(hook, "clientConfig.service.port", 443);
        }
        for rule in value::items_mut(hook, "rules") {
            value::put_default(rule, "scope", "*");
        }
    }
}

/// What an update does not hold against objects that were already so.
#[derive(Debug, Clone, Copy)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "four rules that are independent of each other"
)]
struct Leniency {
    side_effects: bool,
    review_versions: bool,
    names: bool,
    conditions: bool,
}

impl Leniency {
    fn of(object: &Value, old: Option<&Value>) -> Self {
        let Some(old) = old else {
            return Self {
                side_effects: false,
                review_versions: false,
                names: false,
                conditions: false,
            };
        };
        let hooks = value::items(old, "webhooks");
        let new = value::items(object, "webhooks");
        let unknown = |hook: &Value| {
            let versions: Vec<&str> = cells::strings(hook, "admissionReviewVersions").collect();
            !versions.is_empty() && !versions.iter().any(|v| REVIEW_VERSIONS.contains(v))
        };
        let distinct: BTreeSet<&str> = hooks.iter().map(|h| value::text(h, "name")).collect();
        let same = |(a, b): (&Value, &Value)| {
            value::at(a, "matchConditions") == value::at(b, "matchConditions")
        };
        Self {
            side_effects: hooks
                .iter()
                .any(|h| !HARMLESS.contains(&value::text(h, "sideEffects"))),
            review_versions: hooks.iter().any(unknown),
            names: distinct.len() != hooks.len(),
            conditions: new.len() == hooks.len() && new.iter().zip(hooks).all(same),
        }
    }
}

fn validate(object: &Value, old: Option<&Value>) -> FieldErrors {
    let lenient = Leniency::of(object, old);
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, hook) in each(object, "", "webhooks") {
        errors.extend(validate_hook(&at, hook, lenient));
        errors.extend(review_versions(&at, hook, lenient.review_versions));
        let name = value::text(hook, "name");
        if !lenient.names && !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(child(&at, "name"), &name.into()));
        }
    }
    errors
}

fn validate_hook(at: &str, hook: &Value, lenient: Leniency) -> FieldErrors {
    let mut errors = Vec::new();
    let name = value::text(hook, "name");
    if name.is_empty() {
        errors.push(FieldError::required(child(at, "name"), ""));
    } else {
        let wrong = names::fully_qualified_name(name);
        errors.extend(invalid_texts(&child(at, "name"), name, wrong));
    }
    for (at, found) in each(hook, at, "rules") {
        errors.extend(rule::with_operations(&at, found));
    }
    let enumerated = |field: &str, supported: &[&str]| {
        checks::optional_one_of(&child(at, field), value::text(hook, field), supported)
    };
    errors.extend(enumerated("failurePolicy", &["Fail", "Ignore"]));
    errors.extend(enumerated("matchPolicy", &["Equivalent", "Exact"]));
    let allowed = if lenient.side_effects {
        &SIDE_EFFECTS[..]
    } else {
        &HARMLESS
    };
    if value::text(hook, "sideEffects").is_empty() {
        let detail = format!("must specify one of {}", allowed.join(", "));
        errors.push(FieldError::required(child(at, "sideEffects"), detail));
    }
    errors.extend(enumerated("sideEffects", allowed));
    if let Some(seconds) = value::integer(hook, "timeoutSeconds")
        && !(1..=30).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        let path = child(at, "timeoutSeconds");
        errors.push(FieldError::invalid(path, &seconds.into(), detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        let selector = value::at(hook, field);
        errors.extend(checks::label_selector(&child(at, field), selector));
    }
    errors.extend(enumerated("reinvocationPolicy", &["IfNeeded", "Never"]));
    errors.extend(client::validate(&child(at, "clientConfig"), hook));
    if !lenient.conditions {
        errors.extend(match_conditions(at, hook));
    }
    errors
}

fn review_versions(at: &str, hook: &Value, lenient: bool) -> FieldErrors {
    let path = child(at, "admissionReviewVersions");
    let mut errors = Vec::new();
    let known = REVIEW_VERSIONS.join(", ");
    let all = value::items(hook, "admissionReviewVersions");
    if all.is_empty() {
        let detail = format!("must specify one of {known}");
        return vec![FieldError::required(path, detail)];
    }
    let mut seen = BTreeSet::new();
    for (at, version) in each(hook, at, "admissionReviewVersions") {
        let text = version.as_str().unwrap_or_default();
        if seen.insert(text) {
            errors.extend(invalid_texts(&at, text, names::label_1035(text)));
        } else {
            errors.push(FieldError::invalid_str(at, text, "duplicate version"));
        }
    }
    if !lenient && !REVIEW_VERSIONS.iter().any(|v| seen.contains(v)) {
        let detail = format!("must include at least one of {known}");
        errors.push(FieldError::invalid(path, &all.to_vec().into(), detail));
    }
    errors
}

/// Judges the match conditions of what stands at `at`.
pub(super) fn match_conditions(at: &str, holder: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let count = value::items(holder, "matchConditions").len();
    if count > MAX_CONDITIONS {
        let path = child(at, "matchConditions");
        errors.push(FieldError::too_many(path, count, MAX_CONDITIONS));
    }
    let mut seen = BTreeSet::new();
    for (at, condition) in each(holder, at, "matchConditions") {
        let expression = value::text(condition, "expression").trim();
        let path = child(&at, "expression");
        if expression.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if let Some(why) = not_a_condition(expression) {
            errors.push(FieldError::invalid_str(path, expression, why));
        }
        let name = value::text(condition, "name");
        let path = child(&at, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        errors.extend(invalid_texts(&path, name, names::label_key(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path, &name.into()));
        }
    }
    errors
}

/// What the expressions of conditions may look at.
const VARIABLES: [&str; 4] = ["object", "oldObject", "request", "authorizer"];

/// Why an expression cannot be a condition. Of `request` and `authorizer` no types are known, so that what reads
/// only these is taken for a condition.
fn not_a_condition(expression: &str) -> Option<String> {
    match typecheck::check_over(expression, &VARIABLES) {
        Ok(kind) if kind == "bool" => None,
        Ok(kind) if kind == "dyn" && expression.starts_with("request.") => None,
        Ok(kind) => Some(format!("must evaluate to bool but got {kind}")),
        Err(issues) if issues.contains("Syntax error") || !expression.contains("authorizer") => {
            Some(format!("compilation failed: {issues}"))
        }
        Err(_) => None,
    }
}
