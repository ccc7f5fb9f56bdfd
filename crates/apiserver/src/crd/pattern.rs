//! Patterns of strings, as Go's `regexp` understands them.
//!
//! Schemas repeat themselves: an API has one pattern for its durations, and dozens of fields with it. So there is one
//! machine for each pattern, made when the first text is held against it.

use std::sync::{Arc, OnceLock};

use regex::Regex;

use crate::shelf::{Kept, Shelf};

/// All patterns that are in use.
static PATTERNS: Shelf<Box<str>, Machine> = Shelf::new();

type Machine = OnceLock<Result<Regex, String>>;

/// A pattern.
#[derive(Debug, Clone)]
pub struct Pattern(Arc<Kept<Box<str>, Machine>>);

impl Pattern {
    /// The pattern of this text.
    pub fn new(text: &str) -> Self {
        Self(PATTERNS.get(text, || (text.into(), Machine::new())))
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        self.0.content()
    }

    /// Its machine, or why there can be none.
    pub fn machine(&self) -> Result<&Regex, &str> {
        let made = self.0.get_or_init(|| compile(self.text()));
        made.as_ref().map_err(String::as_str)
    }
}

/// Compiles a pattern as Go's `regexp` would understand it.
///
/// Go counts `\d`, `\w`, `\s` and `\b` in ASCII; the rest of the two dialects is the same for what people write.
fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(&ascii_classes(pattern)).map_err(|e| e.to_string())
}

fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        if c == '\\' {
            match chars.next() {
                Some('d') if in_class => out.push_str("0-9"),
                Some('w') if in_class => out.push_str("0-9A-Za-z_"),
                Some('d') => out.push_str("[0-9]"),
                Some('D') if !in_class => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') if !in_class => out.push_str("[^0-9A-Za-z_]"),
                Some('s') if in_class => out.push_str(r"\t\n\f\r\x20"),
                Some('s') => out.push_str(r"[\t\n\f\r\x20]"),
                Some('S') if !in_class => out.push_str(r"[^\t\n\f\r\x20]"),
                Some(next) => {
                    out.push('\\');
                    out.push(next);
                }
                None => out.push('\\'),
            }
            continue;
        }
        match c {
            '[' if !in_class => in_class = true,
            // Go has no nested classes and no set operations: these are plain characters there.
            '[' if !chars.as_str().starts_with(':') => {
                out.push('\\');
            }
            ']' => in_class = false,
            '&' | '~' if in_class => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_closing_bracket_first_in_a_class_and_ascii_digits() {
        assert!(compile(r"^\d+$").unwrap().is_match("12"));
        assert!(!compile(r"^\d+$").unwrap().is_match("٣"));
        assert!(compile(r"^[\w.-]+$").unwrap().is_match("a.b-c_9"));
        assert!(compile(r"^[[:alpha:]&]+$").unwrap().is_match("a&b"));
        assert!(compile("(").is_err());
    }

    #[test]
    fn a_pattern_has_one_machine() {
        let (one, other) = (Pattern::new("^a+$"), Pattern::new("^a+$"));
        assert!(std::ptr::eq(
            one.machine().unwrap(),
            other.machine().unwrap()
        ));
        assert!(one.machine().unwrap().is_match("aa"));
        assert!(Pattern::new("(").machine().is_err());
    }
}
