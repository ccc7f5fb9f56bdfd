//! Connections that we open, as hyper's client takes them.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};

/// What all that we open is encrypted with; thousands of connections share it.
static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));

/// HTTP/2, as TLS names it.
pub(crate) const H2: &[u8] = b"h2";
/// HTTP/1.1, as TLS names it.
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";

/// What can be read and written.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An open connection.
pub(crate) struct Line {
    stream: TokioIo<Box<dyn Stream>>,
}

impl Line {
    /// On this.
    pub(crate) fn new(stream: impl Stream + 'static) -> Self {
        Self {
            stream: TokioIo::new(Box::new(stream)),
        }
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How TLS is spoken with somebody: whom to trust, who we are, and which protocol is offered. Nothing of a session is kept
/// for the next one: connections are few and long, and tickets are keys.
pub(crate) fn tls(
    roots: Arc<RootCertStore>,
    identity: Option<Arc<CertifiedKey>>,
    protocol: &[u8],
) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(PROVIDER.clone())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut config = match identity {
        Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
