//! Who there is outside: webhooks that say what they are told to say, and a Prometheus.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use slipway_kernel::question::Failure;
use slipway_runtime::outside::{Body, Manner, Transport};

/// What is said outside, and what was heard there.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// What is said next at a path, one after the other.
    next: BTreeMap<String, Vec<u16>>,
    /// The code of each path; 200 where none is given.
    codes: BTreeMap<String, u16>,
    /// What is measured; no data where nothing is given.
    value: Option<String>,
    /// How long webhooks take to answer.
    delay: Duration,
    /// How long those at a path take.
    delays: BTreeMap<String, Duration>,
    /// What is said at a path besides the code.
    texts: BTreeMap<String, String>,
    /// Where a path points instead.
    moves: BTreeMap<String, String>,
    /// Whom somebody has called at all.
    called: Vec<String>,
    heard: Vec<(String, Value)>,
    /// What calls to a path were signed with.
    signatures: Vec<(String, Option<String>)>,
    queries: Vec<String>,
}

impl World {
    pub(crate) fn say(&self, path: &str, code: u16) {
        self.0.lock().unwrap().codes.insert(path.to_owned(), code);
    }

    /// Says this once before what is said otherwise.
    pub(crate) fn say_once(&self, path: &str, code: u16) {
        let mut inner = self.0.lock().unwrap();
        inner.next.entry(path.to_owned()).or_default().push(code);
    }

    /// Says so much at a path.
    pub(crate) fn say_much(&self, path: &str, text: String) {
        let mut inner = self.0.lock().unwrap();
        inner.texts.insert(path.to_owned(), text);
    }

    /// Points elsewhere at a path.
    pub(crate) fn point(&self, path: &str, to: &str) {
        let mut inner = self.0.lock().unwrap();
        inner.moves.insert(path.to_owned(), to.to_owned());
    }

    /// Whom somebody has called at all, whether anybody is there or not.
    pub(crate) fn called(&self) -> Vec<String> {
        self.0.lock().unwrap().called.clone()
    }

    pub(crate) fn measure(&self, value: &str) {
        self.0.lock().unwrap().value = Some(value.to_owned());
    }

    pub(crate) fn delay(&self, by: Duration) {
        self.0.lock().unwrap().delay = by;
    }

    pub(crate) fn delay_at(&self, path: &str, by: Duration) {
        let mut inner = self.0.lock().unwrap();
        inner.delays.insert(path.to_owned(), by);
    }

    /// The bodies that were sent to a path.
    pub(crate) fn heard(&self, path: &str) -> Vec<Value> {
        let inner = self.0.lock().unwrap();
        let all = inner.heard.iter().filter(|(to, _)| to == path);
        all.map(|(_, body)| body.clone()).collect()
    }

    /// The signatures of the calls to a path.
    pub(crate) fn signatures(&self, path: &str) -> Vec<Option<String>> {
        let inner = self.0.lock().unwrap();
        let all = inner.signatures.iter().filter(|(to, _)| to == path);
        all.map(|(_, signature)| signature.clone()).collect()
    }

    pub(crate) fn queries(&self) -> Vec<String> {
        self.0.lock().unwrap().queries.clone()
    }
}

fn said(code: u16, body: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_owned()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = code.try_into().unwrap();
    response
}

impl Transport for World {
    fn send(
        &self,
        request: Request<Bytes>,
        _: &Manner,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>> {
        let mut inner = self.0.lock().unwrap();
        let path = request.uri().path().to_owned();
        let host = request.uri().host().unwrap_or_default().to_owned();
        inner.called.push(request.uri().to_string());
        let delay = inner.delays.get(&path).copied().unwrap_or(inner.delay);
        let location = inner.moves.get(&path).cloned();
        let text = inner.texts.get(&path).cloned();
        let answer = match host.as_str() {
            "prometheus.test" => {
                let query = request.uri().query().unwrap_or_default().to_owned();
                inner.queries.push(query);
                let result: Vec<Value> = inner
                    .value
                    .iter()
                    .map(|value| json!({"metric": {}, "value": [0, value]}))
                    .collect();
                let data = json!({"resultType": "vector", "result": result});
                Ok((200, json!({"status": "success", "data": data}).to_string()))
            }
            "hooks.test" => {
                let body = serde_json::from_slice(request.body()).unwrap_or(Value::Null);
                let usual = inner.codes.get(&path).copied().unwrap_or(200);
                let next = inner.next.get_mut(&path).and_then(Vec::pop);
                let code = next.unwrap_or(usual);
                let signature = request.headers().get("slipway-signature");
                let signature = signature.map(|value| value.to_str().unwrap().to_owned());
                inner.signatures.push((path.clone(), signature));
                inner.heard.push((path, body));
                Ok((code, text.unwrap_or_else(|| format!("{code} it is"))))
            }
            other => Err(Failure::Unreachable(format!("{other} is not there"))),
        };
        drop(inner);
        Box::pin(async move {
            tokio::time::sleep(delay.max(Duration::from_millis(20))).await;
            answer.map(|(code, body)| {
                let mut response = said(code, &body);
                if let Some(to) = location {
                    let to = to.parse().unwrap();
                    response.headers_mut().insert("location", to);
                }
                response
            })
        })
    }
}
