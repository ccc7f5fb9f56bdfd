//! Values as they may stand in a text.

use std::fmt::Write as _;

use super::Place;
use super::expression::{Form, Rendered};
use super::scan::Within;
use crate::address;
use crate::question::Number;

/// A value for where it goes; none if it cannot stand there.
pub(super) fn escape(value: &Rendered, place: Place, within: Within) -> Option<String> {
    let text = value.shown();
    match (place, within) {
        // One part of a name, which leads nowhere else than where the parts around it lead.
        (_, Within::Authority) => {
            let is_label = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            (!text.is_empty() && text.bytes().all(is_label)).then_some(text)
        }
        (Place::Url, _) if value.form == Form::Escaped => Some(text),
        (Place::Url, _) => Some(address::escaped(&text)),
        (Place::Header, _) => {
            let is_plain = text.bytes().all(|b| (b' '..=b'~').contains(&b));
            is_plain.then_some(text)
        }
        (_, Within::Raw) => (!text.contains('`')).then_some(text),
        (Place::Json, Within::Quotes(_)) => Some(json(&text)),
        (Place::Query, Within::Quotes(quote)) => Some(quoted(&text, quote)),
        (Place::Json, Within::Bare) if value.form == Form::Quoted => {
            Some(format!("\"{}\"", json(&value.text)))
        }
        (Place::Query, Within::Bare) if value.form == Form::Quoted => {
            Some(format!("\"{}\"", quoted(&value.text, '"')))
        }
        (Place::Json, Within::Bare) => {
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            let is_word = value.is_number() || value.is_boolean() || value.is_null();
            (is_word && text.trim() == text).then_some(text)
        }
        (Place::Query, Within::Bare) => {
            let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_:.".contains(&b);
            // In the middle of a word a sign would be a sum of two.
            let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
            let is_plain = unsigned.bytes().all(is_word) || Number::parse(&text).is_some();
            is_plain.then_some(text)
        }
    }
}

/// The inside of a text in quotes, as Go and `PromQL` write it.
pub(super) fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn json(text: &str) -> String {
    let whole = serde_json::Value::from(text).to_string();
    let inner = whole.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}
