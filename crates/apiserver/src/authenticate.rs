//! Who is asking: bearer tokens, service-account tokens and impersonation.
//!
//! Promises the users, groups and refusals of kube-apiserver with a token file, service accounts and anonymous
//! access. Client certificates, OIDC and front proxies are not here.

mod impersonate;
mod request;
mod review;
mod tokens;

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::status::{Outcome, Status};

pub use impersonate::impersonate;
pub use request::{Bound, token_request};
pub use review::{self_subject_review, token_review};
pub(crate) use tokens::quoted_list;
pub use tokens::{Claims, Records, Tokens, Verified};

/// The name of a request without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of requests without credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of everyone else.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// Someone who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The user name.
    pub name: String,
    /// The uid; empty for most.
    pub uid: String,
    /// Groups, in the order in which they were given.
    pub groups: Vec<String>,
    /// Whatever else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with nothing but a name and groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|&g| g.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, &[UNAUTHENTICATED])
    }

    /// A service account as RBAC sees it.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: service_account_groups(namespace),
            extra: BTreeMap::new(),
        }
    }

    /// Whether the user is in `group`.
    pub fn belongs_to(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// As `userInfo` of reviews: empty fields are left out.
    pub fn info(&self) -> Value {
        let mut info = Map::new();
        if !self.name.is_empty() {
            info.insert("username".to_owned(), json!(self.name));
        }
        if !self.uid.is_empty() {
            info.insert("uid".to_owned(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }

    fn join(&mut self, group: &str) {
        if !self.belongs_to(group) {
            self.groups.push(group.to_owned());
        }
    }
}

/// The groups of all service accounts of `namespace`.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

/// Namespace and name out of `system:serviceaccount:NAMESPACE:NAME`.
pub fn service_account(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    let clean = |part: &str| !part.is_empty() && !part.contains(':');
    (clean(namespace) && clean(name)).then_some((namespace, name))
}

/// Who sent these headers. Impersonation comes after, with [`impersonate`].
pub fn authenticate(headers: &HeaderMap, tokens: &Tokens, now: Timestamp) -> Outcome<User> {
    let Some(token) = bearer(headers) else {
        return Ok(User::anonymous());
    };
    match tokens.verify(token, &[], now) {
        Ok(verified) => Ok(verified.user),
        Err(_) => Err(Box::new(Status::unauthorized())),
    }
}

/// The bearer token, if there is one; other schemes and empty tokens count as none.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut words = headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .trim()
        .splitn(3, ' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        headers
    }

    fn tokens() -> Tokens {
        let mut tokens = Tokens::new(1);
        tokens.add("alice-token", User::new("alice", &["dev"]));
        tokens
    }

    #[test]
    fn no_token_is_anonymous() {
        let now = Timestamp::UNIX_EPOCH;
        let user = authenticate(&HeaderMap::new(), &tokens(), now).unwrap();
        assert_eq!(user, User::anonymous());
        for other in ["Basic x", "Bearer", "Bearer  two-spaces"] {
            let user = authenticate(&headers(other), &tokens(), now).unwrap();
            assert_eq!(user.name, ANONYMOUS, "{other}");
        }
    }

    #[test]
    fn known_token_is_its_user() {
        let now = Timestamp::UNIX_EPOCH;
        let user = authenticate(&headers("bearer alice-token"), &tokens(), now).unwrap();
        assert_eq!(user.groups, ["dev", AUTHENTICATED]);
    }

    #[test]
    fn unknown_token_is_401() {
        let refusal = authenticate(&headers("Bearer nope"), &tokens(), Timestamp::UNIX_EPOCH);
        let refusal = refusal.unwrap_err();
        assert_eq!((refusal.code, &*refusal.message), (401, "Unauthorized"));
        assert!(refusal.details.is_none());
    }

    #[test]
    fn service_account_names() {
        assert_eq!(
            service_account("system:serviceaccount:x:y"),
            Some(("x", "y"))
        );
        assert_eq!(service_account("system:serviceaccount:x:y:z"), None);
        assert_eq!(service_account("system:serviceaccount:x:"), None);
    }
}
