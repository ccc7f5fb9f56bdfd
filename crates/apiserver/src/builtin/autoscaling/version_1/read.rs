//! Reading JSON as Go does into typed fields: names in any case, `null` for nothing, other types refused.

use serde_json::Value;

use crate::builtin::quantity::Quantity;

/// The text is not what was expected.
#[derive(Debug)]
pub(super) struct Unreadable;

/// One field and its value, as JSON.
pub(super) fn pair(name: &str, value: &Value) -> String {
    format!("\"{name}\":{value}")
}

/// The field of this name, in any case; none if it is `null`.
pub(super) fn field<'a>(value: &'a Value, name: &str) -> Result<Option<&'a Value>, Unreadable> {
    match value {
        Value::Null => Ok(None),
        Value::Object(map) => {
            let in_any_case = || map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            let found = map
                .get(name)
                .or_else(|| in_any_case().map(|(_, value)| value));
            Ok(found.filter(|value| !value.is_null()))
        }
        _ => Err(Unreadable),
    }
}

pub(super) fn list(value: &Value) -> Result<&[Value], Unreadable> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        _ => Err(Unreadable),
    }
}

pub(super) fn string<'a>(value: &'a Value, name: &str) -> Result<&'a str, Unreadable> {
    match field(value, name)? {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Unreadable),
    }
}

pub(super) fn number(value: &Value, name: &str) -> Result<Option<i64>, Unreadable> {
    let Some(found) = field(value, name)? else {
        return Ok(None);
    };
    let number = found.as_i64().filter(|n| i32::try_from(*n).is_ok());
    number.map(Some).ok_or(Unreadable)
}

pub(super) fn amount(value: &Value, name: &str) -> Result<Option<String>, Unreadable> {
    let Some(found) = field(value, name)? else {
        return Ok(None);
    };
    let amount = Quantity::from_value(found).map_err(|_| Unreadable)?;
    Ok(Some(amount.to_string()))
}
