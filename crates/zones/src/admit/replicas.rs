//! Whether a change is a downscale: the part that the two downscale webhooks share.

use serde_json::Value;
use slipway_api::purpose::zones as purpose;
use slipway_kernel::admission::{Review, Verdict};
use slipway_kernel::identity::{Kind, kinds};

use super::inquiry::{Failure, Inquiry, Pending};
use crate::grammar::is_name;

/// How many replicas an object under review asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// None where the object does not say.
    pub(super) replicas: Option<i64>,
    /// Whether it is the scale of another object, which alone has the labels.
    pub(super) is_scale: bool,
}

/// A fall in the number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Downscale {
    pub(super) from: i64,
    pub(super) to: i64,
    /// Whether the old object is only a scale.
    pub(super) is_scale: bool,
}

/// Why the replicas of an object are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Unknown {
    #[error("{0}")]
    Undecodable(String),
    #[error("unsupported type {0}")]
    Unsupported(String),
}

/// What a review is about, as far as its two objects tell.
pub(super) enum Change {
    /// It is no downscale, or nobody can tell.
    Settled(Verdict),
    /// Something is wrong with the request; the design lets it pass.
    Unclear(Verdict),
    /// It is one.
    Down(Downscale),
}

/// Compares the two objects of a review. `null_is_one` takes an absent number as the API server would default it.
pub(super) fn change(review: &Review, null_is_one: bool) -> Change {
    let unclear = |which: &str, error: &Unknown| {
        let what = match error {
            Unknown::Undecodable(_) => format!("can't decode {which} object"),
            Unknown::Unsupported(_) => format!("can't get {which} replicas"),
        };
        Change::Unclear(Verdict::warned(format!(
            "{what}, allowing the change, err: {error}"
        )))
    };
    let old = match asked(&review.old) {
        Ok(asked) => asked,
        Err(error) => return unclear("old", &error),
    };
    let new = match asked(&review.object) {
        Ok(asked) => asked,
        Err(error) => return unclear("new", &error),
    };
    let number = |replicas: Option<i64>| replicas.or(null_is_one.then_some(1));
    match (number(old.replicas), number(new.replicas)) {
        (Some(from), Some(to)) if to < from => Change::Down(Downscale {
            from,
            to,
            is_scale: old.is_scale,
        }),
        (Some(_), Some(_)) | (None, None) => Change::Settled(Verdict::allowed()),
        _ => Change::Settled(Verdict::warned(
            "old/new replicas is nil, allowing the change",
        )),
    }
}

fn asked(object: &Value) -> Result<Asked, Unknown> {
    let bad = |why: &str| Unknown::Undecodable(why.to_owned());
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    if !object.is_object() {
        return Err(bad("unexpected end of JSON input"));
    }
    let kind = text("kind").filter(|kind| !kind.is_empty());
    let kind = kind.ok_or_else(|| bad("Object 'Kind' is missing"))?;
    let api_version = text("apiVersion").filter(|version| !version.is_empty());
    let api_version = api_version.ok_or_else(|| bad("Object 'apiVersion' is missing"))?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_scale = match (group, kind) {
        ("apps", "StatefulSet" | "Deployment" | "ReplicaSet") => false,
        ("autoscaling" | "apps" | "extensions", "Scale") => true,
        _ => return Err(Unknown::Unsupported(format!("{api_version}, Kind={kind}"))),
    };
    let spec = object.get("spec").filter(|spec| !spec.is_null());
    if spec.is_some_and(|spec| !spec.is_object()) {
        return Err(bad("spec is no object"));
    }
    let replicas = spec.and_then(|spec| spec.get("replicas"));
    let replicas = match replicas {
        // A scale that asks for none leaves the number out.
        None | Some(Value::Null) => is_scale.then_some(0),
        Some(number) => {
            let number = number.as_i64().and_then(|n| i32::try_from(n).ok());
            let number = number.ok_or_else(|| bad("spec.replicas is no 32-bit integer"))?;
            Some(i64::from(number))
        }
    };
    Ok(Asked { replicas, is_scale })
}

/// The kind of the object whose scale is under review.
pub(super) fn scaled(resource: &str) -> Option<Kind> {
    match resource {
        "statefulsets" => Some(kinds::STATEFUL_SET),
        "deployments" => Some(kinds::DEPLOYMENT),
        "replicasets" => Some(Kind::namespaced("apps", "v1", "ReplicaSet", "replicasets")),
        _ => None,
    }
}

/// The object whose scale is under review, as it is now.
pub(super) fn parent(
    review: &Review,
    inquiry: &mut Inquiry<'_>,
) -> Result<Result<Value, Failure>, Pending> {
    let Some(kind) = scaled(&review.resource) else {
        return Ok(Err(Failure {
            message: format!("unsupported resource {}", review.resource),
            ..Failure::default()
        }));
    };
    if !is_name(&review.namespace) || !is_name(&review.name) {
        return Ok(Err(Failure {
            message: "the request names no object".to_owned(),
            ..Failure::default()
        }));
    }
    let path = format!("{}/{}", kind.path(&review.namespace), review.name);
    inquiry.api_again((purpose::READ_PARENT, 0), "GET", &path, &Value::Null)
}

/// A label or annotation of an object.
pub(super) fn marked<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(map)?.get(key)?.as_str()
}
