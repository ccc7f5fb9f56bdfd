//! A real server as a target, found through a kubeconfig.
//!
//! Only what a test control plane needs: bearer tokens of the users `admin` and `alice`, a CA, or no verification
//! at all, which is refused for a server that is not on loopback.

use crate::target::{Answer, Call, EventStream, Target, patiently, request, stream, whole};
use base64::Engine;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// A server behind TLS. Requests of known users share one HTTP/2 connection, opened again when it ends.
pub(crate) struct Remote {
    authority: String,
    tokens: BTreeMap<String, String>,
    tls: Arc<ClientConfig>,
    shared: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

fn entry<'a>(config: &'a Value, list: &str, name: &str, key: &str) -> Option<&'a Value> {
    let entries = config.get(list)?.as_array()?;
    entries
        .iter()
        .find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))?
        .get(key)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

impl Remote {
    /// Reads the current context's server and the users' tokens.
    pub(crate) fn from_kubeconfig(path: &Path) -> Result<Self, String> {
        let what = path.display();
        let yaml = std::fs::read_to_string(path).map_err(|e| format!("{what}: {e}"))?;
        let config: Value = serde_saphyr::from_str(&yaml).map_err(|e| format!("{what}: {e}"))?;
        let context = text(&config, "current-context")
            .ok_or_else(|| format!("{what}: no current-context"))?;
        let context = entry(&config, "contexts", context, "context")
            .ok_or_else(|| format!("{what}: no such context"))?;
        let cluster =
            text(context, "cluster").and_then(|name| entry(&config, "clusters", name, "cluster"));
        let cluster = cluster.ok_or_else(|| format!("{what}: no such cluster"))?;
        let server = text(cluster, "server").ok_or_else(|| format!("{what}: no server"))?;
        let authority = server
            .strip_prefix("https://")
            .ok_or_else(|| format!("{what}: {server} is not https"))?;

        let mut tokens = BTreeMap::from([("stranger".to_owned(), "unknown-token".to_owned())]);
        for user in ["admin", "alice"] {
            let token = entry(&config, "users", user, "user").and_then(|user| text(user, "token"));
            let token = token.ok_or_else(|| format!("{what}: no token of user {user}"))?;
            tokens.insert(user.to_owned(), token.to_owned());
        }
        let tls = tls(cluster, authority).map_err(|e| format!("{what}: {e}"))?;
        let authority = authority.trim_end_matches('/').to_owned();
        Ok(Self {
            authority,
            tokens,
            tls: Arc::new(tls),
            shared: Mutex::new(None),
        })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let socket = patiently(&self.authority, TcpStream::connect(&self.authority)).await?;
        let host = host(&self.authority).to_owned();
        let name = ServerName::try_from(host).map_err(|e| format!("{}: {e}", self.authority))?;
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.tls));
        let socket = patiently("TLS", connector.connect(name, socket)).await?;
        let handshake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
        let (open, driver) = patiently("HTTP/2", handshake).await?;
        tokio::spawn(driver);
        Ok(open)
    }

    /// kube-apiserver ends a connection over which somebody it does not know has asked, so such requests get
    /// connections of their own.
    async fn connection(&self, call: &Call) -> Result<SendRequest<Full<Bytes>>, String> {
        if !knows(call) {
            return self.connect().await;
        }
        let mut shared = self.shared.lock().await;
        if let Some(open) = shared.as_ref().filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let open = self.connect().await?;
        *shared = Some(open.clone());
        Ok(open)
    }

    /// A connection can end between the look at it and the request. What was not sent over it is sent over another.
    async fn call(&self, call: &Call) -> Result<http::Response<Incoming>, String> {
        let token = self.tokens.get(&call.user).map(String::as_str);
        let mut request = request(call, &self.authority, token)?;
        for _ in 0..CONNECTIONS {
            let mut connection = self.connection(call).await?;
            let sent = async {
                match connection.try_send_request(request).await {
                    Ok(answer) => Ok(Ok(answer)),
                    Err(mut failed) => failed.take_message().map(Err).ok_or(failed.into_error()),
                }
            };
            match patiently(&call.path, sent).await? {
                Ok(answer) => return Ok(answer),
                Err(unsent) => request = unsent,
            }
        }
        Err(format!("{}: no connection stays open", call.path))
    }

    async fn answer(&self, call: &Call) -> Result<Answer, String> {
        whole(self.call(call).await?).await
    }
}

/// So many connections in a row do not end before anything is sent.
const CONNECTIONS: u32 = 3;

/// Whether the server knows who asks.
fn knows(call: &Call) -> bool {
    call.token.is_none() && ["admin", "alice"].contains(&call.user.as_str())
}

/// A real server's controllers need more than a minute to delete a namespace where the machine is busy with something else. Who is
/// answered waits no longer for it.
const BUSY: u32 = 5;

impl Target for Remote {
    fn patience(&self) -> u32 {
        BUSY
    }

    fn is_busy(&self) -> bool {
        true
    }

    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move {
            let answer = self.answer(&call).await;
            // It closes the connection of whom it does not know a second after its answer, and on a busy machine that can come
            // before we have read all of it. A GET can be asked again.
            if answer.is_err() && call.method == Method::GET {
                return self.answer(&call).await;
            }
            answer
        })
    }

    fn watch(&self, call: Call) -> BoxFuture<'_, Result<EventStream, String>> {
        Box::pin(async move { Ok(stream(self.call(&call).await?)) })
    }
}

fn host(authority: &str) -> &str {
    authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host)
        .trim_matches(['[', ']'])
}

fn tls(cluster: &Value, authority: &str) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let loopback = ["127.0.0.1", "::1", "localhost"].contains(&host(authority));
    let mut config = if cluster.get("insecure-skip-tls-verify") == Some(&Value::Bool(true)) {
        if !loopback {
            return Err(format!(
                "insecure-skip-tls-verify is accepted on loopback only, not for {authority}"
            ));
        }
        let verifier = Arc::new(anyone::Anyone(provider));
        builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth()
    } else {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority_of(cluster)?) {
            roots
                .add(certificate.map_err(|e| e.to_string())?)
                .map_err(|e| e.to_string())?;
        }
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn authority_of(cluster: &Value) -> Result<Vec<u8>, String> {
    if let Some(data) = text(cluster, "certificate-authority-data") {
        return base64::engine::general_purpose::STANDARD
            .decode(data)
            .map_err(|e| e.to_string());
    }
    let path = text(cluster, "certificate-authority")
        .ok_or("no certificate authority and no insecure-skip-tls-verify")?;
    std::fs::read(path).map_err(|e| format!("{path}: {e}"))
}

/// Believes any certificate; for loopback.
mod anyone {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};
    use std::sync::Arc;

    #[derive(Debug)]
    pub(super) struct Anyone(pub(super) Arc<CryptoProvider>);

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(
                message,
                certificate,
                signature,
                &self.0.signature_verification_algorithms,
            )
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(
                message,
                certificate,
                signature,
                &self.0.signature_verification_algorithms,
            )
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}
