//! Texts with names in them that are filled in: queries, bodies, addresses and headers.
//!
//! The grammar is the part of Go's templates that people use for this: `{{ name }}`, `{{ variables.x }}`,
//! `{{ index variables "x" }}`, the functions `print`, `printf`, `urlquery`, `html` and `js` with pipes, `{{-` and `-}}`, and
//! comments. There are no conditions, loops or definitions.
//!
//! It promises that a value stays a value: it is escaped for where it goes, within a quoted text of a query or of JSON, in an
//! address or a header; where there is no way to escape it (outside of quotes), only what cannot mean anything else is
//! taken. What is not known is an error when the template is read, not when it is used.

mod error;
mod escape;
mod expression;
mod parse;
mod scan;

use std::collections::{BTreeMap, BTreeSet};

pub use error::TemplateError;
use escape::escape;
use expression::Expression;
use scan::Within;

/// The longest text with all names filled in.
const LONGEST: usize = 64 * 1024;

/// What a template is for, which says how values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A query in `PromQL`.
    Query,
    /// A JSON document.
    Json,
    /// An address.
    Url,
    /// The value of a header.
    Header,
}

/// A text with names in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    place: Place,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Value {
        expression: Expression,
        within: Within,
        line: usize,
    },
}

/// What the names stand for. What there is none of is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// `{{ name }}`.
    pub name: String,
    /// `{{ namespace }}`.
    pub namespace: String,
    /// `{{ target }}`.
    pub target: String,
    /// `{{ service }}`.
    pub service: String,
    /// `{{ ingress }}`.
    pub ingress: String,
    /// `{{ route }}`.
    pub route: String,
    /// `{{ interval }}`.
    pub interval: String,
    /// `{{ variables.x }}`.
    pub variables: BTreeMap<String, String>,
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str, place: Place) -> Result<Self, TemplateError> {
        let pieces = parse::pieces(text, place)?;
        Ok(Self { place, pieces })
    }

    /// The variables that it needs: whoever admits it can say which are not there.
    pub fn variables(&self) -> BTreeSet<&str> {
        let mut all = BTreeSet::new();
        for piece in &self.pieces {
            if let Piece::Value { expression, .. } = piece {
                expression.variables(&mut all);
            }
        }
        all
    }

    /// Fills in the names.
    pub fn render(&self, names: &Names) -> Result<String, TemplateError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Value {
                    expression,
                    within,
                    line,
                } => {
                    let value = expression.evaluate(names, *line)?;
                    let escaped = escape(&value, self.place, *within);
                    let escaped = escaped.ok_or_else(|| TemplateError::Unsafe {
                        line: *line,
                        what: expression.to_string(),
                    })?;
                    text.push_str(&escaped);
                }
            }
            if text.len() > LONGEST {
                return Err(TemplateError::TooLong(LONGEST));
            }
        }
        if self.place == Place::Url && climbs(&text) {
            return Err(TemplateError::Climbs);
        }
        Ok(text)
    }
}

/// Whether the path of an address has `.` or `..` in it, in any spelling: whoever serves it may go up there.
fn climbs(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    let path = path.replace("%2f", "/").replace("%5c", "/");
    path.split('/').any(|part| part == "." || part == "..")
}

#[cfg(test)]
mod tests;
