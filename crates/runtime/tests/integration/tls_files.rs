//! Certificates in files: swapped when they change, kept when the new ones are bad.

use std::path::PathBuf;
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use slipway_runtime::tls::{Certificates, Error, Files, Problem, Source};

use crate::stage::{secs, virtually};
use crate::tls::{NAME, environment, handshake, now};

/// A folder that goes with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("slipway-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn certificates(&self) -> Certificates {
        let files = Files {
            certificate: self.0.join("tls.crt"),
            key: self.0.join("tls.key"),
        };
        Certificates::new(Source::Files(files), environment(), None, None)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// CA, certificate and key, good until the second day of this year.
fn made(until: i32) -> (String, String, String) {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let mut server = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    server.not_before = rcgen::date_time_ymd(2020, 1, 1);
    server.not_after = rcgen::date_time_ymd(until, 1, 2);
    let key = KeyPair::generate().unwrap();
    let certificate = server.signed_by(&key, &ca).unwrap();
    (ca.pem(), certificate.pem(), key.serialize_pem())
}

#[test]
fn new_files_are_shown_without_a_restart_and_bad_ones_are_not() {
    virtually(async {
        let folder = Folder::new("swapped");
        let (old_ca, certificate, key) = made(2040);
        folder.put("tls.crt", &certificate);
        folder.put("tls.key", &key);
        let certificates = folder.certificates();
        certificates.prepare().await.unwrap();
        let server = certificates.server_config();
        handshake(&server, old_ca.as_bytes(), now()).unwrap();
        let kept = certificates.clone();
        let task = tokio::spawn(async move { kept.keep(std::future::pending()).await });

        let (new_ca, certificate, key) = made(2041);
        let never_ending = [
            ("tls.crt", certificate.as_str()),
            ("tls.crt", "nonsense"),
            ("tls.crt", ""),
            ("tls.crt", &made(2025).1),
        ];
        for (name, text) in never_ending {
            folder.put(name, text);
            for _ in 0..30 {
                handshake(&server, old_ca.as_bytes(), now()).unwrap();
                secs(1).await;
            }
        }
        std::fs::remove_file(folder.0.join("tls.crt")).unwrap();
        secs(30).await;
        handshake(&server, old_ca.as_bytes(), now()).unwrap();

        folder.put("tls.crt", &certificate);
        folder.put("tls.key", &key);
        secs(6).await;
        handshake(&server, new_ca.as_bytes(), now()).unwrap();
        assert!(!task.is_finished());
        task.abort();
    });
}

#[test]
fn files_that_end_while_they_are_shown_end_nothing() {
    virtually(async {
        let folder = Folder::new("ending");
        let (_, certificate, key) = made(2030);
        folder.put("tls.crt", &certificate);
        folder.put("tls.key", &key);
        let certificates = folder.certificates();
        certificates.prepare().await.unwrap();
        let kept = certificates.clone();
        let task = tokio::spawn(async move { kept.keep(std::future::pending()).await });
        tokio::time::sleep(Duration::from_hours(25)).await;
        assert!(!task.is_finished());
        let (new_ca, certificate, key) = made(2041);
        folder.put("tls.crt", &certificate);
        folder.put("tls.key", &key);
        secs(6).await;
        let server = certificates.server_config();
        handshake(&server, new_ca.as_bytes(), now()).unwrap();
        task.abort();
    });
}

#[test]
fn files_that_cannot_be_used_at_the_start_are_an_error() {
    virtually(async {
        let folder = Folder::new("bad");
        let error = folder.certificates().prepare().await.unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
        let (_, certificate, key) = made(2025);
        folder.put("tls.crt", &certificate);
        folder.put("tls.key", &key);
        let error = folder.certificates().prepare().await.unwrap_err();
        let ended = |p: &Problem| matches!(p, Problem::Ended(_));
        assert!(
            matches!(&error, Error::Pair { problem, .. } if ended(problem)),
            "{error}"
        );
        folder.put("tls.key", &made(2040).2);
        let error = folder.certificates().prepare().await.unwrap_err();
        let strange = |p: &Problem| matches!(p, Problem::Key(_));
        assert!(
            matches!(&error, Error::Pair { problem, .. } if strange(problem)),
            "{error}"
        );
    });
}
