//! The client of a member.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use rustls_pki_types::ServerName;
use slipway_kernel::Sensitive;
use slipway_kernel::address::Url;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::{Layer, Service};
use zeroize::Zeroize;

use super::kubeconfig::{Credentials, Kubeconfig};
use crate::line::{self, H2, Line};
use crate::link::Link;
use crate::roots;

/// How much of one answer may be on its way without having been read.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all answers of a member together.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How much of what we say may wait to be sent, for each request.
const SEND_BUFFER: usize = 64 * 1024;
/// The largest head of an answer.
const LARGEST_HEAD: u32 = 64 * 1024;
/// A member that says nothing while something is under way is asked this often whether it is there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long the answer to that may take.
const PING_ANSWER: Duration = Duration::from_secs(15);
/// A connection without requests is closed after this time.
const IDLE: Duration = Duration::from_secs(90);

/// Why there is no client. Nothing of this depends on the member's being there.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address of the server.
    #[error("making a client of {server}: its address cannot be used: {why}")]
    Address {
        /// Which server.
        server: String,
        /// Why not.
        why: String,
    },
    /// TLS.
    #[error("making a client of {server}: TLS cannot be set up: {source}")]
    Tls {
        /// Which server.
        server: String,
        /// Why not.
        source: rustls::Error,
    },
    /// Something in the settings.
    #[error("making a client of {server}: {source}")]
    Settings {
        /// Which server.
        server: String,
        /// What.
        source: Box<kube::Error>,
    },
}

/// A client over one HTTP/2 connection.
pub(super) fn build(kubeconfig: &Kubeconfig, link: &Link) -> Result<kube::Client, ClientError> {
    let server = kubeconfig.server();
    let address = |why: String| ClientError::Address {
        server: server.origin(),
        why,
    };
    let uri: Uri = server
        .to_string()
        .parse()
        .map_err(|e: http::uri::InvalidUri| address(e.to_string()))?;
    let mut config = kube::Config::new(uri);
    kubeconfig
        .namespace()
        .clone_into(&mut config.default_namespace);
    link.apply(&mut config);
    if let Credentials::Token(token) = kubeconfig.credentials() {
        let value = bearer(token).ok_or_else(|| address("the token cannot be sent".to_owned()))?;
        config.headers.push((AUTHORIZATION, value));
    }
    let name = ServerName::try_from(server.host.bare()).map_err(|e| address(e.to_string()))?;
    let connector = Connector {
        server: Arc::new(server.clone()),
        name,
        tls: tls(kubeconfig)?,
        patience: link.request_timeout,
    };
    let headers = config
        .extra_headers_layer()
        .map_err(|source| ClientError::Settings {
            server: server.origin(),
            source: Box::new(source),
        })?;
    let service = headers.layer(http(connector));
    let service = config.base_uri_layer().layer(service);
    Ok(kube::Client::new(service, config.default_namespace))
}

fn http(connector: Connector) -> legacy::Client<Connector, Body> {
    legacy::Client::builder(TokioExecutor::new())
        .http2_only(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_send_buf_size(SEND_BUFFER)
        .http2_max_header_list_size(LARGEST_HEAD)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_ANSWER)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(1)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build(connector)
}

/// The header that says who we are; it is not shown either, and never put into tables of compressed headers.
fn bearer(token: &Sensitive<String>) -> Option<HeaderValue> {
    let mut text = format!("Bearer {}", token.expose());
    let value = HeaderValue::from_str(&text);
    text.zeroize();
    let mut value = value.ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn tls(kubeconfig: &Kubeconfig) -> Result<TlsConnector, ClientError> {
    let roots = kubeconfig.authority().cloned();
    let identity = match kubeconfig.credentials() {
        Credentials::Token(_) => None,
        Credentials::Certificate(key) => Some(key.clone()),
    };
    let config = line::tls(roots.unwrap_or_else(roots::system), identity, H2);
    let config = config.map_err(|source| ClientError::Tls {
        server: kubeconfig.server().origin(),
        source,
    })?;
    Ok(Arc::new(config).into())
}

/// Opens connections to one server, whatever a request's URL says.
#[derive(Clone)]
struct Connector {
    server: Arc<Url>,
    name: ServerName<'static>,
    tls: TlsConnector,
    patience: Duration,
}

impl Connector {
    async fn connect(self) -> io::Result<Line> {
        let host = match self.server.host.address() {
            Some(address) => address.to_string(),
            None => self.server.host.to_string(),
        };
        let stream = TcpStream::connect((host, self.server.port)).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.connect(self.name, stream).await?;
        let (_, session) = stream.get_ref();
        if session.alpn_protocol() != Some(H2) {
            return Err(io::Error::other(
                "the server does not speak HTTP/2, without which each watch would be a connection",
            ));
        }
        Ok(Line::new(stream, true))
    }
}

impl Service<Uri> for Connector {
    type Response = Line;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Line>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (connector, patience) = (self.clone(), self.patience);
        Box::pin(async move {
            timeout(patience, connector.connect()).await.map_err(|_| {
                io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no connection within {patience:?}"),
                )
            })?
        })
    }
}
