//! The certificates that the system trusts.

use std::sync::{Arc, LazyLock};

use rustls::RootCertStore;

/// Read once: where `SSL_CERT_FILE` or `SSL_CERT_DIR` say, or where the distribution has them. What cannot be read is left
/// out; who needs one that is not there is told so when it is not trusted.
static SYSTEM: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate of the system cannot be read, and is not trusted");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    Arc::new(roots)
});

/// The system's roots, shared by all who trust them.
pub(crate) fn system() -> Arc<RootCertStore> {
    SYSTEM.clone()
}
