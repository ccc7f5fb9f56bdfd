//! `x-kubernetes-validations`: the texts of rules, whether they compile, and what they cost.

use serde_json::Value;

use super::super::show;
use super::budget::Budget;
use crate::crd::fieldpath;
use crate::crd::rules::cost::{self, declared::Declared};
use crate::crd::rules::typecheck::{self, Checked};
use crate::crd::structural::Structural;
use crate::field::{FieldError, FieldErrors};
use crate::value;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

fn broken(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Judges what rules say without compiling them.
pub(super) fn texts(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let rules = value::items(schema, "x-kubernetes-validations");
    let structural = (!rules.is_empty()).then(|| Structural::read(schema));
    for (i, rule) in rules.iter().enumerate() {
        let at = |key: &str| format!("{path}.x-kubernetes-validations[{i}].{key}");
        let text = |key: &str| value::text(rule, key);
        let message = text("message");
        if text("rule").trim().is_empty() {
            errors.push(FieldError::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            let why = "must be non-empty if specified";
            errors.push(FieldError::invalid_str(at("message"), message, why));
        } else if broken(message.trim()) {
            let why = "must not contain line breaks";
            errors.push(FieldError::invalid_str(at("message"), message, why));
        } else if broken(text("rule").trim()) && message.trim().is_empty() {
            let why = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at("message"), why));
        }
        let expression = text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at("messageExpression"), why));
        }
        if let Some(reason) = rule.get("reason").filter(|r| !r.is_null())
            && !REASONS.iter().any(|known| reason == known)
        {
            errors.push(FieldError::not_supported(at("reason"), reason, &REASONS));
        }
        field_path(
            text("fieldPath"),
            structural.as_ref(),
            &at("fieldPath"),
            errors,
        );
    }
}

fn field_path(path: &str, schema: Option<&Structural>, at: &str, errors: &mut FieldErrors) {
    if path.is_empty() {
        return;
    }
    let mut refuse = |why: &str| errors.push(FieldError::invalid_str(at, path, why));
    if path.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if broken(path) {
        refuse("must not contain line breaks");
    }
    if schema.is_some_and(|s| fieldpath::resolve(path, s, true).is_err()) {
        refuse("must be a valid path");
    }
}

/// A schema whose rules are compiled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) structural: &'a Structural,
    /// It describes a whole object.
    pub(super) root: bool,
    pub(super) path: &'a str,
    /// A schema above, below which `oldSelf` cannot be used.
    pub(super) unmatched: Option<&'a str>,
    /// How often a value of it can stand in an object; none if nothing limits that.
    pub(super) cardinality: Option<u64>,
}

/// Compiles the rules of one schema, and charges their costs.
pub(super) fn compile(
    schema: &Value,
    place: Place<'_>,
    budget: &mut Budget,
    errors: &mut FieldErrors,
) {
    let rules = value::items(schema, "x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let declared = Declared::read(place.structural, place.root).unwrap_or_default();
    for (i, rule) in rules.iter().enumerate() {
        let at = |key: &str| format!("{}.x-kubernetes-validations[{i}].{key}", place.path);
        let refuse = |key: &str, why: String| {
            let mut error = FieldError::invalid_str(at(key), "", why);
            error.shown = show::rule(rule);
            error
        };
        let text = value::text(rule, "rule");
        let mut uses_old = false;
        match place.check(text, rule) {
            Err(issues) => errors.push(refuse("rule", format!("compilation failed: {issues}"))),
            Ok(checked) if !checked.is_bool => {
                let why = "cel expression must evaluate to a bool".to_owned();
                errors.push(refuse("rule", why));
            }
            Ok(checked) => {
                uses_old = checked.uses_old;
                let often = place
                    .cardinality
                    .unwrap_or_else(|| declared.most_in_a_request());
                let cost = cost::estimate(&checked, &declared).saturating_mul(often);
                budget.charge(at("rule"), "estimated rule cost", cost, errors);
                match place.message_cost(rule, &declared) {
                    Err(why) => errors.push(refuse("messageExpression", why)),
                    Ok(cost) => {
                        let what = "estimated messageExpression cost";
                        budget.charge(at("messageExpression"), what, cost, errors);
                    }
                }
            }
        }
        if let (true, Some(above)) = (uses_old, place.unmatched) {
            let why = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {above}"
            );
            errors.push(FieldError::invalid_str(at("rule"), text, why));
        }
        if let Some(given) = rule
            .get("optionalOldSelf")
            .filter(|v| !uses_old && !v.is_null())
        {
            let why = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(at("optionalOldSelf"), given, why));
        }
    }
}

impl<'a> Place<'a> {
    fn check(&self, text: &str, rule: &Value) -> Result<Checked<'a>, String> {
        let optional = value::flag(rule, "optionalOldSelf");
        typecheck::check(text, self.structural, self.root, optional)
    }

    /// The cost of a `messageExpression`, or why it cannot be used.
    fn message_cost(&self, rule: &Value, declared: &Declared) -> Result<u64, String> {
        let expression = value::text(rule, "messageExpression");
        if expression.is_empty() {
            return Ok(0);
        }
        match self.check(expression, rule) {
            Err(issues) => Err(format!("messageExpression compilation failed: {issues}")),
            Ok(message) if message.is_string => Ok(cost::estimate(&message, declared)),
            Ok(_) => Err("messageExpression must evaluate to a string".to_owned()),
        }
    }
}
