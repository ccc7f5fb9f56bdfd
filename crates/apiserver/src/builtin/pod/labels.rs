//! `metav1.LabelSelector` as workloads use it: judging, matching, and showing it.

use serde_json::{Map, Value};

use super::check;
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors, show};
use crate::value::{items, map, text};

/// Judges a selector; an absent one is fine. `lenient` accepts invalid values, as updates of old objects do.
pub fn validate(errors: &mut FieldErrors, path: &str, selector: Option<&Value>, lenient: bool) {
    let Some(selector) = selector.filter(|s| !s.is_null()) else {
        return;
    };
    check::labels(
        errors,
        &format!("{path}.matchLabels"),
        map(selector, "matchLabels"),
    );
    for (i, requirement) in items(selector, "matchExpressions").iter().enumerate() {
        let at = format!("{path}.matchExpressions[{i}]");
        validate_requirement(errors, &at, requirement, lenient);
    }
}

fn validate_requirement(errors: &mut FieldErrors, path: &str, requirement: &Value, lenient: bool) {
    let values = items(requirement, "values");
    let operator = text(requirement, "operator");
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            format!("{path}.values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            format!("{path}.values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
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
        let at = format!("{path}.values[{i}]");
        check::each(errors, &at, value, names::label_value(value));
    }
}

/// Whether a selector has neither labels nor expressions; it then matches everything.
pub fn is_empty(selector: &Value) -> bool {
    map(selector, "matchLabels").is_none_or(Map::is_empty)
        && items(selector, "matchExpressions").is_empty()
}

/// Whether a selector can be used at all: known operators, values where they belong, valid keys and values.
pub fn is_usable(selector: Option<&Value>) -> bool {
    let mut errors = Vec::new();
    validate(&mut errors, "", selector, false);
    errors.is_empty()
}

/// Whether `labels` match. No selector matches nothing; an empty one matches everything.
pub fn matches(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let Some(selector) = selector.filter(|s| !s.is_null()) else {
        return false;
    };
    let get = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
    let plain = map(selector, "matchLabels")
        .into_iter()
        .flatten()
        .all(|(key, value)| get(key) == Some(value.as_str().unwrap_or_default()));
    plain
        && items(selector, "matchExpressions")
            .iter()
            .all(|requirement| {
                let found = get(text(requirement, "key"));
                let listed = || {
                    items(requirement, "values")
                        .iter()
                        .any(|v| v.as_str() == found)
                };
                match text(requirement, "operator") {
                    "In" => found.is_some() && listed(),
                    "NotIn" => found.is_none() || !listed(),
                    "Exists" => found.is_some(),
                    "DoesNotExist" => found.is_none(),
                    _ => false,
                }
            })
}

/// A selector as messages show it, in the order of the API's type.
pub fn render(selector: Option<&Value>) -> String {
    let Some(selector) = selector.filter(|s| !s.is_null()) else {
        return "null".to_owned();
    };
    let mut parts = Vec::new();
    for field in ["matchLabels", "matchExpressions"] {
        if let Some(value) = selector.get(field) {
            parts.push(format!("\"{field}\":{}", show(value)));
        }
    }
    format!("{{{}}}", parts.join(","))
}

/// A selector as `kubectl get -o wide` shows it.
pub fn format(selector: Option<&Value>) -> String {
    let Some(selector) = selector.filter(|s| !s.is_null()) else {
        return "<none>".to_owned();
    };
    let text = expression(selector);
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}

/// The text form of a selector: `a=b,c in (d,e),!f`, by key.
pub fn expression(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in map(selector, "matchLabels").into_iter().flatten() {
        parts.push((
            key.clone(),
            format!("{key}={}", value.as_str().unwrap_or_default()),
        ));
    }
    for requirement in items(selector, "matchExpressions") {
        let key = text(requirement, "key");
        let mut values: Vec<&str> = items(requirement, "values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(requirement, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    parts.join(",")
}

/// Labels as a table shows them.
pub fn format_labels(labels: Option<&Map<String, Value>>) -> String {
    let parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if parts.is_empty() {
        "<none>".to_owned()
    } else {
        parts.join(",")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn matches_and_shows() {
        let selector = json!({"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"}]});
        let labels = json!({"a": "x", "b": "1"});
        assert!(matches(Some(&selector), labels.as_object()));
        assert!(!matches(Some(&selector), json!({"b": "1"}).as_object()));
        assert_eq!(expression(&selector), "a in (x,y),b=1,!c");
        assert!(
            render(Some(&selector))
                .starts_with("{\"matchLabels\":{\"b\":\"1\"},\"matchExpressions\"")
        );
        assert!(!matches(None, labels.as_object()));
        assert!(matches(Some(&json!({})), None));
    }
}
