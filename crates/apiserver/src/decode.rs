//! From bytes to an object in the shape of its schema.
//!
//! [`builtin`] and [`custom`] do the whole of it for the body of a create or update. The pieces ([`parse`],
//! [`expect_kind`], [`conform`]) are there for patches, which decode what a patch has made, and for request bodies
//! that are no resources. Bodies of built-in kinds may be protobuf, which becomes JSON first. What differs from the real server: nesting is refused beyond 512 levels instead of
//! 10,000, and syntax errors in YAML carry Go's text for common mistakes only.

mod conform;
mod json;
mod kind;
mod protobuf;
mod strict;
mod text;
mod time;
mod yaml;

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use crate::negotiate;
use crate::schema::{Schema, table};
use crate::status::{Outcome, Status};
use conform::{Complaint, Conformer};

pub use json::MAX_DEPTH;
use json::Twice;
pub use kind::{Target, expect_custom_kind, expect_kind};
pub use strict::{FieldValidation, strict_error};

pub use crate::negotiate::Media;

/// A body that could be read.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// What it says.
    pub value: Value,
    /// What strict decoding complains about, as texts: `duplicate field "spec.replicas"`. For built-in kinds,
    /// [`builtin`] leaves out those that the typed object does not notice.
    pub duplicates: Vec<String>,
    paths: Vec<String>,
    literals: BTreeMap<String, String>,
}

/// A body that could not be read. The text is that of the decoder: `unexpected end of JSON input`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ParseError {
    text: String,
    media: Option<Media>,
    /// Version and kind, where the body was understood as far as that.
    named: Option<(String, String)>,
}

impl ParseError {
    /// The text where the decoder was looking for the kind, as it is for all bodies but patches.
    pub fn looking_for_kind(&self) -> String {
        match self.media {
            Some(Media::Json) => {
                format!("couldn't get version/kind; json parse error: {}", self.text)
            }
            _ => self.text.clone(),
        }
    }

    /// The 400 answer to a create or update of `kind`.
    pub fn status(&self, kind: &str, body: &[u8]) -> Status {
        match &self.named {
            Some((version, named)) => kind::cannot_be_handled(version, named, kind, &self.text),
            None => kind::unrecognized(kind, &self.looking_for_kind(), body),
        }
    }
}

/// Reads a body.
pub fn parse(body: &[u8], media: Media) -> Result<Parsed, ParseError> {
    parse_with(body, media, Twice::Replace)
}

fn parse_with(body: &[u8], media: Media, twice: Twice) -> Result<Parsed, ParseError> {
    let fail = |text| ParseError {
        text,
        media: Some(media),
        named: None,
    };
    match media {
        Media::Protobuf => parse_protobuf(body, &Target::default()),
        Media::Json => {
            let document = json::read(body, twice).map_err(fail)?;
            let duplicates = document
                .duplicates
                .iter()
                .map(|path| {
                    Complaint {
                        path: path.clone(),
                        duplicate: true,
                    }
                    .text()
                })
                .collect();
            Ok(Parsed {
                value: document.value,
                duplicates: strict::unique(duplicates),
                paths: document.duplicates,
                literals: document.literals,
            })
        }
        Media::Yaml => {
            let text = std::str::from_utf8(body)
                .map_err(|_| fail("yaml: control characters are not allowed".to_owned()))?;
            let document = yaml::read(text).map_err(fail)?;
            let duplicates = match document.duplicates.as_slice() {
                [] => Vec::new(),
                lines => vec![format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))],
            };
            Ok(Parsed {
                value: document.value,
                duplicates,
                ..Parsed::default()
            })
        }
    }
}

/// Reads a body in protobuf; what it does not say of its kind is that of `target`.
fn parse_protobuf(body: &[u8], target: &Target<'_>) -> Result<Parsed, ParseError> {
    Ok(Parsed {
        value: protobuf::to_json(body, target)?,
        ..Parsed::default()
    })
}

/// Reads bytes that this server has written, such as a stored object.
pub fn stored(bytes: &[u8]) -> Outcome<Value> {
    match json::read(bytes, Twice::Replace) {
        Ok(document) => Ok(document.value),
        Err(text) => Err(Box::new(Status::internal(text))),
    }
}

/// An object from a request body.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The object, with `apiVersion` and `kind`.
    pub value: Value,
    /// What strict decoding complains about, for [`FieldValidation::judge`].
    pub strict: Vec<String>,
}

/// The body of a create or update of a built-in kind.
pub fn builtin(
    body: &[u8],
    media: Media,
    target: &Target<'_>,
    schema: &Schema,
) -> Outcome<Decoded> {
    let mut parsed = match media {
        Media::Protobuf => parse_protobuf(body, target),
        _ => parse_with(body, media, Twice::Merge),
    }
    .map_err(|e| e.status(target.kind, body))?;
    expect_kind(&mut parsed.value, body, target)?;
    let mut conformer = Conformer {
        literals: Some(&parsed.literals),
        duplicates: parsed.paths.iter().map(String::as_str).collect(),
        ..Conformer::default()
    };
    conformer.run(schema, &mut parsed.value, "");
    let text = body_order(body, media);
    if let Some(mismatch) = worst(conformer.mismatches, text) {
        return Err(Box::new(kind::cannot_be_handled(
            target.version,
            target.kind,
            target.kind,
            &mismatch,
        )));
    }
    let mut strict = match media {
        Media::Json | Media::Protobuf => Vec::new(),
        Media::Yaml => parsed.duplicates,
    };
    strict.extend(in_order(conformer.complaints, text));
    Ok(Decoded {
        value: parsed.value,
        strict,
    })
}

/// The body of a create or update of a custom resource: everything but its own schema, whose unknown fields the
/// caller adds to [`Decoded::strict`]. It cannot be protobuf.
pub fn custom(body: &[u8], media: Media, target: &Target<'_>) -> Outcome<Decoded> {
    if media == Media::Protobuf {
        return Err(Box::new(negotiate::unknown_body()));
    }
    let mut parsed = parse(body, media).map_err(|e| e.status(target.kind, body))?;
    expect_custom_kind(&parsed.value, body, target)?;
    let refuse = |text: String| {
        let status = kind::cannot_be_handled(target.version, target.kind, target.kind, &text);
        Err(Box::new(status))
    };
    let infinite = |literal: &&String| literal.parse::<f64>().is_ok_and(f64::is_infinite);
    if let Some(literal) = parsed.literals.values().find(infinite) {
        return refuse(format!(
            "json: cannot unmarshal number {literal} into Go value of type float64"
        ));
    }
    settle_numbers(&mut parsed.value);
    let mut strict = parsed.duplicates;
    match conform_metadata(&mut parsed.value) {
        Ok(unknown) => strict.extend(unknown),
        Err(text) => return refuse(text),
    }
    Ok(Decoded {
        value: parsed.value,
        strict,
    })
}

/// The body of a delete: `metav1.DeleteOptions`. An empty body is the caller's to handle.
pub fn delete_options(body: &[u8], media: Media) -> Outcome<Value> {
    let refuse = |text: String| Box::new(Status::bad_request(text));
    let target = Target {
        kind: "DeleteOptions",
        ..Target::default()
    };
    let mut parsed = match media {
        Media::Protobuf => parse_protobuf(body, &target),
        _ => parse(body, media),
    }
    .map_err(|e| refuse(e.looking_for_kind()))?;
    kind::expect_options(&mut parsed.value, "DeleteOptions").map_err(refuse)?;
    if let Some(schema) = table::named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions") {
        shape(&schema, &mut parsed.value).map_err(refuse)?;
    }
    Ok(parsed.value)
}

/// Makes `value` what a round trip through the typed object makes of it, and gives the texts of strict decoding
/// about fields that were dropped. The error is the 400 answer.
pub fn conform(
    schema: &Schema,
    value: &mut Value,
    api_version: &str,
    kind: &str,
) -> Outcome<Vec<String>> {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    shape(schema, value)
        .map_err(|text| Box::new(kind::cannot_be_handled(version, kind, kind, &text)))
}

/// As [`conform`]; the error is the decoder's text alone, which the answer to a patch wraps in its own way.
pub fn shape(schema: &Schema, value: &mut Value) -> Result<Vec<String>, String> {
    shape_at(schema, value, "")
}

/// Brings an object of a built-in kind into the form in which it comes back from storage.
pub fn settle_empty(schema: &Schema, value: &mut Value) {
    conform::forget_empty(schema.view(), value);
}

/// Conforms the `metadata` of a custom resource, which is typed even there.
pub fn conform_metadata(object: &mut Value) -> Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(Vec::new());
    };
    if metadata.is_null() {
        *metadata = Value::Object(serde_json::Map::new());
    }
    shape_at(&table::object_meta(), metadata, "metadata")
}

fn shape_at(schema: &Schema, value: &mut Value, prefix: &str) -> Result<Vec<String>, String> {
    let mut conformer = Conformer::default();
    conformer.run(schema, value, prefix);
    match worst(conformer.mismatches, None) {
        Some(text) => Err(text),
        None => Ok(in_order(conformer.complaints, None)),
    }
}

/// The text to take the order of messages from: YAML has passed through sorted maps by then.
fn body_order(body: &[u8], media: Media) -> Option<&[u8]> {
    (media == Media::Json).then_some(body)
}

/// The mismatch that Go reports: the first that ends decoding, or else the first of all.
fn worst(mismatches: Vec<conform::Mismatch>, body: Option<&[u8]>) -> Option<String> {
    let any_fatal = mismatches.iter().any(|m| m.fatal);
    let mut left: Vec<_> = mismatches
        .into_iter()
        .filter(|m| m.fatal == any_fatal)
        .collect();
    if let (Some(body), [_, _, ..]) = (body, left.as_slice()) {
        let paths: Vec<(&str, bool)> = left.iter().map(|m| (m.path.as_str(), false)).collect();
        let places = json::places(body, &paths);
        let mut ranked: Vec<_> = places.into_iter().zip(left).collect();
        ranked.sort_by_key(|(place, _)| *place);
        left = ranked.into_iter().map(|(_, mismatch)| mismatch).collect();
    }
    left.into_iter().next().map(|m| m.text)
}

/// The texts of complaints in the order of the body.
fn in_order(complaints: Vec<Complaint>, body: Option<&[u8]>) -> Vec<String> {
    let mut ranked: Vec<(usize, Complaint)> = match (body, complaints.as_slice()) {
        (Some(body), [_, _, ..]) => {
            let paths: Vec<(&str, bool)> = complaints
                .iter()
                .map(|c| (c.path.as_str(), c.duplicate))
                .collect();
            let places = json::places(body, &paths);
            places.into_iter().zip(complaints).collect()
        }
        _ => complaints.into_iter().map(|c| (0, c)).collect(),
    };
    ranked.sort_by_key(|(place, _)| *place);
    strict::unique(ranked.into_iter().map(|(_, c)| c.text()).collect())
}

/// Writes numbers as a round trip through untyped Go values leaves them: a float without fraction becomes a whole
/// number.
pub fn settle_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            // Beyond 2^63 Go writes an exponent, or digits that no i64 holds.
            if float.fract() == 0.0 && float.abs() < 9.2e18 {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "the range has been checked"
                )]
                let whole = float as i64;
                *number = Number::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle_numbers),
        Value::Object(map) => map.values_mut().for_each(settle_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
