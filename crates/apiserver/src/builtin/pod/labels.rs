//! `metav1.LabelSelector` as workloads use it: judging, matching, and showing it.

use serde_json::{Map, Value};

use crate::field::{FieldErrors, show};
use crate::selector::LabelSelector;
use crate::value::{items, map};

/// Judges a selector; an absent one is fine. `lenient` accepts invalid values, as updates of old objects do.
pub fn validate(errors: &mut FieldErrors, path: &str, selector: Option<&Value>, lenient: bool) {
    if let Some(selector) = selector.filter(|s| !s.is_null()) {
        let mut found = crate::selector::validate(selector, path);
        if lenient {
            found.retain(|e| !e.path.contains(".values["));
        }
        errors.extend(found);
    }
}

/// Whether a selector has neither labels nor expressions; it then matches everything.
pub fn is_empty(selector: &Value) -> bool {
    map(selector, "matchLabels").is_none_or(Map::is_empty)
        && items(selector, "matchExpressions").is_empty()
}

/// Whether a selector can be used at all: known operators, values where they belong, valid keys and values.
pub fn is_usable(selector: Option<&Value>) -> bool {
    LabelSelector::from_object(selector).is_ok()
}

/// Whether `labels` match. No selector matches nothing; an empty one matches everything.
pub fn matches(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let get = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
    LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches(get))
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

/// The text form of a selector: `a=b,c in (d,e),!f`, by key; empty for one that cannot be used.
pub fn expression(selector: &Value) -> String {
    LabelSelector::from_object(Some(selector))
        .map(|selector| selector.to_string())
        .unwrap_or_default()
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
