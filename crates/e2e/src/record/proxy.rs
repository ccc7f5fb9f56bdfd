//! The recording proxy: HTTPS in front of a kube-apiserver.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::json;
use tokio::net::TcpListener;

use crate::https::{self, Answer};

use super::{Content, Pair, SCRUBBED, Seen, is_watch};

/// Who asks for what was there before.
const RECORDER: &str = "recorder/1";

/// What the server is, and collections that a kube-apiserver fills by itself.
const BEFORE: &[&str] = &[
    "/version",
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    "/api/v1/configmaps",
    "/api/v1/services",
    "/api/v1/endpoints",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/networking.k8s.io/v1/ipaddresses",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
];

/// A proxy and what it has recorded.
pub struct Proxy {
    upstream: kube::Client,
    /// Held by the request that is on its way.
    turn: tokio::sync::Mutex<()>,
    pairs: Mutex<Vec<Pair>>,
}

impl Proxy {
    /// In front of the server of this client.
    pub fn new(upstream: kube::Client) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            turn: tokio::sync::Mutex::new(()),
            pairs: Mutex::new(Vec::new()),
        })
    }

    /// What was recorded so far.
    pub fn pairs(&self) -> Vec<Pair> {
        self.all().clone()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Pair>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is there before anybody asks.
    pub async fn begin(&self) -> Result<()> {
        for path in BEFORE {
            let request = Request::get(*path).header(ACCEPT, "application/json");
            let response = self
                .upstream
                .send(request.body(kube::client::Body::empty())?)
                .await?;
            let code = response.status().as_u16();
            let body = response.into_body().collect().await?.to_bytes();
            self.all().push(Pair {
                agent: RECORDER.to_owned(),
                method: "GET".to_owned(),
                path: (*path).to_owned(),
                accept: "application/json".to_owned(),
                code,
                answer: Content::read(&body),
                ..Pair::default()
            });
        }
        Ok(())
    }

    /// Serves on a free port until the future is dropped; writes a kubeconfig for its clients first.
    pub async fn serve(self: Arc<Self>, kubeconfig: &Path) -> Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        https::write_kubeconfig(kubeconfig, listener.local_addr()?.port())?;
        https::serve(listener, move |request| self.clone().answer(request)).await
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let mut pair = Pair {
            agent: first_word(&parts.headers),
            method: parts.method.to_string(),
            path: parts
                .uri
                .path_and_query()
                .map(ToString::to_string)
                .unwrap_or_default(),
            accept: accepted(&parts.headers),
            media: header(&parts.headers, &CONTENT_TYPE),
            body: Content::read(&body),
            ..Pair::default()
        };
        // The proxy wants to read the answer.
        let mut forward = https::passed_on(&parts, &body, &["accept", "accept-encoding"])?;
        if !pair.accept.is_empty() {
            let accept = HeaderValue::from_str(&pair.accept)?;
            forward.headers_mut().insert(ACCEPT, accept);
        }
        if is_watch(&pair.path) {
            return self.watched(pair, forward).await;
        }
        let turn = self.turn.lock().await;
        let response = self.upstream.send(forward).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        pair.code = parts.status.as_u16();
        pair.answer = if pair.path.starts_with("/openapi/") {
            Content::Empty
        } else {
            scrubbed(Content::read(&body))
        };
        self.all().push(pair);
        drop(turn);
        let whole = Full::new(body).map_err(|never| match never {});
        Ok(https::reply(&parts, whole.boxed_unsync()))
    }

    /// Passes a watch on, and notes its events under its place in the order.
    async fn watched(
        self: Arc<Self>,
        mut pair: Pair,
        forward: Request<kube::client::Body>,
    ) -> Result<Answer> {
        let turn = self.turn.lock().await;
        let response = self.upstream.send(forward).await?;
        let (parts, body) = response.into_parts();
        pair.code = parts.status.as_u16();
        pair.events = Some(Vec::new());
        let index = {
            let mut all = self.all();
            all.push(pair);
            all.len() - 1
        };
        drop(turn);
        let mut rest: Vec<u8> = Vec::new();
        let stream = body.into_data_stream().map(move |chunk| {
            if let Ok(chunk) = &chunk {
                rest.extend_from_slice(chunk);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    if let Some(seen) = Seen::read(&line)
                        && let Some(events) = self
                            .all()
                            .get_mut(index)
                            .and_then(|pair| pair.events.as_mut())
                    {
                        events.push(seen);
                    }
                }
            }
            chunk
        });
        let frames = StreamBody::new(stream.map_ok(Frame::data));
        Ok(https::reply(&parts, BodyExt::boxed_unsync(frames)))
    }
}

fn header(headers: &HeaderMap, name: &http::HeaderName) -> String {
    let found = headers.get(name).and_then(|value| value.to_str().ok());
    found.unwrap_or_default().to_owned()
}

fn first_word(headers: &HeaderMap) -> String {
    let agent = header(headers, &USER_AGENT);
    agent.split(' ').next().unwrap_or_default().to_owned()
}

/// What a client accepts, without the binary forms.
fn accepted(headers: &HeaderMap) -> String {
    header(headers, &ACCEPT)
        .split(',')
        .map(str::trim)
        .filter(|media| !media.contains("protobuf") && !media.contains("cbor"))
        .collect::<Vec<_>>()
        .join(",")
}

/// Without tokens.
fn scrubbed(content: Content) -> Content {
    let Content::Json(mut answer) = content else {
        return content;
    };
    if let Some(token) = answer.pointer_mut("/status/token") {
        *token = json!(SCRUBBED);
    }
    Content::Json(answer)
}
