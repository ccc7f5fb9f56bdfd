//! The HTTPS shell: TLS, HTTP/1.1 and HTTP/2 on a loopback port, for kubectl and real programs.
//!
//! It runs on an OS thread of its own with a real-time runtime and hands complete requests to the core over a
//! channel ([`crate::shell`]). It promises bounds: on connections, headers, bodies and how long each may take. It
//! knows nothing of the API but the answer to a body that is too large.

mod body;
mod identity;

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::shell::Exchange;
use body::Bridge;
pub use identity::Identity;

/// How long requests in flight may take after a stop.
const GRACE: Duration = Duration::from_secs(5);
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEADER_READ: Duration = Duration::from_secs(32);
const HEADER_BYTES: u32 = 1 << 20;
const STREAMS: u32 = 250;
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWER: Duration = Duration::from_secs(15);
/// Pause after a failed accept: it fails again at once when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a shell is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub host: IpAddr,
    /// 0 takes any free port.
    pub port: u16,
    /// The certificate; none makes a new one.
    pub identity: Option<Identity>,
    /// How many connections may be open at once; more wait to be accepted.
    pub connections: usize,
    /// How many bytes a request's body may have.
    pub body_bytes: usize,
    /// How long reading a request's body may take.
    pub body_read: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            identity: None,
            connections: 10_000,
            body_bytes: 3 << 20,
            body_read: Duration::from_mins(1),
        }
    }
}

/// Who sent a request; an extension of each request that comes through the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// A running shell. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Https {
    address: SocketAddr,
    ca_pem: String,
    stop: watch::Sender<bool>,
    done: Option<oneshot::Receiver<()>>,
}

impl Https {
    /// Binds the port and starts the thread. Requests go to `requests`; see [`crate::shell::serve`] for the other
    /// end.
    pub fn start(config: Config, requests: mpsc::Sender<Exchange>) -> io::Result<Self> {
        let identity = match &config.identity {
            Some(identity) => identity.clone(),
            None => Identity::generate()?,
        };
        let acceptor = TlsAcceptor::from(Arc::new(identity.server_config()?));
        let listener = std::net::TcpListener::bind((config.host, config.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = watch::channel(false);
        let (done, is_done) = oneshot::channel();
        let bridge = Arc::new(Bridge::new(requests, &config));
        thread::Builder::new()
            .name("https".to_owned())
            .spawn(move || {
                runtime.block_on(listen(listener, acceptor, bridge, config, stopped));
                runtime.shutdown_background();
                let _ = done.send(());
            })?;
        Ok(Self {
            address,
            ca_pem: identity.ca_pem().to_owned(),
            stop,
            done: Some(is_done),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://host:port`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate that clients must trust.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Accepts no more connections, ends streams, and waits for requests in flight, at most 5 seconds.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        if let Some(done) = self.done.take() {
            let _ = done.await;
        }
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}

async fn listen(
    listener: std::net::TcpListener,
    acceptor: TlsAcceptor,
    bridge: Arc<Bridge>,
    config: Config,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    let places = config.connections.clamp(1, Semaphore::MAX_PERMITS);
    let open = Arc::new(Semaphore::new(places));
    let ending = stopped.clone();
    let accept = async {
        loop {
            let Ok(place) = open.clone().acquire_owned().await else {
                return;
            };
            let Ok((stream, peer)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (acceptor, bridge, ending) = (acceptor.clone(), bridge.clone(), ending.clone());
            tokio::spawn(async move {
                connection(stream, peer, acceptor, bridge, ending).await;
                drop(place);
            });
        }
    };
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => {}
        () = accept => {}
    }
    drop(listener);
    let all = u32::try_from(places).unwrap_or(u32::MAX);
    // All places free again means that all connections are closed.
    let _ = timeout(GRACE, open.acquire_many(all)).await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: TlsAcceptor,
    bridge: Arc<Bridge>,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE, acceptor.accept(stream)).await else {
        return;
    };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let ending = stopped.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let (bridge, ending) = (bridge.clone(), ending.clone());
        async move { bridge.answer(request, ending).await }
    });
    let builder = builder(http2);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    tokio::select! {
        biased;
        _ = &mut serving => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}

fn builder(http2: bool) -> Builder<TokioExecutor> {
    let builder = Builder::new(TokioExecutor::new());
    let mut builder = if http2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ)
        .max_buf_size(HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_ANSWER);
    builder
}

/// A context of a kubeconfig: a cluster and where it is.
#[derive(Debug, Clone)]
pub struct Context {
    /// The name of cluster and context.
    pub name: String,
    /// `https://host:port`, or with `/clusters/NAME`.
    pub server: String,
}

/// A kubeconfig with these contexts, the first of which is current, and one user with a token.
pub fn kubeconfig(contexts: &[Context], ca_pem: &str, token: &str) -> String {
    let authority = STANDARD.encode(ca_pem);
    let current = contexts.first().map_or("", |context| context.name.as_str());
    // JSON strings are YAML strings, so that no name can break out of its place.
    let mut text = String::from("apiVersion: v1\nkind: Config\nclusters:\n");
    for Context { name, server } in contexts {
        let (name, server) = (json!(name), json!(server));
        let _ = write!(
            text,
            "- name: {name}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\n"
        );
    }
    let _ = write!(
        text,
        "users:\n- name: admin\n  user:\n    token: {}\ncontexts:\n",
        json!(token)
    );
    for Context { name, .. } in contexts {
        let name = json!(name);
        let _ = write!(
            text,
            "- name: {name}\n  context:\n    cluster: {name}\n    user: admin\n"
        );
    }
    let _ = writeln!(text, "current-context: {}", json!(current));
    text
}

#[cfg(test)]
mod tests;
