//! `TokenReview` and `SelfSubjectReview`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Tokens, User};
use crate::status::{Outcome, Status};
use crate::value;

/// Answers a `TokenReview`. `body` has been decoded and defaulted.
pub fn token_review(mut body: Value, tokens: &Tokens, now: Timestamp) -> Outcome<Value> {
    let token = value::text(&body, "spec.token").to_owned();
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(Box::new(Status::bad_request(message)));
    }
    let audiences: Vec<String> = value::items(&body, "spec.audiences")
        .iter()
        .filter_map(|a| a.as_str().map(str::to_owned))
        .collect();
    let status = match tokens.verify(&token, &audiences, now) {
        Ok(verified) => json!({
            "authenticated": true,
            "user": verified.user.info(),
            "audiences": verified.audiences,
        }),
        Err(why) => json!({"user": {}, "error": why}),
    };
    value::put(&mut body, "status", status);
    Ok(body)
}

/// Answers a `SelfSubjectReview` in the API version of `body`.
pub fn self_subject_review(body: &Value, user: &User, now: Timestamp) -> Value {
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": value::text(body, "apiVersion"),
        "metadata": {"creationTimestamp": seconds(now)},
        "status": {"userInfo": user.info()},
    })
}

/// A timestamp as `metav1.Time` shows it.
pub(super) fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn tokens() -> Tokens {
        let mut tokens = Tokens::new(1);
        tokens.add("alice-token", User::new("alice", &["dev"]));
        tokens
    }

    #[test]
    fn a_good_token() {
        let body = json!({"spec": {"token": "alice-token"}});
        let review = token_review(body, &tokens(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            review["status"],
            json!({
                "authenticated": true,
                "user": {"username": "alice", "groups": ["dev", "system:authenticated"]},
                "audiences": ["https://kubernetes.default.svc"],
            })
        );
    }

    #[test]
    fn a_bad_token_is_answered_not_refused() {
        let body = json!({"spec": {"token": "x"}});
        let review = token_review(body, &tokens(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            review["status"],
            json!({"user": {}, "error": "invalid bearer token"})
        );
    }

    #[test]
    fn no_token_is_400() {
        let refusal = token_review(json!({"spec": {}}), &tokens(), Timestamp::UNIX_EPOCH);
        assert_eq!(refusal.unwrap_err().code, 400);
    }

    #[test]
    fn who_am_i() {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "metadata": {"name": "x"}});
        let review = self_subject_review(&body, &User::anonymous(), Timestamp::UNIX_EPOCH);
        assert_eq!(
            review["metadata"],
            json!({"creationTimestamp": "1970-01-01T00:00:00Z"})
        );
        assert_eq!(review["status"]["userInfo"]["username"], "system:anonymous");
    }
}
