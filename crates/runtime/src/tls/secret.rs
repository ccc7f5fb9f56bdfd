//! The Secret that keeps the certificate: what is in it, and how it is written.
//!
//! `ca`, `cert` and `key` are the original's keys, and are always those of one pair: it can go on with them at any
//! time. `ca-previous` has the CAs of certificates that other replicas may still show.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use slipway_kernel::identity::ObjectRef;

use super::error::Problem;
use super::issue::Issued;
use super::pair::{Pair, certificates};
use super::validity;

const CA: &str = "ca";
const CERTIFICATE: &str = "cert";
const KEY: &str = "key";
const PREVIOUS: &str = "ca-previous";

/// More former CAs are not kept.
const MAX_PREVIOUS: usize = 4;

/// The pair in a Secret.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) pair: Pair,
    /// What webhook configurations are to trust.
    pub(super) bundle: Vec<u8>,
    /// Some of the former CAs have ended.
    pub(super) stale: bool,
}

/// What is in a Secret.
pub(super) enum Content {
    /// Nothing.
    Empty,
    /// Something else.
    Lacks(&'static str),
    /// The three keys.
    Texts(Texts),
}

/// What the keys have, decoded.
pub(super) struct Texts {
    ca: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
    previous: Vec<u8>,
}

fn entry(secret: &Value, key: &str) -> Option<Vec<u8>> {
    let text = secret.get("data")?.get(key)?.as_str()?;
    STANDARD.decode(text).ok()
}

impl Content {
    pub(super) fn of(secret: &Value) -> Self {
        let entries = secret.get("data").and_then(Value::as_object);
        if entries.is_none_or(serde_json::Map::is_empty) {
            return Self::Empty;
        }
        let Some(ca) = entry(secret, CA) else {
            return Self::Lacks(CA);
        };
        let Some(certificate) = entry(secret, CERTIFICATE) else {
            return Self::Lacks(CERTIFICATE);
        };
        let Some(key) = entry(secret, KEY) else {
            return Self::Lacks(KEY);
        };
        let previous = entry(secret, PREVIOUS).unwrap_or_default();
        Self::Texts(Texts {
            ca,
            certificate,
            key,
            previous,
        })
    }
}

/// The certificates of a text that can be understood.
fn understood(pem: &[u8]) -> impl Iterator<Item = CertificateDer<'static>> + '_ {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok)
}

fn has_ended(certificate: &CertificateDer<'_>, now: Timestamp) -> bool {
    validity::of(certificate).is_none_or(|(_, end)| end <= now)
}

/// The certificates of several texts that have not ended, each once, as one text.
fn merged(texts: &[&[u8]], now: Timestamp) -> String {
    let mut all: Vec<CertificateDer<'static>> = Vec::new();
    for certificate in texts.iter().flat_map(|text| understood(text)) {
        if !has_ended(&certificate, now) && !all.contains(&certificate) {
            all.push(certificate);
        }
    }
    all.iter().take(MAX_PREVIOUS).map(|one| pem(one)).collect()
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, further) = rest.split_at_checked(64).unwrap_or((rest, ""));
        out.push_str(line);
        out.push('\n');
        rest = further;
    }
    out.push_str("-----END CERTIFICATE-----\n");
    out
}

impl Texts {
    /// What webhook configurations are to trust: with no former CA exactly what the original would inject.
    fn bundle(&self) -> Vec<u8> {
        let mut bundle = self.ca.clone();
        if !self.previous.is_empty() {
            if !bundle.ends_with(b"\n") {
                bundle.push(b'\n');
            }
            bundle.extend_from_slice(&self.previous);
        }
        bundle
    }

    /// The pair, if it can be used for these names.
    pub(super) fn read(&self, names: &[String], now: Timestamp) -> Result<Kept, Problem> {
        let mut pair = Pair::read(&self.certificate, &self.key)?;
        let authorities = certificates(&self.ca)?;
        pair.check(&authorities, names, now)?;
        Ok(Kept {
            pair,
            bundle: self.bundle(),
            stale: understood(&self.previous).any(|one| has_ended(&one, now)),
        })
    }

    /// All CAs that somebody may still rely on.
    pub(super) fn authorities(&self) -> Vec<u8> {
        self.bundle()
    }
}

/// The Secret with another pair; what else is in it stays. `trusted` are the CAs so far.
pub(super) fn renewed(
    secret: Option<Value>,
    object: &ObjectRef,
    issued: &Issued,
    trusted: &[&[u8]],
    now: Timestamp,
) -> Value {
    let mut secret = secret.unwrap_or_else(|| {
        json!({
            "apiVersion": object.kind.api_version(),
            "kind": object.kind.kind,
            "metadata": {"name": object.name, "namespace": object.namespace},
            "type": "Opaque",
        })
    });
    let previous = merged(trusted, now);
    set(&mut secret, CA, issued.ca.as_bytes());
    set(&mut secret, CERTIFICATE, issued.certificate.as_bytes());
    set(&mut secret, KEY, issued.key.as_bytes());
    set(&mut secret, PREVIOUS, previous.as_bytes());
    secret
}

/// The Secret without former CAs that have ended.
pub(super) fn pruned(mut secret: Value, now: Timestamp) -> Value {
    let previous = entry(&secret, PREVIOUS).unwrap_or_default();
    let previous = merged(&[&previous], now);
    set(&mut secret, PREVIOUS, previous.as_bytes());
    secret
}

/// Sets an entry; an empty one is taken away.
fn set(secret: &mut Value, key: &str, value: &[u8]) {
    let Some(secret) = secret.as_object_mut() else {
        return;
    };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    if data.is_null() {
        *data = json!({});
    }
    let Some(data) = data.as_object_mut() else {
        return;
    };
    if value.is_empty() {
        data.remove(key);
    } else {
        data.insert(key.to_owned(), Value::String(STANDARD.encode(value)));
    }
}
