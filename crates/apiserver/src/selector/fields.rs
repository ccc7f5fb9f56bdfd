//! Field selectors: `metadata.name=a,spec.nodeName!=b`.

use std::fmt;

use crate::field::quote;
use crate::resource::Resource;
use crate::status::{Outcome, Status};

/// One condition on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field.
    pub field: String,
    /// The value it is compared with.
    pub value: String,
    /// `!=` instead of `=`.
    pub negated: bool,
}

/// A field selector: all requirements hold. Without requirements it selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// Kinds that say which fields they know (all others know name and namespace only).
const DECLARED: [(&str, &str); 9] = [
    ("", "Pod"),
    ("", "Node"),
    ("", "ReplicationController"),
    ("", "Event"),
    ("", "Namespace"),
    ("", "Secret"),
    ("", "Service"),
    ("events.k8s.io", "Event"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
];

impl FieldSelector {
    /// From `?fieldSelector=`; a text that is no selector is a 400.
    pub fn parse(text: &str) -> Outcome<Self> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|t| !t.is_empty()) {
            let Some((field, negated, value)) = split_term(term) else {
                let message = format!("invalid selector: '{text}'; can't understand '{term}'");
                return Err(Status::bad_request(message).into());
            };
            let value = unescape(value).map_err(Status::bad_request)?;
            requirements.push(FieldRequirement {
                field: field.to_owned(),
                value,
                negated,
            });
        }
        Ok(Self { requirements })
    }

    /// Refuses fields that `resource` does not let one select on, and resolves old names of fields. `is_custom`
    /// says that the resource comes from a `CustomResourceDefinition`.
    pub fn resolve(mut self, resource: &Resource, is_custom: bool) -> Outcome<Self> {
        let names = &resource.names;
        let kind = (names.group.as_str(), names.kind.as_str());
        let known = resource.strategy.selectable_names();
        for requirement in &mut self.requirements {
            if kind == ("", "Pod") && requirement.field == "spec.host" {
                "spec.nodeName".clone_into(&mut requirement.field);
            }
            let field = &requirement.field;
            let is_known = match field.as_str() {
                "metadata.name" => true,
                // Kinds without namespaces that declare their fields leave it out; the others do not look.
                "metadata.namespace" => {
                    resource.namespaced || !(is_custom || DECLARED.contains(&kind))
                }
                _ => known.iter().any(|k| k == field),
            };
            if is_known {
                continue;
            }
            let message = if is_custom || DECLARED.contains(&kind) {
                format!("field label not supported: {field}")
            } else if kind == ("batch", "Job") {
                format!("field label {} not supported for Job", quote(field))
            } else {
                format!(
                    "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                    quote(field)
                )
            };
            return Err(Status::bad_request(message).into());
        }
        Ok(self)
    }

    /// Whether it selects an object whose fields `lookup` gives; a field that is not there is empty.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .iter()
            .all(|r| (lookup(&r.field).unwrap_or_default() == r.value) != r.negated)
    }

    /// The value that `field` must have, if the selector asks for one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.requirements
            .iter()
            .find(|r| r.field == field && !r.negated)
            .map(|r| r.value.as_str())
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The conditions.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if requirement.negated { "!=" } else { "=" };
            let value = escape(&requirement.value);
            write!(f, "{comma}{}{operator}{value}", requirement.field)?;
        }
        Ok(())
    }
}

/// Splits at commas that no backslash hides.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut hidden) = (0, false);
    for (i, c) in text.char_indices() {
        if hidden {
            hidden = false;
        } else if c == '\\' {
            hidden = true;
        } else if c == ',' {
            terms.extend(text.get(start..i));
            start = i + 1;
        }
    }
    terms.extend(text.get(start..));
    terms
}

/// Field, whether negated, and the value as written, at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    term.char_indices().find_map(|(i, _)| {
        let (field, rest) = term.split_at(i);
        ["!=", "==", "="].iter().find_map(|op| {
            rest.strip_prefix(op)
                .map(|value| (field, *op == "!=", value))
        })
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                next => {
                    let sequence = next.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{sequence}"
                    ));
                }
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(format!(
                    "invalid field selector: unescaped character in value: {code}"
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace(',', "\\,")
        .replace('=', "\\=")
}
