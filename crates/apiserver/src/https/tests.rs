#![allow(
    clippy::disallowed_methods,
    reason = "tests measure and wait in real time"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::Mutex;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::shell::{Body, Core, serve};

/// Echoes method, path and body length; `/stream` streams two pieces, `/endless` one and never ends.
#[derive(Default)]
struct Echo {
    /// Fires when the client of `/endless` has gone away.
    gone: Mutex<Option<oneshot::Sender<()>>>,
}

impl Core for Echo {
    fn handle(&self, request: Request<Bytes>) -> BoxFuture<'static, Option<Response<Body>>> {
        let gone = self.gone.lock().unwrap().take();
        Box::pin(async move {
            let response = async move {
                let text = format!(
                    "{} {} {}",
                    request.method(),
                    request.uri(),
                    request.body().len()
                );
                assert!(request.extensions().get::<Peer>().is_some());
                match request.uri().path() {
                    "/stream" => {
                        let (pieces, receiver) = mpsc::channel(4);
                        tokio::spawn(async move {
                            for piece in ["one\n", "two\n"] {
                                pieces.send(piece.into()).await.unwrap();
                            }
                        });
                        Response::new(Body::Stream(receiver))
                    }
                    "/endless" => {
                        let (pieces, receiver) = mpsc::channel(4);
                        tokio::spawn(async move {
                            pieces.send("one\n".into()).await.unwrap();
                            pieces.closed().await;
                            if let Some(gone) = gone {
                                let _ = gone.send(());
                            }
                        });
                        Response::new(Body::Stream(receiver))
                    }
                    "/slow" => {
                        tokio::time::sleep(Duration::from_millis(300)).await;
                        Response::new(Body::Full(text.into()))
                    }
                    _ => Response::new(Body::Full(text.into())),
                }
            };
            Some(response.await)
        })
    }
}

fn start(core: Echo, config: Config) -> Https {
    let (requests, receiver) = mpsc::channel(16);
    let https = Https::start(config, requests).unwrap();
    tokio::spawn(serve(Arc::new(core), receiver));
    https
}

async fn connect(https: &Https, protocol: &str) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(https.ca_pem().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(https.address()).await.unwrap();
    let name = ServerName::try_from("kubernetes.default.svc").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

async fn client(https: &Https) -> http1::SendRequest<Full<Bytes>> {
    let stream = connect(https, "http/1.1").await;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path)
        .header("host", "localhost")
        .body(Full::default())
        .unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn answers_over_http1_and_http2() {
    let https = start(Echo::default(), Config::default());
    let mut one = client(&https).await;
    let answer = one.send_request(get("/a")).await.unwrap();
    assert_eq!(text(answer).await, "GET /a 0");
    let post = Request::post("/b")
        .header("host", "x")
        .body(Full::new(Bytes::from("12345")))
        .unwrap();
    let answer = one.send_request(post).await.unwrap();
    assert_eq!(text(answer).await, "POST /b 5");

    let stream = connect(&https, "h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut two, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://localhost/c")
        .body(Full::<Bytes>::default())
        .unwrap();
    let answer = two.send_request(request).await.unwrap();
    assert_eq!(text(answer).await, "GET /c 0");
    let request = Request::head("https://localhost/c")
        .body(Full::<Bytes>::default())
        .unwrap();
    let answer = two.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(text(answer).await, "", "an answer to HEAD has no body");
    https.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let https = start(Echo::default(), Config::default());
    let body = |bytes: usize| {
        Request::post("/a")
            .header("host", "x")
            .body(Full::new(Bytes::from(vec![b'x'; bytes])))
            .unwrap()
    };
    let answer = client(&https)
        .await
        .send_request(body((3 << 20) + 1))
        .await
        .unwrap();
    assert_eq!(answer.status(), 413);
    assert_eq!(answer.headers()["content-type"], "application/json");
    let status: serde_json::Value = serde_json::from_str(&text(answer).await).unwrap();
    assert_eq!(
        status["message"],
        "Request entity too large: limit is 3145728"
    );
    let answer = client(&https).await.send_request(body(3 << 20)).await;
    assert_eq!(answer.unwrap().status(), 200);
}

#[tokio::test]
async fn a_body_without_a_length_is_limited_too() {
    let config = Config {
        body_bytes: 8,
        ..Config::default()
    };
    let https = start(Echo::default(), config);
    let stream = connect(&https, "http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let pieces = futures::stream::iter(
        ["12345", "6789"].map(|p| Ok::<_, io::Error>(http_body::Frame::data(Bytes::from(p)))),
    );
    let request = Request::post("/a")
        .header("host", "x")
        .body(http_body_util::StreamBody::new(pieces))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 413);
}

#[tokio::test]
async fn a_slow_body_is_given_up() {
    let config = Config {
        body_read: Duration::from_millis(50),
        ..Config::default()
    };
    let https = start(Echo::default(), config);
    let mut stream = connect(&https, "http/1.1").await;
    let head = b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nx";
    stream.write_all(head).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn streams_end_when_the_core_ends_them() {
    let https = start(Echo::default(), Config::default());
    let answer = client(&https).await.send_request(get("/stream")).await;
    assert_eq!(text(answer.unwrap()).await, "one\ntwo\n");
}

#[tokio::test]
async fn the_core_notices_that_a_client_went_away() {
    let (gone, is_gone) = oneshot::channel();
    let core = Echo {
        gone: Mutex::new(Some(gone)),
    };
    let https = start(core, Config::default());
    let mut sender = client(&https).await;
    let mut answer = sender.send_request(get("/endless")).await.unwrap();
    let first = answer.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "one\n");
    drop(answer);
    drop(sender);
    timeout(Duration::from_secs(10), is_gone)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_stop_ends_streams_and_finishes_requests() {
    let https = start(Echo::default(), Config::default());
    let address = https.address();
    let (mut one, mut two) = (client(&https).await, client(&https).await);
    let endless = one.send_request(get("/endless")).await.unwrap();
    let slow = tokio::spawn(async move { two.send_request(get("/slow")).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = std::time::Instant::now();
    https.stop().await;
    assert!(before.elapsed() < GRACE);
    assert_eq!(text(endless).await, "one\n");
    assert_eq!(text(slow.await.unwrap().unwrap()).await, "GET /slow 0");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn many_idle_connections_do_not_disturb() {
    let https = start(Echo::default(), Config::default());
    let mut idle = Vec::new();
    for _ in 0..150 {
        idle.push(TcpStream::connect(https.address()).await.unwrap());
    }
    for _ in 0..20 {
        // Half closed after the handshake.
        let mut stream = connect(&https, "http/1.1").await;
        stream.write_all(b"GET / HT").await.unwrap();
        stream.shutdown().await.unwrap();
    }
    let answer = client(&https).await.send_request(get("/a")).await;
    assert_eq!(answer.unwrap().status(), 200);
}

#[tokio::test]
async fn without_a_core_it_is_503() {
    let (requests, receiver) = mpsc::channel(1);
    let https = Https::start(Config::default(), requests).unwrap();
    drop(receiver);
    let answer = client(&https).await.send_request(get("/a")).await;
    assert_eq!(answer.unwrap().status(), 503);
}

#[test]
fn kubeconfigs_are_yaml_whatever_the_names() {
    let context = Context {
        name: "a: b".to_owned(),
        server: "https://127.0.0.1:6443".to_owned(),
    };
    let text = kubeconfig(&[context], "PEM", "t:o\"k");
    let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["current-context"], "a: b");
    assert_eq!(config["users"][0]["user"]["token"], "t:o\"k");
    assert_eq!(config["contexts"][0]["context"]["cluster"], "a: b");
    assert_eq!(
        config["clusters"][0]["cluster"]["certificate-authority-data"],
        "UEVN"
    );
}
