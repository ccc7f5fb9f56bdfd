//! `x-kubernetes-validations`: the texts of rules, and whether they compile.

use serde_json::Value;

use super::super::show;
use crate::crd::fieldpath;
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

/// Compiles the rules of one schema. `unmatched` names a schema above, below which `oldSelf` cannot be used.
pub(super) fn compile(
    schema: &Value,
    structural: &Structural,
    root: bool,
    path: &str,
    unmatched: Option<&str>,
    errors: &mut FieldErrors,
) {
    for (i, rule) in value::items(schema, "x-kubernetes-validations")
        .iter()
        .enumerate()
    {
        let at = |key: &str| format!("{path}.x-kubernetes-validations[{i}].{key}");
        let mut refuse = |key: &str, why: String| {
            let mut error = FieldError::invalid_str(at(key), "", why);
            error.shown = show::rule(rule);
            errors.push(error);
        };
        let text = value::text(rule, "rule");
        let optional = value::flag(rule, "optionalOldSelf");
        let check = |text: &str| typecheck::check(text, structural, root, optional);
        let uses_old = match check(text) {
            Err(issues) => {
                refuse("rule", format!("compilation failed: {issues}"));
                false
            }
            Ok(checked) if !checked.is_bool => {
                refuse("rule", "cel expression must evaluate to a bool".to_owned());
                false
            }
            Ok(checked) => {
                let expression = value::text(rule, "messageExpression");
                if let Some(why) = message_error(expression, &check) {
                    refuse("messageExpression", why);
                }
                checked.uses_old
            }
        };
        if let (true, Some(above)) = (uses_old, unmatched) {
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

/// Why a `messageExpression` cannot be used.
fn message_error(
    expression: &str,
    check: &dyn Fn(&str) -> Result<Checked, String>,
) -> Option<String> {
    if expression.is_empty() {
        return None;
    }
    match check(expression) {
        Err(issues) => Some(format!("messageExpression compilation failed: {issues}")),
        Ok(message) if message.is_string => None,
        Ok(_) => Some("messageExpression must evaluate to a string".to_owned()),
    }
}
