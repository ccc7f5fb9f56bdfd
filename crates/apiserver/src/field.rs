//! Errors about one field of an object, and the list of them that becomes a 422 `Invalid` answer.
//!
//! The texts are the API's: clients and people match on them.

use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::status::{Cause, Status};

/// What is wrong with a field. The cause reasons are those of `metav1.CauseType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A value that must be there is missing.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The field may not be set, or not be changed.
    Forbidden,
    /// The value occurs twice where it must be unique.
    Duplicate,
    /// The value refers to something that is not there.
    NotFound,
    /// The value is longer than allowed.
    TooLong,
    /// The list has more items than allowed.
    TooMany,
    /// The list has fewer items than allowed, or the value is shorter than allowed.
    TooFew,
    /// The server could not judge the field.
    Internal,
}

impl Fault {
    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
        }
    }
}

/// One error about one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What kind of error it is.
    pub fault: Fault,
    /// Where: `spec.template.spec.containers[0].name`, `metadata.labels`, `spec.data[key]`.
    pub path: String,
    /// The value as it is shown, already rendered (see [`show`]); empty where the text shows none.
    pub shown: String,
    /// The rest of the text; empty where there is none.
    pub detail: String,
}

/// The errors found in one object, in the order in which they were found.
pub type FieldErrors = Vec<FieldError>;

/// Renders a value as the API's messages show it: strings quoted, objects as JSON.
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => show_json(other),
    }
}

/// Renders a value as Go's JSON does, which escapes what could be HTML.
pub fn show_json(value: &Value) -> String {
    escape_html(&value.to_string())
}

/// Escapes in JSON what could be HTML.
pub fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Go's `%q` for the characters that matter here.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printed(c) => out.push(c),
            c if c.is_ascii() => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if (c as u32) < 0x10000 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
        }
    }
    out.push('"');
    out
}

/// Whether Go's `%q` shows a character as it is: letters, marks, numbers, punctuation, symbols and the blank.
fn is_printed(c: char) -> bool {
    // Not at the start of a text, where Rust escapes marks as well.
    c == ' '
        || !c.is_control() && !c.is_whitespace() && {
            let text = ['x', c];
            text.iter().collect::<String>().escape_debug().count() == text.len()
        }
}

impl FieldError {
    /// `path: Required value: detail`.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            fault: Fault::Required,
            path: path.into(),
            shown: String::new(),
            detail: detail.into(),
        }
    }

    /// `path: Invalid value: shown: detail`.
    pub fn invalid(path: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self {
            fault: Fault::Invalid,
            path: path.into(),
            shown: show(value),
            detail: detail.into(),
        }
    }

    /// As [`FieldError::invalid`] for a string.
    pub fn invalid_str(path: impl Into<String>, value: &str, detail: impl Into<String>) -> Self {
        Self {
            fault: Fault::Invalid,
            path: path.into(),
            shown: quote(value),
            detail: detail.into(),
        }
    }

    /// As [`FieldError::invalid_str`] for a string that has a type of its own in the real server: it is shown as JSON.
    pub fn invalid_typed(path: impl Into<String>, value: &str, detail: impl Into<String>) -> Self {
        Self {
            shown: show_json(&value.into()),
            ..Self::invalid_str(path, value, detail)
        }
    }

    /// `path: Unsupported value: shown: supported values: "A", "B"`. The value is shown as JSON: it has a type of its
    /// own in the real server.
    pub fn not_supported(path: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| quote(s)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self {
            fault: Fault::NotSupported,
            path: path.into(),
            shown: show_json(value),
            detail,
        }
    }

    /// As [`FieldError::not_supported`] for a value that is a mere string in the real server.
    pub fn not_supported_text(path: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        Self {
            shown: show(value),
            ..Self::not_supported(path, value, supported)
        }
    }

    /// `path: Forbidden: detail`.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            fault: Fault::Forbidden,
            path: path.into(),
            shown: String::new(),
            detail: detail.into(),
        }
    }

    /// `path: Duplicate value: shown`.
    pub fn duplicate(path: impl Into<String>, value: &Value) -> Self {
        Self {
            fault: Fault::Duplicate,
            path: path.into(),
            shown: show(value),
            detail: String::new(),
        }
    }

    /// `path: Not found: shown`.
    pub fn not_found(path: impl Into<String>, value: &Value) -> Self {
        Self {
            fault: Fault::NotFound,
            path: path.into(),
            shown: show(value),
            detail: String::new(),
        }
    }

    /// `path: Too long: may not be more than N bytes`.
    pub fn too_long(path: impl Into<String>, max_bytes: usize) -> Self {
        let detail = format!("may not be more than {max_bytes} bytes");
        Self {
            fault: Fault::TooLong,
            path: path.into(),
            shown: String::new(),
            detail,
        }
    }

    /// `path: Too many: actual: must have at most max items`.
    pub fn too_many(path: impl Into<String>, actual: usize, max: usize) -> Self {
        let noun = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {noun}");
        Self {
            fault: Fault::TooMany,
            path: path.into(),
            shown: actual.to_string(),
            detail,
        }
    }

    /// The text without the path, as it stands in a cause.
    pub fn body(&self) -> String {
        let mut text = self.fault.title().to_owned();
        if !self.shown.is_empty() {
            text.push_str(": ");
            text.push_str(&self.shown);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// The 422 answer for an object with these errors; `errors` must not be empty.
pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Status {
    let causes = errors
        .iter()
        .map(|e| Cause {
            reason: e.fault.reason().to_owned(),
            message: e.body(),
            field: e.path.clone(),
        })
        .collect();
    Status::invalid(group, kind, name, &aggregate(errors), causes)
}

/// One text for several errors: the text itself for one, `[a, b]` for more; repeated texts are shown once.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
