//! Small judgements that most workload rules are made of. Each one appends what it finds, with the API's texts.
//!
//! Values that Go omits when zero count as absent here, so an empty text and a missing one are the same.

use serde_json::Value;

use crate::builtin::names;
use crate::field::{Fault, FieldError, FieldErrors, show};
use crate::value::{integer, text};

/// What a number below zero is told.
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What a file mode outside 0–0777 is told.
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// One error with an already rendered value.
pub(crate) fn shown(path: &str, shown: String, detail: &str) -> FieldError {
    FieldError {
        fault: Fault::Invalid,
        path: path.to_owned(),
        shown,
        detail: detail.to_owned(),
    }
}

/// One error that shows a number.
pub(crate) fn number(path: &str, value: i64, detail: &str) -> FieldError {
    shown(path, value.to_string(), detail)
}

/// Adds one invalid-value error for each text.
pub(crate) fn each(errors: &mut FieldErrors, path: &str, value: &str, details: Vec<String>) {
    errors.extend(
        details
            .into_iter()
            .map(|detail| FieldError::invalid_str(path, value, detail)),
    );
}

/// The value must not be below zero.
pub(crate) fn non_negative(errors: &mut FieldErrors, path: &str, value: i64) {
    if value < 0 {
        errors.push(number(path, value, NOT_NEGATIVE));
    }
}

/// The numbers in these fields of `object` must not be below zero.
pub(crate) fn non_negative_fields(
    errors: &mut FieldErrors,
    object: &Value,
    path: &str,
    fields: &[&str],
) {
    for field in fields {
        non_negative(
            errors,
            &format!("{path}.{field}"),
            integer(object, field).unwrap_or(0),
        );
    }
}

/// The value must be above zero.
pub(crate) fn positive(errors: &mut FieldErrors, path: &str, value: i64) {
    if value <= 0 {
        errors.push(number(path, value, "must be greater than zero"));
    }
}

/// The value must lie in this range.
pub(crate) fn in_range(errors: &mut FieldErrors, path: &str, value: i64, low: i64, high: i64) {
    if value < low || value > high {
        let detail = format!("must be between {low} and {high}, inclusive");
        errors.push(number(path, value, &detail));
    }
}

/// The value must be a port number.
pub(crate) fn port_number(errors: &mut FieldErrors, path: &str, value: i64) {
    in_range(errors, path, value, 1, 65535);
}

/// The value must be a port number or a port name.
pub(crate) fn port(errors: &mut FieldErrors, path: &str, value: &Value) {
    match value {
        Value::String(name) => each(errors, path, name, names::port_name(name)),
        other => port_number(errors, path, other.as_i64().unwrap_or(0)),
    }
}

/// The value must be a DNS-1123 label.
pub(crate) fn dns_label(errors: &mut FieldErrors, path: &str, value: &str) {
    each(errors, path, value, names::dns_label(value, false));
}

/// The value must be a DNS-1123 subdomain.
pub(crate) fn dns_subdomain(errors: &mut FieldErrors, path: &str, value: &str) {
    each(errors, path, value, names::dns_subdomain(value, false));
}

/// The value must be a qualified name.
pub(crate) fn qualified_name(errors: &mut FieldErrors, path: &str, value: &str) {
    each(errors, path, value, names::label_key(value));
}

/// The map's keys must be label names and its values label values.
pub(crate) fn labels(errors: &mut FieldErrors, path: &str, labels: Option<&Value>) {
    if let Some(labels) = labels {
        errors.extend(crate::meta::validate_labels(labels, path));
    }
}

/// The map's keys must be annotation names.
pub(crate) fn annotations(errors: &mut FieldErrors, path: &str, annotations: Option<&Value>) {
    if let Some(annotations) = annotations {
        errors.extend(crate::meta::validate_annotations(annotations, path));
    }
}

/// The text must be one of these.
pub(crate) fn one_of(errors: &mut FieldErrors, path: &str, value: &str, supported: &[&str]) {
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, &value.into(), supported));
    }
}

/// As [`one_of`] for what is a mere string in the real server.
pub(crate) fn one_text_of(errors: &mut FieldErrors, path: &str, value: &str, supported: &[&str]) {
    if !supported.contains(&value) {
        let value = value.into();
        errors.push(FieldError::not_supported_text(path, &value, supported));
    }
}

/// As [`one_of`], but an empty text is told that it is required.
pub(crate) fn required_one_of(
    errors: &mut FieldErrors,
    path: &str,
    value: &str,
    supported: &[&str],
) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        one_of(errors, path, value, supported);
    }
}

/// The text at `field` of `object` must be there; gives whether it is.
pub(crate) fn required(errors: &mut FieldErrors, object: &Value, path: &str, field: &str) -> bool {
    let there = !text(object, field).is_empty();
    if !there {
        errors.push(FieldError::required(format!("{path}.{field}"), ""));
    }
    there
}

/// The value must be what it was.
pub(crate) fn immutable(
    errors: &mut FieldErrors,
    path: &str,
    new: Option<&Value>,
    old: Option<&Value>,
) {
    if !same(new, old) {
        let new = new.unwrap_or(&Value::Null);
        errors.push(shown(path, show(new), "field is immutable"));
    }
}

/// Whether two optional values are the same to the API: `null` is absence.
pub(crate) fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    one.filter(|v| !v.is_null()) == other.filter(|v| !v.is_null())
}

/// A file mode must lie in 0–0777.
pub(crate) fn file_mode(errors: &mut FieldErrors, object: &Value, path: &str, field: &str) {
    if let Some(mode) = integer(object, field)
        && !(0..=0o777).contains(&mode)
    {
        errors.push(number(&format!("{path}.{field}"), mode, FILE_MODE));
    }
}

/// A path must not leave its place: relative and without `..`.
pub(crate) fn descending_path(errors: &mut FieldErrors, path: &str, value: &str) {
    if value.starts_with('/') {
        errors.push(FieldError::invalid_str(
            path,
            value,
            "must be a relative path",
        ));
    }
    no_backsteps(errors, path, value);
}

/// A path must not contain `..`.
pub(crate) fn no_backsteps(errors: &mut FieldErrors, path: &str, value: &str) {
    if value.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid_str(
            path,
            value,
            "must not contain '..'",
        ));
    }
}

/// As [`descending_path`], and not beginning with `..` either.
pub(crate) fn unreserved_path(errors: &mut FieldErrors, path: &str, value: &str) {
    descending_path(errors, path, value);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(FieldError::invalid_str(
            path,
            value,
            "must not start with '..'",
        ));
    }
}

/// The text must be an IP address, not necessarily in canonical form.
pub(crate) fn ip(errors: &mut FieldErrors, path: &str, value: &str) {
    let mut found = names::ip(value);
    found.retain(|text| !text.starts_with("must be in canonical form"));
    each(errors, path, value, found);
}

/// The whole number that an int-or-string stands for: the percentage for `25%`, 0 for other text.
pub(crate) fn int_or_percent(value: &Value) -> i64 {
    match value {
        Value::String(text) => percent(text).unwrap_or_else(|| text.parse().unwrap_or(0)),
        other => other.as_i64().unwrap_or(0),
    }
}

fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(i64::MAX))
}

/// The value must be a whole number that is not negative, or a percentage.
pub(crate) fn positive_int_or_percent(errors: &mut FieldErrors, path: &str, value: &Value) {
    match value {
        Value::String(text) => each(errors, path, text, names::percent(text)),
        other => non_negative(errors, path, other.as_i64().unwrap_or(0)),
    }
}

/// A percentage must not be above 100.
pub(crate) fn at_most_all(errors: &mut FieldErrors, path: &str, value: &Value) {
    if let Value::String(text) = value
        && percent(text).is_some_and(|p| p > 100)
    {
        errors.push(FieldError::invalid_str(
            path,
            text,
            "must not be greater than 100%",
        ));
    }
}
