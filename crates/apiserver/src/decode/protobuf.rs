//! Request bodies in protobuf, which Go clients of built-in kinds send by default.
//!
//! A body becomes the JSON that the same client would have sent, apart from empty fields, which the schema takes away
//! afterwards. Field numbers come from a table that `cargo xtask generate` makes; numbers that it does not know are
//! passed over, as they are in the real server. Answers are never protobuf.

mod table;
#[cfg(test)]
mod tests;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::json::{self, Twice};
use table::{Field, Label, Message, Type};
use wire::{Entry, Payload, Wire};

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may nest: less than JSON may, since a level takes more of the stack. No object that a schema
/// makes sense of is as deep.
const MAX_DEPTH: usize = 128;

/// Reads a body: an envelope with the kind, and the object. The error is the decoder's text.
pub(super) fn read(body: &[u8]) -> Result<Value, String> {
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        return Err(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
                .to_owned(),
        );
    };
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for entry in Wire::new(envelope) {
        match entry? {
            Entry { number: 1, payload: Payload::Bytes(bytes) } => {
                api_version = text_at(bytes, 1)?;
                kind = text_at(bytes, 2)?;
            }
            Entry { number: 2, payload: Payload::Bytes(bytes) } => raw = bytes,
            _ => {}
        }
    }
    let mut object = Map::new();
    if let Some(message) = table::kind(&api_version, &kind) {
        fill(raw, message, MAX_DEPTH, &mut object)?;
    }
    for (name, text) in [("apiVersion", api_version), ("kind", kind)] {
        if !text.is_empty() {
            object.insert(name.to_owned(), Value::String(text));
        }
    }
    Ok(Value::Object(object))
}

/// Puts the fields of a message into `object`.
fn fill(bytes: &[u8], message: &Message, depth: usize, object: &mut Map<String, Value>) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("exceeded max depth")?;
    for entry in Wire::new(bytes) {
        let Entry { number, payload } = entry?;
        let Some(field) = message.field(number) else { continue };
        if field.is_inline() {
            if let (Type::Message(name), Payload::Bytes(bytes)) = (field.ty, payload)
                && let Some(inner) = table::message(name)
            {
                fill(bytes, inner, depth, object)?;
            }
            continue;
        }
        add(object, field, payload, depth)?;
    }
    Ok(())
}

/// Adds one occurrence of a field.
fn add(object: &mut Map<String, Value>, field: &Field, payload: Payload<'_>, depth: usize) -> Result<(), String> {
    match field.label {
        Label::One => {
            object.insert(field.name.to_owned(), value(field.ty, payload, depth)?);
        }
        Label::Many => {
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = list else { return Ok(()) };
            match payload {
                // Numbers may stand packed in one entry.
                Payload::Bytes(bytes) if matches!(field.ty, Type::Whole | Type::Truth) => {
                    for number in wire::packed(bytes) {
                        items.push(value(field.ty, Payload::Varint(number?), depth)?);
                    }
                }
                _ => items.push(value(field.ty, payload, depth)?),
            }
        }
        Label::Map => {
            let Payload::Bytes(bytes) = payload else { return Err(wrong_wire(field.name)) };
            let mut key = String::new();
            let mut held = empty(field.ty);
            for entry in Wire::new(bytes) {
                let Entry { number, payload } = entry?;
                match (number, payload) {
                    (1, Payload::Bytes(bytes)) => key = text(bytes),
                    (2, payload) => held = value(field.ty, payload, depth)?,
                    _ => {}
                }
            }
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, held);
            }
        }
    }
    Ok(())
}

/// The value of a map's entry that does not tell it.
fn empty(ty: Type) -> Value {
    match ty {
        Type::Whole => Value::from(0),
        Type::Truth => Value::Bool(false),
        Type::Words => Value::Array(Vec::new()),
        Type::Message(_) => Value::Object(Map::new()),
        Type::Quantity => Value::from("0"),
        _ => Value::from(""),
    }
}

/// One value in its JSON form.
fn value(ty: Type, payload: Payload<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (ty, payload) {
        (Type::Whole, Payload::Varint(number)) => Value::from(number.cast_signed()),
        (Type::Truth, Payload::Varint(number)) => Value::Bool(number != 0),
        (Type::Fraction, Payload::Fixed64(bits)) => Value::from(f64::from_bits(bits)),
        (Type::Text, Payload::Bytes(bytes)) => Value::String(text(bytes)),
        (Type::Binary, Payload::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        (Type::Quantity, Payload::Bytes(bytes)) => Value::String(text_at(bytes, 1)?),
        (Type::WholeOrText, Payload::Bytes(bytes)) => whole_or_text(bytes)?,
        (Type::Seconds, Payload::Bytes(bytes)) => moment(bytes, "%Y-%m-%dT%H:%M:%SZ")?,
        (Type::Micros, Payload::Bytes(bytes)) => moment(bytes, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
        (Type::Json, Payload::Bytes(bytes)) => match bytes_at(bytes, 1)? {
            [] => Value::Null,
            written => json::read(written, Twice::Replace)?.value,
        },
        (Type::Words, Payload::Bytes(bytes)) => {
            let mut words = Vec::new();
            for entry in Wire::new(bytes) {
                if let Entry { number: 1, payload: Payload::Bytes(word) } = entry? {
                    words.push(Value::String(text(word)));
                }
            }
            Value::Array(words)
        }
        (Type::Message(name), Payload::Bytes(bytes)) => {
            let mut object = Map::new();
            let Some(message) = table::message(name) else { return Ok(Value::Object(object)) };
            fill(bytes, message, depth, &mut object)?;
            if message.either { either(object) } else { Value::Object(object) }
        }
        (_, Payload::Varint(_) | Payload::Fixed64(_) | Payload::Fixed32(_) | Payload::Bytes(_)) => {
            return Err(wrong_wire(""));
        }
    })
}

/// A type that is one thing or another: the schema or list if there is one, else the truth value.
fn either(object: Map<String, Value>) -> Value {
    let mut values: Vec<Value> = object.into_iter().map(|(_, value)| value).collect();
    let whole = values.iter().position(|value| value.is_object() || value.is_array());
    match whole {
        Some(index) => values.swap_remove(index),
        None => values.pop().unwrap_or(Value::Null),
    }
}

fn whole_or_text(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number) = (false, 0);
    for entry in Wire::new(bytes) {
        match entry? {
            Entry { number: 1, payload: Payload::Varint(kind) } => is_text = kind == 1,
            Entry { number: 2, payload: Payload::Varint(whole) } => number = whole.cast_signed(),
            _ => {}
        }
    }
    Ok(if is_text { Value::String(text_at(bytes, 3)?) } else { Value::from(number) })
}

/// A time; an empty message is none.
fn moment(bytes: &[u8], layout: &str) -> Result<Value, String> {
    let (mut seconds, mut nanos) = (0, 0);
    for entry in Wire::new(bytes) {
        match entry? {
            Entry { number: 1, payload: Payload::Varint(value) } => seconds = value.cast_signed(),
            Entry { number: 2, payload: Payload::Varint(value) } => nanos = value.cast_signed(),
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).unwrap_or_default();
    let moment = Timestamp::new(seconds, nanos).map_err(|error| error.to_string())?;
    Ok(Value::String(moment.strftime(layout).to_string()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The text in one field of a message; empty if it is not there.
fn text_at(bytes: &[u8], number: u32) -> Result<String, String> {
    bytes_at(bytes, number).map(text)
}

fn bytes_at(bytes: &[u8], wanted: u32) -> Result<&[u8], String> {
    let mut found = &[][..];
    for entry in Wire::new(bytes) {
        if let Entry { number, payload: Payload::Bytes(bytes) } = entry?
            && number == wanted
        {
            found = bytes;
        }
    }
    Ok(found)
}

fn wrong_wire(field: &str) -> String {
    format!("proto: wrong wireType for field {field}")
}
