//! What a YAML scalar stands for.

use serde_json::{Number, Value};

/// A scalar with its type.
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Whole(Number),
    Float(f64),
    Text(String),
}

/// Gives a scalar its type: by its tag, or if it is plain by its look.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Scalar, String> {
    let looks = |text: &str| look(text).unwrap_or_else(|| Scalar::Text(text.to_owned()));
    match tag {
        Some(tag @ ("int" | "float" | "bool" | "null")) => {
            let found = looks(text);
            match (tag, &found) {
                ("float", Scalar::Whole(number)) => {
                    Ok(Scalar::Float(number.as_f64().unwrap_or_default()))
                }
                ("int", Scalar::Whole(_))
                | ("float", Scalar::Float(_))
                | ("bool", Scalar::Bool(_))
                | ("null", Scalar::Null) => Ok(found),
                (_, found) => Err(format!(
                    "yaml: cannot decode !!{} `{text}` as a !!{tag}",
                    found.tag()
                )),
            }
        }
        None if plain => Ok(looks(text)),
        _ => Ok(Scalar::Text(text.to_owned())),
    }
}

impl Scalar {
    fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Whole(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
        }
    }

    /// As a value. A float without fraction becomes a whole number, as it does on its way through JSON.
    pub(super) fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            Self::Whole(number) => Value::Number(number),
            Self::Float(float) => {
                let value = Number::from_f64(float).map(Value::Number);
                let mut value = value.ok_or_else(|| {
                    let shown = match float {
                        f if f.is_nan() => "NaN",
                        f if f > 0.0 => "+Inf",
                        _ => "-Inf",
                    };
                    format!("json: unsupported value: {shown}")
                })?;
                crate::decode::settle_numbers(&mut value);
                value
            }
            Self::Text(text) => Value::String(text),
        })
    }

    /// As the key of an object.
    pub(super) fn into_key(self) -> Result<String, String> {
        Ok(match self {
            Self::Null => {
                return Err("unsupported map key of type: %!s(<nil>), key: <nil>".to_owned());
            }
            Self::Bool(flag) => flag.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Float(float) => float.to_string(),
            Self::Text(text) => text,
        })
    }
}

/// What a plain scalar looks like; none for text.
fn look(text: &str) -> Option<Scalar> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Scalar::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(Scalar::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(Scalar::Bool(false));
        }
        ".nan" | ".NaN" | ".NAN" => return Some(Scalar::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Some(Scalar::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Some(Scalar::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    let first = text.chars().next()?;
    if !(first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let plain = text.replace('_', "");
    whole(&plain)
        .map(Scalar::Whole)
        .or_else(|| float(&plain).map(Scalar::Float))
}

/// A whole number with Go's prefixes: `0x`, `0o`, `0b`, and a plain `0` for octal.
fn whole(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (lower.get(2..)?, 16),
        [b'0', b'o', ..] => (lower.get(2..)?, 8),
        [b'0', b'b', ..] => (lower.get(2..)?, 2),
        [b'0', _, ..] => (lower.get(1..)?, 8),
        _ => (lower.as_str(), 10),
    };
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let amount = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        let amount = i128::from(amount);
        return Some(Number::from(i64::try_from(-amount).ok()?));
    }
    Some(Number::from(amount))
}

fn float(text: &str) -> Option<f64> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = body
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b'.');
    let has_digit = digits.clone().any(|b| b.is_ascii_digit());
    let known = body
        .bytes()
        .all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    (has_digit && known).then(|| text.parse().ok()).flatten()
}
