//! Outgoing calls over real TLS: admission and conversion webhooks as processes of their own.
//!
//! HTTP/1.1, one connection a call, no redirects. The texts of failures are those of Go's client, which kube-apiserver
//! puts into its answers. Needs a tokio runtime with real time and I/O.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::{Bytes, BytesMut};
use futures::future::{BoxFuture, Either, select};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::environment::{Call, CallError, Dial};

mod trust;

/// How large an answer may be: conversions answer with whole lists.
const ANSWER_BYTES: usize = 64 << 20;

/// Dials services by a table, and everything else as its URL says.
#[derive(Debug, Clone, Default)]
pub struct TlsDial {
    services: Arc<RwLock<BTreeMap<String, String>>>,
}

impl TlsDial {
    /// `services` tells where `NAME.NAMESPACE` listens: `host:port`. Names of hosts are looked up with each call.
    pub fn new(services: BTreeMap<String, String>) -> Self {
        Self {
            services: Arc::new(RwLock::new(services)),
        }
    }

    /// Adds or moves a service.
    pub fn register(&self, name: &str, namespace: &str, address: SocketAddr) {
        let mut services = self
            .services
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        services.insert(format!("{name}.{namespace}"), address.to_string());
    }

    fn service(&self, key: &str) -> Option<String> {
        let services = self.services.read().unwrap_or_else(PoisonError::into_inner);
        services.get(key).cloned()
    }

    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        let place = match service(host) {
            None => (host.to_owned(), port),
            Some(key) => {
                let name = key.split('.').next().unwrap_or_default();
                let place = self.service(key);
                let place = place.as_deref().and_then(place_of);
                place.ok_or_else(|| format!("service \"{name}\" not found"))?
            }
        };
        let mut last = format!("dial tcp: lookup {}: no such host", place.0);
        let Ok(addresses) = tokio::net::lookup_host((place.0.as_str(), place.1)).await else {
            return Err(last);
        };
        for address in addresses {
            match open(address).await {
                Ok(stream) => return Ok(stream),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    async fn post(self, call: Call) -> Result<(u16, Bytes), CallError> {
        let failed = |why: String| CallError::Failed(why);
        let uri: Uri = call
            .url
            .parse()
            .map_err(|error| failed(format!("parse {:?}: {error}", call.url)))?;
        if uri.scheme_str() != Some("https") {
            let scheme = uri.scheme_str().unwrap_or_default();
            return Err(failed(format!("unsupported protocol scheme \"{scheme}\"")));
        }
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let stream = self
            .connect(host, uri.port_u16().unwrap_or(443))
            .await
            .map_err(failed)?;
        let stream = trust::handshake(stream, host, &call.ca_bundle)
            .await
            .map_err(failed)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(describe(&error)))?;
        let request = request(&uri, call.body).map_err(|error| failed(error.to_string()))?;
        let exchange = Box::pin(async move {
            let answer = sender.send_request(request).await;
            let answer = answer.map_err(|error| describe(&error))?;
            let code = answer.status().as_u16();
            Ok((code, collect(answer.into_body()).await?))
        });
        let outcome = match select(exchange, Box::pin(connection)).await {
            Either::Left((outcome, _)) => outcome,
            // The connection may end before the answer has been read to the end.
            Either::Right((_, exchange)) => exchange.await,
        };
        outcome.map_err(failed)
    }
}

impl Dial for TlsDial {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<(u16, Bytes), CallError>> {
        let limit = call.timeout;
        let post = self.clone().post(call);
        Box::pin(async move {
            timeout(limit, post)
                .await
                .unwrap_or(Err(CallError::Timeout))
        })
    }
}

/// The Service that a host is the name of, as `NAME.NAMESPACE`.
pub fn service(host: &str) -> Option<&str> {
    host.strip_suffix(".svc")
        .filter(|key| key.split('.').count() == 2)
}

/// Host and port of `host:port` or `[address]:port`.
pub fn place_of(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None => host,
    };
    let is_sound = !host.is_empty() && !host.contains(char::is_whitespace);
    let port = port.parse().ok().filter(|port| *port > 0)?;
    is_sound.then(|| (host.to_owned(), port))
}

async fn open(address: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
            io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
            io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {address}: connect: {why}")
    })?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

fn request(uri: &Uri, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    let authority = uri.authority().map_or("", |a| a.as_str());
    Request::post(path)
        .header(HOST, authority)
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(body))
}

async fn collect(mut body: hyper::body::Incoming) -> Result<Bytes, String> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| "unexpected EOF".to_owned())?;
        if let Ok(piece) = frame.into_data() {
            if whole.len() + piece.len() > ANSWER_BYTES {
                return Err(format!("answer is larger than {ANSWER_BYTES} bytes"));
            }
            whole.extend_from_slice(&piece);
        }
    }
    Ok(whole.freeze())
}

fn describe(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() {
        return "EOF".to_owned();
    }
    let source = std::error::Error::source(error).and_then(|s| s.downcast_ref::<io::Error>());
    match source.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => "EOF".to_owned(),
        Some(io::ErrorKind::ConnectionReset) => "read: connection reset by peer".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
