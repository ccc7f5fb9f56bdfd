//! Values as texts: each value has one, and it is the same everywhere.
//!
//! A text is itself; a number is as short as it can be and still mean the same; lists and objects are JSON without spaces,
//! with their keys in order.

use serde_json::{Number, Value};

/// A value as a text. Null has none.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(json(other)),
    }
}

/// A value as JSON, the same for all values that mean the same.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(one) => out.push_str(&number(one)),
        Value::Array(list) => {
            out.push('[');
            for (place, element) in list.iter().enumerate() {
                comma(place, out);
                write(element, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (place, (key, value)) in fields.into_iter().enumerate() {
                comma(place, out);
                quote(key, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::String(text) => quote(text, out),
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
    }
}

fn comma(place: usize, out: &mut String) {
    if place > 0 {
        out.push(',');
    }
}

/// Nearly no text has anything in it that has to be escaped.
fn quote(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// A whole number has no point: `1.0` and `1` are the same value.
fn number(number: &Number) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() <= EXACT => {
            let text = format!("{value:.0}");
            if text == "-0" { "0".to_owned() } else { text }
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::{any, prop_assert_eq, prop_assume, proptest};
    use serde_json::{Value, json};

    use super::text;

    #[test]
    fn every_value_has_one_text() {
        for (value, expected) in [
            (json!("a b"), "a b"),
            (json!(""), ""),
            (json!(3030), "3030"),
            (json!(-1), "-1"),
            (json!(1.5), "1.5"),
            (json!(1.0), "1"),
            (json!(-0.0), "0"),
            (json!(1e6), "1000000"),
            (json!(0.1), "0.1"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(true), "true"),
            (json!(["a", 1, null]), r#"["a",1,null]"#),
            (
                json!({"b": 2, "a": {"d": 1.0, "c": "\""}}),
                r#"{"a":{"c":"\"","d":1},"b":2}"#,
            ),
            (json!([]), "[]"),
            (json!({}), "{}"),
        ] {
            assert_eq!(text(&value).as_deref(), Some(expected));
        }
        assert_eq!(text(&Value::Null), None);
    }

    /// What has no fractions in it is as JSON is written anyway, whatever is to be escaped.
    #[test]
    fn texts_are_quoted_as_json_has_them() {
        let odd: String = (0..0x180).filter_map(char::from_u32).collect();
        let mut all: Vec<Value> = odd.chars().map(|c| json!(c.to_string())).collect();
        all.extend([
            json!(odd),
            json!({"a\"b": {(odd.clone()): "\u{1f600}\u{7f}"}}),
        ]);
        for value in all {
            assert_eq!(super::json(&value), value.to_string());
        }
    }

    /// What is read is what was written, however often: what goes through here into a cluster is what somebody asked for.
    #[test]
    fn a_number_that_was_read_is_written_as_it_was() {
        for number in ["12.088995980580641", "31.245270191439438"] {
            let read: Value = serde_json::from_str(number).unwrap();
            assert_eq!(super::json(&read), number);
        }
    }

    proptest! {
        #[test]
        fn a_number_stays_what_it_is(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let written = super::json(&json!(number));
            let read: Value = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(read.as_f64(), Some(number));
            prop_assert_eq!(super::json(&read), written);
        }
    }
}
