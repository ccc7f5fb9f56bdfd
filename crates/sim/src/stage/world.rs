//! The world outside of clusters: stand-ins for Prometheus, webhooks and chat, and the way there, where calls are written
//! down and go wrong.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use jiff::Timestamp;
use serde_json::Value;
use slipway_apiserver::environment::Clock;
use slipway_kernel::address::Rules;
use slipway_kernel::question::{Failure, OtherNamespaces};
use slipway_runtime::outside::{
    Body, Limits, Manner, NoSecrets, Outside, SystemResolver, Terms, Transport,
};

use crate::actors::script::is_like;
use crate::fault::{Adversary, CallFault, SLOW};
use crate::history::{Asked, Image, Object, Recorder};
use crate::replica::Replica;
use crate::routes::{self, TAKEN};
use crate::scenario::{Behind, Peer};

/// How long a call is on its way, there and back.
const LATENCY: Duration = Duration::from_millis(10);

/// Everybody outside. They outlive the operator's replicas, which each have a [`Way`] to them.
pub(super) struct World {
    pub(super) peers: Vec<Peer>,
    pub(super) start: Timestamp,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) recorder: Recorder,
}

impl World {
    /// Whether requests reach these pods, by who divides them and by the endpoints of the Service.
    fn reaches(&self, behind: &Behind) -> bool {
        let share = match &behind.through {
            Some(known) => self.share_of_pods(behind, known),
            None => self.share_of_routes(behind),
        };
        let least = i64::from(behind.percent.unwrap_or(0)) * (routes::WHOLE / 100);
        share >= least.max(1) && self.is_served(behind)
    }

    /// How many requests go to the Service by what a gateway has taken.
    fn share_of_routes(&self, behind: &Behind) -> i64 {
        let is_here =
            |image: &Image| image.text("/metadata/namespace") == Some(behind.namespace.as_str());
        let taken = self.recorder.all(TAKEN).into_iter();
        let shares = taken.filter(|one| is_here(one)).map(|one| {
            let rules = routes::rules(TAKEN, one.value());
            let is_copied = rules
                .iter()
                .any(|rule| rule.copies.contains(&behind.service));
            let some = i64::from(is_copied || routes::reaches(&rules, &behind.service));
            routes::share(&rules, &behind.service).max(some)
        });
        shares.max().unwrap_or_default()
    }

    /// How many requests to the Service that clients know go to pods of the other one: all of its ready pods get as many.
    fn share_of_pods(&self, behind: &Behind, known: &str) -> i64 {
        let all = self.ready(&behind.namespace, known);
        let theirs = self.ready(&behind.namespace, &behind.service);
        let count = |number: usize| i64::try_from(number).unwrap_or_default();
        let shared = count(all.intersection(&theirs).count()) * routes::WHOLE;
        shared.checked_div(count(all.len())).unwrap_or_default()
    }

    /// Whether the Service has a ready pod that runs this.
    fn is_served(&self, behind: &Behind) -> bool {
        let ready = self.ready(&behind.namespace, &behind.service);
        let mut names = ready.iter();
        names.any(|name| self.runs(&behind.namespace, name, behind.image.as_deref()))
    }

    /// The names of the ready pods behind a Service.
    fn ready(&self, namespace: &str, service: &str) -> BTreeSet<String> {
        let slices = self.recorder.all("discovery.k8s.io/endpointslices");
        let of_it = slices.iter().filter(|slice| {
            slice.text("/metadata/namespace") == Some(namespace)
                && slice.label("kubernetes.io/service-name") == Some(service)
        });
        let endpoints = of_it.flat_map(|slice| {
            let all = slice.at("/endpoints").and_then(Value::as_array);
            all.into_iter().flatten()
        });
        let ready =
            endpoints.filter(|one| one.pointer("/conditions/ready") == Some(&Value::Bool(true)));
        let names = ready.filter_map(|one| one.pointer("/targetRef/name")?.as_str());
        names.map(str::to_owned).collect()
    }

    fn runs(&self, namespace: &str, pod: &str, wanted: Option<&str>) -> bool {
        let object: Object = ("/pods".into(), namespace.into(), pod.into());
        let pod = self.recorder.latest(&object);
        let Some(wanted) = wanted else {
            return pod.is_some();
        };
        let image = pod
            .as_ref()
            .and_then(|pod| pod.text("/spec/containers/0/image"));
        image.is_some_and(|image| is_like(image, wanted))
    }
}

/// One replica's way to the world.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) world: Arc<World>,
    pub(super) replica: Arc<Replica>,
    pub(super) adversary: Arc<Mutex<Adversary>>,
}

impl Way {
    /// The product's own client over this way: what it bounds, waits for and refuses is what it does in earnest.
    pub(super) fn outside(self) -> Outside {
        let terms = Terms {
            rules: Rules::default(),
            other_namespaces: OtherNamespaces::Refused,
            credentials_over_http: false,
            limits: Limits::default(),
            // Nothing is resolved on this way.
            resolver: Arc::new(SystemResolver),
            secrets: Arc::new(NoSecrets),
            agent: "slipway/simulated",
        };
        Outside::over(terms, Arc::new(self))
    }

    async fn carry(self, request: Request<Bytes>) -> Result<Response<Body>, Failure> {
        let (number, fault) = {
            let adversary = self.adversary.lock();
            adversary.unwrap_or_else(PoisonError::into_inner).on_call()
        };
        let recorder = &self.world.recorder;
        recorder.calls(self.record(number, fault, &request));
        if let Some(fault) = fault {
            recorder.disturbed_for(aftermath(fault));
        }
        self.replica.gate().await;
        let host = request.uri().host().unwrap_or_default().to_owned();
        let broken = || Err(Failure::Unreachable(format!("{host} hung up")));
        if self.replica.is_cut_off() {
            return broken();
        }
        match fault {
            Some(CallFault::CrashBefore) => self.die().await,
            Some(CallFault::Unreachable) => broken(),
            Some(CallFault::Refused) => {
                tokio::time::sleep(LATENCY).await;
                Ok(self.told(number, 503, "too much to do".to_owned()))
            }
            Some(CallFault::CrashAfter) => {
                let _ = self.deliver(number, &request).await;
                self.die().await
            }
            Some(CallFault::Lost) => {
                let _ = self.deliver(number, &request).await;
                broken()
            }
            Some(CallFault::Late) => {
                let (code, body) = self.deliver(number, &request).await?;
                tokio::time::sleep(SLOW).await;
                Ok(self.told(number, code, body))
            }
            Some(CallFault::Doubled) => {
                let _ = self.deliver(number, &request).await;
                let (code, body) = self.deliver(number, &request).await?;
                Ok(self.told(number, code, body))
            }
            // Of some only the status is read: they are broken where that is.
            Some(CallFault::Malformed) if !self.is_read(&host) => {
                let _ = self.deliver(number, &request).await?;
                let why = format!("{host} does not speak HTTP/1.1");
                Err(Failure::Malformed(why))
            }
            Some(CallFault::Endless) if !self.is_read(&host) => {
                let _ = self.deliver(number, &request).await?;
                Err(Failure::TooLarge {
                    what: "a head",
                    most: 64 * 1024,
                })
            }
            Some(CallFault::Malformed) => {
                let (code, _) = self.deliver(number, &request).await?;
                recorder.told(number, code);
                let body = stream::iter([
                    Ok(Frame::data(Bytes::from_static(b"{\"status\": \"succ\xff"))),
                    Err(Failure::Malformed("it ends before it is whole".to_owned())),
                ]);
                Ok(answer(code, StreamBody::new(body).boxed_unsync()))
            }
            Some(CallFault::Endless) => {
                let (code, _) = self.deliver(number, &request).await?;
                recorder.told(number, code);
                let more = || Ok(Frame::data(Bytes::from_static(&[b'x'; 16 * 1024])));
                let body = StreamBody::new(stream::repeat_with(more));
                Ok(answer(code, body.boxed_unsync()))
            }
            None => {
                let (code, body) = self.deliver(number, &request).await?;
                Ok(self.told(number, code, body))
            }
        }
    }

    /// Whether the body of what somebody says is read: of whoever measures it is.
    fn is_read(&self, host: &str) -> bool {
        let mut peers = self.world.peers.iter();
        peers.any(|peer| peer.host == host && !peer.prometheus.is_empty())
    }

    async fn die<T>(&self) -> T {
        self.replica.crash();
        std::future::pending().await
    }

    /// Brings a call to whom it is for.
    async fn deliver(
        &self,
        number: u64,
        request: &Request<Bytes>,
    ) -> Result<(u16, String), Failure> {
        tokio::time::sleep(LATENCY).await;
        let host = request.uri().host().unwrap_or_default();
        let mut peers = self.world.peers.iter();
        let Some(peer) = peers.find(|peer| peer.host == host) else {
            let why = format!("{host}: no address: no such host");
            return Err(Failure::Unreachable(why));
        };
        self.world.recorder.arrived(number);
        let shown = request.headers().get(AUTHORIZATION);
        let wanted = peer.authorization.as_deref().map(str::as_bytes);
        if wanted.is_some() && shown.map(http::HeaderValue::as_bytes) != wanted {
            return Ok((401, "who are you?".to_owned()));
        }
        let since = self.world.clock.now().duration_since(self.world.start);
        let since = Duration::try_from(since).unwrap_or_default();
        let query = query(request);
        let reaches = |behind: &Behind| self.world.reaches(behind);
        let path = request.uri().path();
        Ok(peer.answer(since, path, query.as_deref(), &reaches))
    }

    /// The operator is told this.
    fn told(&self, number: u64, code: u16, body: String) -> Response<Body> {
        self.world.recorder.told_all(number, code, &body);
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        answer(code, body.boxed_unsync())
    }

    fn record(&self, number: u64, fault: Option<CallFault>, request: &Request<Bytes>) -> Asked {
        let id = request.headers().get("idempotency-key");
        let id = id.and_then(|id| id.to_str().ok()).unwrap_or_default();
        Asked {
            number,
            at: self.world.clock.now(),
            replica: self.replica.name().to_owned(),
            method: request.method().to_string(),
            url: request.uri().to_string(),
            id: id.to_owned(),
            body: String::from_utf8_lossy(request.body()).into_owned(),
            fault: fault.map(CallFault::name),
            query: query(request),
            arrived: 0,
            told: None,
            said: None,
        }
    }
}

impl Transport for Way {
    fn send(
        &self,
        request: Request<Bytes>,
        _: &Manner,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>> {
        Box::pin(self.clone().carry(request))
    }
}

fn answer(code: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// How long the operator may be kept from something by a fault: as long as it waits for an answer, and leaves somebody alone.
fn aftermath(fault: CallFault) -> Duration {
    match fault {
        CallFault::Late => Duration::from_secs(15),
        _ => Duration::from_secs(1),
    }
}

/// The query that Prometheus is asked, by address or by form.
fn query(request: &Request<Bytes>) -> Option<String> {
    let of = |text: &str| {
        let mut parts = text.split('&');
        let value = parts.find_map(|part| part.strip_prefix("query="))?;
        Some(unescaped(value))
    };
    let form = || of(std::str::from_utf8(request.body()).ok()?);
    request.uri().query().and_then(of).or_else(form)
}

/// A value as it was before it was escaped.
fn unescaped(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let both = high.zip(low).map(|(high, low)| high * 16 + low);
        bytes.extend(both.and_then(|both| u8::try_from(both).ok()));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_found_in_the_address_and_in_a_form() {
        let get = Request::get("http://a/api/v1/query?query=sum%28up%7Ba%3D%22b%22%7D%29");
        let get = get.body(Bytes::new()).unwrap();
        assert_eq!(query(&get).as_deref(), Some(r#"sum(up{a="b"})"#));
        let post = Request::post("http://a/api/v1/query");
        let post = post.body(Bytes::from("query=up%20%3E%200")).unwrap();
        assert_eq!(query(&post).as_deref(), Some("up > 0"));
        let none = Request::get("http://a/gate").body(Bytes::new()).unwrap();
        assert_eq!(query(&none), None);
    }
}
