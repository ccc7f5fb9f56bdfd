//! The client of a member.

use std::io;
use std::sync::Arc;

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Uri};
use rustls_pki_types::ServerName;
use slipway_kernel::Sensitive;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zeroize::Zeroize;

use super::kubeconfig::{Credentials, Kubeconfig};
use super::wire::{Dial, Wire};
use crate::channel::Channel;
use crate::line::{self, H2, Stream};
use crate::link::Link;
use crate::roots;

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
}

/// A way over one HTTP/2 connection.
pub(super) fn build(kubeconfig: &Kubeconfig, link: &Link) -> Result<Channel, ClientError> {
    let server = kubeconfig.server();
    let address = |why: String| ClientError::Address {
        server: server.origin(),
        why,
    };
    let uri: Uri = server
        .to_string()
        .parse()
        .map_err(|e: http::uri::InvalidUri| address(e.to_string()))?;
    let mut headers = vec![(USER_AGENT, HeaderValue::from_static(link.agent))];
    if let Credentials::Token(token) = kubeconfig.credentials() {
        let value = bearer(token).ok_or_else(|| address("the token cannot be sent".to_owned()))?;
        headers.push((AUTHORIZATION, value));
    }
    let name = ServerName::try_from(server.host.bare()).map_err(|e| address(e.to_string()))?;
    let connector = Connector {
        host: match server.host.address() {
            Some(address) => address.to_string(),
            None => server.host.to_string(),
        },
        port: server.port,
        name,
        tls: tls(kubeconfig)?,
    };
    let connector = Arc::new(connector);
    let dial: Dial = Box::new(move || Box::pin(connector.clone().connect()));
    let wire = Wire::new((dial, link.request_timeout), &uri, headers);
    let wire = wire.ok_or_else(|| address("it names no host".to_owned()))?;
    Ok(wire.into())
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

/// Opens connections to one server.
struct Connector {
    host: String,
    port: u16,
    name: ServerName<'static>,
    tls: TlsConnector,
}

impl Connector {
    async fn connect(self: Arc<Self>) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.connect(self.name.clone(), stream).await?;
        let (_, session) = stream.get_ref();
        if session.alpn_protocol() != Some(H2) {
            return Err(io::Error::other(
                "the server does not speak HTTP/2, without which each watch would be a connection",
            ));
        }
        Ok(Box::new(stream))
    }
}
