//! Webhooks that only an API server with a certificate may call.

use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use slipway_runtime::tls::{Certificates, Error};

use crate::stage::{Stage, secs, virtually};
use crate::tls::{SECRET, certificates, entry, handshake, handshake_as, now, wanted};
use crate::tls_files::Folder;

/// A CA, and a client's certificate and key.
fn client() -> (String, String, String) {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let mut client = CertificateParams::new(Vec::new()).unwrap();
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = client.signed_by(&key, &ca).unwrap();
    (ca.pem(), certificate.pem(), key.serialize_pem())
}

fn shut(stage: &Stage, folder: &Folder) -> Certificates {
    certificates(stage, "one", wanted()).only_for(folder.0.join("ca.crt"))
}

#[test]
fn only_a_certificate_of_the_named_ca_gets_through() {
    virtually(async {
        let folder = Folder::new("callers");
        let (ca, certificate, key) = client();
        let (other_ca, others, others_key) = client();
        folder.put("ca.crt", &ca);
        let stage = Stage::new().await;
        let certificates = shut(&stage, &folder);
        certificates.prepare().await.unwrap();
        let server = certificates.server_config();
        let bundle = entry(&stage.get(SECRET).await, "ca");
        let call = |own| handshake_as(&server, &bundle, now(), own).is_ok();
        let (ours, theirs) = (
            Some((certificate.as_str(), key.as_str())),
            Some((others.as_str(), others_key.as_str())),
        );
        assert!(call(ours));
        assert!(!call(None), "without a certificate");
        assert!(!call(theirs), "with a certificate of another CA");

        // Another CA is put there while it is served.
        let kept = certificates.clone();
        let task = tokio::spawn(async move { kept.keep(std::future::pending()).await });
        folder.put("ca.crt", &other_ca);
        secs(11).await;
        assert!(call(theirs));
        assert!(!call(ours), "the former CA is not trusted any more");
        folder.put("ca.crt", "nonsense");
        secs(11).await;
        assert!(call(theirs), "the last good one stays");
        assert!(!call(None));
        task.abort();
    });
}

#[test]
fn a_ca_that_cannot_be_read_is_an_error_at_the_start_and_not_an_open_door() {
    virtually(async {
        let folder = Folder::new("no-callers");
        let stage = Stage::new().await;
        let certificates = shut(&stage, &folder);
        let error = certificates.prepare().await.unwrap_err();
        assert!(matches!(error, Error::CallersFile { .. }), "{error}");
        folder.put("ca.crt", "nonsense");
        let error = certificates.prepare().await.unwrap_err();
        assert!(matches!(error, Error::Callers { .. }), "{error}");
        assert!(
            error.to_string().contains("--webhooks-client-ca"),
            "{error}"
        );
        assert!(handshake(&certificates.server_config(), b"", now()).is_err());
    });
}
