//! `fieldValidation`: what becomes of unknown and duplicate fields.

use crate::field::{self, FieldError};
use crate::status::{Outcome, Status};
use serde_json::Value;

use super::kind;

/// The `fieldValidation` of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, with a warning each.
    #[default]
    Warn,
    /// They are an error.
    Strict,
}

impl FieldValidation {
    /// Reads the query parameter; `options` is `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub fn parse(text: &str, options: &str) -> Outcome<Self> {
        match text {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            other => {
                let error = FieldError::not_supported_text(
                    "fieldValidation",
                    &Value::from(other),
                    &["", "Ignore", "Strict", "Warn"],
                );
                Err(Box::new(field::invalid(
                    "meta.k8s.io",
                    options,
                    "",
                    &[error],
                )))
            }
        }
    }

    /// Turns the complaints about a body into warnings, or into the 400 answer.
    pub fn judge(
        self,
        strict: impl AsRef<[String]>,
        api_version: &str,
        kind: &str,
    ) -> Outcome<Vec<String>> {
        let strict = strict.as_ref();
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Warn => Ok(warnings(strict)),
            Self::Strict if strict.is_empty() => Ok(Vec::new()),
            Self::Strict => {
                let version = api_version.rsplit('/').next().unwrap_or_default();
                let text = strict_error(strict);
                let status: Status = kind::cannot_be_handled(version, kind, kind, &text);
                Err(Box::new(status))
            }
        }
    }
}

/// One warning a complaint; those about YAML come as one text and are taken apart.
fn warnings(strict: &[String]) -> Vec<String> {
    strict
        .iter()
        .flat_map(
            |text| match text.strip_prefix("yaml: unmarshal errors:\n") {
                Some(lines) => lines.split('\n').map(|l| l.trim().to_owned()).collect(),
                None => vec![text.clone()],
            },
        )
        .collect()
}

/// `strict decoding error: unknown field "spec.foo", …`.
pub fn strict_error(strict: &[String]) -> String {
    format!("strict decoding error: {}", strict.join(", "))
}

/// Each text once, at most a hundred, as the decoder keeps them.
pub(super) fn unique(texts: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    texts
        .into_iter()
        .filter(|text| seen.insert(text.clone()))
        .take(100)
        .collect()
}
