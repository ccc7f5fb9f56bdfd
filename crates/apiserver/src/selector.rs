//! Label selectors and field selectors: from text and from `metav1.LabelSelector`, matching, and back to text.
//!
//! Failures carry the texts of the real server. Which fields a kind lets one select on is decided in
//! [`FieldSelector::resolve`]; looking them up in an object is the caller's business.

mod fields;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Value};

use crate::builtin::names;
use crate::field::{self, FieldError, FieldErrors};
use crate::status::{Outcome, Status};

pub use fields::{FieldRequirement, FieldSelector};

/// How a requirement relates its key and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`.
    In,
    /// `key notin (a,b)`.
    NotIn,
    /// `key=a`.
    Equals,
    /// `key==a`.
    DoubleEquals,
    /// `key!=a`.
    NotEquals,
    /// `key`.
    Exists,
    /// `!key`.
    DoesNotExist,
    /// `key>1`.
    GreaterThan,
    /// `key<1`.
    LessThan,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// The relation.
    pub operator: Operator,
    /// The values, none for [`Operator::Exists`] and [`Operator::DoesNotExist`].
    pub values: Vec<String>,
}

/// A label selector: all requirements hold. Without requirements it selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

// === impl Requirement ===

impl Requirement {
    /// A requirement that keeps the rules, or the text of what is wrong.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut wrong = FieldErrors::new();
        wrong.extend(key_error("key", key));
        wrong.extend(count_error(operator, &values));
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    wrong.push(FieldError::invalid_str(format!("values[{i}]"), value, why));
                }
            }
        }
        for (i, value) in values.iter().enumerate() {
            let texts = names::label_value(value);
            if !texts.is_empty() {
                let path = format!("values[{i}][{key}]");
                wrong.push(FieldError::invalid_str(path, value, texts.join("; ")));
            }
        }
        if !wrong.is_empty() {
            return Err(field::aggregate(&wrong));
        }
        Ok(Self {
            key: key.to_owned(),
            operator,
            values,
        })
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let is_listed = |v: &str| self.values.iter().any(|wanted| wanted == v);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                value.is_some_and(is_listed)
            }
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(is_listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compares(value, |have, wanted| have > wanted),
            Operator::LessThan => self.compares(value, |have, wanted| have < wanted),
        }
    }

    fn compares(&self, value: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let have = value.and_then(|v| v.parse().ok());
        let wanted = self.values.first().and_then(|v| v.parse().ok());
        match (have, wanted) {
            (Some(have), Some(wanted)) => holds(have, wanted),
            _ => false,
        }
    }
}

/// The error about a key; `path` is empty where the real server has no path and shows `<nil>`.
fn key_error(path: &str, key: &str) -> Option<FieldError> {
    let texts = names::label_key(key);
    (!texts.is_empty()).then(|| FieldError::invalid_str(path, key, texts.join("; ")))
}

fn count_error(operator: Operator, values: &[String]) -> Option<FieldError> {
    let (fits, why) = match operator {
        Operator::In | Operator::NotIn => (
            !values.is_empty(),
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => (
            values.len() == 1,
            "exact-match compatibility requires one single value",
        ),
        Operator::Exists | Operator::DoesNotExist => (
            values.is_empty(),
            "values set must be empty for exists and does not exist",
        ),
        Operator::GreaterThan | Operator::LessThan => (
            values.len() == 1,
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
    };
    (!fits).then(|| FieldError::invalid("values", &Value::from(values.to_vec()), why))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.values.clone();
        sorted.sort();
        let (key, values) = (&self.key, sorted.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects nothing, as an absent `metav1.LabelSelector` does.
    pub fn nothing() -> Self {
        Self {
            requirements: Vec::new(),
            nothing: true,
        }
    }

    /// From `?labelSelector=`; a text that is no selector is a 400.
    pub fn parse(text: &str) -> Outcome<Self> {
        let requirements = parse::requirements(text).map_err(Status::bad_request)?;
        Ok(Self::of(requirements))
    }

    /// From a `metav1.LabelSelector`. `None` and `null` select nothing, an empty one everything. The failure is the
    /// text that the real server reports.
    pub fn from_object(object: Option<&Value>) -> Result<Self, String> {
        let Some(object) = object.filter(|o| !o.is_null()) else {
            return Ok(Self::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in object
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
        }
        for expression in crate::value::items(object, "matchExpressions") {
            let operator = match crate::value::text(expression, "operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(format!(
                        "{} is not a valid label selector operator",
                        field::quote(other)
                    ));
                }
            };
            let values = crate::value::items(expression, "values")
                .iter()
                .map(|v| v.as_str().unwrap_or_default().to_owned())
                .collect();
            let key = crate::value::text(expression, "key");
            requirements.push(Requirement::new(key, operator, values)?);
        }
        Ok(Self::of(requirements))
    }

    /// From a plain map of labels, as `Service.spec.selector` is; an empty one selects everything.
    pub fn from_labels(labels: &Map<String, Value>) -> Self {
        let requirement = |(key, value): (&String, &Value)| Requirement {
            key: key.clone(),
            operator: Operator::Equals,
            values: vec![value.as_str().unwrap_or_default().to_owned()],
        };
        Self::of(labels.iter().map(requirement).collect())
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self {
            requirements,
            nothing: false,
        }
    }

    /// Whether it selects an object with these labels.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.matches(lookup(&r.key)))
    }

    /// Whether it selects this object, by its `metadata.labels`.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = crate::value::map(object, "metadata.labels");
        self.matches(|key| labels.and_then(|l| l.get(key)).and_then(Value::as_str))
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// The conditions, by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

/// The text form, which [`LabelSelector::parse`] reads again and `scale.status.selector` shows.
/// A selector of a spec in text form: a `metav1.LabelSelector`, or the plain map that replication controllers and
/// services have.
pub fn to_text(selector: &Value) -> String {
    let is_typed = ["matchLabels", "matchExpressions"]
        .iter()
        .any(|field| selector.get(field).is_some());
    match selector.as_object() {
        Some(labels) if !is_typed => LabelSelector::from_labels(labels).to_string(),
        _ => LabelSelector::from_object(Some(selector))
            .map(|s| s.to_string())
            .unwrap_or_default(),
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

/// Judges a `metav1.LabelSelector` inside an object, where errors are about fields below `path`.
pub fn validate(selector: &Value, path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    if let Some(labels) = selector.get("matchLabels") {
        wrong.extend(crate::meta::validate_labels(
            labels,
            &format!("{path}.matchLabels"),
        ));
    }
    for (i, expression) in crate::value::items(selector, "matchExpressions")
        .iter()
        .enumerate()
    {
        wrong.extend(validate_expression(
            expression,
            &format!("{path}.matchExpressions[{i}]"),
        ));
    }
    wrong
}

fn validate_expression(expression: &Value, path: &str) -> FieldErrors {
    let mut wrong = FieldErrors::new();
    let values = crate::value::items(expression, "values");
    match crate::value::text(expression, "operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                wrong.push(FieldError::required(format!("{path}.values"), why));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                wrong.push(FieldError::forbidden(format!("{path}.values"), why));
            }
        }
        other => {
            let why = "not a valid selector operator";
            wrong.push(FieldError::invalid_typed(
                format!("{path}.operator"),
                other,
                why,
            ));
        }
    }
    let key = crate::value::text(expression, "key");
    for text in names::label_key(key) {
        wrong.push(FieldError::invalid_str(format!("{path}.key"), key, text));
    }
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        for text in names::label_value(value) {
            wrong.push(FieldError::invalid_str(
                format!("{path}.values[{i}]"),
                value,
                text,
            ));
        }
    }
    wrong
}
