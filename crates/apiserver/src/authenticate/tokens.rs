//! Tokens: a fixed table, and service-account tokens that the server signs and verifies itself.
//!
//! A service-account token has the form of a JWT with the claims of the real one, signed with HMAC-SHA256 (`HS256`)
//! by a key that never leaves the server. Nobody else can verify it, which is all a test cluster needs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{AUTHENTICATED, User};
use crate::value;

/// The issuer and the audience of the server itself.
pub(super) const AUDIENCE: &str = "https://kubernetes.default.svc";

const HEADER: &str = r#"{"alg":"HS256","kid":"slipway"}"#;
const BLOCK: usize = 64;

/// Looks up whether the objects that a token names still exist.
pub trait Records: Send + Sync {
    /// The uid of an object of `kind` (`ServiceAccount`, `Pod`, `Secret`, `Node`); none if it is gone.
    fn uid(&self, kind: &str, namespace: &str, name: &str) -> Option<String>;
}

/// What a service-account token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub name: String,
    /// The account's uid.
    pub uid: String,
    /// Kind, name and uid of the object that the token is bound to; at most one, besides the pod's node.
    pub bound: Vec<(String, String, String)>,
    /// For whom.
    pub audiences: Vec<String>,
    /// From when, in seconds.
    pub issued: i64,
    /// Until when, in seconds.
    pub expires: i64,
    /// The `jti`.
    pub id: String,
}

/// A token that was found good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Whose it is.
    pub user: User,
    /// For which of the wanted audiences it is good.
    pub audiences: Vec<String>,
}

/// All tokens that a server knows.
#[derive(Clone)]
pub struct Tokens {
    fixed: BTreeMap<String, User>,
    key: [u8; 16],
    records: Option<Arc<dyn Records>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens and the key stay out of logs.
        f.debug_struct("Tokens")
            .field("fixed", &self.fixed.len())
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// No tokens yet; service-account tokens are signed with `key`.
    pub fn new(key: u128) -> Self {
        Self {
            fixed: BTreeMap::new(),
            key: key.to_be_bytes(),
            records: None,
        }
    }

    /// Service-account tokens are good only as long as `records` knows what they name.
    #[must_use]
    pub fn with_records(mut self, records: Arc<dyn Records>) -> Self {
        self.records = Some(records);
        self
    }

    /// Adds a fixed token.
    pub fn add(&mut self, token: &str, user: User) {
        self.fixed.insert(token.to_owned(), user);
    }

    /// Signs a service-account token.
    pub fn mint(&self, claims: &Claims) -> String {
        let mut kubernetes = json!({
            "namespace": claims.namespace,
            "serviceaccount": {"name": claims.name, "uid": claims.uid},
        });
        for (kind, name, uid) in &claims.bound {
            let field = kind.to_ascii_lowercase();
            value::put(&mut kubernetes, &field, json!({"name": name, "uid": uid}));
        }
        let body = json!({
            "aud": claims.audiences,
            "exp": claims.expires,
            "iat": claims.issued,
            "iss": AUDIENCE,
            "jti": claims.id,
            "kubernetes.io": kubernetes,
            "nbf": claims.issued,
            "sub": format!("system:serviceaccount:{}:{}", claims.namespace, claims.name),
        });
        let text = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(HEADER),
            URL_SAFE_NO_PAD.encode(body.to_string())
        );
        let signature = URL_SAFE_NO_PAD.encode(hmac(&self.key, text.as_bytes()));
        format!("{text}.{signature}")
    }

    /// Whose token this is, or the text with which a `TokenReview` refuses it. Empty `audiences` means the server's.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> Result<Verified, String> {
        let own = [AUDIENCE.to_owned()];
        let wanted = if audiences.is_empty() {
            &own
        } else {
            audiences
        };
        let mut verified = if let Some(user) = self.fixed.get(token) {
            // A fixed token knows no audience: it is good for the server's own only.
            let audiences = both(wanted, &own);
            if audiences.is_empty() {
                return Err("invalid bearer token".to_owned());
            }
            Verified {
                user: user.clone(),
                audiences,
            }
        } else {
            self.verify_signed(token, wanted, now)?
        };
        verified.user.join(AUTHENTICATED);
        Ok(verified)
    }

    fn verify_signed(
        &self,
        token: &str,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<Verified, String> {
        let claims = match self.decode(token) {
            Ok(claims) => claims,
            Err(None) => return Err("invalid bearer token".to_owned()),
            Err(Some(why)) => return Err(format!("[invalid bearer token, {why}]")),
        };
        self.check(&claims, wanted, now)
            .map_err(|why| format!("[invalid bearer token, {why}]"))
            .map(|audiences| Verified {
                user: claims.user(),
                audiences,
            })
    }

    /// What a token says, if this server signed it. The error is empty if it does not look like one of ours at all.
    fn decode(&self, token: &str) -> Result<Claims, Option<String>> {
        let (text, signature) = token.rsplit_once('.').ok_or(None)?;
        let (_, body) = text.split_once('.').ok_or(None)?;
        let body = URL_SAFE_NO_PAD.decode(body).map_err(|_| None)?;
        let body: Value = serde_json::from_slice(&body).map_err(|_| None)?;
        if value::text(&body, "iss") != AUDIENCE {
            return Err(None);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        if signature != hmac(&self.key, text.as_bytes()) {
            return Err(Some(
                "go-jose/go-jose: error in cryptographic primitive".to_owned(),
            ));
        }
        Ok(Claims::read(&body))
    }

    fn check(
        &self,
        claims: &Claims,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<Vec<String>, String> {
        let audiences = both(wanted, &claims.audiences);
        if audiences.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted_list(&claims.audiences),
                quoted_list(wanted)
            ));
        }
        if now.as_second() > claims.expires {
            return Err("service account token has expired".to_owned());
        }
        if now.as_second() < claims.issued {
            return Err("service account token is not valid yet".to_owned());
        }
        if let Some(records) = &self.records {
            claims.still_good(records.as_ref())?;
        }
        Ok(audiences)
    }
}

impl Claims {
    fn read(body: &Value) -> Self {
        let kubernetes = body.get("kubernetes.io").unwrap_or(&Value::Null);
        let text = |path: &str| value::text(kubernetes, path).to_owned();
        let bound = [("Pod", "pod"), ("Secret", "secret"), ("Node", "node")]
            .iter()
            .filter(|(_, field)| value::has(kubernetes, field))
            .map(|(kind, field)| {
                let name = text(&format!("{field}.name"));
                let uid = text(&format!("{field}.uid"));
                ((*kind).to_owned(), name, uid)
            })
            .collect();
        Self {
            namespace: text("namespace"),
            name: text("serviceaccount.name"),
            uid: text("serviceaccount.uid"),
            bound,
            audiences: value::items(body, "aud")
                .iter()
                .filter_map(|a| a.as_str().map(str::to_owned))
                .collect(),
            issued: value::integer(body, "iat").unwrap_or(i64::MAX),
            expires: value::integer(body, "exp").unwrap_or_default(),
            id: value::text(body, "jti").to_owned(),
        }
    }

    fn user(&self) -> User {
        let mut user = User::service_account(&self.namespace, &self.name, &self.uid);
        let mut put = |key: &str, text: String| {
            let key = format!("authentication.kubernetes.io/{key}");
            user.extra.insert(key, vec![text]);
        };
        put("credential-id", format!("JTI={}", self.id));
        for (kind, name, uid) in &self.bound {
            if kind == "Secret" {
                continue;
            }
            let field = kind.to_ascii_lowercase();
            put(&format!("{field}-name"), name.clone());
            if !uid.is_empty() {
                put(&format!("{field}-uid"), uid.clone());
            }
        }
        user
    }

    fn still_good(&self, records: &dyn Records) -> Result<(), String> {
        match records.uid("ServiceAccount", &self.namespace, &self.name) {
            None => {
                return Err(format!("serviceaccounts \"{}\" not found", self.name));
            }
            Some(uid) if uid != self.uid => {
                return Err(format!(
                    "service account UID ({uid}) does not match claim ({})",
                    self.uid
                ));
            }
            Some(_) => {}
        }
        // The node that a pod-bound token names is information, not a bond.
        let bonds = self.bound.iter().take(1);
        for (kind, name, uid) in bonds {
            let namespace = if kind == "Node" { "" } else { &self.namespace };
            if records.uid(kind, namespace, name).as_ref() != Some(uid) {
                return Err("service account token has been invalidated".to_owned());
            }
        }
        Ok(())
    }
}

fn both(wanted: &[String], offered: &[String]) -> Vec<String> {
    wanted
        .iter()
        .filter(|w| offered.contains(w))
        .cloned()
        .collect()
}

/// Go's `%q` of a list of strings.
pub(crate) fn quoted_list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|i| crate::field::quote(i)).collect();
    format!("[{}]", items.join(" "))
}

/// HMAC-SHA256 (RFC 2104) with a key shorter than a block.
fn hmac(key: &[u8; 16], message: &[u8]) -> Vec<u8> {
    let pad = |byte: u8| -> Vec<u8> {
        let mut block: Vec<u8> = key.iter().map(|k| k ^ byte).collect();
        block.resize(BLOCK, byte);
        block
    };
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn claims() -> Claims {
        Claims {
            namespace: "default".into(),
            name: "robot".into(),
            uid: "u1".into(),
            bound: vec![("Pod".into(), "p".into(), "pu".into())],
            audiences: vec![AUDIENCE.into()],
            issued: 1000,
            expires: 4600,
            id: "j1".into(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_minted_token_comes_back_as_its_account() {
        let tokens = Tokens::new(7);
        let token = tokens.mint(&claims());
        let verified = tokens.verify(&token, &[], at(1000)).unwrap();
        assert_eq!(verified.user.name, "system:serviceaccount:default:robot");
        assert_eq!(verified.user.uid, "u1");
        assert_eq!(
            verified.user.groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:default",
                "system:authenticated"
            ]
        );
        let extra: Vec<_> = verified.user.extra.into_iter().collect();
        assert_eq!(extra.len(), 3);
        assert_eq!(extra.first().unwrap().1, ["JTI=j1"]);
        assert_eq!(verified.audiences, [AUDIENCE]);
    }

    #[test]
    fn expiry_audience_and_signature_are_checked() {
        let tokens = Tokens::new(7);
        let token = tokens.mint(&claims());
        let why = |token: &str, audiences: &[String], second| {
            tokens.verify(token, audiences, at(second)).unwrap_err()
        };
        assert_eq!(
            why(&token, &[], 4601),
            "[invalid bearer token, service account token has expired]"
        );
        assert_eq!(
            why(&token, &["x".into()], 1001),
            "[invalid bearer token, token audiences [\"https://kubernetes.default.svc\"] is invalid for the target audiences [\"x\"]]"
        );
        assert!(why(&format!("{token}x"), &[], 1001).contains("cryptographic primitive"));
        assert_eq!(why("bad", &[], 1001), "invalid bearer token");
        assert!(Tokens::new(8).verify(&token, &[], at(1001)).is_err());
    }

    #[derive(Debug)]
    struct Gone;

    impl Records for Gone {
        fn uid(&self, kind: &str, _namespace: &str, _name: &str) -> Option<String> {
            (kind == "ServiceAccount").then(|| "u1".to_owned())
        }
    }

    #[test]
    fn a_token_ends_with_the_pod_it_is_bound_to() {
        let tokens = Tokens::new(7).with_records(Arc::new(Gone));
        let token = tokens.mint(&claims());
        let why = tokens.verify(&token, &[], at(1000)).unwrap_err();
        assert!(why.ends_with("service account token has been invalidated]"));
        let unbound = Claims {
            bound: Vec::new(),
            ..claims()
        };
        assert!(tokens.verify(&tokens.mint(&unbound), &[], at(1000)).is_ok());
    }

    #[test]
    fn hmac_agrees_with_a_known_answer() {
        // Computed with `openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…0f` over "hello".
        let key: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        let code = hmac(&key, b"hello");
        let hex = code
            .iter()
            .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_eq!(hex, KNOWN);
    }

    const KNOWN: &str = "9163eb0d568a28e3994c969c9d5dfef181ccbbb0a8742b30464d4d200cbcb4f4";
}
