//! Signatures of calls: whoever is asked, and has the key, can tell who says something, and that it was not changed on the way.
//!
//! ```text
//! Slipway-Signature: v1=HEX    HMAC with SHA-256, by the key, of IDEMPOTENCY-KEY "." BODY
//! ```
//!
//! The idempotency key is signed as well: it is another one for everything that is said, and has a time in it, so that whoever
//! remembers those that came hears nothing twice. The same question has the same signature however often it is sent.

use std::fmt::Write;

use http::HeaderName;
use ring::hmac::{Context, HMAC_SHA256, Key};
use slipway_kernel::Sensitive;

/// The header that a signature is in.
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("slipway-signature");
/// Shorter keys can be found by trying.
const SHORTEST: usize = 16;

/// The signature of what is said under this idempotency key; or why there is none.
pub(super) fn of(key: &Sensitive<String>, id: &str, body: &str) -> Result<String, String> {
    let key = key.expose().as_bytes();
    if key.len() < SHORTEST {
        return Err(format!(
            "a key of less than {SHORTEST} bytes can be found by trying"
        ));
    }
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, key));
    for part in [id, ".", body] {
        context.update(part.as_bytes());
    }
    let mut signature = "v1=".to_owned();
    for byte in context.sign().as_ref() {
        // Writing into a text cannot fail.
        let _ = write!(signature, "{byte:02x}");
    }
    Ok(signature)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use slipway_kernel::Sensitive;

    use super::of;

    #[test]
    fn a_signature_is_what_others_compute() {
        let key = Sensitive::new("0123456789abcdef".to_owned());
        // printf 'canary/u1/ask/1/2026-01-01T00:00:00Z.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let signed = of(&key, "canary/u1/ask/1/2026-01-01T00:00:00Z", r#"{"a":1}"#);
        assert_eq!(
            signed.unwrap(),
            "v1=bfc15d4829d998014c769c17a59ae1b50968d03b8c1cc1f988655fea376600a4"
        );
    }

    #[test]
    fn a_key_that_can_be_guessed_signs_nothing() {
        let key = Sensitive::new("0123456789abcde".to_owned());
        let why = of(&key, "id", "body").unwrap_err();
        assert!(why.contains("16 bytes") && !why.contains("0123"), "{why}");
    }
}
