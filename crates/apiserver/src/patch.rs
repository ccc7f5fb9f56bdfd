//! The three patch forms besides server-side apply: JSON patch, merge patch, strategic merge patch.
//!
//! They follow the libraries of the real server where those differ from the RFCs: a JSON patch may `replace` what is
//! not there and count from the end of a list, and a merge patch prunes `null` from what it adds. What comes out is
//! not yet decoded: [`settle`] does that for built-in kinds; for custom resources the caller judges it against the
//! schema, and answers with [`undecodable`] if it does not fit.

mod go;
mod json;
mod lookup;
mod merge;
mod ordering;
mod settle;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::decode::{self, FieldValidation, Media};
use crate::field::{self, FieldError};
use crate::negotiate;
use crate::schema::Schema;
use crate::status::{Outcome, Status};

pub use go::print as go_print;
pub use settle::{Settled, settle};

/// The most operations one JSON patch may have.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many bytes the `copy` operations of one JSON patch may add.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// The form of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`, for built-in resources only.
    Strategic,
    /// `application/apply-patch+yaml`.
    Apply,
}

/// How strictly the body of a patch is read (`?fieldValidation=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// `Warn` and `Strict`: what is odd is noticed, and the caller warns or refuses.
    #[default]
    Strict,
    /// `Ignore`.
    Lenient,
}

impl From<FieldValidation> for Reading {
    fn from(validation: FieldValidation) -> Self {
        match validation {
            FieldValidation::Ignore => Self::Lenient,
            FieldValidation::Warn | FieldValidation::Strict => Self::Strict,
        }
    }
}

/// A patched object, still to be decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The object.
    pub object: Value,
    /// What strict reading noticed in the patch: `duplicate field "data"`, `json patch unknown field "[0].foo"`.
    pub complaints: Vec<String>,
    /// A strategic merge patch, as [`undecodable`] shows it; the others show the object.
    pub shown: Option<String>,
}

impl PatchKind {
    const ALL: [Self; 4] = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];

    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }

    /// From the `Content-Type`; anything else is a 415, whose text depends on whether the resource is custom.
    pub fn of(content_type: Option<&str>, is_custom: bool) -> Outcome<Self> {
        let header = content_type.unwrap_or_default();
        let served: Vec<Self> = Self::ALL
            .into_iter()
            .filter(|kind| !(is_custom && *kind == Self::Strategic))
            .collect();
        let names: Vec<&str> = served.iter().map(|kind| kind.media_type()).collect();
        // The router in front of built-in resources reads the header as a list.
        let routes = header.split(',').any(|part| {
            let media = part.split(';').next().unwrap_or_default().trim();
            names.contains(&media)
        });
        if !is_custom && !routes {
            let status = Status::unsupported_media_type("415: Unsupported Media Type");
            return Err(status.with_causes(Vec::new()).into());
        }
        let media = header.split(';').next().unwrap_or_default();
        served
            .into_iter()
            .find(|kind| kind.media_type() == media)
            .ok_or_else(|| negotiate::unknown_format(&names.join(", ")).into())
    }
}

/// Applies a patch of any form but [`PatchKind::Apply`], which gives a 415 here, to `doc`. Complaints about
/// the patch itself are the caller's to handle, or those of [`settle`].
pub fn patch(
    kind: PatchKind,
    schema: &Schema,
    doc: &Value,
    body: &[u8],
    reading: impl Into<Reading>,
) -> Outcome<Patched> {
    let reading = reading.into();
    match kind {
        PatchKind::Json => json::patch(doc, body, reading),
        PatchKind::Merge => merge::patch(doc, body, reading),
        PatchKind::Strategic => {
            let parsed = decode::parse(body, Media::Json)
                .map_err(|error| Status::bad_request(error.to_string()))?;
            Ok(Patched {
                object: strategic(schema, doc, &parsed.value)?,
                complaints: parsed.duplicates,
                shown: Some(go_print(&parsed.value)),
            })
        }
        PatchKind::Apply => Err(negotiate::unknown_format(kind.media_type()).into()),
    }
}

/// Applies a JSON patch (RFC 6902).
pub fn json(doc: &Value, patch: &[u8]) -> Outcome<Value> {
    Ok(json::patch(doc, patch, Reading::Strict)?.object)
}

/// Applies a merge patch (RFC 7386).
pub fn merge(doc: &Value, patch: &[u8]) -> Outcome<Value> {
    Ok(merge::patch(doc, patch, Reading::Strict)?.object)
}

/// Applies a strategic merge patch to an object of this schema.
pub fn strategic(schema: &Schema, doc: &Value, patch: &Value) -> Outcome<Value> {
    if !(patch.is_object() || patch.is_null()) {
        let found = go::json_type(patch);
        let message = format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        );
        return Err(Status::bad_request(message).into());
    }
    strategic::patch(schema.view(), doc, patch).map_err(|refusal| Box::new(refusal.into()))
}

/// The 422 for a patched object that does not decode: `shown` is the object as JSON, or for a strategic merge patch
/// the patch as [`go_print`] shows it.
pub fn undecodable(shown: &str, why: &str) -> Status {
    let error = FieldError::invalid_str("patch", shown, why);
    field::invalid("", "", "", &[error])
}

/// The 422 for a patch that does not apply; the real server does not say why.
fn rejected() -> Box<Status> {
    let message = "the server rejected our request due to an error in our request";
    Box::new(Status::failure(422, "Invalid", message).with_causes(Vec::new()))
}

/// What a patch makes of an object must be an object.
fn object_only(value: Value) -> Outcome<Value> {
    if value.is_object() {
        return Ok(value);
    }
    let why = format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        go::json_type(&value)
    );
    Err(undecodable(&value.to_string(), &why).into())
}
