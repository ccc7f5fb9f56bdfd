//! The line between a replica of the operator and the API: where its requests are written down and go wrong.

mod port;
mod stream;
mod weather;

pub(crate) use port::{Address, Port};
pub use weather::Weather;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request as Sent, Response};
use http_body::Body as _;
use kube::client::Body;
use serde_json::{Value, json};
use slipway_apiserver::environment::Clock;
use slipway_apiserver::status::Status;
use tower::Service;

use crate::fault::{Adversary, IN_FLIGHT, RequestFault, SLOW, STANDSTILL};
use crate::history::{Context, Ending, Event, Recorder, Request};
use crate::replica::Replica;
use crate::spell::TARDY;
use crate::stage::{Feign, Tamper};
use stream::{Events, Faults, Place};
use weather::{About, Hit, Line};

/// Nothing came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection broke")]
pub struct Broken;

/// More requests than any run needs: some fifty times those of the longest scenario.
const MAX_REQUESTS: u64 = 20_000;

/// One replica's way to the API of one cluster.
#[derive(Debug, Clone)]
pub struct Wire {
    pub(crate) address: Arc<Address>,
    /// What the address led to when the request left.
    pub(crate) port: Port,
    /// What is shown to be let in.
    pub(crate) token: String,
    /// Who asks, as the API sees it.
    pub(crate) agent: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) replica: Arc<Replica>,
    pub(crate) adversary: Arc<Mutex<Adversary>>,
    pub(crate) tamper: Option<Tamper>,
    pub(crate) feign: Option<Feign>,
    pub(crate) weather: Arc<Weather>,
    /// The number of the replica.
    pub(crate) index: u32,
    /// After this time the operator lists everything again.
    pub(crate) relist: Duration,
    /// Through which requests go one after the other, to whatever cluster: for mutants.
    pub(crate) bottleneck: Option<Arc<tokio::sync::Mutex<()>>>,
    /// Whether the replica runs in the cluster that it asks, though that is not home.
    pub(crate) is_within: bool,
}

impl Service<Sent<Body>> for Wire {
    type Response = Response<Events>;
    type Error = Broken;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Sent<Body>) -> Self::Future {
        let mut wire = self.clone();
        wire.port = wire.address.port();
        Box::pin(async move { wire.carry(request).await })
    }
}

impl Wire {
    fn recorder(&self) -> &Recorder {
        &self.port.recorder
    }

    fn line(&self) -> Line {
        Line {
            replica: self.index,
            cluster: self.address.name.clone(),
            is_within: self.is_within,
        }
    }

    fn adversary(&self) -> MutexGuard<'_, Adversary> {
        self.adversary
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request, and never answers it: so that a run ends whose operator does not.
    async fn swallow(self, number: u64) -> Result<Response<Events>, Broken> {
        if number == MAX_REQUESTS {
            self.recorder().mark(Event::Endless(number));
        }
        std::future::pending().await
    }

    async fn carry(self, request: Sent<Body>) -> Result<Response<Events>, Broken> {
        // Requests are written down in the order of their numbers: nobody waits between the two.
        let bottleneck = self.bottleneck.clone();
        let _turn = match &bottleneck {
            Some(bottleneck) => Some(bottleneck.lock().await),
            None => None,
        };
        let (number, fault) = self.adversary().on_request();
        if number >= MAX_REQUESTS {
            return self.swallow(number).await;
        }
        let (parts, body) = request.into_parts();
        let mut body = whole(body).await;
        if let Some(tamper) = self.tamper
            && let Ok(mut value) = serde_json::from_slice::<Value>(&body)
        {
            tamper(parts.method.as_str(), parts.uri.path(), &mut value);
            body = value.to_string().into();
        }
        let about = about(parts.uri.path());
        let hit = self
            .weather
            .on_request(&self.line(), &parts, |about| self.is_new(about, &body));
        let feigned = self
            .feign
            .and_then(|feign| feign(parts.method.as_str(), parts.uri.path()));
        let hit = hit.or_else(|| feigned.map(|code| (weather::refused(code), true)));
        let mut record = self.record(number, fault, &parts, &body);
        let is_fault = hit.as_ref().filter(|(_, is_fault)| *is_fault);
        record.fault = record.fault.or_else(|| is_fault.map(|(hit, _)| hit.name()));
        self.recorder().sent(record);
        let request = Sent::from_parts(parts, Body::from(body));
        if let Some(fault) = fault {
            self.recorder().disturbed_for(aftermath(fault));
        }
        if fault == Some(RequestFault::Standstill) {
            self.replica.pause(STANDSTILL, self.recorder());
            return self.carry_late(number, request, about).await;
        }
        self.replica.gate().await;
        if self.replica.is_cut_off() {
            self.end(number, Ending::Unreachable, None);
            return Err(Broken);
        }
        if let (Some((hit, _)), None) = (hit, fault) {
            return self.carry_through(number, request, about, hit).await;
        }
        match fault {
            Some(RequestFault::CrashBefore) => self.die().await,
            Some(RequestFault::CrashLate) => {
                let wire = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(IN_FLIGHT).await;
                    let _ = wire.deliver(number, request, &about, true).await;
                });
                self.die().await
            }
            Some(RequestFault::CrashAfter) => {
                let _ = self.deliver(number, request, &about, true).await;
                self.die().await
            }
            Some(RequestFault::Lost) => {
                let _ = self.deliver(number, request, &about, true).await;
                Err(Broken)
            }
            Some(RequestFault::Unreachable) => {
                self.end(number, Ending::Unreachable, None);
                Err(Broken)
            }
            Some(RequestFault::Timeout) => {
                let _ = self.deliver(number, request, &about, true).await;
                Ok(refusal(&Status::timeout(
                    "the request timed out on its way",
                )))
            }
            Some(RequestFault::Slow) => {
                tokio::time::sleep(SLOW).await;
                self.deliver(number, request, &about, false).await
            }
            Some(
                refused @ (RequestFault::Conflict
                | RequestFault::Throttled
                | RequestFault::ThrottledForLong
                | RequestFault::Error
                | RequestFault::Forbidden),
            ) => {
                let status = status(refused);
                self.end(number, Ending::Answered(status.code), None);
                let mut response = refusal(&status);
                if refused == RequestFault::ThrottledForLong {
                    let headers = response.headers_mut();
                    headers.insert(http::header::RETRY_AFTER, u64::MAX.into());
                }
                Ok(response)
            }
            Some(RequestFault::Standstill) | None => {
                self.deliver(number, request, &about, false).await
            }
        }
    }

    /// The request meets bad weather.
    async fn carry_through(
        self,
        number: u64,
        request: Sent<Body>,
        about: String,
        hit: Hit,
    ) -> Result<Response<Events>, Broken> {
        match hit {
            Hit::Broken => {
                self.end(number, Ending::Unreachable, None);
                Err(Broken)
            }
            Hit::NoAnswer(until) => {
                tokio::time::sleep_until(until).await;
                self.end(number, Ending::Unreachable, None);
                Err(Broken)
            }
            Hit::Refused(status, wait) => {
                self.end(number, Ending::Answered(status.code), None);
                let mut response = refusal(&status);
                if let Some(seconds) = wait {
                    let headers = response.headers_mut();
                    headers.insert(http::header::RETRY_AFTER, seconds.into());
                }
                Ok(response)
            }
            Hit::Unheard(until) => {
                let _ = self.deliver(number, request, &about, true).await;
                tokio::time::sleep_until(until).await;
                Err(Broken)
            }
            Hit::Slow(time) => {
                tokio::time::sleep(time).await;
                self.deliver(number, request, &about, false).await
            }
            Hit::LateAnswer => {
                let response = self.deliver(number, request, &about, false).await;
                tokio::time::sleep(TARDY).await;
                response
            }
            Hit::LateArrival => {
                // It arrives also when nobody waits for it any more.
                let late = tokio::spawn(async move {
                    tokio::time::sleep(TARDY).await;
                    self.deliver(number, request, &about, false).await
                });
                late.await.unwrap_or(Err(Broken))
            }
        }
    }

    /// Whether a write makes an object that is not there yet.
    fn is_new(&self, about: &About<'_>, body: &[u8]) -> bool {
        let named = || {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            let name = body.pointer("/metadata/name").and_then(Value::as_str);
            name.unwrap_or_default().to_owned()
        };
        let name = if about.name.is_empty() {
            named()
        } else {
            about.name.to_owned()
        };
        let resource = format!("/{}", about.kind);
        let object = (resource.into(), about.namespace.into(), name.into());
        self.recorder().latest(&object).is_none()
    }

    /// The request has left, and its replica stands still. It arrives when another one leads, and nobody hears what came
    /// of it.
    async fn carry_late(
        self,
        number: u64,
        request: Sent<Body>,
        about: String,
    ) -> Result<Response<Events>, Broken> {
        let wire = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(STANDSTILL.saturating_sub(IN_FLIGHT)).await;
            let _ = wire.deliver(number, request, &about, true).await;
        });
        self.replica.gate().await;
        Err(Broken)
    }

    /// Brings a request to the server. Nothing else happens while it is carried out.
    async fn deliver(
        &self,
        number: u64,
        request: Sent<Body>,
        about: &str,
        lost: bool,
    ) -> Result<Response<Events>, Broken> {
        let before = self.recorder().version();
        let kind = About::of(request.uri().path()).kind;
        let service = self.port.cluster.service(&self.token);
        let mut service = service.with_agent(&self.agent);
        let answer = service.call(request).await.map_err(|_| Broken);
        let versions = Some((before, self.recorder().version()));
        let response = match answer {
            Ok(response) => response,
            Err(broken) => {
                self.end(number, Ending::Unreachable, versions);
                return Err(broken);
            }
        };
        let code = response.status().as_u16();
        let ending = if lost {
            Ending::Lost(code)
        } else {
            Ending::Answered(code)
        };
        self.end(number, ending, versions);
        let faults = Faults {
            recorder: self.recorder().clone(),
            adversary: self.adversary.clone(),
            relist: self.relist,
            cluster: self.port.id.clone(),
            about: about.to_owned(),
            place: Place {
                weather: self.weather.clone(),
                line: self.line(),
                kind,
                opened: tokio::time::Instant::now(),
            },
        };
        Ok(response.map(|body| Events::new(body, faults)))
    }

    fn end(&self, number: u64, ending: Ending, versions: Option<(u64, u64)>) {
        self.recorder().ended(number, |request| {
            request.ending = ending;
            if let Some(versions) = versions {
                request.versions = versions;
            }
        });
    }

    /// The process dies here.
    async fn die<T>(&self) -> T {
        self.replica.crash();
        std::future::pending().await
    }

    fn context(&self, text: &str) -> Context {
        let mut context = Context::read(text);
        for version in context.basis.values_mut() {
            *version = self.recorder().translate(*version);
        }
        context
    }

    fn record(
        &self,
        number: u64,
        fault: Option<RequestFault>,
        parts: &http::request::Parts,
        body: &[u8],
    ) -> Request {
        let header = |name: &str| {
            let value = parts.headers.get(name).and_then(|v| v.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let version = self.recorder().version();
        Request {
            number,
            cluster: self.port.id.clone(),
            at: self.clock.now(),
            replica: self.replica.name().to_owned(),
            method: parts.method.to_string(),
            uri: parts.uri.to_string(),
            media: header("content-type"),
            body: serde_json::from_slice(body).unwrap_or(Value::Null),
            context: self.context(&header("x-trace-context")),
            fault: fault.map(RequestFault::name),
            ending: Ending::GivenUp,
            versions: (version, version),
            tide: self.recorder().tide(),
        }
    }
}

/// How long the operator may be kept from something by a fault: what it may not do it leaves off until its next
/// heartbeat.
fn aftermath(fault: RequestFault) -> Duration {
    match fault {
        // As long as anybody waits at most, whatever is said.
        RequestFault::Forbidden | RequestFault::ThrottledForLong => Duration::from_mins(5),
        RequestFault::CrashLate => IN_FLIGHT,
        RequestFault::Standstill => STANDSTILL,
        _ => Duration::ZERO,
    }
}

/// What a watch is about: the last part of a collection's path.
fn about(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What the server says when it refuses.
fn status(fault: RequestFault) -> Status {
    match fault {
        RequestFault::Conflict => Status::conflict("", "", "", "the object has been modified"),
        RequestFault::Throttled => Status::too_many_requests("too many requests", 3),
        RequestFault::ThrottledForLong => {
            Status::failure(429, "TooManyRequests", "too many requests")
        }
        RequestFault::Forbidden => Status::forbidden("", "", "", "on purpose"),
        _ => Status::failure(500, "InternalError", "on purpose"),
    }
}

fn refusal(status: &Status) -> Response<Events> {
    let text = json!(status).to_string();
    let mut response = Response::new(Events::said(text));
    if let Ok(code) = http::StatusCode::from_u16(status.code) {
        *response.status_mut() = code;
    }
    let headers = response.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    let wait = status.details.as_ref().and_then(|d| d.retry_after_seconds);
    if let Some(seconds) = wait {
        headers.insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}

/// All of a body, which the client has in memory already.
async fn whole(mut body: Body) -> Bytes {
    let mut all: Vec<u8> = Vec::new();
    loop {
        let frame = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await;
        match frame {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    all.extend_from_slice(&data);
                }
            }
            _ => return all.into(),
        }
    }
}
