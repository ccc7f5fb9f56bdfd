//! A certificate authority and the server certificate it signed.

use std::fmt;
use std::io;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The names under which a server is reached.
const NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "10.0.0.1",
];

/// A server certificate with its key, and the authority that signed it.
#[derive(Clone)]
pub struct Identity {
    ca_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// A fresh one for loopback and the names of the API inside a cluster.
    pub fn generate() -> io::Result<Self> {
        Self::with_names(&[])
    }

    /// A fresh one for further host names or addresses too.
    pub fn with_names(further: &[&str]) -> io::Result<Self> {
        generate(further).map_err(io::Error::other)
    }

    /// The certificate of the authority.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// How a TLS server that offers HTTP/2 and HTTP/1.1 shows this identity.
    pub fn server_config(&self) -> io::Result<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn generate(further: &[&str]) -> Result<Identity, rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    authority
        .distinguished_name
        .push(DnType::CommonName, "slipway-apiserver-ca");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let names: Vec<String> = NAMES
        .iter()
        .chain(further)
        .map(|&name| name.to_owned())
        .collect();
    let mut server = CertificateParams::new(names)?;
    server
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Strict verifiers (Python 3.13) want to see who signed.
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;
    Ok(Identity {
        ca_pem: authority.pem(),
        chain: vec![certificate.der().clone()],
        key: key.serialize_der(),
    })
}
