//! Members over TLS, in real time: kubeconfigs as they are in Secrets, servers on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::TryStreamExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::json;
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::dial::TlsDial;
use slipway_apiserver::https::{self, Context, Https, Identity};
use slipway_apiserver::{server::Server, shell};
use slipway_kernel::address::AllowedHosts;
use slipway_runtime::member::Kubeconfig;
use slipway_runtime::{Environment, Link, Operator};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tower::ServiceExt;

use crate::records::Records;
use crate::stage::{alone, epoch};

/// The token; it must be nowhere.
const MARKER: &str = "marker-5ecret-0f-a-member";

fn link() -> Link {
    Link {
        request_timeout: Duration::from_secs(5),
        agent: "slipway/test",
    }
}

fn cluster() -> Arc<Cluster> {
    let config = Config::real("member", Arc::new(TlsDial::default())).unwrap();
    config.with_admin(MARKER).build()
}

/// A cluster behind HTTPS.
fn serve(cluster: Arc<Cluster>) -> Https {
    let server = Server::default();
    server.add(cluster);
    let (requests, receiver) = mpsc::channel(64);
    let https = Https::start(https::Config::default(), requests).unwrap();
    tokio::spawn(shell::serve(Arc::new(server), receiver));
    https
}

fn kubeconfig(server: String, ca_pem: &str, token: &str) -> Kubeconfig {
    let name = "member".to_owned();
    let text = https::kubeconfig(&[Context { name, server }], ca_pem, token);
    Kubeconfig::parse(text.as_bytes(), &AllowedHosts::any()).unwrap()
}

/// Passes bytes on to a server, and counts connections.
async fn relay(to: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (address, count)
}

async fn works(client: &Client) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map = serde_json::from_value(json!({"metadata": {"generateName": "m-"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(
        !maps
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn a_member_is_reached_by_its_token_and_all_requests_share_one_connection() {
    let https = serve(cluster());
    let (near, connections) = relay(https.address()).await;
    let kubeconfig = kubeconfig(format!("https://{near}"), https.ca_pem(), MARKER);
    let client = kubeconfig.client(&link()).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let all = (0..20).map(|_| works(&client));
    futures::future::join_all(all).await;
    // Watches are requests that do not end.
    let mut watches = Vec::new();
    for _ in 0..5 {
        let params = WatchParams::default();
        let mut watch = Box::pin(maps.watch(&params, "0").await.unwrap());
        assert!(watch.try_next().await.unwrap().is_some());
        watches.push(watch);
    }
    works(&client).await;
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

/// A server that lets in who shows a certificate of this CA.
async fn behind_certificates(cluster: Arc<Cluster>, authority: &str) -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![made.cert.der().clone()],
            PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else {
                continue;
            };
            // Who got here has shown a certificate; the cluster knows its users by token only.
            let service = cluster.service(MARKER);
            let answer = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                service.clone().oneshot(request)
            });
            tokio::spawn(async move {
                let serving = auto::Builder::new(TokioExecutor::new());
                let _ = serving.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    (address, made.cert.pem())
}

#[tokio::test]
async fn a_member_is_reached_by_a_client_certificate() {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertifiedIssuer::self_signed(authority, key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut person = rcgen::CertificateParams::new(Vec::new()).unwrap();
    person.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let person = person.signed_by(&key, &authority).unwrap();
    let (address, ca) = behind_certificates(cluster(), &authority.pem()).await;
    let of = |certificate: String, key: String| {
        let config = json!({
            "clusters": [{"name": "a", "cluster": {
                "server": format!("https://{address}"), "certificate-authority-data": STANDARD.encode(&ca),
            }}],
            "users": [{"name": "b", "user": {
                "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key),
            }}],
        });
        let kubeconfig = Kubeconfig::parse(config.to_string().as_bytes(), &AllowedHosts::any());
        kubeconfig.unwrap().client(&link()).unwrap()
    };
    works(&of(person.pem(), key.serialize_pem())).await;
    let stranger = rcgen::generate_simple_self_signed(vec!["b".to_owned()]).unwrap();
    let stranger = of(stranger.cert.pem(), stranger.signing_key.serialize_pem());
    let namespaces: Api<Namespace> = Api::all(stranger);
    assert!(namespaces.list(&ListParams::default()).await.is_err());
}

#[tokio::test]
async fn a_server_that_another_ca_vouches_for_is_refused() {
    let https = serve(cluster());
    let other = Identity::generate().unwrap();
    let kubeconfig = kubeconfig(https.url(), other.ca_pem(), MARKER);
    let namespaces: Api<Namespace> = Api::all(kubeconfig.client(&link()).unwrap());
    let error = namespaces.list(&ListParams::default()).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(
        told.contains("UnknownIssuer") || told.contains("BadSignature"),
        "{told}"
    );
    assert!(!told.contains(MARKER), "{told}");
}

#[tokio::test]
async fn a_member_that_does_not_answer_is_given_up_after_the_time_of_a_request() {
    // Connections are accepted, and nothing is ever said.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let link = Link {
        request_timeout: Duration::from_millis(200),
        ..link()
    };
    let ca = Identity::generate().unwrap();
    let kubeconfig = kubeconfig(format!("https://{address}"), ca.ca_pem(), MARKER);
    let namespaces: Api<Namespace> = Api::all(kubeconfig.client(&link).unwrap());
    let error = namespaces.list(&ListParams::default()).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("no connection within 200ms"),
        "{error:?}"
    );
}

/// T: a marker secret is found in no log line, error or metric.
#[tokio::test]
async fn a_token_is_in_no_log_line_no_error_and_no_metric() {
    let records = Records::default();
    let _guard = tracing::subscriber::set_default(records.clone());
    let cluster = cluster();
    let https = serve(cluster);
    let mut told = Vec::new();
    let kubeconfig_of = |server: String, ca: &str| kubeconfig(server, ca, MARKER);
    let whole = kubeconfig_of(https.url(), https.ca_pem());
    told.push(format!("{whole:?}"));
    let environment = Environment::virtual_from(epoch(), 1);
    let operator = Operator::new(environment, whole.client(&link()).unwrap(), alone());
    works(&operator.client()).await;
    // Nobody, somebody else, and somebody who knows no such token.
    let closed = TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let strange = serve(
        Config::real("member", Arc::new(TlsDial::default()))
            .unwrap()
            .build(),
    );
    for (server, ca) in [
        (format!("https://{closed}"), https.ca_pem()),
        (https.url(), strange.ca_pem()),
        (strange.url(), strange.ca_pem()),
    ] {
        let client = kubeconfig_of(server, ca).client(&link()).unwrap();
        let namespaces: Api<Namespace> = Api::all(client);
        let error = namespaces.list(&ListParams::default()).await.unwrap_err();
        told.push(format!("{error} {error:?}"));
    }
    told.push(operator.view().metrics());
    told.extend(records.all());
    assert!(told.len() > 5, "{told:#?}");
    let leaks: Vec<&String> = told.iter().filter(|text| text.contains(MARKER)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}
