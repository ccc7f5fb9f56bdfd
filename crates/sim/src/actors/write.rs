//! What an actor wants changed, as data, and how it becomes a request.

use std::collections::BTreeMap;

use http::{Method, Request};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::key::{Key, Kind};

/// One change that an actor asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    /// Creates an object; its namespace is in its metadata.
    Create { kind: Kind, body: Value },
    /// Creates an object unless one of this name is there.
    Ensure { kind: Kind, body: Value },
    /// A merge patch on an object or on a subresource of it.
    Patch {
        kind: Kind,
        key: Key,
        subresource: &'static str,
        body: Value,
    },
    /// Deletes the object with this uid.
    Delete {
        kind: Kind,
        key: Key,
        uid: String,
        grace: Option<i64>,
    },
    /// Applies a manifest at this path, here or in another cluster.
    Apply {
        path: String,
        body: Value,
        to: Option<String>,
    },
    /// Deletes whatever is at this path, here or in another cluster.
    Remove { path: String, to: Option<String> },
    /// Puts a pod on a node, and these labels on the pod.
    Bind {
        key: Key,
        node: String,
        labels: BTreeMap<String, String>,
    },
}

/// What an actor makes of the world: changes, in order, and when to look again if nothing happens before.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) writes: Vec<Write>,
    pub(crate) wake: Option<Timestamp>,
}

impl Step {
    /// Looks again at this time, or earlier if something else asks for it.
    pub(crate) fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

impl Write {
    /// The cluster that it is for, if it is not for the one that the actors are in.
    pub(crate) fn cluster(&self) -> Option<&str> {
        match self {
            Self::Apply { to, .. } | Self::Remove { to, .. } => to.as_deref(),
            _ => None,
        }
    }

    /// The request, with the fields signed by `manager`.
    pub(crate) fn request(&self, manager: &str) -> Result<Request<Vec<u8>>, http::Error> {
        let (method, path, media, body) = match self {
            Self::Create { kind, body } | Self::Ensure { kind, body } => {
                let namespace = body.pointer("/metadata/namespace").and_then(Value::as_str);
                let path = kind.collection(namespace.unwrap_or_default());
                (Method::POST, path, "application/json", body.to_string())
            }
            Self::Patch {
                kind,
                key,
                subresource,
                body,
            } => {
                let path = kind.path(key, subresource);
                let media = "application/merge-patch+json";
                (Method::PATCH, path, media, body.to_string())
            }
            Self::Delete {
                kind,
                key,
                uid,
                grace,
            } => {
                let mut options = json!({
                    "kind": "DeleteOptions", "apiVersion": "v1",
                    "preconditions": {"uid": uid},
                });
                if let (Some(options), Some(grace)) = (options.as_object_mut(), grace) {
                    options.insert("gracePeriodSeconds".to_owned(), json!(grace));
                }
                let path = kind.path(key, "");
                let request = Request::builder().method(Method::DELETE).uri(path);
                let request = request.header(http::header::CONTENT_TYPE, "application/json");
                return request.body(options.to_string().into_bytes());
            }
            Self::Apply { path, body, .. } => {
                let media = "application/apply-patch+yaml";
                let query = format!("{path}?fieldManager={manager}&force=true");
                let request = Request::patch(query).header(http::header::CONTENT_TYPE, media);
                return request.body(body.to_string().into_bytes());
            }
            Self::Remove { path, .. } => return Request::delete(path).body(Vec::new()),
            Self::Bind { key, node, labels } => {
                let body = json!({
                    "kind": "Binding", "apiVersion": "v1",
                    "metadata": {"namespace": key.namespace, "name": key.name, "labels": labels},
                    "target": {"kind": "Node", "apiVersion": "v1", "name": node},
                });
                let path = Kind::Pod.path(key, "binding");
                (Method::POST, path, "application/json", body.to_string())
            }
        };
        Request::builder()
            .method(method)
            .uri(format!("{path}?fieldManager={manager}"))
            .header(http::header::CONTENT_TYPE, media)
            .body(body.into_bytes())
    }
}

/// The merge patch that makes `new` of `old`; none if they are equal.
pub(crate) fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        return Some(new.clone());
    };
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut patch: serde_json::Map<String, Value> =
        gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in after {
        if let Some(changed) = difference(before.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), changed);
        }
    }
    Some(Value::Object(patch))
}

/// A patch of an object's status, on the condition that nobody else wrote it since; none if nothing changes.
pub(crate) fn status<S: serde::Serialize>(
    kind: Kind,
    meta: &kube::api::ObjectMeta,
    old: Option<&S>,
    new: &S,
) -> Option<Write> {
    let old = old.map_or(Value::Null, as_json);
    let change = difference(&old, &as_json(new))?;
    Some(Write::Patch {
        kind,
        key: Key::of(meta),
        subresource: "status",
        body: json!({"metadata": {"resourceVersion": meta.resource_version}, "status": change}),
    })
}

/// An object as JSON. Objects that came out of JSON always go back in.
pub(crate) fn as_json<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_says_what_changed_and_what_went() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let new = json!({"a": 1, "b": {"c": 4}, "e": [1, 2]});
        let patch = difference(&old, &new);
        assert_eq!(patch, Some(json!({"b": {"c": 4, "d": null}, "e": [1, 2]})));
        assert_eq!(difference(&new, &new), None);
    }
}
