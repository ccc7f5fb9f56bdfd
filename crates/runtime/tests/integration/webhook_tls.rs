//! Webhooks over TLS, in real time: an API server, and clients that do as they please.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use slipway_apiserver::cluster::Config;
use slipway_apiserver::dial::TlsDial;
use slipway_apiserver::https::Identity;
use slipway_runtime::webhook::{Limits, serve};
use slipway_runtime::{Environment, View};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::stage::{Stage, epoch};
use crate::webhook::{change, configure, guard, open};

/// A server in front of a replica.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    identity: Identity,
    view: View,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

pub(crate) async fn start(stage: &Stage, limits: Limits) -> Served {
    let identity = Identity::with_names(&["slipway.slipway-system.svc"]).unwrap();
    let operator = guard(stage, Environment::virtual_from(epoch(), 7)).limited(limits);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let tls = Arc::new(identity.server_config().unwrap());
    let (admissions, view) = (operator.admissions(), operator.view());
    let task = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        serve(listener, tls, admissions, stopped).await.unwrap();
    });
    Served {
        address,
        identity,
        view,
        stop,
        task,
    }
}

impl Served {
    pub(crate) async fn connect(
        &self,
        protocol: &[u8],
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.identity.ca_pem().as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("slipway.slipway-system.svc").unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.unwrap()
    }

    fn has(&self, line: &str) -> bool {
        self.view.metrics().contains(&format!("{line}\n"))
    }

    pub(crate) async fn end(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(20), self.task)
            .await
            .expect("it stops")
            .unwrap();
        assert!(TcpStream::connect(self.address).await.is_err());
    }
}

pub(crate) fn review(uid: &str) -> Bytes {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "operation": "UPDATE", "name": "m", "namespace": "default",
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
    }});
    Bytes::from(review.to_string())
}

pub(crate) fn post(body: Bytes) -> Request<Full<Bytes>> {
    Request::post("https://slipway.slipway-system.svc/admission/guard?timeout=5s")
        .header("host", "slipway.slipway-system.svc")
        .header("content-type", "application/json")
        .body(Full::new(body))
        .unwrap()
}

pub(crate) async fn whole(response: http::Response<hyper::body::Incoming>) -> (StatusCode, Value) {
    let code = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn an_api_server_asks_over_tls() {
    let dial = TlsDial::default();
    let config = Config::real("test", Arc::new(dial.clone())).unwrap();
    let stage = Stage::built(config).await;
    let served = start(&stage, Limits::default()).await;
    dial.register("slipway", "slipway-system", served.address);
    stage.map("m", json!({"a": "1"})).await;
    configure(&stage, served.identity.ca_pem()).await;
    let refusal = r#"admission webhook "guard.slipway.dev" denied the request: the door is shut"#;
    let refused = change(&stage, "2").await;
    assert_eq!(refused, Err((403, refusal.to_owned())));
    open(&stage).await;
    assert_eq!(change(&stage, "2").await, Ok(()));
    served.end().await;
}

#[tokio::test]
async fn connections_are_kept_and_both_protocols_are_spoken() {
    let stage = Stage::new().await;
    let served = start(&stage, Limits::default()).await;
    open(&stage).await;

    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(served.connect(b"http/1.1").await))
            .await
            .unwrap();
    tokio::spawn(connection);
    for uid in ["a", "b", "c"] {
        sender.ready().await.unwrap();
        let (code, answer) = whole(sender.send_request(post(review(uid))).await.unwrap()).await;
        assert_eq!(code, StatusCode::OK);
        assert_eq!(answer["response"]["uid"], uid);
        assert_eq!(answer["response"]["allowed"], true);
    }

    let stream = TokioIo::new(served.connect(b"h2").await);
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    let many = (0..50).map(|n| {
        let mut sender = sender.clone();
        async move {
            let uid = format!("u-{n}");
            let response = sender.send_request(post(review(&uid))).await.unwrap();
            assert_eq!(response.version(), Version::HTTP_2);
            let (_, answer) = whole(response).await;
            assert_eq!(answer["response"]["uid"], uid);
        }
    });
    futures::future::join_all(many).await;
    assert!(served.has(r#"slipway_tls_handshakes_total{outcome="done"} 2"#));
    drop(sender);
    served.end().await;
}

#[tokio::test]
async fn a_bad_connection_ends_alone_and_a_large_body_is_refused() {
    let stage = Stage::new().await;
    let limits = Limits {
        body_bytes: 10_000,
        connections: 2,
        ..Limits::default()
    };
    let served = start(&stage, limits).await;
    for _ in 0..5 {
        let mut rude = TcpStream::connect(served.address).await.unwrap();
        rude.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        // It is hung up on, maybe after a word of TLS.
        let mut rest = Vec::new();
        let _ = rude.read_to_end(&mut rest).await;
    }
    assert!(served.has(r#"slipway_tls_handshakes_total{outcome="failed"} 5"#));
    let stream = TokioIo::new(served.connect(b"http/1.1").await);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let large = Bytes::from(vec![b' '; 10_001]);
    let (code, _) = whole(sender.send_request(post(large)).await.unwrap()).await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
    let stream = TokioIo::new(served.connect(b"http/1.1").await);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let (code, answer) = whole(sender.send_request(post(review("a"))).await.unwrap()).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(answer["response"]["status"]["message"], "the door is shut");
    served.end().await;
}

/// The original hangs up on all of them.
#[tokio::test]
async fn a_stop_takes_nobody_new_and_lets_requests_under_way_end() {
    let stage = Stage::new().await;
    let served = start(&stage, Limits::default()).await;
    open(&stage).await;
    let body = review("under-way");
    let (begin, rest) = body.split_at(body.len() / 2);
    let head = format!(
        "POST /admission/guard HTTP/1.1\r\nhost: slipway\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = served.connect(b"http/1.1").await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(begin).await.unwrap();
    stream.flush().await.unwrap();
    // One request and its answer on another connection: the first one has been taken in by then.
    let other = TokioIo::new(served.connect(b"http/1.1").await);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(other).await.unwrap();
    tokio::spawn(connection);
    whole(sender.send_request(post(review("a"))).await.unwrap()).await;
    served.stop.send(()).unwrap();
    while TcpStream::connect(served.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!served.task.is_finished(), "it waits for the request");
    stream.write_all(rest).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("\"uid\":\"under-way\",\"allowed\":true"),
        "{answer}"
    );
    tokio::time::timeout(Duration::from_secs(20), served.task)
        .await
        .expect("it stops")
        .unwrap();
}
