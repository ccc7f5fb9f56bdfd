//! Requests to the API as questions: code and body as they come, also of refusals.

use std::sync::Arc;

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderName, HeaderValue, Method, Request};
use kube::client::Body;
use serde_json::Value;
use slipway_kernel::Purpose;
use slipway_kernel::fact::{Answer, Question, Request as Asked};

use super::Sender;
use crate::request::{FIELD_MANAGER, LARGEST_ANSWER, exchange};
use crate::rights::Rights;

/// The API of one cluster.
#[derive(Clone)]
pub(super) struct Api {
    client: kube::Client,
    rights: Arc<Rights>,
    sender: Option<Arc<dyn Sender>>,
}

impl Api {
    pub(super) fn new(client: kube::Client) -> Self {
        Self {
            client,
            rights: Arc::default(),
            sender: None,
        }
    }

    pub(super) fn sent_by(self, sender: Arc<dyn Sender>) -> Self {
        Self {
            sender: Some(sender),
            ..self
        }
    }

    /// Asks what a question says.
    pub(super) async fn ask(&self, question: &Question) -> Answer {
        let purpose = question.id.purpose;
        let Asked::Api { method, path, body } = &question.request else {
            return Answer::unreachable("that is no question to the API");
        };
        let request = self.request(method, path, body, purpose);
        match self.send(request).await {
            Answer::Said { code: 403, body } if self.is_no_right(question).await => {
                Answer::NoRight(sentence(&body))
            }
            answer => answer,
        }
    }

    /// Whether it is for want of a right that a question was refused.
    async fn is_no_right(&self, question: &Question) -> bool {
        let Ok(method) = Method::from_bytes(question.method().as_bytes()) else {
            return false;
        };
        let (client, timeout) = (&self.client, question.timeout);
        let address = question.address();
        let missing = self.rights.is_missing(client, &method, &address, timeout);
        missing.await
    }

    /// Reads something that is needed for a question.
    pub(super) async fn get(&self, path: &str, purpose: Purpose) -> Answer {
        let request = self.request("GET", path, &Value::Null, purpose);
        self.send(request).await
    }

    async fn send(&self, request: Result<Request<Body>, String>) -> Answer {
        let request = match request {
            Ok(request) => request,
            Err(why) => return Answer::unreachable(why),
        };
        match exchange(&self.client, request, LARGEST_ANSWER).await {
            Ok((code, _, body)) => Answer::Said {
                code,
                body: String::from_utf8_lossy(&body).into_owned(),
            },
            Err(why) => Answer::unreachable(why),
        }
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        purpose: Purpose,
    ) -> Result<Request<Body>, String> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
        let is_write = method != Method::GET;
        let content = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let uri = match (is_write && method != Method::DELETE, path.contains('?')) {
            (false, _) => path.to_owned(),
            (true, false) => format!("{path}?fieldManager={FIELD_MANAGER}"),
            (true, true) => format!("{path}&fieldManager={FIELD_MANAGER}"),
        };
        let bytes = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .body(Body::from(bytes))
            .map_err(|error| format!("{path}: {error}"))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if is_write {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        }
        if let Some((name, value)) = self.sender.as_ref().and_then(|sender| sender.header()) {
            headers.insert(name, value);
        }
        if let Ok(context) = HeaderValue::from_str(&format!("purpose={purpose}")) {
            headers.insert(HeaderName::from_static("x-trace-context"), context);
        }
        Ok(request)
    }
}

/// The sentence in what the API says when it refuses.
fn sentence(body: &str) -> String {
    let status: Option<Value> = serde_json::from_str(body).ok();
    let message = status
        .as_ref()
        .and_then(|status| status.get("message")?.as_str());
    message.unwrap_or("forbidden").to_owned()
}
