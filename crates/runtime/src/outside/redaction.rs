//! Takes what is secret out of what others say.
//!
//! Servers repeat what they were sent: in errors, in pages, in redirects. All that is kept of an answer goes through here,
//! before it is cut. A value is looked for as it is and in base64, in the text and in what the text means: where each program
//! escapes as it pleases (`&`, `\u0026`, `%26`, `&amp;`), the text is read as each notation has it. All of it takes time by the
//! length of the text, whatever is in it.

mod search;
mod view;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use slipway_kernel::question::prometheus::Measured;
use slipway_kernel::question::{Answer, Failure, Reply, Value};

use search::Pattern;
use view::{LONGEST_ESCAPE, views};

/// What stands in its place.
const INSTEAD: &str = "[secret]";
/// Shorter values are found in any text, and are none that keep anything secret.
const SHORTEST: usize = 4;

/// The values that must not be seen.
#[derive(Default)]
pub(super) struct Redaction(Vec<Pattern>);

impl Redaction {
    /// Adds a value in all its forms.
    pub(super) fn add(&mut self, secret: &str) {
        if secret.len() < SHORTEST {
            return;
        }
        let forms = [
            secret.to_owned(),
            STANDARD.encode(secret),
            STANDARD_NO_PAD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
        ];
        for form in forms {
            let pattern = Pattern::new(form.into_bytes());
            if !self.0.contains(&pattern) {
                self.0.push(pattern);
            }
        }
    }

    /// How long one of them may be in a text: so much more has to be read for nothing to be cut in two.
    pub(super) fn longest(&self) -> usize {
        let longest = self.0.iter().map(Pattern::len).max();
        longest.unwrap_or(0).saturating_mul(LONGEST_ESCAPE)
    }

    /// Whether one of them is in a text, in whatever case.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let lower: Vec<Pattern> = self.0.iter().map(Pattern::to_lowercase).collect();
        !found(&lower, text.as_bytes()).is_empty()
    }

    /// A body without them.
    pub(super) fn of_bytes(&self, body: &[u8]) -> Vec<u8> {
        replaced(body, &found(&self.0, body), body.len())
    }

    /// The beginning of a body without them. At its end one may have been cut in two, which nobody would find: so much is
    /// left out.
    pub(super) fn of_beginning(&self, body: &[u8]) -> Vec<u8> {
        let end = body.len().saturating_sub(self.longest());
        replaced(body, &found(&self.0, body), end)
    }

    /// A text without them.
    pub(super) fn of_text(&self, text: String) -> String {
        let found = found(&self.0, text.as_bytes());
        if found.is_empty() {
            return text;
        }
        let clean = replaced(text.as_bytes(), &found, text.len());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// An answer without them.
    pub(super) fn of_answer(&self, answer: Answer) -> Answer {
        match answer {
            Ok(Reply { code, value }) => Ok(Reply {
                code,
                value: self.of_value(value),
            }),
            Err(failure) => Err(self.of_failure(failure)),
        }
    }

    fn of_value(&self, value: Value) -> Value {
        match value {
            Value::Text(mut text) => {
                text.text = self.of_text(text.text);
                Value::Text(text)
            }
            Value::Measured(Measured::Partial { reading, warnings }) => {
                let warnings = warnings.into_iter().map(|text| self.of_text(text));
                Value::Measured(Measured::Partial {
                    reading,
                    warnings: warnings.collect(),
                })
            }
            value => value,
        }
    }

    fn of_failure(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Refused { code, message } => Failure::Refused {
                code,
                message: self.of_text(message),
            },
            Failure::Malformed(text) => Failure::Malformed(self.of_text(text)),
            Failure::Unreachable(text) => Failure::Unreachable(self.of_text(text)),
            Failure::NotAllowed(text) => Failure::NotAllowed(self.of_text(text)),
            failure @ (Failure::Timeout(_) | Failure::TooLarge { .. }) => failure,
        }
    }
}

/// From where to where they are in a text, in order and apart from each other.
fn found(patterns: &[Pattern], text: &[u8]) -> Vec<(usize, usize)> {
    if patterns.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for view in views(text) {
        for pattern in patterns {
            pattern.each_in(&view.bytes, |from, to| all.push(view.place(from, to)));
        }
    }
    all.sort_unstable();
    let mut apart: Vec<(usize, usize)> = Vec::new();
    for (from, to) in all {
        match apart.last_mut() {
            Some((_, end)) if from < *end => *end = to.max(*end),
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// The text with these replaced, as far as what begins before `end`.
fn replaced(text: &[u8], found: &[(usize, usize)], end: usize) -> Vec<u8> {
    let (mut out, mut next) = (Vec::with_capacity(text.len()), 0);
    for (from, to) in found.iter().filter(|(from, _)| *from < end) {
        out.extend_from_slice(text.get(next..*from).unwrap_or_default());
        out.extend_from_slice(INSTEAD.as_bytes());
        next = *to;
    }
    out.extend_from_slice(text.get(next..end).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
