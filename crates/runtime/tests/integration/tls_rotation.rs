//! Renewal while clients connect: no handshake fails, whichever replica they reach.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use slipway_apiserver::faults::{Frequency, Match};
use slipway_runtime::tls::{Certificates, SelfSigned, Source};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::stage::{Stage, secs, virtually};
use crate::tls::{
    SECRET, bundle, certificates, configuration, entry, environment, handshake, keep_original,
    labels, now, wanted,
};

/// Twenty minutes, so that a renewal is due after thirteen.
fn short() -> SelfSigned {
    SelfSigned {
        lifetime: Duration::from_mins(20),
        ..wanted()
    }
}

fn keep(certificates: &Certificates) -> JoinHandle<()> {
    let certificates = certificates.clone();
    tokio::spawn(async move { certificates.keep(std::future::pending()).await })
}

/// Connects to all replicas every second, as an API server whose view of the configuration is three seconds old;
/// gives how many different certificates were shown.
async fn connect(stage: &Stage, replicas: &[Certificates], seconds: u64) -> usize {
    let mut seen: VecDeque<Vec<u8>> = VecDeque::new();
    let mut shown = BTreeSet::new();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        seen.push_back(bundle(stage, "no-downscale-default").await);
        if seen.len() > 4 {
            seen.pop_front();
        }
        let at = now().checked_add(began.elapsed()).unwrap();
        for replica in replicas {
            let certificate = handshake(&replica.server_config(), &seen[0], at);
            let passed = began.elapsed();
            shown.insert(certificate.unwrap_or_else(|e| panic!("after {passed:?}: {e}")));
        }
        secs(1).await;
    }
    shown.len()
}

#[test]
fn no_handshake_fails_across_renewals_with_two_replicas() {
    virtually(async {
        let stage = Stage::new().await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let one = certificates(&stage, "one", short());
        let two = certificates(&stage, "two", short());
        one.prepare().await.unwrap();
        secs(7).await;
        two.prepare().await.unwrap();
        let tasks = [keep(&one), keep(&two)];
        // Longer than the lifetime: two renewals.
        let shown = connect(&stage, &[one.clone(), two.clone()], 28 * 60).await;
        assert_eq!(shown, 3);
        let writes = stage.records(|r| {
            (r.agent == "one" || r.agent == "two") && !matches!(&*r.verb, "get" | "list")
        });
        // Per renewal: the Secret, the configuration, both again without the old CA; and the loser's attempts.
        assert!(writes.len() < 20, "{}", writes.len());
        for task in tasks {
            task.abort();
        }
    });
}

#[test]
fn the_old_ca_is_trusted_until_it_ends_and_not_longer() {
    virtually(async {
        let stage = Stage::new().await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let one = certificates(&stage, "one", short());
        one.prepare().await.unwrap();
        let task = keep(&one);
        let count = async || {
            let bundle = bundle(&stage, "no-downscale-default").await;
            CertificateDer::pem_slice_iter(&bundle).count()
        };
        secs(12 * 60).await;
        assert_eq!(count().await, 1);
        let old = one.ends().unwrap();
        secs(2 * 60).await;
        assert_eq!(count().await, 2);
        assert!(one.ends().unwrap() > old, "the new one is shown");
        secs(6 * 60 + 30).await;
        assert_eq!(count().await, 1);
        let secret = stage.get(SECRET).await;
        assert!(entry(&secret, "ca-previous").is_empty());
        task.abort();
    });
}

fn refuse(stage: &Stage, verb: &str, resource: &str, code: u16, reason: &str) {
    let about = Match {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        agent: "one".to_owned(),
        ..Match::default()
    };
    stage.refuse(about, code, reason, Frequency::always());
}

#[test]
fn a_new_certificate_is_not_shown_before_its_ca_is_trusted() {
    virtually(async {
        let stage = Stage::new().await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let one = certificates(&stage, "one", short());
        one.prepare().await.unwrap();
        let task = keep(&one);
        let patched = "admissionregistration.k8s.io/validatingwebhookconfigurations";
        refuse(&stage, "patch", patched, 500, "InternalError");
        secs(60).await;
        // The renewal is at thirteen minutes; half of the seven that are left then is the latest.
        let shown = connect_from(&stage, &one, 60, 15 * 60).await;
        assert_eq!(shown, 1, "the old one, never the new one, during this time");
        stage.cluster.faults().clear();
        let shown = connect_from(&stage, &one, 15 * 60, 20 * 60).await;
        assert_eq!(shown, 2);
        task.abort();
    });
}

async fn connect_from(stage: &Stage, one: &Certificates, from: u64, until: u64) -> usize {
    let mut shown = BTreeSet::new();
    for second in from..until {
        let at = now().checked_add(Duration::from_secs(second)).unwrap();
        let trusted = bundle(stage, "no-downscale-default").await;
        shown.insert(handshake(&one.server_config(), &trusted, at).unwrap());
        secs(1).await;
    }
    shown.len()
}

#[test]
fn expiry_ends_nothing_where_the_secret_cannot_be_written() {
    virtually(async {
        let stage = Stage::new().await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let one = certificates(&stage, "one", short());
        one.prepare().await.unwrap();
        let old = one.ends().unwrap();
        refuse(&stage, "update", "/secrets", 403, "Forbidden");
        let task = keep(&one);
        secs(30 * 60).await;
        assert!(!task.is_finished());
        assert_eq!(one.ends().unwrap(), old, "the last good one stays");
        stage.cluster.faults().clear();
        secs(120).await;
        assert!(one.ends().unwrap() > old);
        let trusted = bundle(&stage, "no-downscale-default").await;
        let at = now().checked_add(Duration::from_mins(32)).unwrap();
        handshake(&one.server_config(), &trusted, at).unwrap();
        task.abort();
    });
}

#[test]
fn a_deleted_secret_is_made_again_and_the_old_ca_stays_trusted() {
    virtually(async {
        let stage = Stage::new().await;
        configuration(&stage, "no-downscale-default", labels()).await;
        keep_original(&stage).await;
        let one = certificates(&stage, "one", wanted());
        one.prepare().await.unwrap();
        let task = keep(&one);
        secs(5).await;
        stage.send("DELETE", SECRET, &json!({})).await;
        let shown = connect(&stage, std::slice::from_ref(&one), 60).await;
        assert_eq!(shown, 2, "the old one, then the new one");
        task.abort();
    });
}

#[test]
fn without_injection_the_old_certificate_is_shown_for_as_long_as_is_safe() {
    virtually(async {
        let stage = Stage::new().await;
        let mut wanted = short();
        wanted.inject = None;
        let client = Some(stage.client("one"));
        let one = Certificates::new(Source::SelfSigned(wanted), environment(), client, None);
        one.prepare().await.unwrap();
        let old = one.ends().unwrap();
        let task = keep(&one);
        secs(16 * 60).await;
        assert_eq!(
            one.ends().unwrap(),
            old,
            "for those who copy the CA by hand"
        );
        secs(60).await;
        assert!(one.ends().unwrap() > old);
        task.abort();
    });
}
