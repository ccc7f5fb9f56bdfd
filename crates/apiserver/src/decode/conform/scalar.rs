//! Scalars: text, numbers, times, quantities.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::{Conformer, Place, kind_of};
use crate::builtin::quantity::Quantity;
use crate::decode::time::{self, Precision};
use crate::schema::{Shape, View};

impl Conformer<'_> {
    pub(super) fn scalar(&mut self, view: View<'_>, value: &mut Value, place: &Place<'_>) {
        let node = view.node;
        match (node.shape, &mut *value) {
            (Shape::Quantity, value) => self.quantity(value, place),
            (Shape::String, value) if &*node.format == "date-time" => self.time(view, value, place),
            (Shape::String, value) if &*node.format == "byte" => self.bytes(view, value, place),
            (Shape::String | Shape::IntOrString, Value::String(_))
            | (Shape::Boolean, Value::Bool(_)) => {}
            (Shape::Integer, Value::Number(number)) => {
                let fits = number.as_i64().is_some_and(|n| fits(n, &node.format));
                if let Some(literal) = self.unfit(number, place, fits) {
                    self.mismatch(&format!("number {literal}"), &node.go_type, place);
                }
            }
            (Shape::Number, Value::Number(number)) => {
                if let Some(literal) = self
                    .unfit(number, place, true)
                    .filter(|l| l.parse::<f64>().is_ok_and(f64::is_infinite))
                {
                    self.mismatch(&format!("number {literal}"), &node.go_type, place);
                } else {
                    crate::decode::settle_numbers(value);
                }
            }
            (Shape::IntOrString, Value::Number(number)) => {
                let fits = number.as_i64().is_some_and(|n| fits(n, "int32"));
                if let Some(literal) = self.unfit(number, place, fits) {
                    let text = place.cannot_unmarshal(&format!("number {literal}"), "int32");
                    self.fatal(text, place);
                }
            }
            (Shape::IntOrString, other) => {
                let text = place.cannot_unmarshal(kind_of(other), "int32");
                self.fatal(text, place);
            }
            (_, other) => self.mismatch(kind_of(other), &node.go_type, place),
        }
    }

    /// The text of a number that does not fit, if it does not.
    fn unfit(&self, number: &Number, place: &Place<'_>, fits: bool) -> Option<String> {
        let literal = self
            .literals
            .filter(|literals| !literals.is_empty())
            .and_then(|literals| literals.get(&place.strict()));
        match literal {
            Some(literal) => Some(literal.clone()),
            None if fits => None,
            None => Some(number.to_string()),
        }
    }

    fn quantity(&mut self, value: &mut Value, place: &Place<'_>) {
        let literal = self
            .literals
            .filter(|literals| value.is_number() && !literals.is_empty())
            .and_then(|literals| literals.get(&place.strict()));
        let parsed = match literal {
            Some(literal) => Quantity::parse(literal),
            None => Quantity::from_value(value),
        };
        match parsed {
            Ok(quantity) => *value = Value::from(quantity.to_string()),
            Err(error) => self.fatal(error.to_string(), place),
        }
    }

    fn time(&mut self, view: View<'_>, value: &mut Value, place: &Place<'_>) {
        let precision = match view.node.go_name() {
            "MicroTime" => Precision::Micros,
            _ => Precision::Seconds,
        };
        match value {
            Value::String(text) => match time::normalise(text, precision) {
                Ok(moment) => *value = moment.map_or(Value::Null, Value::from),
                Err(text) => self.fatal(text, place),
            },
            other => {
                let text = place.cannot_unmarshal(kind_of(other), "string");
                self.fatal(text, place);
            }
        }
    }

    fn bytes(&mut self, view: View<'_>, value: &mut Value, place: &Place<'_>) {
        match value {
            Value::String(text) => match decode_base64(text) {
                Ok(bytes) => *value = Value::from(STANDARD.encode(bytes)),
                Err(at) => self.mismatches.push(super::Mismatch {
                    path: place.strict(),
                    fatal: false,
                    text: format!("illegal base64 data at input byte {at}"),
                }),
            },
            // Go reads a list of small numbers as bytes.
            Value::Array(items) => {
                let bytes: Option<Vec<u8>> = items
                    .iter()
                    .map(|item| item.as_u64().and_then(|n| u8::try_from(n).ok()))
                    .collect();
                match bytes {
                    Some(bytes) => *value = Value::from(STANDARD.encode(bytes)),
                    None => self.mismatch("array", "uint8", place),
                }
            }
            other => self.mismatch(kind_of(other), &view.node.go_type, place),
        }
    }
}

/// Resource lists hold no less than thousandths.
pub(super) fn round_to_millis(value: &mut Value) {
    if let Ok(quantity) = Quantity::from_value(value) {
        *value = Value::from(quantity.in_millis().to_string());
    }
}

fn fits(number: i64, format: &str) -> bool {
    format != "int32" || i32::try_from(number).is_ok()
}

/// Decodes base64; the error is the byte at which Go gives up. Line breaks are skipped.
fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let positions: Vec<(usize, u8)> = text
        .bytes()
        .enumerate()
        .filter(|(_, b)| *b != b'\n' && *b != b'\r')
        .collect();
    let joined: Vec<u8> = positions.iter().map(|(_, b)| *b).collect();
    let original = |index: usize| positions.get(index).map_or(text.len(), |(at, _)| *at);
    STANDARD.decode(&joined).map_err(|error| match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            original(at)
        }
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
            // Go reports the start of the group that is incomplete.
            original(joined.len() / 4 * 4).min(text.len())
        }
    })
}
