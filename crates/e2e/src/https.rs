//! What stands in front of an API server and speaks HTTPS with a certificate of its own: serving, and passing on.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a client gets.
pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// Headers of a request that are not passed on: the one who passes it on has a token of its own.
const ITS_OWN: &[&str] = &["authorization", "host", "content-length"];

/// Headers of an answer that say how it came, not what it is.
const OF_THE_WAY: &[&str] = &["content-length", "transfer-encoding", "connection"];

/// Serves until the future is dropped.
pub(crate) async fn serve<F, A>(listener: TcpListener, answer: F) -> Result<()>
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Answer>> + Send + 'static,
{
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])
        .context("making a certificate")?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(
        certificate.signing_key.serialize_der(),
    ));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, answer) = (acceptor.clone(), answer.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            // A connection that breaks is the client's to report.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}

/// A request to be passed on; of its headers those that are not named here and not the way's.
pub(crate) fn passed_on(parts: &Parts, body: &Bytes, without: &[&str]) -> Result<Request<Body>> {
    let mut forward = Request::builder()
        .method(parts.method.clone())
        .uri(parts.uri.clone());
    for (name, value) in &parts.headers {
        let name = name.as_str();
        if !ITS_OWN.contains(&name) && !without.contains(&name) {
            forward = forward.header(name, value);
        }
    }
    Ok(forward.body(Body::from(body.to_vec()))?)
}

/// The answer to it.
pub(crate) fn reply(
    parts: &http::response::Parts,
    body: UnsyncBoxBody<Bytes, kube::Error>,
) -> Answer {
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    for (name, value) in &parts.headers {
        if !OF_THE_WAY.contains(&name.as_str()) {
            response.headers_mut().append(name, value.clone());
        }
    }
    response
}

/// Writes a kubeconfig for clients of the server on this port.
pub(crate) fn write_kubeconfig(path: &Path, port: u16) -> Result<()> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "before", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "insecure-skip-tls-verify": true,
        }}],
        "users": [{"name": "admin", "user": {"token": "none"}}],
        "contexts": [{"name": "admin", "context": {"cluster": "before", "user": "admin"}}],
        "current-context": "admin",
    });
    // Under its name only when it is whole: who waits for the file reads it at once.
    let partial = path.with_extension("partial");
    std::fs::write(&partial, config.to_string())
        .with_context(|| format!("writing {}", partial.display()))?;
    std::fs::rename(&partial, path).with_context(|| format!("writing {}", path.display()))
}
