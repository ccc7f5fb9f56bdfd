//! Signatures of calls: whoever is asked, and has the key, can tell who says something, to whom, and that it was not changed on the way.
//!
//! ```text
//! Slipway-Signature: v2=HEX    HMAC with SHA-256, by the key, of METHOD LF URL LF IDEMPOTENCY-KEY LF BODY
//! ```
//!
//! Method and URL are those of this very request, so that what was said to one is nothing that can be said to another who has the same
//! key, nor as something else. The idempotency key is another one for everything that is said, and has a time in it, so that whoever
//! remembers those that came hears nothing twice. The same question has the same signature however often it is sent. None of the first
//! three can have a line feed in it. (`v1` bound neither method nor URL, and is sent no more.)

use std::fmt::Write;

use http::HeaderName;
use ring::hmac::{Context, HMAC_SHA256, Key};
use slipway_kernel::Sensitive;

/// The header that a signature is in.
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("slipway-signature");
/// Shorter keys can be found by trying.
const SHORTEST: usize = 16;

/// Who signs what is said under one idempotency key.
pub(super) struct Signer {
    key: Key,
    id: String,
}

impl Signer {
    /// One with this key; or why nothing is signed with it.
    pub(super) fn new(key: &Sensitive<String>, id: &str) -> Result<Self, String> {
        let key = key.expose().as_bytes();
        if key.len() < SHORTEST {
            return Err(format!(
                "a key of less than {SHORTEST} bytes can be found by trying"
            ));
        }
        Ok(Self {
            key: Key::new(HMAC_SHA256, key),
            id: id.to_owned(),
        })
    }

    /// The signature of a request.
    pub(super) fn sign(&self, method: &str, url: &str, body: &str) -> String {
        let mut context = Context::with_key(&self.key);
        for part in [method, "\n", url, "\n", self.id.as_str(), "\n", body] {
            context.update(part.as_bytes());
        }
        let mut signature = "v2=".to_owned();
        for byte in context.sign().as_ref() {
            // Writing into a text cannot fail.
            let _ = write!(signature, "{byte:02x}");
        }
        signature
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;

    use slipway_kernel::Sensitive;

    use super::Signer;

    fn signer(id: &str) -> Signer {
        let key = Sensitive::new("0123456789abcdef".to_owned());
        Signer::new(&key, id).unwrap()
    }

    #[test]
    fn a_signature_is_what_others_compute() {
        // printf 'POST\nhttp://gate.test/check?a=b\ncanary/u1/ask/1/2026-01-01T00:00:00Z\n{"a":1}' |
        //   openssl dgst -sha256 -hmac 0123456789abcdef
        let signer = signer("canary/u1/ask/1/2026-01-01T00:00:00Z");
        assert_eq!(
            signer.sign("POST", "http://gate.test/check?a=b", r#"{"a":1}"#),
            "v2=ddcf4ba89fbee6651d172e83b3c20a9f907a57c6a0d32a9ca173aba1de570b40"
        );
    }

    #[test]
    fn a_signature_is_of_one_method_one_url_one_time_and_one_body() {
        let all = [
            signer("id/1").sign("POST", "http://a/b", "c"),
            signer("id/1").sign("PUT", "http://a/b", "c"),
            signer("id/1").sign("POST", "http://b/b", "c"),
            signer("id/1").sign("POST", "http://a/b?x", "c"),
            signer("id/2").sign("POST", "http://a/b", "c"),
            signer("id/1").sign("POST", "http://a/b", "d"),
        ];
        let different: BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
    }

    #[test]
    fn a_key_that_can_be_guessed_signs_nothing() {
        let key = Sensitive::new("0123456789abcde".to_owned());
        let why = Signer::new(&key, "id").err().unwrap();
        assert!(why.contains("16 bytes") && !why.contains("0123"), "{why}");
    }
}
