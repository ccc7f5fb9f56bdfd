//! Opens connections: resolves, checks, dials what was checked, speaks TLS.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tower::Service;

use super::Terms;
use super::clients::{Clients, Way};
use super::lines::host_of;
use super::resolve::Resolve;
use super::transport::{Body, Manner, Transport};
use super::waits::{Waits, left_alone};
use crate::environment::after;
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
/// How long a set of authorities may be.
const LONGEST_TRUST: usize = 64 * 1024;
/// How many of a name's addresses are tried.
const MOST_ADDRESSES: usize = 8;
/// Whoever had less time to connect has not shown that nobody is there: else who is in a hurry would speak for all others.
const FAIR: Duration = Duration::from_secs(1);

type Client = legacy::Client<Dialler, Full<Bytes>>;

tokio::task_local! {
    /// How long the connection may take that a request needs: the client hands on an address, and nothing else.
    static PATIENCE: Duration;
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum NoConnection {
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    #[error("{0}")]
    Unreachable(String),
}

/// Those who cannot be reached by anybody, by host and port.
pub(super) type Absent = Arc<Mutex<Waits>>;

/// Carries requests over sockets.
pub(super) struct Sockets {
    rules: Arc<Rules>,
    /// The same for who is asked on behalf of other clusters.
    for_others: Arc<Rules>,
    resolver: Arc<dyn Resolve>,
    connecting: Duration,
    idle: usize,
    absent: Absent,
    clients: Mutex<Clients<Client>>,
}

impl Sockets {
    pub(super) fn new(terms: &Terms, absent: Absent) -> Self {
        Self {
            rules: Arc::new(terms.rules.clone()),
            for_others: Arc::new(Rules {
                for_others: true,
                ..terms.rules.clone()
            }),
            resolver: terms.resolver.clone(),
            connecting: terms.limits.connecting,
            idle: terms.limits.per_target,
            absent,
            clients: Mutex::new(Clients::new(MOST_TRUSTS)),
        }
    }

    /// The client that takes the word of these authorities, or of the system's.
    fn get(&self, manner: &Manner) -> Result<Client, Failure> {
        let way = Way {
            trust: manner.trust.clone(),
            for_others: manner.for_others,
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&way) {
            return Ok(client);
        }
        let client = self.make(&way)?;
        clients.put(way, client.clone());
        Ok(client)
    }

    fn make(&self, way: &Way) -> Result<Client, Failure> {
        let cannot = |why: String| Failure::NotAllowed(format!("TLS cannot be set up: {why}"));
        let roots = match &way.trust {
            None => roots::system(),
            Some(pem) if pem.len() > LONGEST_TRUST => {
                return Err(cannot(format!(
                    "the authorities are more than {LONGEST_TRUST} bytes"
                )));
            }
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
        let rules = if way.for_others {
            &self.for_others
        } else {
            &self.rules
        };
        let dialler = Dialler {
            rules: rules.clone(),
            resolver: self.resolver.clone(),
            tls: Arc::new(tls).into(),
            patience: self.connecting,
            absent: self.absent.clone(),
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
        manner: &Manner,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>> {
        let client = match self.get(manner) {
            Ok(client) => client,
            Err(failure) => return Box::pin(async { Err(failure) }),
        };
        let patience = manner.connecting;
        Box::pin(async move {
            let host = Host::parse(request.uri().host().unwrap_or_default());
            let host = host.map(|host| host.bare()).unwrap_or_default();
            let answer = client.request(request.map(Full::new));
            let answer = PATIENCE.scope(patience, answer).await;
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
    absent: Absent,
}

impl Dialler {
    fn absent(&self) -> MutexGuard<'_, Waits> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(self, uri: Uri, patience: Duration) -> Result<Line, NoConnection> {
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
        let deadline = after(Instant::now(), patience);
        let stream = self.reach(&host, port, (patience, deadline)).await?;
        let _ = stream.set_nodelay(true);
        if scheme == Scheme::Http {
            return Ok(Line::new(stream));
        }
        let name = ServerName::try_from(host.bare());
        let name = name.map_err(|why| unreachable(format!("{}: {why}", host.bare())))?;
        let stream = timeout_at(deadline, self.tls.connect(name, stream)).await;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no word in time");
        let stream = stream.map_err(late).flatten();
        let stream = stream.map_err(|why| unreachable(format!("{}: TLS: {why}", host.bare())))?;
        Ok(Line::new(stream))
    }

    /// Somebody at the other end of a wire, whoever that is; and notes if there is nobody.
    async fn reach(
        &self,
        host: &Host,
        port: u16,
        (patience, deadline): (Duration, Instant),
    ) -> Result<TcpStream, NoConnection> {
        let at = host_of(&host.bare(), port);
        if let Some(wait) = self.absent().left(&at, Instant::now()) {
            return Err(NoConnection::Unreachable(left_alone(wait)));
        }
        let addresses = timeout_at(deadline, self.checked(host)).await;
        let late = || NoConnection::Unreachable(format!("{at}: no address within {patience:?}"));
        let addresses = addresses.unwrap_or_else(|_| Err(late()))?;
        let stream = dial(&addresses, port, deadline).await;
        let mut absent = self.absent();
        match &stream {
            Ok(_) => absent.succeeded(&at),
            Err(why) if why.kind() == io::ErrorKind::TimedOut && patience < FAIR => {}
            Err(_) => absent.failed(&at, Instant::now()),
        }
        stream.map_err(|why| NoConnection::Unreachable(format!("{at}: {why}")))
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

/// Each address has its part of what is left of the time: one that swallows everything does not take that of the next.
async fn dial(addresses: &[IpAddr], port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::other("it has no address");
    let count = addresses.len().min(MOST_ADDRESSES);
    for (n, address) in addresses.iter().take(count).enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let part = left / u32::try_from(count - n).unwrap_or(1);
        let connecting = TcpStream::connect(SocketAddr::new(*address, port));
        match timeout(part, connecting).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => {
                let why = format!("{address}: no connection within {part:.1?}");
                last = io::Error::new(io::ErrorKind::TimedOut, why);
            }
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
        let dialler = self.clone();
        let patience = PATIENCE.try_with(|patience| *patience);
        let patience = patience.unwrap_or(self.patience);
        Box::pin(dialler.connect(uri, patience))
    }
}
