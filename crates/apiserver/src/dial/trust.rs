//! Whom an outgoing call trusts.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where systems keep their roots, most common first.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const UNKNOWN: &str =
    "tls: failed to verify certificate: x509: certificate signed by unknown authority";

/// Speaks TLS with `host`, whose certificate `ca_bundle` (or, if that is empty, the system) must vouch for.
pub(super) async fn handshake(
    stream: TcpStream,
    host: &str,
    ca_bundle: &[u8],
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("tls: invalid server name {host:?}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Bundle::read(ca_bundle, provider.clone())?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let connected = connector.connect(name, stream).await;
    connected.map_err(|error| describe(&error, host))
}

fn describe(error: &io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(why)) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => UNKNOWN.to_owned(),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!(
                    "tls: failed to verify certificate: x509: certificate is not valid for {host}"
                )
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                "tls: failed to verify certificate: x509: certificate has expired or is not yet valid".to_owned()
            }
            other => format!("tls: failed to verify certificate: x509: {other}"),
        },
        Some(other) => format!("tls: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

/// A set of roots. Unlike webpki, and like Go, it also accepts a server that shows one of the roots itself: many a
/// test webhook has one self-signed certificate for everything.
#[derive(Debug)]
struct Bundle {
    roots: Vec<CertificateDer<'static>>,
    chain: Arc<WebPkiServerVerifier>,
}

impl Bundle {
    fn read(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let roots: Vec<CertificateDer<'static>> = if pem.is_empty() {
            system_roots()
        } else {
            CertificateDer::pem_slice_iter(pem)
                .filter_map(Result::ok)
                .collect()
        };
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        if store.is_empty() {
            return Err(if pem.is_empty() {
                UNKNOWN.to_owned()
            } else {
                "unable to load root certificates: unable to parse bytes as PEM block".to_owned()
            });
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { roots, chain })
    }
}

fn system_roots() -> Vec<CertificateDer<'static>> {
    let own = std::env::var("SSL_CERT_FILE").ok();
    let places = own.into_iter().chain(SYSTEM_ROOTS.map(str::to_owned));
    for place in places {
        if let Ok(pem) = std::fs::read(place) {
            return CertificateDer::pem_slice_iter(&pem)
                .filter_map(Result::ok)
                .collect();
        }
    }
    Vec::new()
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chain.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        if verified.is_err() && self.roots.contains(end_entity) {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            verify_server_name(&certificate, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
