//! Which labels an object must have, as Kubernetes selects.
//!
//! A [`Selector`] is all of its terms at once, so one without terms selects everything. That there is no selector at all is
//! for the caller to say, because it means something else for each: a `PodDisruptionBudget` without one selects nothing, a
//! `ZoneAwarePodDisruptionBudget` without a usable one may be meant for anything, a watch without one brings everything.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fields::{list, strings, text};

/// Labels that are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    terms: Vec<Term>,
}

/// What is asked of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Is(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
    /// Something that is not known here: no object surely has it.
    Unknown,
}

impl Selector {
    /// Objects that have all of these labels.
    pub fn labels(labels: BTreeMap<String, String>) -> Self {
        let terms = labels.into_iter().map(|(key, value)| Term::Is(key, value));
        Self {
            terms: terms.collect(),
        }
    }

    /// Reads `matchLabels` and `matchExpressions`. Nothing is checked: what is not of the expected type counts as absent, and
    /// an expression with an operator that there is not fits no object.
    pub fn read(selector: &Value) -> Self {
        let mut all = Self::labels(strings(selector, "/matchLabels"));
        let expressions = list(selector, "/matchExpressions");
        all.terms.extend(expressions.map(Term::read));
        all
    }

    /// Reads the form that watches and lists are asked with: `name=value` or `name`, with commas between. Whatever else can be
    /// written that way fits no object.
    pub fn parse(selector: &str) -> Self {
        let terms = selector.split(',').filter(|term| !term.is_empty());
        let terms = terms.map(|term| match term.split_once('=') {
            Some((key, value)) => Term::Is(key.to_owned(), value.to_owned()),
            None => Term::Exists(term.to_owned()),
        });
        Self {
            terms: terms.collect(),
        }
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it selects an object with these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.fits(|key| labels.get(key).map(String::as_str))
    }

    /// Whether it selects this object.
    pub fn selects_object(&self, object: &Value) -> bool {
        let labels = object
            .get("metadata")
            .and_then(|metadata| metadata.get("labels"));
        self.fits(|key| labels?.get(key)?.as_str())
    }

    fn fits<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| term.fits(&label))
    }
}

impl Term {
    fn read(expression: &Value) -> Self {
        let key = text(expression, "/key").unwrap_or_default().to_owned();
        let values = || {
            list(expression, "/values")
                .filter_map(|value| Some(value.as_str()?.to_owned()))
                .collect()
        };
        match text(expression, "/operator") {
            Some("In") => Self::In(key, values()),
            Some("NotIn") => Self::NotIn(key, values()),
            Some("Exists") => Self::Exists(key),
            Some("DoesNotExist") => Self::DoesNotExist(key),
            _ => Self::Unknown,
        }
    }

    fn fits<'a>(&self, label: &impl Fn(&str) -> Option<&'a str>) -> bool {
        let is_among = |value: &str, values: &[String]| values.iter().any(|one| one == value);
        match self {
            Self::Is(key, wanted) => label(key) == Some(wanted.as_str()),
            Self::In(key, values) => label(key).is_some_and(|value| is_among(value, values)),
            Self::NotIn(key, values) => label(key).is_none_or(|value| !is_among(value, values)),
            Self::Exists(key) => label(key).is_some(),
            Self::DoesNotExist(key) => label(key).is_none(),
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::Selector;

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        all.iter().map(owned).collect()
    }

    fn selects(selector: &Value, all: &[(&str, &str)]) -> bool {
        Selector::read(selector).selects(&labels(all))
    }

    #[test]
    fn an_empty_one_selects_everything() {
        for empty in [
            json!({}),
            json!({"matchLabels": {}, "matchExpressions": []}),
        ] {
            assert!(selects(&empty, &[]) && selects(&empty, &[("a", "b")]));
            assert!(Selector::read(&empty).is_empty());
        }
        assert!(Selector::parse("").is_empty());
    }

    #[test]
    fn all_labels_and_all_expressions_count() {
        let selector = json!({"matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]});
        assert!(selects(&selector, &[("app", "web"), ("tier", "b")]));
        assert!(!selects(&selector, &[("app", "web"), ("tier", "c")]));
        assert!(!selects(&selector, &[("app", "api"), ("tier", "b")]));
        assert!(!selects(&selector, &[("app", "web")]));
    }

    #[test]
    fn every_operator() {
        let fits = |operator: &str, all: &[(&str, &str)]| {
            let expression = json!({"key": "k", "operator": operator, "values": ["v"]});
            selects(&json!({"matchExpressions": [expression]}), all)
        };
        let (is, other, none) = ([("k", "v")], [("k", "w")], []);
        let each = |operator: &str| [&is[..], &other, &none].map(|all| fits(operator, all));
        assert_eq!(each("In"), [true, false, false]);
        assert_eq!(each("NotIn"), [false, true, true]);
        assert_eq!(each("Exists"), [true, true, false]);
        assert_eq!(each("DoesNotExist"), [false, false, true]);
        assert_eq!(each("Gt"), [false, false, false]);
    }

    #[test]
    fn what_a_watch_asks_for() {
        let object = |all: &[(&str, &str)]| json!({"metadata": {"labels": labels(all)}});
        let one = object(&[("a", "b")]);
        assert!(Selector::parse("a=b").selects_object(&one));
        assert!(Selector::parse("a").selects_object(&one));
        assert!(!Selector::parse("a=c").selects_object(&one));
        assert!(!Selector::parse("a=b,c").selects_object(&one));
        assert!(!Selector::parse("a=b,a=c").selects_object(&one));
        for unknown in ["a!=c", "a==b", "a in (b)", "!c"] {
            assert!(!Selector::parse(unknown).selects_object(&one), "{unknown}");
        }
        assert!(!Selector::parse("a").selects_object(&json!({})));
    }
}
