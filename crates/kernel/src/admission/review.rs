//! From the body of a request to a [`Review`], and from a [`Verdict`] to the body of an answer.
//!
//! Both are total: a body that is no review gives the text and code of a refusal. The fields come in the order in which
//! Go's encoder writes them. Limits of size and time are the server's.

use super::{Review, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::parts::{Parts, Read};

/// The version of the review API that was spoken, in which the answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// admission.k8s.io/v1
    V1,
    /// admission.k8s.io/v1beta1
    V1Beta1,
}

impl Version {
    /// As `apiVersion` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// A request that is no review: what is answered instead of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The HTTP code.
    pub code: u16,
    /// The body.
    pub text: String,
}

impl Refusal {
    fn bad(text: impl Into<String>) -> Self {
        Self {
            code: 400,
            text: text.into(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<const PARTS: u8> {
    api_version: Option<String>,
    kind: Option<String>,
    request: Option<Request<PARTS>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<const PARTS: u8> {
    uid: Option<String>,
    resource: Option<Resource>,
    sub_resource: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    operation: Option<String>,
    #[serde(default)]
    object: Read<PARTS>,
    #[serde(default)]
    old_object: Read<PARTS>,
    dry_run: Option<bool>,
}

#[derive(Deserialize, Default)]
struct Resource {
    group: Option<String>,
    version: Option<String>,
    #[serde(rename = "resource")]
    plural: Option<String>,
}

/// Reads the body of a request; of the objects under review only these parts ([`super::Admit::reads`]).
pub fn parse(body: &[u8], content_type: &str, reads: Parts) -> Result<(Version, Review), Refusal> {
    if content_type != "application/json" {
        return Err(Refusal::bad("wrong content type"));
    }
    if reads == Parts::NONE {
        return decode::<{ Parts::NONE.bits() }>(body);
    }
    let (version, review) = decode::<{ Parts::ALL.bits() }>(body)?;
    Ok((version, review.read_with(reads)))
}

fn decode<const PARTS: u8>(body: &[u8]) -> Result<(Version, Review), Refusal> {
    let envelope: Envelope<PARTS> = serde_json::from_slice(body).map_err(|error| {
        // A body of another kind may well have fields of the same names.
        foreign(body).unwrap_or_else(|| undecodable(&error.to_string()))
    })?;
    let version = spoken(
        envelope.api_version.as_deref().unwrap_or_default(),
        envelope.kind.as_deref().unwrap_or_default(),
    )?;
    let request = envelope
        .request
        .ok_or_else(|| undecodable("the review has no request"))?;
    let resource = request.resource.unwrap_or_default();
    let review = Review {
        uid: request.uid.unwrap_or_default(),
        operation: request.operation.unwrap_or_default(),
        group: resource.group.unwrap_or_default(),
        version: resource.version.unwrap_or_default(),
        resource: resource.plural.unwrap_or_default(),
        subresource: request.sub_resource.unwrap_or_default(),
        namespace: request.namespace.unwrap_or_default(),
        name: request.name.unwrap_or_default(),
        object: request.object.0,
        old: request.old_object.0,
        is_dry_run: request.dry_run.unwrap_or_default(),
    };
    Ok((version, review))
}

fn undecodable(why: &str) -> Refusal {
    Refusal::bad(format!("Request could not be decoded: {why}"))
}

fn spoken(api_version: &str, kind: &str) -> Result<Version, Refusal> {
    if kind.is_empty() {
        return Err(undecodable("Object 'Kind' is missing"));
    }
    match (api_version, kind) {
        ("admission.k8s.io/v1", "AdmissionReview") => Ok(Version::V1),
        ("admission.k8s.io/v1beta1", "AdmissionReview") => Ok(Version::V1Beta1),
        _ => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            Err(Refusal::bad(format!(
                "Unsupported group version kind: {group}/{version}, Kind={kind}"
            )))
        }
    }
}

/// What is said to a body that is an object of another kind.
fn foreign(body: &[u8]) -> Option<Refusal> {
    let object: Value = serde_json::from_slice(body).ok()?;
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    spoken(text("apiVersion").unwrap_or_default(), text("kind")?).err()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    kind: &'static str,
    api_version: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Status<'a> {
    metadata: Metadata,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Serialize)]
struct Metadata {}

/// The body of the answer, byte for byte as the original writes it.
pub fn render(version: Version, uid: &str, verdict: &Verdict) -> String {
    let status = |message, code| Status {
        metadata: Metadata {},
        message,
        code,
    };
    let response = match verdict {
        Verdict::Allowed { message, warnings } => Response {
            uid,
            allowed: true,
            status: (!message.is_empty()).then(|| status(message, None)),
            warnings,
        },
        Verdict::Denied { code, message } => Response {
            uid,
            allowed: false,
            status: Some(status(message, *code)),
            warnings: &[],
        },
    };
    let answer = Answer {
        kind: "AdmissionReview",
        api_version: version.as_str(),
        response,
    };
    // Strings and numbers only: this cannot fail.
    let text = serde_json::to_string(&answer).unwrap_or_default();
    if !text.contains(['&', '<', '>']) {
        return text;
    }
    // Go writes these as escapes; outside of strings they do not occur.
    text.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}

#[cfg(test)]
mod tests;
