//! From a patched object of a built-in kind to the typed one.

use serde_json::Value;

use super::{Patched, undecodable};
use crate::decode::{self, FieldValidation, Target};
use crate::schema::{Schema, Shape, View};
use crate::status::Outcome;

/// A patched object that fits its kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The object.
    pub object: Value,
    /// For the client.
    pub warnings: Vec<String>,
}

/// Decodes a patched object as its kind. Fields that the kind does not know, and what was odd in the patch, become
/// warnings or the 422 answer.
pub fn settle(
    patched: Patched,
    schema: &Schema,
    target: &Target<'_>,
    validation: FieldValidation,
) -> Outcome<Settled> {
    let mut object = patched.object;
    let is_strategic = patched.shown.is_some();
    let shown = patched.shown.unwrap_or_else(|| object.to_string());
    let refuse = |why: &str| Box::new(undecodable(&shown, why));
    if is_strategic {
        if let Some(why) = restore(schema.view(), &object) {
            return Err(refuse(&why));
        }
        // The typed object takes whatever kind the patch names, and then loses it.
        for field in ["apiVersion", "kind"] {
            crate::value::take(&mut object, field);
        }
    }
    decode::expect_kind(&mut object, shown.as_bytes(), target).map_err(|status| {
        let handled = format!("cannot be handled as a {}: ", target.kind);
        let why = status.message.split_once(&handled).map(|(_, why)| why);
        refuse(why.unwrap_or(&status.message))
    })?;
    let mut unknown = decode::shape(schema, &mut object).map_err(|why| refuse(&why))?;
    if is_strategic {
        unknown.sort();
    }
    let mut noticed = patched.complaints;
    noticed.extend(unknown);
    match validation {
        FieldValidation::Strict if !noticed.is_empty() => {
            Err(refuse(&decode::strict_error(&noticed)))
        }
        FieldValidation::Warn => Ok(Settled {
            object,
            warnings: noticed,
        }),
        FieldValidation::Strict | FieldValidation::Ignore => Ok(Settled {
            object,
            warnings: Vec::new(),
        }),
    }
}

/// What the converter from maps to structs says of the first value that does not fit, in its own words. What has a
/// decoder of its own (times, quantities) is left to that.
fn restore(view: View<'_>, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let kind = kind(value);
    match (view.node.shape, value) {
        (Shape::Object, Value::Object(map)) => map
            .iter()
            .find_map(|(key, value)| restore(view.child(key)?, value)),
        (Shape::Object, _) if view.node.values.is_some() => {
            Some(format!("cannot restore map from {kind}"))
        }
        (Shape::Object, _) => Some(format!("cannot restore struct from: {kind}")),
        (Shape::List, Value::Array(items)) => {
            let item = view.items()?;
            items.iter().find_map(|value| restore(item, value))
        }
        (Shape::List, _) => Some(format!("cannot restore slice from {kind}")),
        (Shape::String, _) if &*view.node.format == "date-time" => None,
        (Shape::String, Value::String(_))
        | (Shape::Number, Value::Number(_))
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::Any | Shape::IntOrString | Shape::Quantity, _) => None,
        (Shape::String, _) if &*view.node.format == "byte" => {
            Some(format!("cannot restore slice from {kind}"))
        }
        (Shape::String, Value::Number(number)) if !number.is_f64() => Some(format!(
            "cannot convert int64 to {}",
            go_type(view, "string")
        )),
        (Shape::String, _) => Some("unrecognized type: string".to_owned()),
        (Shape::Integer, Value::Number(number)) => {
            let is_whole = number.as_f64().is_none_or(|float| float.fract() == 0.0);
            (!is_whole)
                .then(|| format!("cannot convert float64 to {}", go_type(view, integer(view))))
        }
        (Shape::Integer, _) => Some(format!("unrecognized type: {}", integer(view))),
        (Shape::Number, _) => Some("unrecognized type: float64".to_owned()),
        (Shape::Boolean, _) => Some("unrecognized type: bool".to_owned()),
    }
}

fn integer(view: View<'_>) -> &'static str {
    if &*view.node.format == "int32" {
        "int32"
    } else {
        "int64"
    }
}

fn go_type<'a>(view: View<'a>, plain: &'a str) -> &'a str {
    match view.node.go_type.trim_start_matches('*') {
        "" => plain,
        named => named,
    }
}

/// Go's `reflect.Kind` of what a JSON value is held in.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
