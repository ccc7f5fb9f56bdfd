#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use futures::future::BoxFuture;
use http::Response;
use tokio::sync::mpsc;

use super::*;
use crate::https::{Config, Https, Identity};
use crate::shell::{Body, Core, serve};

/// Answers with what it was sent.
struct Mirror;

impl Core for Mirror {
    fn handle(&self, request: Request<Bytes>) -> BoxFuture<'static, Option<Response<Body>>> {
        Box::pin(async move {
            if request.uri().path() == "/slow" {
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
            let mut response = Response::new(Body::Full(request.body().clone()));
            if request.uri().path_and_query().unwrap() != "/p?timeout=2s" {
                *response.status_mut() = http::StatusCode::NOT_FOUND;
            }
            Some(response)
        })
    }
}

fn webhook() -> Https {
    let (requests, receiver) = mpsc::channel(4);
    let config = Config {
        identity: Some(Identity::with_names(&["hook.x.svc"]).unwrap()),
        ..Config::default()
    };
    let https = Https::start(config, requests).unwrap();
    tokio::spawn(serve(Arc::new(Mirror), receiver));
    https
}

fn call(url: String, ca_pem: &str) -> Call {
    Call {
        url,
        ca_bundle: ca_pem.as_bytes().to_vec(),
        body: "hello".into(),
        timeout: Duration::from_secs(2),
    }
}

async fn failure(dial: &TlsDial, call: Call) -> String {
    dial.call(call).await.unwrap_err().to_string()
}

#[tokio::test]
async fn services_are_found_by_the_table_and_checked_by_name() {
    let webhook = webhook();
    let dial = TlsDial::default();
    let url = "https://hook.x.svc:443/p?timeout=2s".to_owned();
    assert_eq!(
        failure(&dial, call(url.clone(), webhook.ca_pem())).await,
        "service \"hook\" not found"
    );
    dial.register("hook", "x", webhook.address());
    let (code, body) = dial.call(call(url, webhook.ca_pem())).await.unwrap();
    assert_eq!((code, &*body), (200, &b"hello"[..]));
    dial.register("other", "x", webhook.address());
    let url = "https://other.x.svc:443/p".to_owned();
    let why = failure(&dial, call(url, webhook.ca_pem())).await;
    assert!(why.contains("is not valid for other.x.svc"), "{why}");
}

#[tokio::test]
async fn urls_on_loopback_are_dialled() {
    let webhook = webhook();
    let dial = TlsDial::default();
    let port = webhook.address().port();
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("https://{host}:{port}/p?timeout=2s");
        let answer = dial.call(call(url, webhook.ca_pem())).await.unwrap();
        assert_eq!(answer.0, 200);
    }
}

#[tokio::test]
async fn failures_read_like_those_of_the_real_server() {
    let webhook = webhook();
    let dial = TlsDial::default();
    let other = Identity::generate().unwrap();
    let url = format!("https://{}/p", webhook.address());
    assert_eq!(
        failure(&dial, call(url.clone(), other.ca_pem())).await,
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    );
    let mut slow = call(
        format!("https://{}/slow", webhook.address()),
        webhook.ca_pem(),
    );
    slow.timeout = Duration::from_millis(100);
    assert_eq!(failure(&dial, slow).await, "context deadline exceeded");
    let address = webhook.address();
    let ca_pem = webhook.ca_pem().to_owned();
    webhook.stop().await;
    assert_eq!(
        failure(&dial, call(url, &ca_pem)).await,
        format!("dial tcp {address}: connect: connection refused")
    );
}

#[tokio::test]
async fn a_connection_that_just_closes_is_eof() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/p", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let other = Identity::generate().unwrap();
    let why = failure(&TlsDial::default(), call(url, other.ca_pem())).await;
    assert!(why == "EOF" || why.contains("reset"), "{why}");
}

/// Many a test webhook has one self-signed certificate, which is its own authority; Go accepts that.
#[tokio::test]
async fn a_server_may_show_the_authority_itself() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let private = rustls_pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else {
                continue;
            };
            let service = hyper::service::service_fn(|_| async {
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("{}"))))
            });
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        }
    });
    let dial = TlsDial::default();
    let call = |host: &str| call(format!("https://{host}:{port}/"), &certificate.pem());
    assert_eq!(dial.call(call("localhost")).await.unwrap().0, 200);
    let why = failure(&dial, call("127.0.0.1")).await;
    assert!(why.contains("is not valid for 127.0.0.1"), "{why}");
}
