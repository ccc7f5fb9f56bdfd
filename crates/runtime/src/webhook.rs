//! The webhooks of one replica: from the body of a request to the body of its answer.
//!
//! ```text
//! answer(request) ─► parse ─► judge ─► Decide ──────────────► do its actions ─► render
//!                              ▲  └──► Need ─► gather (32 at once) ─┐
//!                              └─────── facts of this review ◄──────┘     at 0.9 of the time: expire ─► render, undo later
//! ```
//!
//! It promises an answer to every body within 0.9 of the time that the caller waits, and that two reviews are never let
//! through on one place. It opens no socket and spawns nothing; [`serve`] does that. What is undone after the deadline
//! is done by the operator's own future, and is lost with it.

mod carry;
mod judgement;
mod limits;
mod reading;
mod serve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use slipway_kernel::admission::review::{self, Refusal};
use slipway_kernel::admission::{Admit, Remarks, Review, Verdict};
use slipway_kernel::store::Stores;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::collection::Reader;
use crate::gather::Gather;
use crate::message::Message;
use crate::metrics::traffic::Meter;
use crate::state::Shared;

pub(crate) use carry::Carrier;
pub use limits::Limits;
pub use serve::{Error, serve};

use judgement::Judgement;
pub(crate) use reading::Readings;

/// When a request came in, if it was not just now; an extension of the request.
#[derive(Debug, Clone, Copy)]
struct Arrived(Instant);

/// One webhook, and what is measured of it.
struct Hook {
    admit: Arc<dyn Admit>,
    meter: Meter,
}

struct Inner {
    shared: Arc<Shared>,
    client: kube::Client,
    gatherer: Arc<dyn Gather>,
    late: mpsc::UnboundedSender<Message>,
    readings: Readings,
    hooks: BTreeMap<&'static str, Hook>,
    other: Meter,
    limits: Limits,
    nothing: Stores,
}

/// The webhooks of one replica. Clones are the same ones.
#[derive(Clone)]
pub struct Admissions(Arc<Inner>);

impl std::fmt::Debug for Admissions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths: Vec<&str> = self.0.hooks.keys().copied().collect();
        f.debug_tuple("Admissions").field(&paths).finish()
    }
}

impl Admissions {
    pub(crate) fn new(
        shared: Arc<Shared>,
        client: kube::Client,
        gatherer: Arc<dyn Gather>,
        late: mpsc::UnboundedSender<Message>,
        hooks: Vec<Arc<dyn Admit>>,
        limits: Limits,
    ) -> Self {
        let traffic = &shared.metrics.traffic;
        let hooks = hooks
            .into_iter()
            .map(|admit| {
                let path = admit.path();
                let meter = traffic.meter(&Method::POST, path, admit.in_flight());
                (path, Hook { admit, meter })
            })
            .collect();
        let reader = Reader {
            shared: shared.clone(),
            client: client.clone(),
            inbox: late.clone(),
        };
        Self(Arc::new(Inner {
            readings: Readings::new(reader),
            client,
            gatherer,
            late,
            hooks,
            other: traffic.meter(&Method::POST, "/other", None),
            limits,
            nothing: Stores::default(),
            shared,
        }))
    }

    /// Where webhooks are served.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.0.hooks.keys().copied()
    }

    /// The limits of size and time.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// Answers a request. The API server's `timeout` in its query says how long it waits.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let arrived = request.extensions().get::<Arrived>();
        let arrived = arrived.map_or_else(Instant::now, |at| at.0);
        let path = request.uri().path();
        let hook = self.0.hooks.get(path);
        let under_way = self
            .meter(path)
            .begin(request.method(), request.body().len());
        let refused = self.0.shared.refuse_request(path, request.headers());
        let response = match (refused, hook) {
            (Some(refusal), _) => refusal,
            (None, Some(hook)) => self.admit(hook, &request, arrived).await,
            (None, None) => plain(StatusCode::NOT_FOUND, "404 page not found"),
        };
        under_way.end(response.status(), response.body().len(), arrived.elapsed());
        response
    }

    fn meter(&self, path: &str) -> &Meter {
        let hook = self.0.hooks.get(path);
        hook.map_or(&self.0.other, |hook| &hook.meter)
    }

    async fn admit(
        &self,
        hook: &Hook,
        request: &Request<Bytes>,
        arrived: Instant,
    ) -> Response<Bytes> {
        let body = request.body();
        if body.len() > self.0.limits.body_bytes {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "request body is too large");
        }
        let kind = request.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let (version, review) = match review::parse(body, kind, hook.admit.reads()) {
            Ok(parsed) => parsed,
            Err(Refusal { code, text }) => {
                let code = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
                return plain(code, &text);
            }
        };
        if !is_segment(&review.namespace) || !is_segment(&review.name) {
            // They become part of paths of the API, which would name something else.
            return plain(
                StatusCode::BAD_REQUEST,
                "Request could not be decoded: the namespace or the name is none that Kubernetes allows",
            );
        }
        if !self.is_watched(&review.namespace) {
            let verdict = Verdict::warned(unwatched(&review.namespace));
            return answered(&review::render(version, &review.uid, &verdict));
        }
        let deadline = arrived + self.0.limits.patience(request.uri().query());
        let judgement = Judgement::new(&self.0, hook.admit.as_ref(), &review, deadline);
        let Some((verdict, remarks)) = judgement.reach().await else {
            tracing::error!(
                path = hook.admit.path(),
                uid = review.uid,
                "judging has a defect"
            );
            return plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the webhook has a defect",
            );
        };
        if let Some(count) = &remarks.count {
            self.0.shared.metrics.traffic.count(count);
        }
        log(hook.admit.as_ref(), &review, &verdict, &remarks);
        answered(&review::render(version, &review.uid, &verdict))
    }

    /// Whether this replica knows anything of a namespace. What is asked about another one is none of its business, however
    /// wide the registration of its webhooks is.
    fn is_watched(&self, namespace: &str) -> bool {
        let watched = &self.0.shared.settings.namespaces;
        watched.is_empty() || namespace.is_empty() || watched.iter().any(|one| one == namespace)
    }
}

/// Whether a text is one segment of a path of the API, or none: all that any kind allows in a name.
fn is_segment(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    !matches!(text, "." | "..") && text.chars().all(is_allowed)
}

fn unwatched(namespace: &str) -> String {
    format!(
        "namespace {namespace} is not watched by this operator, allowing the change; \
         leave it out of the webhook's namespaceSelector"
    )
}

/// An answer with a verdict.
fn answered(text: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::copy_from_slice(text.as_bytes()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// An answer that is no verdict: one line, as Go's servers end it.
fn plain(code: StatusCode, text: &str) -> Response<Bytes> {
    let mut line = text.trim_end_matches('\n').to_owned();
    line.push('\n');
    let mut response = Response::new(Bytes::from(line));
    *response.status_mut() = code;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Tells what was said: refusals, and whatever is counted. All else would be a line for every write to the cluster.
fn log(hook: &dyn Admit, review: &Review, verdict: &Verdict, remarks: &Remarks) {
    let (ended, reason) = match verdict {
        Verdict::Denied { message, .. } => ("denied", message.as_str()),
        Verdict::Allowed { .. } if remarks.count.is_none() => return,
        Verdict::Allowed { message, warnings } => (
            "allowed",
            warnings.first().map_or(message.as_str(), String::as_str),
        ),
    };
    let last = hook.path().rsplit('/').next().unwrap_or_default();
    let title = last.replace('-', " ");
    let method = hook.judge_name();
    if let Some((note, pods)) = &remarks.notes {
        let uid = review.uid.as_str();
        for pod in pods {
            tracing::info!(method, pod, request.uid = uid, "{note}");
        }
    }
    tracing::info!(
        method,
        object.name = review.name,
        object.namespace = review.namespace,
        object.resource = review.resource,
        request.uid = review.uid,
        reason,
        "{title} {ended}"
    );
}
