//! Requests as they go over the wire, and what their answers mean.
//!
//! A request is given up after its time, and that is checked before anything of it is sent: a replica that was paused
//! does not send on waking what it wanted to send before.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use slipway_kernel::action::{FieldManager, Target};
use slipway_kernel::fact::Cause;
use slipway_kernel::identity::{Kind, ObjectRef};
use slipway_kernel::parts::Parts;

use crate::channel::Carry;

/// Who writes, as managed fields show it.
pub(crate) const FIELD_MANAGER: &str = "slipway";

/// JSON is YAML, and this is the one content type that every server knows for it.
const APPLY: &str = "application/apply-patch+yaml";

/// What answers are, unless asked for otherwise.
const JSON: &str = "application/json";

/// All kinds at once, which servers know since 1.27.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// What is not read of an answer: no object is as large.
pub(crate) const LARGEST_ANSWER: usize = 16 * 1024 * 1024;

/// The longest that a server may ask us to wait.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// It was done; this is the answer.
    Done(Value),
    /// There is no such object.
    Absent(Refused),
    /// The object has changed meanwhile.
    Conflict,
    /// It was not done, and will not be until something changes.
    Refused(Refused),
    /// It was not done; the server has too much to do.
    Busy(Option<Duration>),
    /// Nobody knows whether it was done.
    Unknown(Refused, Option<Duration>),
}

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Reason,
    /// The API's sentence.
    pub(crate) message: String,
}

/// The API's word for it, or ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is forbidden; by whom is not known.
    Forbidden,
    /// It is forbidden, and the API says that we have no right to it; see [`crate::rights`].
    NoRight,
    /// The server has too much to do.
    TooManyRequests,
    /// There was no answer, or none that can be understood; our word for it. A server that fails has answered.
    Unanswered(&'static str),
    /// There is nothing at this address, which says nothing about the object: a server that has just started may not serve
    /// its kind yet.
    NotServed,
    /// Another one.
    Other(String),
}

/// As the API spells it where there is no such object, or no such kind.
const NOT_FOUND: &str = "NotFound";

/// As the API spells it where a right is missing, a quota is used up, and so on.
const FORBIDDEN: &str = "Forbidden";
/// As the API spells it where it has too much to do.
const TOO_MANY_REQUESTS: &str = "TooManyRequests";

impl Reason {
    fn read(word: &str) -> Self {
        match word {
            FORBIDDEN => Self::Forbidden,
            TOO_MANY_REQUESTS => Self::TooManyRequests,
            other => Self::Other(other.to_owned()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Forbidden | Self::NoRight => FORBIDDEN,
            Self::TooManyRequests => TOO_MANY_REQUESTS,
            Self::NotServed => NOT_FOUND,
            Self::Unanswered(word) => word,
            Self::Other(word) => word,
        }
    }
}

impl Refused {
    pub(crate) fn new(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: Reason::read(reason),
            message: message.into(),
        }
    }

    /// Nobody has answered so that it can be understood.
    fn unanswered(how: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason: Reason::Unanswered(how),
            message: message.into(),
        }
    }

    /// Whether nobody has answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.reason, Reason::Unanswered(_))
    }

    /// Whether it is forbidden, by whomever.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self.reason, Reason::Forbidden | Reason::NoRight)
    }

    /// What stands behind it.
    pub(crate) fn cause(&self) -> Cause {
        match self.reason {
            Reason::NoRight => Cause::NoRight,
            Reason::TooManyRequests => Cause::Busy,
            Reason::Forbidden | Reason::NotServed | Reason::Unanswered(_) | Reason::Other(_) => {
                Cause::Rejected
            }
        }
    }
}

impl Outcome {
    /// As metrics and logs spell it.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Absent(_) => "absent",
            Self::Conflict => "conflict",
            Self::Refused(_) => "refused",
            Self::Busy(_) => "busy",
            Self::Unknown(..) => "unknown",
        }
    }
}

/// A request that has yet to be sent.
#[derive(Debug, Clone)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) content: &'static str,
    /// As text, which is all that is kept of it while it waits: as a value it takes twenty times the room, and thousands may wait.
    pub(crate) body: Option<Bytes>,
    /// What the answer is to be.
    accept: &'static str,
    /// What is read of the object in the answer.
    reads: Parts,
    /// How much of the answer is read, in bytes: one with more is none.
    most: usize,
    /// `X-Trace-Context`.
    pub(crate) context: String,
}

/// The path of an object.
pub(crate) fn path(object: &ObjectRef) -> String {
    format!("{}/{}", object.kind.path(&object.namespace), object.name)
}

impl ApiRequest {
    fn new(method: Method, uri: String, content: &'static str, body: Option<Value>) -> Self {
        Self {
            method,
            uri,
            content,
            body: body.map(|body| Bytes::from(body.to_string())),
            accept: JSON,
            reads: Parts::ALL,
            most: LARGEST_ANSWER,
            context: String::new(),
        }
    }

    /// Reads an object, consistently.
    pub(crate) fn get(object: &ObjectRef) -> Self {
        Self::new(Method::GET, path(object), "", None)
    }

    /// Lists the one object of this name, consistently.
    pub(crate) fn find(object: &ObjectRef) -> Self {
        let uri = format!(
            "{}?fieldSelector=metadata.name%3D{}",
            object.kind.path(&object.namespace),
            object.name
        );
        Self::new(Method::GET, uri, "", None)
    }

    /// Lists the objects of a kind in all namespaces that have these labels, consistently.
    pub(crate) fn list(kind: &Kind, selector: &str) -> Self {
        let selector = utf8_percent_encode(selector, NON_ALPHANUMERIC);
        let uri = format!("{}?labelSelector={selector}", kind.path(""));
        Self::new(Method::GET, uri, "", None)
    }

    /// Changes places of an object one by one.
    pub(crate) fn json_patch(object: &ObjectRef, changes: Vec<Value>) -> Self {
        let uri = format!("{}?fieldManager={FIELD_MANAGER}", path(object));
        let content = "application/json-patch+json";
        Self::new(Method::PATCH, uri, content, Some(Value::Array(changes)))
    }

    /// Changes an object, unless it has changed meanwhile.
    pub(crate) fn patch(target: &Target, subresource: &str, body: Value) -> Self {
        let mut body = if body.is_object() { body } else { json!({}) };
        if let Some(fields) = body.as_object_mut() {
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("uid".to_owned(), json!(target.uid()));
                metadata.insert("resourceVersion".to_owned(), json!(target.version()));
            }
        }
        let uri = format!(
            "{}{subresource}?fieldManager={FIELD_MANAGER}",
            path(target.object())
        );
        let content = "application/merge-patch+json";
        Self::new(Method::PATCH, uri, content, Some(body))
    }

    /// Deletes an object, unless it has changed meanwhile.
    pub(crate) fn delete(target: &Target) -> Self {
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": target.uid(), "resourceVersion": target.version()},
        });
        let uri = path(target.object());
        Self::new(Method::DELETE, uri, "application/json", Some(body))
    }

    /// Brings an object of our own up to date.
    pub(crate) fn apply(object: &ObjectRef, body: Value, by: &FieldManager) -> Self {
        let manager = utf8_percent_encode(&by.name, NON_ALPHANUMERIC);
        let force = by.force;
        let uri = format!("{}?fieldManager={manager}&force={force}", path(object));
        Self::new(Method::PATCH, uri, APPLY, Some(body))
    }

    /// Whether it is refused where another manager has one of its fields: a conflict that no newer version ends.
    fn is_yielding(&self) -> bool {
        self.is_apply() && self.uri.ends_with("&force=false")
    }

    /// Creates an object.
    pub(crate) fn create(kind: &Kind, namespace: &str, body: Value) -> Self {
        let uri = format!("{}?fieldManager={FIELD_MANAGER}", kind.path(namespace));
        Self::new(Method::POST, uri, "application/json", Some(body))
    }

    /// Asks for a review of one's own access.
    pub(crate) fn review(body: Value) -> Self {
        let uri = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        Self::new(Method::POST, uri.to_owned(), "application/json", Some(body))
    }

    /// Asks which kinds are served below a root, all at once.
    pub(crate) fn discovery(root: &str) -> Self {
        let request = Self::new(Method::GET, root.to_owned(), "", None);
        Self {
            accept: AGGREGATED,
            ..request
        }
    }

    /// Whether it makes the object if there is none.
    pub(crate) fn is_apply(&self) -> bool {
        self.content == APPLY
    }

    /// Replaces an object.
    pub(crate) fn replace(object: &ObjectRef, body: Value) -> Self {
        Self::replace_part(object, "", body)
    }

    /// Replaces a subresource of an object.
    pub(crate) fn replace_part(object: &ObjectRef, subresource: &str, body: Value) -> Self {
        let uri = format!("{}{subresource}?fieldManager={FIELD_MANAGER}", path(object));
        Self::new(Method::PUT, uri, "application/json", Some(body))
    }

    /// The same, of whose answer only these parts are read.
    pub(crate) fn reading(self, reads: Parts) -> Self {
        Self { reads, ..self }
    }

    /// The same, whose answer has no more than so many bytes.
    pub(crate) fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The same with what the trace is to know.
    pub(crate) fn traced(self, context: String) -> Self {
        Self { context, ..self }
    }

    fn build(&self) -> Result<Request<Body>, Refused> {
        let bytes = self.body.clone().unwrap_or_default();
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.uri)
            .body(Body::from(bytes))
            .map_err(|error| Refused::new("BadRequest", error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        if !self.content.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content));
        }
        if let Ok(context) = HeaderValue::from_str(&self.context)
            && !self.context.is_empty()
        {
            headers.insert(HeaderName::from_static("x-trace-context"), context);
        }
        Ok(request)
    }

    /// Sends it, and tells how it ended.
    pub(crate) async fn send(&self, client: &impl Carry, timeout: Duration) -> Outcome {
        let request = match self.build() {
            Ok(request) => request,
            Err(refused) => return Outcome::Refused(refused),
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep(timeout) => {
                let message = format!("no answer within {} s", timeout.as_secs());
                Outcome::Unknown(Refused::unanswered("Timeout", message), None)
            }
            ended = exchange(client, request, self.most) => match ended {
                Ok((409, _, body)) if self.is_yielding() => Outcome::Refused(said(409, &body)),
                Ok((code, after, body)) => read(code, after, &body, self.reads),
                Err(error) => Outcome::Unknown(Refused::unanswered("Unreachable", error), None),
            }
        }
    }
}

/// Sends a request; gives the code, how long to wait before the next, and the body, if that has no more than so many bytes.
pub(crate) async fn exchange(
    client: &impl Carry,
    request: Request<Body>,
    most: usize,
) -> Result<(u16, Option<Duration>, Bytes), String> {
    let response = client.carry(request).await.map_err(|e| e.to_string())?;
    let code = response.status().as_u16();
    let after = retry_after(response.headers());
    let body = Limited::new(response.into_body(), most);
    let body = body.collect().await.map_err(|e| e.to_string())?.to_bytes();
    Ok((code, after, body))
}

/// What an answer means.
fn read(code: u16, after: Option<Duration>, body: &[u8], reads: Parts) -> Outcome {
    let value = reads.parse(body).ok();
    let refused = || said(code, body);
    let malformed = || {
        let refused = Refused::unanswered("Malformed", "the answer is no JSON");
        Outcome::Unknown(refused, None)
    };
    match code {
        200..=299 => value.map_or_else(malformed, Outcome::Done),
        404 => {
            let named = value.as_ref().and_then(|v| v.pointer("/details/name"));
            let mut refused = refused();
            if named.and_then(Value::as_str).is_none_or(str::is_empty) {
                refused.reason = Reason::NotServed;
            }
            Outcome::Absent(refused)
        }
        409 => Outcome::Conflict,
        429 => Outcome::Busy(after),
        300..=499 => Outcome::Refused(refused()),
        _ => Outcome::Unknown(refused(), after),
    }
}

/// What an answer says about why it was not done.
fn said(code: u16, body: &[u8]) -> Refused {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let text = |field: &str| {
        let found = value.as_ref().and_then(|v| v.get(field)?.as_str());
        found.map(str::to_owned)
    };
    let reason = text("reason").unwrap_or_else(|| format!("HTTP{code}"));
    let message = text("message");
    Refused::new(
        &reason,
        message.unwrap_or_else(|| format!("the server answered with code {code}")),
    )
}

/// `Retry-After` in seconds, but never longer than we ever wait; the form with a date is not used by the API, and what is
/// no number, or no time at all, counts as not said.
fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number that is too large to be read is larger than any that is heeded.
    let seconds = text.parse().unwrap_or(u64::MAX);
    (seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use slipway_kernel::parts::Part;

    use super::*;

    #[test]
    fn who_wrote_which_field_is_read_only_where_somebody_wants_to_know() {
        let body = br#"{"metadata": {"name": "a", "managedFields": [{"manager": "b"}]}, "status": {"c": 1}}"#;
        let read = |reads: Parts| match read(200, None, body, reads) {
            Outcome::Done(value) => value,
            other => json!(other.as_str()),
        };
        let whole: Value = serde_json::from_slice(body).unwrap_or_default();
        assert_eq!(read(Parts::ALL), whole);
        let rest = json!({"metadata": {"name": "a"}, "status": {"c": 1}});
        assert_eq!(read(Parts::ALL.without(Part::ManagedFields)), rest);
        assert_eq!(
            super::read(200, None, b"{} {}", Parts::ALL).as_str(),
            "unknown"
        );
    }

    #[tokio::test]
    async fn an_answer_with_more_than_is_read_is_none() {
        let service = tower::service_fn(|_: Request<Body>| async {
            let said = json!({"said": "x".repeat(100)}).to_string();
            Ok::<_, tower::BoxError>(http::Response::new(Body::from(said.into_bytes())))
        });
        let client = kube::Client::new(service, "default");
        let ends = async |most: usize| {
            let wanted = ApiRequest::discovery("/api").at_most(most);
            wanted.send(&client, Duration::from_secs(5)).await
        };
        assert_eq!(ends(1_000).await.as_str(), "done");
        let none = ends(100).await;
        assert!(
            matches!(&none, Outcome::Unknown(refused, _) if refused.is_unanswered()),
            "{none:?}"
        );
    }

    /// Nobody knows what became of a write that a server fails to do; and yet the server is there.
    #[test]
    fn a_server_that_fails_has_answered() {
        let is_unanswered = |code: u16, body: &[u8]| match read(code, None, body, Parts::ALL) {
            Outcome::Unknown(refused, _) => Some(refused.is_unanswered()),
            _ => None,
        };
        let timeout = br#"{"kind": "Status", "reason": "Timeout"}"#;
        for code in [500, 502, 503, 504] {
            assert_eq!(is_unanswered(code, timeout), Some(false), "{code}");
            assert_eq!(is_unanswered(code, b"bad gateway"), Some(false), "{code}");
        }
        assert_eq!(is_unanswered(200, b"welcome"), Some(true), "no JSON");
        assert_eq!(is_unanswered(429, b""), None);
    }

    /// A server that does not serve a kind yet answers with 404 for objects that are there.
    #[test]
    fn that_nothing_is_at_an_address_says_nothing_about_the_object() {
        let reason = |body: &[u8]| match read(404, None, body, Parts::ALL) {
            Outcome::Absent(refused) => refused.reason,
            other => Reason::Other(other.as_str().to_owned()),
        };
        assert_eq!(reason(b"404 page not found"), Reason::NotServed);
        let kind = br#"{"kind": "Status", "reason": "NotFound", "details": {}}"#;
        assert_eq!(reason(kind), Reason::NotServed);
        let object = br#"{"kind": "Status", "reason": "NotFound", "details": {"name": "nightly"}}"#;
        assert_eq!(reason(object), Reason::Other("NotFound".to_owned()));
    }

    #[test]
    fn answers_are_told_apart_by_what_may_have_happened() {
        let ends = |code| read(code, None, b"{}", Parts::ALL).as_str();
        assert_eq!(ends(200), "done");
        assert_eq!(ends(404), "absent");
        assert_eq!(ends(409), "conflict");
        assert_eq!(ends(429), "busy");
        for code in [400, 403, 413, 422] {
            assert_eq!(ends(code), "refused");
        }
        for code in [500, 502, 503, 504] {
            assert_eq!(ends(code), "unknown");
        }
        assert_eq!(read(200, None, b"<html>", Parts::ALL).as_str(), "unknown");
    }

    #[test]
    fn no_server_can_ask_for_more_than_five_minutes() {
        let wait = |text: &str| {
            let mut headers = http::HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().ok()?);
            retry_after(&headers).map(|wait| wait.as_secs())
        };
        assert_eq!(wait("0"), None);
        assert_eq!(wait(" 17 "), Some(17));
        assert_eq!(wait("300"), Some(300));
        for long in ["301", "86400", &u64::MAX.to_string(), &"9".repeat(40)] {
            assert_eq!(wait(long), Some(300), "{long}");
        }
        for nonsense in [
            "",
            "-1",
            "+5",
            "1.5",
            "soon",
            "Wed, 21 Oct 2026 07:28:00 GMT",
        ] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
    }
}
