//! Takes what is secret out of what others say.
//!
//! Servers repeat what they were sent: in errors, in pages, in redirects. All that is kept of an answer goes through here,
//! before it is cut, in each form in which the value may have been sent or come back.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use slipway_kernel::Sensitive;
use slipway_kernel::address::escaped;
use slipway_kernel::question::prometheus::Measured;
use slipway_kernel::question::{Answer, Failure, Reply, Value};

/// What stands in its place.
const INSTEAD: &str = "[secret]";
/// Shorter values are found in any text, and are none that keep anything secret.
const SHORTEST: usize = 4;

/// The values that must not be seen.
#[derive(Default)]
pub(super) struct Redaction(Vec<Sensitive<String>>);

impl Redaction {
    /// Adds a value in all its forms.
    pub(super) fn add(&mut self, secret: &str) {
        if secret.len() < SHORTEST {
            return;
        }
        let json = serde_json::Value::from(secret).to_string();
        let forms = [
            secret.to_owned(),
            escaped(secret),
            escaped(secret).to_ascii_lowercase(),
            escaped(secret).replace("%20", "+"),
            json.trim_matches('"').to_owned(),
            STANDARD.encode(secret),
            STANDARD_NO_PAD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
        ];
        for form in forms {
            let form = Sensitive::new(form);
            if !self.0.contains(&form) {
                self.0.push(form);
            }
        }
        // What contains another goes first.
        self.0
            .sort_by_key(|form| std::cmp::Reverse(form.expose().len()));
    }

    /// How long the longest form is: so much more has to be read for nothing to be cut in two.
    pub(super) fn longest(&self) -> usize {
        self.0.first().map_or(0, |form| form.expose().len())
    }

    /// Whether one of them is in a text, in whatever case.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let mut forms = self.0.iter();
        forms.any(|form| text.contains(&form.expose().to_ascii_lowercase()))
    }

    /// A body without them.
    pub(super) fn of_bytes(&self, mut body: Vec<u8>) -> Vec<u8> {
        for form in &self.0 {
            let form = form.expose().as_bytes();
            if let Some(clean) = without(&body, form) {
                body = clean;
            }
        }
        body
    }

    /// A text without them.
    pub(super) fn of_text(&self, text: String) -> String {
        if self.0.iter().all(|form| !text.contains(form.expose())) {
            return text;
        }
        String::from_utf8_lossy(&self.of_bytes(text.into_bytes())).into_owned()
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

/// The bytes with each `what` replaced; none if it is not there.
fn without(bytes: &[u8], what: &[u8]) -> Option<Vec<u8>> {
    let find = |from: &[u8]| from.windows(what.len()).position(|window| window == what);
    let mut at = find(bytes)?;
    let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    loop {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        out.extend_from_slice(INSTEAD.as_bytes());
        rest = rest.get(at + what.len()..).unwrap_or_default();
        match find(rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.extend_from_slice(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_taken_out_in_every_form() {
        let secret = "s3cret/with \"odd\"=parts";
        let mut redaction = Redaction::default();
        redaction.add(secret);
        redaction.add("abc");
        for form in [
            secret.to_owned(),
            escaped(secret),
            format!("Basic {}", STANDARD.encode(secret)),
            serde_json::Value::from(secret).to_string(),
            format!("{secret}{secret}"),
        ] {
            let clean = redaction.of_text(format!("before {form} after"));
            assert!(
                clean.contains(INSTEAD) && !clean.contains("s3cret"),
                "{clean}"
            );
            assert!(
                clean.starts_with("before ") && clean.ends_with(" after"),
                "{clean}"
            );
        }
        assert_eq!(redaction.of_text("abc".to_owned()), "abc");
        assert_eq!(redaction.of_bytes(vec![0xff, 1]), [0xff, 1]);
        let failure = Failure::Unreachable(secret.to_owned());
        let failure = redaction.of_answer(Err(failure)).unwrap_err();
        assert_eq!(failure, Failure::Unreachable(INSTEAD.to_owned()));
    }
}
