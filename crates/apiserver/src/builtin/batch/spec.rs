//! Job specs, in jobs and in the templates of cron jobs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::indexes;
use crate::builtin::pod::{check, defaults, internal, template};
use crate::field::{FieldError, FieldErrors};
use crate::value::{has, integer, items, put, put_default, slot, text};

const COMPLETIONS_SOFT_LIMIT: i64 = 100_000;
const HIGH_COMPLETIONS_LIMIT: i64 = 10_000;

/// Fills in the pod template and failure policy, which cron jobs' templates get too.
pub(super) fn default_template(spec: &mut Value) {
    if let Some(template) = slot(spec, "template") {
        if template.is_null() {
            *template = json!({});
        }
        defaults::template(template);
    }
    for rule in crate::value::items_mut(spec, "podFailurePolicy.rules") {
        for pattern in crate::value::items_mut(rule, "onPodConditions") {
            if text(pattern, "status").is_empty() {
                put(pattern, "status", "True");
            }
        }
    }
}

/// Fills in what only jobs themselves get.
pub(super) fn default_spec(spec: &mut Value) {
    default_template(spec);
    if !has(spec, "completions") && !has(spec, "parallelism") {
        put(spec, "completions", 1);
    }
    put_default(spec, "parallelism", 1);
    let limit = if has(spec, "backoffLimitPerIndex") {
        i64::from(i32::MAX)
    } else {
        6
    };
    put_default(spec, "backoffLimit", limit);
    put_default(spec, "completionMode", "NonIndexed");
    put_default(spec, "suspend", false);
    let replace = if has(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    put_default(spec, "podReplacementPolicy", replace);
    put_default(spec, "manualSelector", false);
}

/// Judges a job spec, but for its selector.
pub(super) fn validate(errors: &mut FieldErrors, path: &str, spec: &Value) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        check::non_negative_fields(errors, spec, path, &[field]);
    }
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        errors.push(FieldError::required(
            format!("{path}.backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        ));
    }
    validate_manager(errors, path, spec);
    validate_mode(errors, path, spec);
    if has(spec, "podFailurePolicy") {
        validate_failure_policy(errors, &format!("{path}.podFailurePolicy"), spec);
    }
    validate_success_policy(errors, &format!("{path}.successPolicy"), spec);
    validate_replacement(errors, &format!("{path}.podReplacementPolicy"), spec);
    let nothing = Value::Null;
    let own = spec.get("template").unwrap_or(&nothing);
    template::validate(errors, &format!("{path}.template"), own);
    validate_restarts(errors, &format!("{path}.template.spec.restartPolicy"), spec);
}

fn validate_manager(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let Some(manager) = spec.get("managedBy").and_then(Value::as_str) else {
        return;
    };
    let at = format!("{path}.managedBy");
    let (domain, rest) = manager.split_once('/').unwrap_or((manager, ""));
    if manager.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if domain.is_empty() || rest.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid_str(&at, manager, detail));
    } else {
        check::each(
            errors,
            &at,
            domain,
            crate::builtin::names::subdomain(domain),
        );
    }
    if manager.len() > 63 {
        errors.push(FieldError::too_long(at, 63));
    }
}

fn validate_mode(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let mode = text(spec, "completionMode");
    let number = |field: &str| integer(spec, field);
    let at = |field: &str| format!("{path}.{field}");
    if !mode.is_empty() {
        let modes = ["NonIndexed", "Indexed"];
        check::one_of(errors, &at("completionMode"), mode, &modes);
    }
    if mode == "Indexed" {
        if number("completions").is_none() {
            errors.push(FieldError::required(
                at("completions"),
                "when completion mode is Indexed",
            ));
        }
        validate_indexed_limits(errors, path, spec);
    } else if matches!(mode, "" | "NonIndexed") {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = number(field) {
                let detail = "requires indexed completion mode";
                errors.push(check::number(&at(field), value, detail));
            }
        }
    }
}

fn validate_indexed_limits(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let number = |field: &str| integer(spec, field);
    let mut invalid = |field: &str, value: i64, detail: String| {
        errors.push(check::number(&format!("{path}.{field}"), value, &detail));
    };
    if let Some(value) = number("parallelism").filter(|p| *p > 100_000) {
        let detail = "must be less than or equal to 100000 when completion mode is Indexed";
        invalid("parallelism", value, detail.to_owned());
    }
    let completions = number("completions");
    if let Some(value) = number("maxFailedIndexes") {
        if completions.is_some_and(|c| value > c) {
            let detail = "must be less than or equal to completions";
            invalid("maxFailedIndexes", value, detail.to_owned());
        }
        if value > 100_000 {
            let detail = "must be less than or equal to 100000";
            invalid("maxFailedIndexes", value, detail.to_owned());
        }
    }
    let high = completions.is_some_and(|c| c > COMPLETIONS_SOFT_LIMIT);
    if high && has(spec, "backoffLimitPerIndex") {
        validate_high_limits(errors, path, spec);
    }
}

fn validate_high_limits(errors: &mut FieldErrors, path: &str, spec: &Value) {
    if !has(spec, "maxFailedIndexes") {
        errors.push(FieldError::required(
            format!("{path}.maxFailedIndexes"),
            format!("must be specified when completions is above {COMPLETIONS_SOFT_LIMIT}"),
        ));
    }
    let detail = format!(
        "must be less than or equal to {HIGH_COMPLETIONS_LIMIT} when completions are above \
         {COMPLETIONS_SOFT_LIMIT} and used with backoff limit per index"
    );
    for field in ["parallelism", "maxFailedIndexes"] {
        if let Some(value) = integer(spec, field).filter(|v| *v > HIGH_COMPLETIONS_LIMIT) {
            errors.push(check::number(&format!("{path}.{field}"), value, &detail));
        }
    }
}

fn validate_failure_policy(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let rules = items(spec, "podFailurePolicy.rules");
    let list = format!("{path}.rules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&list, rules.len(), 20));
    }
    let names: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|l| items(spec, &format!("template.spec.{l}")))
        .map(|c| text(c, "name"))
        .collect();
    for (i, rule) in rules.iter().enumerate() {
        let here = format!("{list}[{i}]");
        let at = format!("{here}.action");
        let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
        match text(rule, "action") {
            "" => errors.push(FieldError::required(&at, listed(&actions))),
            "FailIndex" if !has(spec, "backoffLimitPerIndex") => {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.push(FieldError::invalid_str(&at, "FailIndex", detail));
            }
            action => check::one_of(errors, &at, action, &actions),
        }
        let codes = rule.get("onExitCodes").filter(|v| !v.is_null());
        let conditions = items(rule, "onPodConditions");
        if let Some(codes) = codes {
            validate_exit_codes(errors, &format!("{here}.onExitCodes"), codes, &names);
        }
        validate_conditions(errors, &format!("{here}.onPodConditions"), conditions);
        let detail = match (codes.is_some(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(check::shown(&here, String::new(), detail));
    }
}

/// Go's `%q` of a list of texts.
fn listed(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|v| crate::field::quote(v)).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn validate_conditions(errors: &mut FieldErrors, path: &str, conditions: &[Value]) {
    if conditions.len() > 20 {
        errors.push(FieldError::too_many(path, conditions.len(), 20));
    }
    for (i, pattern) in conditions.iter().enumerate() {
        let here = format!("{path}[{i}]");
        check::qualified_name(errors, &format!("{here}.type"), text(pattern, "type"));
        let statuses = ["False", "True", "Unknown"];
        let at = format!("{here}.status");
        match text(pattern, "status") {
            "" => errors.push(FieldError::required(at, listed(&statuses))),
            status => check::one_of(errors, &at, status, &statuses),
        }
    }
}

fn validate_exit_codes(
    errors: &mut FieldErrors,
    path: &str,
    codes: &Value,
    names: &BTreeSet<&str>,
) {
    let operator = text(codes, "operator");
    let operators = ["In", "NotIn"];
    let at = format!("{path}.operator");
    if operator.is_empty() {
        errors.push(FieldError::required(at, listed(&operators)));
    } else {
        check::one_of(errors, &at, operator, &operators);
    }
    if let Some(name) = codes.get("containerName").and_then(Value::as_str)
        && !names.contains(name)
    {
        errors.push(FieldError::invalid_str(
            format!("{path}.containerName"),
            name,
            "must be one of the container or initContainer names in the pod template",
        ));
    }
    let values: Vec<i64> = items(codes, "values")
        .iter()
        .filter_map(Value::as_i64)
        .collect();
    let at = format!("{path}.values");
    let all = codes.get("values").cloned().unwrap_or(Value::Null);
    if values.is_empty() {
        let detail = "at least one value is required";
        errors.push(FieldError::invalid(&at, &all, detail));
    } else if values.len() > 255 {
        errors.push(FieldError::too_many(&at, values.len(), 255));
    }
    let mut seen = BTreeSet::new();
    for (i, value) in values.iter().enumerate() {
        let here = format!("{at}[{i}]");
        if operator == "In" && *value == 0 {
            errors.push(check::number(&here, 0, "must not be 0 for the In operator"));
        }
        if !seen.insert(*value) {
            errors.push(FieldError::duplicate(here, &Value::from(*value)));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&at, &all, "must be ordered"));
    }
}

fn validate_success_policy(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let Some(policy) = spec.get("successPolicy").filter(|v| !v.is_null()) else {
        return;
    };
    if text(spec, "completionMode") != "Indexed" {
        let shown = internal::render("SuccessPolicy", policy);
        let detail = "requires indexed completion mode";
        errors.push(check::shown(path, shown, detail));
        return;
    }
    let rules = items(policy, "rules");
    let list = format!("{path}.rules");
    if rules.is_empty() {
        errors.push(FieldError::required(
            &list,
            "at least one rules must be specified when the successPolicy is specified",
        ));
    }
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&list, rules.len(), 20));
    }
    let completions = integer(spec, "completions").unwrap_or(0);
    for (i, rule) in rules.iter().enumerate() {
        let here = format!("{list}[{i}]");
        let count = integer(rule, "succeededCount");
        if count.is_none() && !has(rule, "succeededIndexes") {
            errors.push(FieldError::required(
                &here,
                "at least one of succeededCount or succeededIndexes must be specified",
            ));
        }
        let named = rule.get("succeededIndexes").and_then(Value::as_str);
        let total = named.map(|n| indexes::count(n, completions));
        if let (Some(named), Some(Err(why))) = (named, &total) {
            errors.push(FieldError::invalid_str(
                format!("{here}.succeededIndexes"),
                named,
                format!("error parsing succeededIndexes: {why}"),
            ));
        }
        if let Some(count) = count {
            let at = format!("{here}.succeededCount");
            check::non_negative(errors, &at, count);
            if count > completions {
                let detail = format!(
                    "must be less than or equal to {completions} (the number of specified completions)"
                );
                errors.push(check::number(&at, count, &detail));
            }
            let total = total.and_then(Result::ok).unwrap_or(0);
            if named.is_some() && count > total {
                let detail = format!(
                    "must be less than or equal to {total} (the number of indexes in the specified \
                     succeededIndexes field)"
                );
                errors.push(check::number(&at, count, &detail));
            }
        }
    }
}

fn validate_replacement(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let policy = text(spec, "podReplacementPolicy");
    if policy.is_empty() {
        return;
    }
    if has(spec, "podFailurePolicy") {
        check::one_of(errors, path, policy, &["Failed"]);
    } else {
        check::one_of(errors, path, policy, &["Failed", "TerminatingOrFailed"]);
    }
}

fn validate_restarts(errors: &mut FieldErrors, path: &str, spec: &Value) {
    match text(spec, "template.spec.restartPolicy") {
        "Always" | "" => errors.push(FieldError::required(
            path,
            "valid values: \"OnFailure\", \"Never\"",
        )),
        "Never" => {}
        "OnFailure" => {
            if has(spec, "podFailurePolicy") {
                errors.push(FieldError::invalid_str(
                    path,
                    "OnFailure",
                    "only \"Never\" is supported when podFailurePolicy is specified",
                ));
            }
        }
        other => check::one_of(errors, path, other, &["OnFailure", "Never"]),
    }
}
