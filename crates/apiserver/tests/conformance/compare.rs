//! Partial matches (what a behaviour claims) and differences (what a person reads when it does not hold).

use regex::Regex;
use serde_json::Value;

/// Longer reports help nobody.
const LINES: usize = 60;
/// Longer values are cut.
const WIDTH: usize = 600;

/// Why `value` does not match `pattern`, or nothing.
///
/// Objects match when every key of the pattern does; arrays element by element; `null` matches an absent key;
/// a string that starts with `~` is a regular expression; anything else must be equal.
pub(crate) fn mismatch(pattern: &Value, value: &Value, at: &str) -> Option<String> {
    match (pattern, value) {
        (Value::Object(keys), Value::Object(object)) => keys.iter().find_map(|(key, pattern)| {
            mismatch(
                pattern,
                object.get(key).unwrap_or(&Value::Null),
                &format!("{at}/{key}"),
            )
        }),
        (Value::Array(patterns), Value::Array(items)) if patterns.len() == items.len() => {
            let pairs = patterns.iter().zip(items).enumerate();
            pairs.into_iter().find_map(|(index, (pattern, item))| {
                mismatch(pattern, item, &format!("{at}/{index}"))
            })
        }
        (Value::String(expected), Value::String(text)) if expected.starts_with('~') => {
            match Regex::new(expected.trim_start_matches('~')) {
                Ok(regex) if regex.is_match(text) => None,
                Ok(_) => Some(format!("{at}: {} does not match {expected}", short(value))),
                Err(error) => Some(format!("{at}: {error}")),
            }
        }
        _ if pattern == value => None,
        _ => Some(format!(
            "{at}: claimed {}, got {}",
            short(pattern),
            short(value)
        )),
    }
}

/// The places where two transcripts differ, one line each.
pub(crate) fn difference(expected: &Value, got: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk(expected, got, "", &mut lines);
    if lines.len() > LINES {
        let more = lines.len() - LINES;
        lines.truncate(LINES);
        lines.push(format!("… and {more} more"));
    }
    lines
}

fn walk(expected: &Value, got: &Value, at: &str, lines: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                match right.get(key) {
                    Some(other) => walk(value, other, &format!("{at}/{key}"), lines),
                    None => lines.push(format!(
                        "{at}/{key}\n      expected {}\n      got      nothing",
                        short(value)
                    )),
                }
            }
            for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(*key)) {
                lines.push(format!(
                    "{at}/{key}\n      expected nothing\n      got      {}",
                    short(value)
                ));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                walk(value, other, &format!("{at}/{index}"), lines);
            }
        }
        _ if expected == got => {}
        _ => lines.push(format!(
            "{at}\n      expected {}\n      got      {}",
            short(expected),
            short(got)
        )),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
