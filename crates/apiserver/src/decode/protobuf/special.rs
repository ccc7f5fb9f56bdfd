//! Messages whose JSON is not an object of their fields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::wire::{Wire, Wired};
use super::{Reader, text};
use crate::decode::json::{self, MAX_DEPTH, Twice};
use crate::decode::time::{Precision, show};
use crate::schema::View;

/// `Time` and `MicroTime`: seconds and nanoseconds since 1970. Nothing at all is no time.
pub(super) fn time(data: &[u8], go_type: &str) -> Wired<Value> {
    if data.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag("Timestamp")? {
        match tag.number {
            1 => seconds = wire.varint(tag, "Seconds")?.cast_signed(),
            #[allow(clippy::cast_possible_truncation, reason = "as Go does")]
            2 => nanos = wire.varint(tag, "Nanos")? as i32,
            _ => wire.skip(tag)?,
        }
    }
    let (precision, nanos) = match go_type {
        "v1.MicroTime" => (Precision::Micros, nanos - nanos % 1000),
        _ => (Precision::Seconds, 0),
    };
    let moment = i64::from(nanos.div_euclid(1_000_000_000))
        .checked_add(seconds)
        .and_then(|seconds| Timestamp::new(seconds, nanos.rem_euclid(1_000_000_000)).ok())
        .ok_or("proto: Timestamp: out of range")?;
    Ok(show(moment, precision).map_or(Value::Null, Value::String))
}

/// Bytes, which JSON writes in base64.
pub(super) fn bytes(data: &[u8]) -> Value {
    STANDARD.encode(data).into()
}

/// `Quantity`, which conforming makes canonical.
pub(super) fn quantity(data: &[u8]) -> Wired<Value> {
    let mut quantity = "0".to_owned();
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag("Quantity")? {
        match tag.number {
            1 => quantity = text(wire.bytes(tag, "String_")?),
            _ => wire.skip(tag)?,
        }
    }
    Ok(quantity.into())
}

/// `IntOrString`: which of the two it is, and both.
pub(super) fn int_or_string(data: &[u8]) -> Wired<Value> {
    let (mut kind, mut number, mut string) = (0, 0, String::new());
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag("IntOrString")? {
        match tag.number {
            1 => kind = wire.varint(tag, "Type")?,
            #[allow(clippy::cast_possible_truncation, reason = "as Go does")]
            2 => number = wire.varint(tag, "IntVal")? as i32,
            3 => string = text(wire.bytes(tag, "StrVal")?),
            _ => wire.skip(tag)?,
        }
    }
    Ok(if kind == 1 {
        string.into()
    } else {
        number.into()
    })
}

/// A list that is a message of its own: `ExtraValue`. An empty one is `null`, as Go leaves it.
pub(super) fn wrapped(data: &[u8], go_type: &str) -> Wired<Value> {
    let message = go_type.rsplit('.').next().unwrap_or_default();
    let mut items = Vec::new();
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag(message)? {
        match tag.number {
            1 => items.push(Value::String(text(wire.bytes(tag, message)?))),
            _ => wire.skip(tag)?,
        }
    }
    Ok(if items.is_empty() {
        Value::Null
    } else {
        Value::Array(items)
    })
}

/// A message that holds JSON: `RawExtension`, `FieldsV1`, `JSON`. `depth` is that of the message.
pub(super) fn raw(data: &[u8], message: &str, depth: usize) -> Wired<Value> {
    let mut found: &[u8] = &[];
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag(message)? {
        match tag.number {
            1 => found = wire.bytes(tag, "Raw")?,
            _ => wire.skip(tag)?,
        }
    }
    if found.is_empty() {
        return Ok(Value::Null);
    }
    let value = match json::read(found, Twice::Replace) {
        Ok(document) => document.value,
        // Managed fields that make no sense are forgotten, not refused.
        Err(_) if message == "FieldsV1" => return Ok(Value::Null),
        Err(text) => return Err(text),
    };
    // What is around it must fit into the limit as well.
    if nests(&value, MAX_DEPTH.saturating_sub(2 * depth)) {
        return Err("exceeded max depth".to_owned());
    }
    Ok(value)
}

/// Whether a value is nested deeper than `most` levels.
fn nests(value: &Value, most: usize) -> bool {
    let inner = |value: &Value| most == 0 || nests(value, most - 1);
    match value {
        Value::Array(items) => most == 0 || items.iter().any(inner),
        Value::Object(map) => most == 0 || map.values().any(inner),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A schema or something else: `JSONSchemaPropsOrBool` and its like, by their `OpenAPI` name.
pub(super) fn either(
    reader: &mut Reader,
    name: &str,
    schema: View<'_>,
    data: &[u8],
) -> Wired<Value> {
    let message = name.rsplit('.').next().unwrap_or_default();
    let (is_bool, is_array) = (message.ends_with("OrBool"), message.ends_with("OrArray"));
    let (mut props, mut items, mut allows) = (None, Vec::new(), false);
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag(message)? {
        match (tag.number, is_bool) {
            (1, true) => allows = wire.varint(tag, "Allows")? != 0,
            (1, false) | (2, true) => {
                let data = wire.bytes(tag, "Schema")?;
                reader.structure(schema, data, props.get_or_insert_with(Map::new))?;
            }
            (2, false) if is_array => {
                let mut item = Map::new();
                let data = wire.bytes(tag, "JSONSchemas")?;
                reader.structure(schema, data, &mut item)?;
                items.push(Value::Object(item));
            }
            (2, false) => items.push(Value::String(text(wire.bytes(tag, "Property")?))),
            _ => wire.skip(tag)?,
        }
    }
    Ok(match props {
        _ if !items.is_empty() => Value::Array(items),
        Some(props) => Value::Object(props),
        None if is_bool => Value::Bool(allows),
        None => Value::Null,
    })
}
