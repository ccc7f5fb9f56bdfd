//! YAML bodies.

use std::fmt::Write;

use serde_json::Value;
use slipway_apiserver::decode::{self, Media};

use super::decoders::{body, escaped, same};
use super::{law, told};
use crate::fuzz::generate::{any_json, damage, disturb};
use crate::fuzz::tape::Tape;

const TOKENS: &[&str] = &[
    "- ",
    ": ",
    "\n",
    "  ",
    "? ",
    "| ",
    "|\n",
    ">\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: ",
    "<<: *a\n",
    "!!binary ",
    "!!str ",
    "!!int ",
    "!x ",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "#",
    "'",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    "~",
    "yes",
    "0o7",
    "0x1F",
    "1_0",
    ".inf",
    ".nan",
    "2001-01-01",
    "\t",
    "\u{feff}",
    "\u{85}",
    "\\x",
    "- - - ",
    "{a: ",
    "[[",
    "1e3",
    "null: ",
    "true: 1\n",
    "1: 2\n",
    "a: b: c",
];

/// JSON is YAML; a value written as blocks is read back; damage is refused or read, and reading ends.
pub(super) fn yaml(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let value = value(tape);
    let mut text = String::new();
    if tape.once_in(3) {
        text = escaped(&value);
    } else {
        write_block(&mut text, &value, 0);
    }
    told(|| text.clone());
    let parsed =
        decode::parse(text.as_bytes(), Media::Yaml).unwrap_or_else(|why| panic!("{text}: {why}"));
    assert!(
        same(&parsed.value, &value),
        "{text} is not {}",
        parsed.value
    );
    assert!(parsed.duplicates.is_empty(), "{:?}", parsed.duplicates);

    let mut body = text.into_bytes();
    damage(tape, &mut body, TOKENS, 6);
    told(|| String::from_utf8_lossy(&body).into_owned());
    if let Ok(parsed) = decode::parse(&body, Media::Yaml) {
        // What has come out is JSON.
        law();
        let again = decode::parse(parsed.value.to_string().as_bytes(), Media::Json);
        assert!(same(&again.unwrap().value, &parsed.value));
    }
}

fn value(tape: &mut Tape<'_>) -> Value {
    let mut value = if tape.once_in(3) {
        any_json(tape, 4)
    } else {
        serde_json::from_slice(&body(tape)).unwrap_or_default()
    };
    disturb(tape, &mut value, 2);
    value
}

fn write_block(out: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, value) in map {
                let _ = write!(out, "{indent}{}:", escaped(&Value::from(name.as_str())));
                write_below(out, value, depth);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(out, "{indent}-");
                write_below(out, item, depth);
            }
        }
        plain => {
            let _ = writeln!(out, "{indent}{}", escaped(plain));
        }
    }
}

fn write_below(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            write_block(out, value, depth + 1);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_block(out, value, depth + 1);
        }
        plain => {
            let _ = writeln!(out, " {}", escaped(plain));
        }
    }
}
