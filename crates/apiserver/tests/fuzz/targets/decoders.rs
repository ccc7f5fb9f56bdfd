//! JSON bodies.

use std::sync::LazyLock;

use serde_json::Value;
use slipway_apiserver::decode::{self, Media};

use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::{any_json, damage};
use crate::fuzz::tape::Tape;

const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "false",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\",
    "1e999",
    "-0",
    "1E+2",
    "0.0",
    "01",
    "-",
    "\u{feff}",
    "{\"a\":",
    "[[",
    "18446744073709551616",
    "\"a\":1,\"a\":2",
    "\u{2028}",
    " ",
    "\t",
];

/// Damaged JSON text: where serde reads it, ours reads the same; what ours has read, it reads again.
pub(super) fn json(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let mut body = body(tape);
    damage(tape, &mut body, TOKENS, 6);
    told(|| String::from_utf8_lossy(&body).into_owned());
    let ours = decode::parse(&body, Media::Json);
    let theirs = serde_json::from_slice::<Value>(&body);
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => {
            law();
            assert!(
                !ours.duplicates.is_empty() || same(&ours.value, theirs),
                "{} is not {theirs}",
                ours.value
            );
        }
        (Err(why), Ok(_)) => panic!("refused: {why}"),
        (Ok(_), Err(why)) => {
            // What serde does not read and Go does.
            let text = why.to_string();
            let known = [
                "surrogate",
                "hex escape",
                "recursion limit",
                "number out of range",
                "unicode code point",
            ];
            assert!(
                known.iter().any(|k| text.contains(k)),
                "read, though {text}"
            );
        }
        (Err(_), Err(_)) => {}
    }
    if let Ok(parsed) = ours {
        let again = decode::parse(parsed.value.to_string().as_bytes(), Media::Json).unwrap();
        assert_eq!(again.value, parsed.value);
        assert!(again.duplicates.is_empty(), "{:?}", again.duplicates);
    }
}

/// A body that is good JSON.
pub(super) fn body(tape: &mut Tape<'_>) -> Vec<u8> {
    // Cheap cases find more.
    static SHORT: LazyLock<Vec<&[u8]>> = LazyLock::new(|| {
        let bodies = corpus().asks.iter().map(|ask| ask.body.as_slice());
        bodies
            .filter(|body| (1..3_000).contains(&body.len()))
            .collect()
    });
    if tape.once_in(4) {
        return any_json(tape, 4).to_string().into_bytes();
    }
    tape.pick(&SHORT).to_vec()
}

/// JSON without characters that YAML does not allow, or takes for the end of a line.
pub(super) fn escaped(value: &Value) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for c in value.to_string().chars() {
        if matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        ) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether two values are the same, where numbers may be held in different ways.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            // Serde is not always right in the last digit.
            let (left, right) = (
                a.as_f64().unwrap_or_default(),
                b.as_f64().unwrap_or_default(),
            );
            a == b || (left - right).abs() <= left.abs() * 1e-15
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        (a, b) => a == b,
    }
}
