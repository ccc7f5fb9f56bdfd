//! `metav1.Status`: the answer to every request that fails, and the error type of this crate.
//!
//! The constructors carry the code, reason, message and details that kube-apiserver gives for the same failure.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field::quote;

/// What most of this crate's functions return: a failure is the answer the client gets.
pub type Outcome<T> = Result<T, Box<Status>>;

/// A `metav1.Status` of kind failure (or, rarely, success).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    metadata: Value,
    /// `Success` or `Failure`.
    pub status: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub message: String,
    /// For programs: `NotFound`, `Conflict`, …
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub reason: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Details>,
    /// The HTTP status code.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub code: u16,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(code: &u16) -> bool {
    *code == 0
}

/// What a [`Status`] is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub name: String,
    /// The API group of `kind`.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub group: String,
    /// The kind, or for most reasons the resource.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub uid: String,
    /// One entry for each thing that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(
        rename = "retryAfterSeconds",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub retry_after_seconds: Option<u32>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// For programs.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub message: String,
    /// Which field.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub field: String,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// `plural.group`, or `plural` in the core group: how messages name a resource.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

fn about(group: &str, kind: &str, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        ..Details::default()
    }
}

impl Status {
    /// A failure with nothing but code, reason and message.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: "Status".into(),
            api_version: "v1".into(),
            metadata: Value::Object(serde_json::Map::new()),
            status: "Failure".into(),
            message: message.into(),
            reason: reason.to_owned(),
            details: None,
            code,
        }
    }

    /// A success that has nothing to say but its code.
    pub fn success(code: u16) -> Self {
        let mut status = Self::failure(code, "", "");
        "Success".clone_into(&mut status.status);
        status
    }

    /// The answer to a delete that left nothing behind.
    pub fn deleted(group: &str, resource: &str, name: &str, uid: &str) -> Self {
        let mut status = Self::success(0);
        status.details = Some(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: resource.to_owned(),
            uid: uid.to_owned(),
            ..Details::default()
        });
        status
    }

    /// Adds what it is about.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(about(group, kind, name));
        self
    }

    /// Sets the token with which a list can go on although it is inconsistent.
    pub fn set_continue(&mut self, token: &str) {
        self.metadata = serde_json::json!({"continue": token});
    }

    /// Adds causes.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_with(Details::default).causes = causes;
        self
    }

    /// Adds when to try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details
            .get_or_insert_with(Details::default)
            .retry_after_seconds = Some(seconds);
        self
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::failure(401, "Unauthorized", "Unauthorized")
    }

    /// 403 with the whole text after `forbidden: `.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let what = qualified(group, resource);
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} {} is forbidden: {why}", quote(name))
        };
        Self::failure(403, "Forbidden", message).about(group, resource, name)
    }

    /// 404 for an object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {} not found", qualified(group, resource), quote(name));
        Self::failure(404, "NotFound", message).about(group, resource, name)
    }

    /// 404 for a path that nothing serves below a known group.
    pub fn no_such_resource() -> Self {
        let mut status = Self::failure(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        status.details = Some(Details::default());
        status
    }

    /// 405.
    pub fn method_not_allowed(group: &str, resource: &str, verb: &str) -> Self {
        let message = format!(
            "{verb} is not supported on resources of kind \"{}\"",
            qualified(group, resource)
        );
        Self::failure(405, "MethodNotAllowed", message).about(group, resource, "")
    }

    /// 405 for a method that nothing at this path takes.
    pub fn method_not_allowed_here() -> Self {
        let text = "the server does not allow this method on the requested resource";
        let mut status = Self::failure(405, "MethodNotAllowed", text);
        status.details = Some(Details::default());
        status
    }

    /// 504 for a version that is not there yet.
    pub fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::timeout(message)
            .with_causes(vec![Cause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            }])
            .retry_after(1)
    }

    /// 409 `AlreadyExists`.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!(
            "{} {} already exists",
            qualified(group, resource),
            quote(name)
        );
        Self::failure(409, "AlreadyExists", message).about(group, resource, name)
    }

    /// 409 `Conflict` with the text after the colon.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            qualified(group, resource),
            quote(name)
        );
        Self::failure(409, "Conflict", message).about(group, resource, name)
    }

    /// 409 for a write that carries an older resourceVersion.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        Self::conflict(
            group,
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410 `Expired`.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, "Expired", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::failure(413, "RequestEntityTooLarge", message)
    }

    /// 415.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::failure(415, "UnsupportedMediaType", message)
    }

    /// 422: use [`crate::field::invalid`] where the causes are field errors.
    pub fn invalid(group: &str, kind: &str, name: &str, text: &str, causes: Vec<Cause>) -> Self {
        let message = format!(
            "{} {} is invalid: {text}",
            qualified(group, kind),
            quote(name)
        );
        Self::failure(422, "Invalid", message)
            .about(group, kind, name)
            .with_causes(causes)
    }

    /// 429 as a refused eviction gives it.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::failure(429, "TooManyRequests", message).retry_after(retry_after_seconds)
    }

    /// 500 with the text as the server frames it.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::failure(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
        .with_causes(vec![Cause {
            reason: String::new(),
            message: message.to_string(),
            field: String::new(),
        }])
    }

    /// 504.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::failure(504, "Timeout", message)
    }
}
