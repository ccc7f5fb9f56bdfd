//! Opens connections: resolves, checks, dials what was checked, speaks TLS.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::RootCertStore;
use rustls_pki_types::ServerName;
use slipway_kernel::address::{Forbidden, Host, Rules, Scheme};
use slipway_kernel::question::Failure;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::Service;

use super::Terms;
use super::resolve::Resolve;
use super::transport::{Body, Transport};
use crate::line::{self, HTTP_1_1, Line};
use crate::roots;
use crate::tls::certificates;

/// How many headers an answer may have.
const MOST_HEADERS: usize = 100;
/// How large its head may be; what comes in one go may be twice as much.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long a connection without a request is kept.
const IDLE: Duration = Duration::from_secs(30);
/// How many sets of authorities have connections of their own.
const MOST_TRUSTS: usize = 64;
/// How many of a name's addresses are tried.
const MOST_ADDRESSES: usize = 8;

type Client = legacy::Client<Dialler, Full<Bytes>>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum NoConnection {
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    #[error("{0}")]
    Unreachable(String),
}

/// Carries requests over sockets: clients by whose word they take. Connections are shared only by those who trust alike.
pub(super) struct Sockets {
    rules: Arc<Rules>,
    resolver: Arc<dyn Resolve>,
    connecting: Duration,
    idle: usize,
    by_trust: Mutex<BTreeMap<Option<String>, Client>>,
}

impl Sockets {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            rules: Arc::new(terms.rules.clone()),
            resolver: terms.resolver.clone(),
            connecting: terms.limits.connecting,
            idle: terms.limits.per_target,
            by_trust: Mutex::default(),
        }
    }

    /// The client that takes the word of these authorities, or of the system's.
    fn get(&self, trust: Option<&String>) -> Result<Client, Failure> {
        let mut clients = self.by_trust.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&trust.cloned()) {
            return Ok(client.clone());
        }
        let client = self.make(trust.map(String::as_str))?;
        if clients.len() >= MOST_TRUSTS {
            // Connections under way go on; whoever comes next makes new ones.
            clients.clear();
        }
        clients.insert(trust.cloned(), client.clone());
        Ok(client)
    }

    fn make(&self, trust: Option<&str>) -> Result<Client, Failure> {
        let cannot = |why: String| Failure::NotAllowed(format!("TLS cannot be set up: {why}"));
        let roots = match trust {
            None => roots::system(),
            Some(pem) => {
                let all = certificates(pem.as_bytes()).map_err(|why| cannot(why.to_string()))?;
                let mut roots = RootCertStore::empty();
                for one in all {
                    roots.add(one).map_err(|why| cannot(why.to_string()))?;
                }
                Arc::new(roots)
            }
        };
        let tls = line::tls(roots, None, HTTP_1_1).map_err(|why| cannot(why.to_string()))?;
        let dialler = Dialler {
            rules: self.rules.clone(),
            resolver: self.resolver.clone(),
            tls: Arc::new(tls).into(),
            patience: self.connecting,
        };
        Ok(legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(self.idle)
            .http1_max_headers(MOST_HEADERS)
            .http1_max_buf_size(LARGEST_HEAD)
            .pool_timer(TokioTimer::new())
            .build(dialler))
    }
}

impl Transport for Sockets {
    fn send(
        &self,
        request: Request<Bytes>,
        trust: Option<&String>,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>> {
        let client = match self.get(trust) {
            Ok(client) => client,
            Err(failure) => return Box::pin(async { Err(failure) }),
        };
        Box::pin(async move {
            let host = Host::parse(request.uri().host().unwrap_or_default());
            let host = host.map(|host| host.bare()).unwrap_or_default();
            let answer = client.request(request.map(Full::new)).await;
            let answer = answer.map_err(|error| failure(&host, &error))?;
            Ok(answer.map(|body| body.map_err(|error| broken(&error)).boxed_unsync()))
        })
    }
}

/// An answer that ends badly.
fn broken(error: &hyper::Error) -> Failure {
    if error.is_parse_too_large() {
        return head_too_large();
    }
    Failure::Malformed("it ends before it is whole, or is no HTTP".to_owned())
}

fn head_too_large() -> Failure {
    Failure::TooLarge {
        what: "a head",
        most: LARGEST_HEAD,
    }
}

/// Why there is no answer: what stands behind an error is looked for, its text is not.
fn failure(host: &str, error: &(dyn Error + 'static)) -> Failure {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(no_connection) = cause.downcast_ref::<NoConnection>() {
            return match no_connection {
                NoConnection::Forbidden(why) => Failure::NotAllowed(why.to_string()),
                NoConnection::Unreachable(why) => Failure::Unreachable(why.clone()),
            };
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_parse_too_large() {
                return head_too_large();
            }
            if error.is_parse() {
                return Failure::Malformed(format!("{host} does not speak HTTP/1.1"));
            }
        }
        next = cause.source();
    }
    Failure::Unreachable(format!("{host} hung up"))
}

/// Opens connections to who may be called.
#[derive(Clone)]
struct Dialler {
    rules: Arc<Rules>,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
    patience: Duration,
}

impl Dialler {
    async fn connect(self, uri: Uri) -> Result<Line, NoConnection> {
        let unreachable = |why: String| NoConnection::Unreachable(why);
        let host = Host::parse(uri.host().unwrap_or_default());
        let host = host.map_err(|why| unreachable(why.to_string()))?;
        let scheme = if uri.scheme_str() == Some("https") {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let port = uri.port_u16().unwrap_or(match scheme {
            Scheme::Https => 443,
            Scheme::Http => 80,
        });
        let addresses = self.checked(&host).await?;
        let stream = dial(&addresses, port).await;
        let stream = stream.map_err(|why| unreachable(format!("{}:{port}: {why}", host.bare())))?;
        let _ = stream.set_nodelay(true);
        if scheme == Scheme::Http {
            return Ok(Line::new(stream, false));
        }
        let name = ServerName::try_from(host.bare());
        let name = name.map_err(|why| unreachable(format!("{}: {why}", host.bare())))?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|why| unreachable(format!("{}: TLS: {why}", host.bare())))?;
        Ok(Line::new(stream, false))
    }

    /// The addresses of a host. If one of them must not be called, none is: whoever mixes them means no good.
    async fn checked(&self, host: &Host) -> Result<Vec<IpAddr>, NoConnection> {
        self.rules.check_host(host)?;
        let addresses = if let Some(address) = host.address() {
            vec![address]
        } else {
            let found = self.resolver.resolve(&host.to_string()).await;
            found.map_err(|why| {
                NoConnection::Unreachable(format!("{}: no address: {why}", host.bare()))
            })?
        };
        for address in &addresses {
            self.rules.check_address(host, *address)?;
        }
        Ok(addresses)
    }
}

async fn dial(addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::other("it has no address");
    for address in addresses.iter().take(MOST_ADDRESSES) {
        match TcpStream::connect(SocketAddr::new(*address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Service<Uri> for Dialler {
    type Response = Line;
    type Error = NoConnection;
    type Future = BoxFuture<'static, Result<Line, NoConnection>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (dialler, patience) = (self.clone(), self.patience);
        Box::pin(async move {
            let connected = timeout(patience, dialler.connect(uri)).await;
            connected.unwrap_or_else(|_| {
                let why = format!("no connection within {patience:?}");
                Err(NoConnection::Unreachable(why))
            })
        })
    }
}
