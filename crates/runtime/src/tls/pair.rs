//! A certificate with its key, as PEM that has been understood.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use super::error::Problem;
use super::validity;

/// A certificate, those between it and its CA, and its key.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    key: Arc<CertifiedKey>,
    begin: Timestamp,
    end: Timestamp,
}

/// All certificates of a PEM text.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|_| Problem::Malformed)?;
    if all.is_empty() {
        return Err(Problem::NoCertificate);
    }
    Ok(all)
}

impl Pair {
    /// Reads both; whether the certificate is still good is another question.
    pub(crate) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, Problem> {
        let chain = certificates(certificate)?;
        let times: Option<Vec<_>> = chain.iter().map(|one| validity::of(one)).collect();
        let times = times.ok_or(Problem::Malformed)?;
        let begin = times.first().map(|(begin, _)| *begin);
        let end = times.iter().map(|(_, end)| *end).min();
        let (Some(begin), Some(end)) = (begin, end) else {
            return Err(Problem::Malformed);
        };
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| Problem::NoKey)?;
        let provider = rustls::crypto::ring::default_provider();
        let key = CertifiedKey::from_der(chain, key, &provider)
            .map_err(|error| Problem::Key(error.to_string()))?;
        Ok(Self {
            key: Arc::new(key),
            begin,
            end,
        })
    }

    /// The earliest end of any of its certificates.
    pub(super) fn end(&self) -> Timestamp {
        self.end
    }

    /// When two thirds of its time are over.
    pub(super) fn renew_at(&self) -> Timestamp {
        let lifetime = self.end.duration_since(self.begin);
        self.begin
            .checked_add(lifetime * 2 / 3)
            .unwrap_or(self.begin)
    }

    pub(crate) fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// Whether both show the same certificate.
    pub(super) fn is_same(&self, other: &CertifiedKey) -> bool {
        self.key.cert == other.cert
    }

    pub(super) fn check_end(&self, now: Timestamp) -> Result<(), Problem> {
        if self.end <= now {
            return Err(Problem::Ended(self.end));
        }
        Ok(())
    }

    /// Whether a client that trusts `authorities` would believe it under each of these names now.
    pub(super) fn check(
        &mut self,
        authorities: &[CertificateDer<'static>],
        names: &[String],
        now: Timestamp,
    ) -> Result<(), Problem> {
        // Unlike webpki, Go also asks whether the CA has ended.
        let ends = authorities.iter().filter_map(|one| validity::of(one));
        let last = ends.map(|(_, end)| end).max().ok_or(Problem::Malformed)?;
        self.end = self.end.min(last);
        self.check_end(now)?;
        for name in names {
            self.check_name(authorities, name, now)
                .map_err(|error| Problem::Untrusted {
                    name: name.clone(),
                    why: error.to_string(),
                })?;
        }
        Ok(())
    }

    fn check_name(
        &self,
        authorities: &[CertificateDer<'static>],
        name: &str,
        now: Timestamp,
    ) -> Result<(), rustls::Error> {
        let name = ServerName::try_from(name)
            .map_err(|_| rustls::Error::General("it is no DNS name".to_owned()))?;
        let (leaf, between) = self
            .key
            .cert
            .split_first()
            .ok_or(rustls::Error::NoCertificatesPresented)?;
        // Many have one self-signed certificate for everything; Go accepts it and webpki does not.
        if authorities.contains(leaf) {
            return verify_server_name(&ParsedCertificate::try_from(leaf)?, &name);
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        verifier.verify_server_cert(leaf, between, &name, &[], now)?;
        Ok(())
    }
}
