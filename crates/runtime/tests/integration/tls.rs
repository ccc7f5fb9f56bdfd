//! Certificates of our own making, in a Secret that replicas share; and what the other files on TLS stand on.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::client::ClientConnection;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ServerConnection;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_runtime::tls::{Certificates, Error, Injection, SelfSigned, Source};
use slipway_runtime::{Environment, Operator, Settings, View};

use crate::stage::{Stage, committed, secs, virtually};

pub(crate) const NAME: &str = "rollout-operator.default.svc";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub(crate) const SECRET: &str =
    "/api/v1/namespaces/default/secrets/rollout-operator-self-signed-certificate";
pub(crate) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// When these tests begin: after the fixtures were made.
pub(crate) fn environment() -> Environment {
    Environment::virtual_from("2030-01-01T00:00:00Z".parse().unwrap(), 3)
}

/// The webhook configurations of operators of these namespaces.
pub(crate) fn injection(namespaces: &[&str]) -> Injection {
    let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
    Injection {
        selector: slipway_api::zones::injected(&namespaces),
    }
}

pub(crate) fn wanted() -> SelfSigned {
    SelfSigned {
        namespace: "default".to_owned(),
        secret: "rollout-operator-self-signed-certificate".to_owned(),
        names: vec![NAME.to_owned()],
        common_name: "rollout-operator".to_owned(),
        organisation: "Grafana Labs".to_owned(),
        lifetime: Duration::from_hours(24 * 365),
        inject: Some(injection(&["default"])),
    }
}

/// Certificates of a replica with this name.
pub(crate) fn certificates(stage: &Stage, agent: &str, wanted: SelfSigned) -> Certificates {
    let client = Some(stage.client(agent));
    Certificates::new(Source::SelfSigned(wanted), environment(), client, None)
}

/// The same with an operator's view, whose metrics show how it goes.
pub(crate) fn shown(stage: &Stage) -> (Certificates, View) {
    let client = stage.client("one");
    let view = Operator::new(environment(), client.clone(), Settings::default()).view();
    let source = Source::SelfSigned(wanted());
    let certificates = Certificates::new(source, environment(), Some(client), Some(&view));
    (certificates, view)
}

/// The webhook configuration of the design, as far as it matters here.
pub(crate) async fn configuration(stage: &Stage, name: &str, labels: Value) {
    let hook = |name: &str| {
        json!({
            "name": format!("{name}.grafana.com"), "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "rollout-operator", "namespace": "default", "path": "/admission/no-downscale", "port": 443}},
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": 10,
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["statefulsets"], "scope": "Namespaced"}],
        })
    };
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": labels},
        "webhooks": [hook("one"), hook("two")],
    });
    stage.create(VALIDATING, &body).await;
}

pub(crate) fn labels() -> Value {
    json!({"grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": "default"})
}

/// What the first webhook of a configuration trusts.
pub(crate) async fn bundle(stage: &Stage, name: &str) -> Vec<u8> {
    let found = stage.get(&format!("{VALIDATING}/{name}")).await;
    let text = found.pointer("/webhooks/0/clientConfig/caBundle");
    let text = text.and_then(Value::as_str).unwrap_or_default();
    STANDARD.decode(text).unwrap()
}

pub(crate) fn entry(secret: &Value, key: &str) -> Vec<u8> {
    let text = secret["data"][key].as_str().unwrap_or_default();
    STANDARD.decode(text).unwrap()
}

#[derive(Debug)]
struct Clock(Timestamp);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.as_second()).unwrap();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// A whole handshake, as an API server with this bundle would make it; gives the certificate that was shown.
pub(crate) fn handshake(
    server: &Arc<ServerConfig>,
    bundle: &[u8],
    now: Timestamp,
) -> Result<Vec<u8>, String> {
    handshake_as(server, bundle, now, None)
}

/// The same with a certificate of the client's own, and its key.
pub(crate) fn handshake_as(
    server: &Arc<ServerConfig>,
    bundle: &[u8],
    now: Timestamp,
    own: Option<(&str, &str)>,
) -> Result<Vec<u8>, String> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(Clock(now)))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            let own = config.with_client_auth_cert(vec![certificate], key);
            own.unwrap()
        }
    };
    let name = ServerName::try_from(NAME).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut server = ServerConnection::new(server.clone()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().map_err(|e| e.to_string())?;
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets().map_err(|e| e.to_string())?;
    }
    let shown = client.peer_certificates().unwrap().first().unwrap();
    Ok(shown.as_ref().to_vec())
}

pub(crate) fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn a_pair_is_made_kept_and_trusted_before_the_first_handshake() {
    virtually(async {
        let stage = Stage::new().await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let certificates = certificates(&stage, "one", wanted());
        let server = certificates.server_config();
        let early = handshake(&server, b"", now());
        assert!(early.is_err(), "nothing is shown before there is something");
        certificates.prepare().await.unwrap();
        let trusted = bundle(&stage, "no-downscale-default").await;
        handshake(&server, &trusted, now()).unwrap();
        let secret = stage.get(SECRET).await;
        assert_eq!(entry(&secret, "ca"), trusted);
        let keys: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["ca", "cert", "key"], "the original can read it");
        let year = certificates.ends().unwrap().duration_since(now());
        assert_eq!(year.as_hours(), 24 * 365);
    });
}

#[test]
fn a_pair_that_is_there_is_used_by_whoever_comes_next() {
    virtually(async {
        let stage = Stage::new().await;
        let first = certificates(&stage, "one", wanted());
        first.prepare().await.unwrap();
        let before = stage.get(SECRET).await;
        let second = certificates(&stage, "two", wanted());
        second.prepare().await.unwrap();
        assert_eq!(stage.get(SECRET).await, before);
        let ca = entry(&before, "ca");
        let shown = |c: &Certificates| handshake(&c.server_config(), &ca, now()).unwrap();
        assert_eq!(shown(&first), shown(&second));
        let written = stage.records(|r| r.agent == "two" && r.verb != "get" && r.verb != "list");
        assert!(written.is_empty(), "{written:#?}");
    });
}

#[test]
fn two_that_start_at_once_agree_on_one_pair() {
    virtually(async {
        let stage = Stage::new().await;
        let creates = Match {
            verb: "create".to_owned(),
            ..Match::default()
        };
        let late = Fault::Delay(Duration::from_secs(1));
        stage
            .cluster
            .faults()
            .add(creates, Frequency::always(), late);
        let one = certificates(&stage, "one", wanted());
        let two = certificates(&stage, "two", wanted());
        let (first, second) = tokio::join!(one.prepare(), two.prepare());
        first.unwrap();
        second.unwrap();
        let tried = stage.records(|r| r.verb == "create" && r.resource.contains("secrets"));
        assert_eq!(tried.len(), 2, "both were about to");
        assert_eq!(tried.iter().filter(|r| committed(r)).count(), 1);
        let ca = entry(&stage.get(SECRET).await, "ca");
        let shown = |c: &Certificates| handshake(&c.server_config(), &ca, now()).unwrap();
        assert_eq!(shown(&one), shown(&two));
    });
}

#[test]
fn a_create_whose_answer_is_lost_is_not_made_again() {
    virtually(async {
        let stage = Stage::new().await;
        let creates = Match {
            verb: "create".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        let faults = stage.cluster.faults();
        faults.add(creates, Frequency::once(), Fault::Lose);
        let one = certificates(&stage, "one", wanted());
        one.prepare().await.unwrap();
        let ca = entry(&stage.get(SECRET).await, "ca");
        handshake(&one.server_config(), &ca, now()).unwrap();
    });
}

/// D14 (Mimir #13338): the original goes on with a certificate for another name.
#[test]
fn defect_14_a_pair_for_another_name_is_replaced_and_still_trusted() {
    virtually(async {
        let stage = Stage::new().await;
        let mut other = wanted();
        other.names = vec!["old-chart.default.svc".to_owned()];
        let former = certificates(&stage, "one", other);
        former.prepare().await.unwrap();
        let before = stage.get(SECRET).await;
        let labelled = json!({"metadata": {"labels": {"team": "mimir"}}});
        stage.send("PATCH", SECRET, &labelled).await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let next = certificates(&stage, "two", wanted());
        next.prepare().await.unwrap();
        let trusted = bundle(&stage, "no-downscale-default").await;
        handshake(&next.server_config(), &trusted, now()).unwrap();
        let after = stage.get(SECRET).await;
        assert_ne!(entry(&after, "cert"), entry(&before, "cert"));
        assert_eq!(after["metadata"]["labels"]["team"], "mimir");
        // Those who still show the old one are trusted too.
        assert_eq!(entry(&after, "ca-previous"), entry(&before, "ca"));
        let both = CertificateDer::pem_slice_iter(&trusted).count();
        assert_eq!(both, 2);
    });
}

pub(crate) async fn keep_original(stage: &Stage) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "rollout-operator-self-signed-certificate"},
        "data": {
            "ca": STANDARD.encode(include_bytes!("testdata/rsa/ca.pem")),
            "cert": STANDARD.encode(include_bytes!("testdata/rsa/cert.pem")),
            "key": STANDARD.encode(include_bytes!("testdata/rsa/key.pem")),
        },
    });
    stage.create(SECRETS, &secret).await;
}

#[test]
fn the_originals_secret_with_an_rsa_key_in_pkcs_1_is_used_as_it_is() {
    virtually(async {
        let stage = Stage::new().await;
        keep_original(&stage).await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let before = stage.get(SECRET).await;
        let certificates = certificates(&stage, "one", wanted());
        certificates.prepare().await.unwrap();
        assert_eq!(stage.get(SECRET).await, before);
        let trusted = bundle(&stage, "no-downscale-default").await;
        assert_eq!(trusted, include_bytes!("testdata/rsa/ca.pem"));
        handshake(&certificates.server_config(), &trusted, now()).unwrap();
    });
}

#[test]
fn what_cannot_be_used_is_replaced() {
    let texts: [(&str, &[u8]); 5] = [
        ("cert", b"nonsense"),
        ("key", b"nonsense"),
        ("ca", b"nonsense"),
        (
            "key",
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ),
        ("cert", include_bytes!("testdata/rsa/ca.pem")),
    ];
    for (key, text) in texts {
        virtually(async {
            let stage = Stage::new().await;
            keep_original(&stage).await;
            let patch = json!({"data": {key: STANDARD.encode(text)}});
            stage.send("PATCH", SECRET, &patch).await;
            let certificates = certificates(&stage, "one", wanted());
            certificates.prepare().await.unwrap();
            let ca = entry(&stage.get(SECRET).await, "ca");
            handshake(&certificates.server_config(), &ca, now()).unwrap();
        });
    }
}

#[test]
fn a_secret_of_somebody_else_is_left_alone() {
    virtually(async {
        let stage = Stage::new().await;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "rollout-operator-self-signed-certificate"},
            "data": {"password": "aHVudGVyMg=="},
        });
        stage.create(SECRETS, &secret).await;
        let error = certificates(&stage, "one", wanted()).prepare().await;
        let text = error.unwrap_err().to_string();
        assert!(text.contains("delete it"), "{text}");
        let after = stage.get(SECRET).await;
        assert_eq!(after["data"], secret["data"]);
    });
}

#[test]
fn a_missing_right_to_the_secret_says_what_to_grant() {
    virtually(async {
        let stage = Stage::new().await;
        let about = Match {
            resource: "/secrets".to_owned(),
            ..Match::default()
        };
        stage.refuse(about, 403, "Forbidden", Frequency::always());
        let error = certificates(&stage, "one", wanted()).prepare().await;
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Secret { verb: "read", .. }));
        assert!(error.to_string().contains("`get` and `update`"), "{error}");
    });
}

#[test]
fn metrics_show_when_the_certificate_ends() {
    virtually(async {
        let stage = Stage::new().await;
        let (certificates, view) = shown(&stage);
        certificates.prepare().await.unwrap();
        secs(1).await;
        let end = certificates.ends().unwrap().as_second();
        let line = format!("slipway_certificate_end_timestamp_seconds{{}} {end}");
        assert!(view.metrics().contains(&line), "{}", view.metrics());
    });
}
