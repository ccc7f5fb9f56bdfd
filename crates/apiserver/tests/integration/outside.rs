//! The real server behind the HTTPS shell, and clients that come over the wire.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::dial::TlsDial;
use slipway_apiserver::https::{self, Context, Https};
use slipway_apiserver::server::Server;
use slipway_apiserver::shell::{self, Core};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::stage::ADMIN;

/// A core behind a shell, on any free port.
pub(crate) fn start(core: Arc<dyn Core>) -> Https {
    let (requests, receiver) = mpsc::channel(64);
    let https = Https::start(https::Config::default(), requests).unwrap();
    tokio::spawn(shell::serve(core, receiver));
    https
}

/// A server with clusters of these names, in real time.
pub(crate) fn server(names: &[&str]) -> (Server, Https) {
    let server = Server::default();
    for name in names {
        server.add(real_cluster(name));
    }
    let https = start(Arc::new(server.clone()));
    (server, https)
}

/// A cluster that dials webhooks over TLS.
pub(crate) fn real_cluster(name: &str) -> Arc<Cluster> {
    let config = Config::real(name, Arc::new(TlsDial::default())).unwrap();
    config.with_admin(ADMIN).build()
}

/// A client of one cluster, as a kubeconfig makes it.
pub(crate) async fn kube_client(https: &Https, cluster: &str, token: &str) -> Client {
    let context = Context {
        name: cluster.to_owned(),
        server: format!("{}/clusters/{cluster}", https.url()),
    };
    let text = https::kubeconfig(&[context], https.ca_pem(), token);
    let options = KubeConfigOptions::default();
    let config =
        kube::Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&text).unwrap(), &options);
    Client::try_from(config.await.unwrap()).unwrap()
}

/// A TLS connection that speaks this protocol.
pub(crate) async fn connect(https: &Https, protocol: &str) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(https.ca_pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(https.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

/// One connection.
pub(crate) enum Wire {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Wire {
    /// Opens a connection; dropping the wire and all its answers closes it.
    pub(crate) async fn open(https: &Https, protocol: &str) -> Self {
        let stream = TokioIo::new(connect(https, protocol).await);
        if protocol == "h2" {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
                .await
                .unwrap();
            tokio::spawn(connection);
            Self::Two(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            Self::One(sender)
        }
    }

    /// Asks as the administrator.
    pub(crate) async fn get(&mut self, https: &Https, path: &str) -> Response<Incoming> {
        let request = Request::get(format!("{}{path}", https.url()))
            .header("host", https.address().to_string())
            .header("authorization", format!("Bearer {ADMIN}"))
            .body(Full::default())
            .unwrap();
        match self {
            Self::One(sender) => sender.send_request(request).await.unwrap(),
            Self::Two(sender) => sender.send_request(request).await.unwrap(),
        }
    }
}

/// The next piece of an answer, or none at its end.
pub(crate) async fn piece(answer: &mut Response<Incoming>) -> Option<Bytes> {
    loop {
        let frame = answer.body_mut().frame();
        let frame = tokio::time::timeout(Duration::from_secs(20), frame)
            .await
            .unwrap();
        let piece = frame?.unwrap().into_data().ok()?;
        // The end of a stream in HTTP/2 may be a piece without anything in it.
        if !piece.is_empty() {
            return Some(piece);
        }
    }
}

/// Waits until something holds; fails if it does not within 20 seconds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to this: {what}");
}
