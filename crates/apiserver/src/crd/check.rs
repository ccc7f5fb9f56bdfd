//! Validation of a value against a schema, with the texts of kube-openapi's validator as the API shows them.
//!
//! Errors come in schema order (fields by name). The real server walks Go maps and so gives several errors in any
//! order; the set is the same.

mod combine;
pub(crate) mod format;
pub(crate) mod number;
mod scalar;

use serde_json::Value;

use super::pair::Pair;
use super::structural::{Additional, Structural};
use crate::field::{Fault, FieldError, FieldErrors, quote};

/// How the API names the path of an error about no field in particular.
pub(crate) const NO_PATH: &str = "<nil>";

/// Validates `value`; `base` is the path of the value (empty for a whole object) and `pair` the same value with its
/// predecessor on update.
pub fn check(
    schema: &Structural,
    value: &Value,
    base: &str,
    pair: Option<Pair<'_>>,
) -> FieldErrors {
    let checker = Checker { base };
    checker
        .value(schema, value, "", pair)
        .errors
        .into_iter()
        .map(|found| found.error)
        .collect()
}

/// What one walk found, and how much it agreed with, by which the best of several alternatives is chosen.
#[derive(Debug, Default)]
pub(super) struct Findings {
    errors: Vec<Finding>,
    matches: usize,
}

/// One error with the text by which repetitions are recognised.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    text: String,
    error: FieldError,
}

impl Findings {
    fn add(&mut self, finding: Finding) {
        if !self.errors.iter().any(|e| e.text == finding.text) {
            self.errors.push(finding);
        }
    }

    fn merge(&mut self, other: Findings) {
        self.matches += other.matches;
        for finding in other.errors {
            self.add(finding);
        }
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// One walk over a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checker<'b> {
    base: &'b str,
}

impl Checker<'_> {
    /// The path of an error about `name`, as the API joins it to the base.
    fn path(&self, name: &str) -> String {
        let name = name.strip_prefix('.').unwrap_or(name);
        match (self.base.is_empty(), name.is_empty()) {
            (true, true) => NO_PATH.to_owned(),
            (true, false) => name.to_owned(),
            (false, true) => self.base.to_owned(),
            (false, false) => format!("{}.{name}", self.base),
        }
    }

    fn finding(&self, fault: Fault, name: &str, shown: String, text: String) -> Finding {
        let error = FieldError {
            fault,
            path: self.path(name),
            shown,
            detail: text.clone(),
        };
        Finding { text, error }
    }

    /// An error that the validator does not tie to a field.
    fn loose(&self, text: String) -> Finding {
        self.finding(Fault::Invalid, "", quote(""), text)
    }

    /// `name in body must be of type wanted: "got"`.
    fn type_error(&self, name: &str, wanted: &str, got: &str) -> Finding {
        let text = format!("{name} in body must be of type {wanted}: {}", quote(got));
        self.finding(Fault::TypeInvalid, name, quote(got), text)
    }

    fn value(
        &self,
        schema: &Structural,
        value: &Value,
        name: &str,
        pair: Option<Pair<'_>>,
    ) -> Findings {
        let mut findings = self.all_checks(schema, value, name, pair);
        if !findings.is_valid() && pair.is_some_and(Pair::equal) {
            findings.errors.clear();
        }
        findings
    }

    fn all_checks(
        &self,
        schema: &Structural,
        value: &Value,
        name: &str,
        pair: Option<Pair<'_>>,
    ) -> Findings {
        let mut findings = Findings::default();
        let steps: [Option<Findings>; 7] = if value.is_null() {
            findings.merge(self.types(schema, value, name));
            findings.merge(self.allowed(schema, value, name));
            return findings;
        } else {
            let typed = !schema.types().is_empty() || !schema.format.is_empty();
            [
                typed.then(|| self.types(schema, value, name)),
                Some(self.combined(schema, value, name)),
                value.as_str().map(|text| self.string(schema, text, name)),
                value.as_number().map(|n| self.number(schema, n, name)),
                value
                    .as_array()
                    .map(|list| self.list(schema, list, name, pair)),
                Some(self.allowed(schema, value, name)),
                value
                    .as_object()
                    .map(|map| self.object(schema, map, name, pair)),
            ]
        };
        for step in steps.into_iter().flatten() {
            findings.merge(step);
            findings.matches += 1;
        }
        findings.matches += 1;
        findings
    }

    /// The elements of a list, then its size.
    fn list(
        &self,
        schema: &Structural,
        list: &[Value],
        name: &str,
        pair: Option<Pair<'_>>,
    ) -> Findings {
        let mut findings = Findings::default();
        if let Some(items) = schema.items.as_deref() {
            for (i, item) in list.iter().enumerate() {
                let below = pair.and_then(|p| p.index(i));
                findings.merge(self.value(items, item, &format!("{name}[{i}]"), below));
            }
        }
        let size = i64::try_from(list.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.limits().min_items.filter(|min| size < *min) {
            let text = format!("{name} in body should have at least {min} items");
            findings.add(self.finding(Fault::Invalid, name, size.to_string(), text));
        }
        if let Some(max) = schema.limits().max_items.filter(|max| size > *max) {
            let text = format!("{name} in body should have at most {max} items");
            findings.add(self.too_many(name, size, max, text));
        }
        let repeated =
            || (1..list.len()).any(|i| list.iter().take(i).any(|v| Some(v) == list.get(i)));
        if schema.limits().unique_items && repeated() {
            let text = format!("{name} in body shouldn't contain duplicates");
            findings.add(self.finding(Fault::Invalid, name, quote(""), text));
        }
        findings.matches += 1;
        findings
    }

    fn too_many(&self, name: &str, size: i64, max: i64, text: String) -> Finding {
        let noun = if max == 1 { "item" } else { "items" };
        let mut finding = self.finding(Fault::TooMany, name, size.to_string(), text);
        finding.error.detail = format!("must have at most {max} {noun}");
        finding
    }

    /// The size of an object, its unnamed fields, its named fields, then what is missing.
    fn object(
        &self,
        schema: &Structural,
        map: &serde_json::Map<String, Value>,
        name: &str,
        pair: Option<Pair<'_>>,
    ) -> Findings {
        let mut findings = Findings::default();
        self.object_size(schema, map.len(), name, &mut findings);
        for (key, value) in map {
            if schema.properties.contains_key(key) {
                continue;
            }
            match &schema.additional {
                Additional::Forbidden => {
                    let text = format!("{name}.{key} in body is a forbidden property");
                    findings.add(self.finding(Fault::Invalid, name, quote(key), text));
                }
                Additional::Of(values) => {
                    let below = pair.and_then(|p| p.key(key));
                    findings.merge(self.value(values, value, &format!("{name}.{key}"), below));
                }
                Additional::Unset | Additional::Any => {}
            }
        }
        for (key, sub) in &schema.properties {
            let Some(value) = map.get(key) else { continue };
            let root = name.is_empty();
            let path = if root {
                key.clone()
            } else {
                format!("{name}.{key}")
            };
            // The old apiVersion is not seen: both sides were converted to the same one.
            let seen = !(root && matches!(key.as_str(), "kind" | "apiVersion"));
            let below = pair.filter(|_| seen).and_then(|p| p.key(key));
            findings.merge(self.value(sub, value, &path, below));
        }
        for key in &schema.required {
            if !map.contains_key(key) {
                let path = format!("{name}.{key}");
                let text = format!("{path} in body is required");
                let mut finding = self.finding(Fault::Required, &path, String::new(), text);
                finding.error.detail.clear();
                findings.add(finding);
            }
        }
        findings
    }

    fn object_size(&self, schema: &Structural, len: usize, name: &str, findings: &mut Findings) {
        let size = i64::try_from(len).unwrap_or(i64::MAX);
        if let Some(min) = schema.limits().min_properties.filter(|min| size < *min) {
            let text = format!("{name} in body should have at least {min} properties");
            findings.add(self.finding(Fault::Invalid, name, size.to_string(), text));
        }
        if let Some(max) = schema.limits().max_properties.filter(|max| size > *max) {
            let text = format!("{name} in body should have at most {max} properties");
            findings.add(self.too_many(name, size, max, text));
        }
    }
}
