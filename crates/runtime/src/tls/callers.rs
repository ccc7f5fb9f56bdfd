//! Who may call at all: only clients with a certificate of a CA that a file names.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::error::{Error, Problem};
use super::pair::certificates;

/// The CAs of a file, and what is good under them. The file is read again when it changes; what cannot be used is told,
/// and the last good ones stay. Before there are any nobody may call.
#[derive(Debug)]
pub(super) struct Callers {
    file: PathBuf,
    provider: Arc<CryptoProvider>,
    current: RwLock<Current>,
}

#[derive(Debug, Default)]
struct Current {
    text: Vec<u8>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    told: String,
}

impl Callers {
    pub(super) fn new(file: PathBuf, provider: Arc<CryptoProvider>) -> Self {
        Self {
            file,
            provider,
            current: RwLock::default(),
        }
    }

    /// Reads the file, if it has changed.
    pub(super) fn load(&self) -> Result<(), Error> {
        let text = std::fs::read(&self.file).map_err(|source| Error::CallersFile {
            path: self.file.clone(),
            source,
        })?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.verifier.is_some() && current.text == text {
            return Ok(());
        }
        let verifier = self.verifier(&text).map_err(|problem| Error::Callers {
            path: self.file.clone(),
            problem,
        })?;
        tracing::info!(file = %self.file.display(), "webhooks are served to callers with a certificate of this CA");
        *current = Current {
            text,
            verifier: Some(verifier),
            told: String::new(),
        };
        Ok(())
    }

    /// Looks whether the file has changed; a problem is told once.
    pub(super) fn turn(&self) {
        if let Err(error) = self.load() {
            let error = error.to_string();
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            if current.told != error {
                tracing::warn!(
                    error,
                    "the CA of callers cannot be used; the last good one stays"
                );
                current.told = error;
            }
        }
    }

    fn verifier(&self, text: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, Problem> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(text)? {
            roots.add(certificate).map_err(|_| Problem::Malformed)?;
        }
        let provider = self.provider.clone();
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.build().map_err(|_| Problem::Malformed)
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ClientCertVerifier for Callers {
    /// No names: a client that has a certificate for us shows it.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verifier = {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            current.verifier.clone()
        };
        let verifier = verifier.ok_or(rustls::Error::NoCertificatesPresented)?;
        verifier.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
