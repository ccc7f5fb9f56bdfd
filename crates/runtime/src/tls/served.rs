//! The certificate that handshakes show at this moment.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::callers::Callers;
use super::pair::Pair;
use crate::state::Shared;

/// A place for one certificate.
#[derive(Debug)]
pub(super) struct Served {
    pair: RwLock<Option<Pair>>,
    shared: Option<Arc<Shared>>,
}

impl Served {
    pub(super) fn new(shared: Option<Arc<Shared>>) -> Self {
        Self {
            pair: RwLock::default(),
            shared,
        }
    }

    pub(super) fn show(&self, pair: Pair) {
        let end = pair.end();
        tracing::info!(%end, "serving webhook certificate");
        *self.pair.write().unwrap_or_else(PoisonError::into_inner) = Some(pair);
        if let Some(shared) = &self.shared {
            shared.lock().certificate_ends = Some(end);
            shared.notify_observers();
        }
    }

    fn shown(&self) -> Option<Pair> {
        let pair = self.pair.read().unwrap_or_else(PoisonError::into_inner);
        pair.clone()
    }

    pub(super) fn end(&self) -> Option<Timestamp> {
        self.shown().map(|pair| pair.end())
    }

    pub(super) fn shows(&self, pair: &Pair) -> bool {
        self.shown().is_some_and(|shown| pair.is_same(shown.key()))
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.shown().map(|pair| pair.key().clone())
    }
}

/// How a server shows whatever is in the place, to anybody or to these callers only.
pub(super) fn config(served: &Arc<Served>, callers: Option<&Arc<Callers>>) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    #[allow(
        clippy::expect_used,
        reason = "the provider is the one above, and it has both versions"
    )]
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring can do TLS 1.2 and 1.3");
    let mut config = match callers {
        None => builder.with_no_client_auth(),
        Some(callers) => builder.with_client_cert_verifier(callers.clone()),
    }
    .with_cert_resolver(served.clone());
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if callers.is_some() {
        // A resumed session would not be asked for its certificate again, and the CA may be another one by then.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Arc::new(config)
}
