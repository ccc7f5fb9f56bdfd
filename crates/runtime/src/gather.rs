//! Asks what plans and webhooks want to know from outside of what is watched.
//!
//! [`Gatherer`] tells three kinds of addresses apart: `/…` is a request to the API of the cluster, `scale://…` the scale
//! of a resource whose kind is found by discovery, and `http://…` a pod, reached by a [`Dial`]: [`Http`] over sockets,
//! or whatever a simulation puts in its place. A failure is an answer. Nothing is tried twice here.

mod api;
mod http;
mod scale;
mod sender;

use std::sync::Arc;

use ::http::header::{CONTENT_TYPE, HeaderName};
use ::http::{HeaderValue, Method, Request, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use slipway_kernel::fact::{Answer, Question, QuestionId};
use tokio::time::Instant;

use crate::state::Shared;

pub use self::http::Http;
pub use self::sender::{Rejection, Sender};
use api::Api;
use scale::Scales;

/// How much of a pod's answer is kept: answers are many, and stay for as long as plans need them.
const LONGEST_SAYING: usize = 4 * 1024;

/// Puts a question to whoever it is for. A failure is an answer; the caller enforces [`Question::timeout`].
pub trait Gather: Send + Sync + 'static {
    /// Asks.
    fn gather(&self, question: Question) -> BoxFuture<'static, Answer>;
    /// What is in a pod's answer, if it is that it takes no requests from here.
    fn rejection(&self, _code: u16, _body: &str) -> Option<Rejection> {
        None
    }
}

/// Answers every question with a refusal: what an operator has unless told otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Gather for Nobody {
    fn gather(&self, _question: Question) -> BoxFuture<'static, Answer> {
        Box::pin(async { Answer::Refused("no gatherer".to_owned()) })
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

/// Asks pods and the API of one cluster.
#[derive(Clone)]
pub struct Gatherer {
    api: Api,
    scales: Arc<Scales>,
    pods: Arc<dyn Dial>,
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
        let api = Api::new(client);
        Self {
            scales: Arc::new(Scales::new(api.clone())),
            api,
            pods,
            sender: None,
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

    fn request(&self, question: &Question) -> Result<Request<Bytes>, String> {
        let method = Method::from_bytes(question.method.as_bytes()).map_err(|e| e.to_string())?;
        let sends = method != Method::GET;
        let body = match &question.body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(&question.url)
            .body(body)
            .map_err(|error| format!("{}: {error}", question.url))?;
        let headers = request.headers_mut();
        if sends {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some((name, value)) = self.sender.as_ref().and_then(|sender| sender.header()) {
            headers.insert(name, value);
        }
        if let Ok(key) = HeaderValue::from_str(&key(&question.id)) {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        Ok(request)
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

    fn gather(&self, question: Question) -> BoxFuture<'static, Answer> {
        if question.url.starts_with('/') {
            let api = self.api.clone();
            return Box::pin(async move { api.ask(&question).await });
        }
        if let Some(of) = question.url.strip_prefix(scale::SCHEME) {
            let (scales, of) = (self.scales.clone(), of.to_owned());
            return Box::pin(async move { scales.ask(&of, &question).await });
        }
        let request = match self.request(&question) {
            Ok(request) => request,
            Err(why) => return Box::pin(async { Answer::Refused(why) }),
        };
        let call = self.pods.call(request);
        Box::pin(async move {
            match call.await {
                Ok(response) => Answer::Said {
                    code: response.status().as_u16(),
                    body: String::from_utf8_lossy(response.body()).into_owned(),
                },
                Err(Unreached::Refused(why)) => Answer::Refused(why),
                Err(Unreached::Malformed(why)) => Answer::Malformed(why),
            }
        })
    }
}

/// Puts a question, keeps its time and measures it. Whoever was paused does not ask on waking what is out of time.
pub(crate) async fn put(shared: &Shared, gatherer: &dyn Gather, question: Question) -> Answer {
    if !question.pause.is_zero() {
        shared.environment.sleep(question.pause).await;
    }
    let began = Instant::now();
    let path = path(&question.url).map(str::to_owned);
    let (method, timeout) = (question.method, question.timeout);
    let asked = gatherer.gather(question);
    let answer = tokio::select! {
        biased;
        () = tokio::time::sleep(timeout) => Answer::Timeout,
        answer = asked => answer,
    };
    let Some(path) = path else {
        return answer;
    };
    let answer = shortened(answer);
    let traffic = &shared.metrics.traffic;
    traffic.asked_pod(&path, method, code(&answer), began.elapsed());
    let rejection = match &answer {
        Answer::Said { code, body } => gatherer.rejection(*code, body),
        _ => None,
    };
    let Some(Rejection { count, message }) = rejection else {
        return answer;
    };
    traffic.count(&count);
    Answer::Refused(format!("request rejected by the server: {message}"))
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

/// The path of a pod's address; none if it is none.
fn path(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.starts_with("http") {
        return None;
    }
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    path.split('?').next()
}

fn code(answer: &Answer) -> Option<u16> {
    match answer {
        Answer::Said { code, .. } => Some(*code),
        Answer::NoRight(_) => Some(403),
        Answer::Timeout | Answer::Refused(_) | Answer::Malformed(_) => None,
    }
}

#[cfg(test)]
mod tests;
