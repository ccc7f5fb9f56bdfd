//! Asks what plans and webhooks want to know from outside of what is watched.
//!
//! [`Gatherer`] knows every [`Request`]: one to the API of the cluster, the scale of a resource whose kind is found by
//! discovery, a pod, reached by a [`Dial`] ([`Http`] over sockets, or whatever a simulation puts in its place), and the
//! world outside ([`Outside`]). A failure is an answer. Nothing is tried twice here.

mod api;
mod http;
mod scale;
mod sender;

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CONTENT_TYPE, HeaderName};
use ::http::{HeaderValue, Method, Request, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use slipway_kernel::fact::{Answer, Question, QuestionId, Request as Asked};
use slipway_kernel::identity::Key;
use slipway_kernel::question::Failure;
use tokio::time::Instant;

use crate::outside::{self, ApiSecrets, Ask as _, Outside, Still};
use crate::state::Shared;

pub use self::http::Http;
pub use self::sender::{Rejection, Sender};
use api::Api;
use scale::Scales;

/// How much of a pod's answer is kept: answers are many, and stay for as long as plans need them.
const LONGEST_SAYING: usize = 4 * 1024;

/// How much longer somebody is waited for who keeps the time himself.
const GRACE: Duration = Duration::from_secs(1);

/// Puts a question to whoever it is for. A failure is an answer; the caller enforces [`Question::timeout`].
pub trait Gather: Send + Sync + 'static {
    /// Asks, on behalf of a key.
    fn gather(&self, key: &Key, question: Question) -> BoxFuture<'static, Answer>;
    /// The same, unless it is not wanted any more when its turn comes.
    fn gather_while(
        &self,
        key: &Key,
        question: Question,
        _still: Still,
    ) -> BoxFuture<'static, Answer> {
        self.gather(key, question)
    }
    /// Whoever asks in the same way about another cluster, which this client reaches.
    fn elsewhere(&self, client: kube::Client) -> Arc<dyn Gather> {
        Arc::new(Gatherer::new(client, Arc::new(NoPods)))
    }
    /// Has what it counts shown.
    fn register(&self, _registry: &mut Registry) {}
    /// What is in a pod's answer, if it is that it takes no requests from here.
    fn rejection(&self, _code: u16, _body: &str) -> Option<Rejection> {
        None
    }
}

/// Answers every question with a refusal: what an operator has unless told otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Gather for Nobody {
    fn gather(&self, _: &Key, _: Question) -> BoxFuture<'static, Answer> {
        Box::pin(async { Answer::unreachable("no gatherer") })
    }
}

/// Why a pod gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    /// It could not be reached, or hung up.
    #[error("{0}")]
    Refused(String),
    /// Its answer was none that HTTP knows, or too large.
    #[error("{0}")]
    Malformed(String),
}

/// Reaches pods.
pub trait Dial: Send + Sync + 'static {
    /// Makes one request, to the whole URL that it has. Given up by being dropped.
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Unreached>>;
}

/// Reaches no pod: those of other clusters have addresses that mean nothing here.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPods;

impl Dial for NoPods {
    fn call(
        &self,
        _request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Unreached>> {
        let why = "pods of another cluster cannot be reached from here".to_owned();
        Box::pin(async { Err(Unreached::Refused(why)) })
    }
}

/// Asks pods and the API of one cluster, and the world outside.
#[derive(Clone)]
pub struct Gatherer {
    client: kube::Client,
    api: Api,
    scales: Arc<Scales>,
    pods: Arc<dyn Dial>,
    outside: Option<Outside>,
    sender: Option<Arc<dyn Sender>>,
}

impl std::fmt::Debug for Gatherer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gatherer").finish_non_exhaustive()
    }
}

/// What says which question it is, the same however often it is asked.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Gatherer {
    /// Asks the API by `client` and pods by `pods`.
    pub fn new(client: kube::Client, pods: Arc<dyn Dial>) -> Self {
        let api = Api::new(client.clone());
        Self {
            client,
            scales: Arc::new(Scales::new(api.clone())),
            api,
            pods,
            outside: None,
            sender: None,
        }
    }

    /// The same, who also asks the world outside, with Secrets of the cluster.
    #[must_use]
    pub fn asking(self, outside: &Outside) -> Self {
        let secrets = Arc::new(ApiSecrets::new(self.client.clone()));
        Self {
            outside: Some(outside.reading(secrets)),
            ..self
        }
    }

    /// The same, whose requests say whom they are from.
    #[must_use]
    pub fn sent_by(mut self, sender: Arc<dyn Sender>) -> Self {
        self.api = self.api.sent_by(sender.clone());
        self.scales = Arc::new(Scales::new(self.api.clone()));
        self.sender = Some(sender);
        self
    }

    fn request(
        &self,
        id: &QuestionId,
        method: &'static str,
        url: &str,
    ) -> Result<Request<Bytes>, String> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|e| e.to_string())?;
        let sends = method != Method::GET;
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .body(Bytes::new())
            .map_err(|error| format!("{url}: {error}"))?;
        let headers = request.headers_mut();
        if sends {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some((name, value)) = self.sender.as_ref().and_then(|sender| sender.header()) {
            headers.insert(name, value);
        }
        if let Ok(key) = HeaderValue::from_str(&key(id)) {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        Ok(request)
    }

    fn pod(&self, id: &QuestionId, method: &'static str, url: &str) -> BoxFuture<'static, Answer> {
        let request = match self.request(id, method, url) {
            Ok(request) => request,
            Err(why) => return Box::pin(async { Answer::unreachable(why) }),
        };
        let call = self.pods.call(request);
        Box::pin(async move {
            match call.await {
                Ok(response) => Answer::Said {
                    code: response.status().as_u16(),
                    body: String::from_utf8_lossy(response.body()).into_owned(),
                },
                Err(Unreached::Refused(why)) => Answer::unreachable(why),
                Err(Unreached::Malformed(why)) => Answer::malformed(why),
            }
        })
    }
}

/// A question's name as a peer sees it: the same for every attempt to deliver it.
fn key(id: &QuestionId) -> String {
    let QuestionId {
        controller,
        uid,
        purpose,
        attempt,
        due,
    } = id;
    format!("{controller}/{uid}/{purpose}/{attempt}/{due}")
}

impl Gather for Gatherer {
    fn rejection(&self, code: u16, body: &str) -> Option<Rejection> {
        self.sender.as_ref()?.rejection(code, body)
    }

    fn elsewhere(&self, client: kube::Client) -> Arc<dyn Gather> {
        let other = Self::new(client, Arc::new(NoPods));
        Arc::new(match &self.outside {
            Some(outside) => other.asking(outside),
            None => other,
        })
    }

    fn register(&self, registry: &mut Registry) {
        if let Some(outside) = &self.outside {
            outside.register(registry);
        }
    }

    fn gather(&self, whose: &Key, question: Question) -> BoxFuture<'static, Answer> {
        self.gather_while(whose, question, Still::default())
    }

    fn gather_while(
        &self,
        whose: &Key,
        question: Question,
        still: Still,
    ) -> BoxFuture<'static, Answer> {
        match question.request {
            Asked::Api { .. } => {
                let api = self.api.clone();
                Box::pin(async move { api.ask(&question).await })
            }
            Asked::Scale(of) => {
                let (scales, purpose) = (self.scales.clone(), question.id.purpose);
                Box::pin(async move { scales.ask(&of, purpose).await })
            }
            Asked::Pod { method, url } => self.pod(&question.id, method, &url),
            Asked::Outside(call) => {
                let Some(outside) = &self.outside else {
                    return Box::pin(async { Answer::unreachable("nobody asks outside") });
                };
                let answer = outside.ask(outside::Asked {
                    key: whose.clone(),
                    id: key(&question.id),
                    call: *call,
                    still,
                });
                Box::pin(async move { answer.await.into() })
            }
        }
    }
}

/// Puts a question, keeps its time and measures it. Whoever was paused does not ask on waking what is out of time.
pub(crate) async fn put(
    shared: &Shared,
    gatherer: &dyn Gather,
    key: &Key,
    question: Question,
) -> Answer {
    put_while(shared, gatherer, key, question, Still::default()).await
}

/// The same, unless it is not wanted any more when its turn comes. What is out of time is not asked: somebody else may have
/// asked otherwise since.
pub(crate) async fn put_while(
    shared: &Shared,
    gatherer: &dyn Gather,
    key: &Key,
    mut question: Question,
    still: Still,
) -> Answer {
    let too_late = || Answer::Failed(Failure::NotAllowed("it is too late to ask".to_owned()));
    if question.is_too_late(shared.environment.now()) {
        return too_late();
    }
    if !question.pause.is_zero() {
        shared.environment.sleep(question.pause).await;
        question.pause = Duration::ZERO;
        if question.is_too_late(shared.environment.now()) {
            return too_late();
        }
    }
    let began = Instant::now();
    let method = question.method();
    let (path, timeout) = match &question.request {
        Asked::Pod { url, .. } => (Some(path(url).to_owned()), question.timeout),
        Asked::Api { .. } | Asked::Scale(_) => (None, question.timeout),
        // A call keeps its time itself, and knows what was waited for.
        Asked::Outside(call) => (None, call.timeout.saturating_add(GRACE)),
    };
    let asked = gatherer.gather_while(key, question, still);
    let answer = tokio::select! {
        biased;
        () = tokio::time::sleep(timeout) => Answer::timeout(),
        answer = asked => answer,
    };
    let Some(path) = path else {
        return answer;
    };
    let answer = shortened(answer);
    let traffic = &shared.metrics.traffic;
    traffic.asked_pod(&path, method, code(&answer), began.elapsed());
    let (code, rejection) = match &answer {
        Answer::Said { code, body } => (*code, gatherer.rejection(*code, body)),
        _ => (0, None),
    };
    let Some(Rejection { count, message }) = rejection else {
        return answer;
    };
    traffic.count(&count);
    Answer::Failed(Failure::Refused {
        code,
        message: format!("request rejected by the server: {message}"),
    })
}

/// What is kept of what a pod says: no more than anybody reads.
fn shortened(answer: Answer) -> Answer {
    match answer {
        Answer::Said { code, mut body } if body.len() > LONGEST_SAYING => {
            let mut end = LONGEST_SAYING;
            while !body.is_char_boundary(end) {
                end -= 1;
            }
            body.truncate(end);
            body.push_str(" … (cut)");
            Answer::Said { code, body }
        }
        answer => answer,
    }
}

/// The path of an address.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    path.split('?').next().unwrap_or_default()
}

fn code(answer: &Answer) -> Option<u16> {
    match answer {
        Answer::Said { code, .. } => Some(*code),
        Answer::Read(reply) => Some(reply.code),
        Answer::NoRight(_) => Some(403),
        Answer::Failed(_) => None,
    }
}

#[cfg(test)]
mod tests;
