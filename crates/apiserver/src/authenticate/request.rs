//! The `token` subresource of service accounts.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::review::seconds;
use super::tokens::{AUDIENCE, Claims, Tokens};
use crate::field::{self, FieldError};
use crate::status::{Outcome, Status};
use crate::value;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const SHORTEST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 3600;

/// The object that a token request wants to be bound to, as the caller found it.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// The pod, secret or node.
    pub object: &'a Value,
    /// The uid of the pod's node, where there is one.
    pub node_uid: Option<&'a str>,
}

/// Answers a `TokenRequest` for `account`. `find` looks up the object that the token is to be bound to, by kind
/// (`Pod`, `Secret`, `Node`) and name; its refusal is the answer. `id` becomes the token's `jti`.
pub fn token_request<'a>(
    mut body: Value,
    account: &Value,
    find: impl FnOnce(&str, &str) -> Outcome<Bound<'a>>,
    tokens: &Tokens,
    id: &str,
    now: Timestamp,
) -> Outcome<Value> {
    let name = value::text(account, "metadata.name");
    let namespace = value::text(account, "metadata.namespace");
    let uid = value::text(account, "metadata.uid");
    check_metadata(&body, name, namespace, uid)?;
    value::put(&mut body, "metadata.name", name);
    value::put(&mut body, "metadata.namespace", namespace);
    value::put(&mut body, "metadata.uid", uid);
    value::put(&mut body, "metadata.creationTimestamp", seconds(now));
    if value::items(&body, "spec.audiences").is_empty() {
        value::put(&mut body, "spec.audiences", json!([AUDIENCE]));
    }
    value::put_default(&mut body, "spec.expirationSeconds", DEFAULT_SECONDS);
    // The field has no omitempty: it shows even when there is nothing.
    if !value::has(&body, "spec.boundObjectRef") {
        value::put(&mut body, "spec.boundObjectRef", Value::Null);
    }
    let lifetime = lifetime(&body)?;
    let bound = bonds(&body, name, find)?;

    let issued = now.as_second();
    let claims = Claims {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        bound,
        audiences: value::items(&body, "spec.audiences")
            .iter()
            .filter_map(|a| a.as_str().map(str::to_owned))
            .collect(),
        issued,
        expires: issued.saturating_add(lifetime),
        id: id.to_owned(),
    };
    let expires = now
        .checked_add(SignedDuration::from_secs(lifetime))
        .unwrap_or(Timestamp::MAX);
    let status = json!({"token": tokens.mint(&claims), "expirationTimestamp": seconds(expires)});
    value::put(&mut body, "status", status);
    Ok(body)
}

fn check_metadata(body: &Value, name: &str, namespace: &str, uid: &str) -> Outcome<()> {
    for (field, expected) in [("name", name), ("namespace", namespace)] {
        let path = format!("metadata.{field}");
        let given = value::text(body, &path);
        if !given.is_empty() && given != expected {
            let why = format!("must match the service account {field} if specified");
            let errors = [FieldError::invalid_str(path, given, why)];
            return Err(Box::new(field::invalid(GROUP, KIND, name, &errors)));
        }
    }
    let given = value::text(body, "metadata.uid");
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service account ({uid})"
        );
        return Err(Box::new(Status::conflict(GROUP, KIND, name, &why)));
    }
    Ok(())
}

fn lifetime(body: &Value) -> Outcome<i64> {
    let path = "spec.expirationSeconds";
    let asked = value::integer(body, path).unwrap_or(DEFAULT_SECONDS);
    let why = if asked < SHORTEST_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if asked > LONGEST_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(asked);
    };
    let errors = [FieldError::invalid(path, &json!(asked), why)];
    Err(Box::new(field::invalid(GROUP, KIND, "", &errors)))
}

fn bonds<'a>(
    body: &Value,
    account: &str,
    find: impl FnOnce(&str, &str) -> Outcome<Bound<'a>>,
) -> Outcome<Vec<(String, String, String)>> {
    if !value::has(body, "spec.boundObjectRef") {
        return Ok(Vec::new());
    }
    let text = |field: &str| value::text(body, &format!("spec.boundObjectRef.{field}"));
    let (kind, name) = (text("kind"), text("name"));
    let (group, version) = text("apiVersion")
        .rsplit_once('/')
        .unwrap_or(("", text("apiVersion")));
    if !group.is_empty() || !matches!(kind, "Pod" | "Secret" | "Node") {
        return Err(Box::new(Status::bad_request(format!(
            "cannot bind token to object of type {group}/{version}, Kind={kind}"
        ))));
    }
    let found = find(kind, name)?;
    let uid = value::text(found.object, "metadata.uid");
    if kind == "Pod" && value::text(found.object, "spec.serviceAccountName") != account {
        return Err(Box::new(Status::bad_request(format!(
            "cannot bind token for serviceaccount \"{account}\" to pod running with different serviceaccount name."
        ))));
    }
    let given = text("uid");
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the bound object reference ({given}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Box::new(Status::conflict(group, kind, name, &why)));
    }
    let mut bonds = vec![(kind.to_owned(), name.to_owned(), uid.to_owned())];
    let node = value::text(found.object, "spec.nodeName");
    if kind == "Pod" && !node.is_empty() {
        let uid = found.node_uid.unwrap_or_default();
        bonds.push(("Node".to_owned(), node.to_owned(), uid.to_owned()));
    }
    Ok(bonds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn account() -> Value {
        json!({"metadata": {"name": "robot", "namespace": "x", "uid": "u1"}})
    }

    fn nothing<'a>(kind: &str, name: &str) -> Outcome<Bound<'a>> {
        Err(Box::new(Status::not_found(
            "",
            &kind.to_ascii_lowercase(),
            name,
        )))
    }

    fn ask(body: Value) -> Outcome<Value> {
        let now = Timestamp::from_second(1000).unwrap();
        token_request(body, &account(), nothing, &Tokens::new(3), "j", now)
    }

    #[test]
    fn the_answer_carries_a_token_that_works() {
        let answer = ask(json!({"spec": {}})).unwrap();
        assert_eq!(answer["metadata"]["uid"], "u1");
        assert_eq!(
            answer["spec"],
            json!({"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": null})
        );
        assert_eq!(
            answer["status"]["expirationTimestamp"],
            "1970-01-01T01:16:40Z"
        );
        let token = answer["status"]["token"].as_str().unwrap();
        let now = Timestamp::from_second(1001).unwrap();
        let verified = Tokens::new(3).verify(token, &[], now).unwrap();
        assert_eq!(verified.user.name, "system:serviceaccount:x:robot");
    }

    #[test]
    fn too_short_is_422() {
        let refusal = ask(json!({"spec": {"expirationSeconds": 10}})).unwrap_err();
        assert_eq!(
            refusal.message,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes"
        );
    }

    #[test]
    fn only_pods_secrets_and_nodes_can_be_bound_to() {
        let body = json!({"spec": {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
        let refusal = ask(body).unwrap_err();
        assert_eq!(
            refusal.message,
            "cannot bind token to object of type apps/v1, Kind=Deployment"
        );
        let body =
            json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}});
        assert_eq!(ask(body).unwrap_err().code, 404);
    }
}
