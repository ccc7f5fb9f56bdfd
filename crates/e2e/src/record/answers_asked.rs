//! Questions to the server that is recorded of.

use anyhow::{Context, Result, ensure};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;

/// The server.
pub(crate) struct Asked {
    client: kube::Client,
}

/// One question.
pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    /// The type of the body.
    pub(crate) media: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) body: Vec<u8>,
}

const JSON: &str = "application/json";

impl Asked {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Code, type and bytes of an answer.
    pub(crate) async fn ask(&self, question: Question<'_>) -> Result<(u16, String, Vec<u8>)> {
        let mut request = Request::new(kube::client::Body::from(question.body));
        *request.method_mut() = question.method;
        *request.uri_mut() = question.path.parse()?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, question.accept.parse()?);
        headers.insert(CONTENT_TYPE, question.media.parse()?);
        let response = self.client.send(request).await?;
        let code = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.to_owned();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((code, kind, body.to_vec()))
    }

    /// Asks with a body in JSON, or one that is read as JSON too.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        let question = Question {
            method,
            path,
            media,
            accept: JSON,
            body: body.to_string().into_bytes(),
        };
        let (code, _, answer) = self.ask(question).await?;
        let answer = serde_json::from_slice(&answer).with_context(|| format!("{path}: no JSON"))?;
        Ok((code, answer))
    }

    /// Creates something that is not there yet.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value> {
        let (code, answer) = self.send(Method::POST, path, JSON, object).await?;
        ensure!(code == 201, "{path}: {code} {}", answer["message"]);
        Ok(answer)
    }

    /// Reads something that is there.
    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        let found = self.find(path).await?;
        found.with_context(|| format!("{path}: there is none"))
    }

    /// Reads something, if it is there.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>> {
        let question = Question {
            method: Method::GET,
            path,
            media: JSON,
            accept: JSON,
            body: Vec::new(),
        };
        let (code, _, answer) = self.ask(question).await?;
        if code == 404 {
            return Ok(None);
        }
        ensure!(code == 200, "{path}: {code}");
        Ok(Some(serde_json::from_slice(&answer)?))
    }
}
