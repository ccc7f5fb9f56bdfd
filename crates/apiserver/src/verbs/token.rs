//! Tokens of service accounts.

use serde_json::Value;

use super::{get, render};
use crate::authenticate::{Bound, token_request};
use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::resource::bucket;
use crate::schema::table;
use crate::status::{Outcome, Status};
use crate::value;

const API_VERSION: &str = "authentication.k8s.io/v1";

/// Answers POST on `token`.
pub(super) fn token(ex: &Exchange<'_>) -> Outcome<Reply> {
    let exchange = ex.for_object(&ex.target.namespace, &ex.target.name);
    let account = render::decode(&exchange, &*get::find(&exchange)?);
    let options = WriteOptions::parse(&ex.query, "CreateOptions")?;
    let name_of_schema = "io.k8s.api.authentication.v1.TokenRequest";
    let mut body = ex.decode_as(API_VERSION, "TokenRequest", name_of_schema)?;
    value::put_default(&mut body, "spec.expirationSeconds", 3600);
    let schema = table::named(name_of_schema)
        .ok_or_else(|| Box::new(Status::internal("no schema of TokenRequest")))?;
    super::create::own(ex, &mut body, &options, &schema, API_VERSION);
    // The object that the token is to be bound to is looked up before, as the answer borrows it.
    let kind = value::text(&body, "spec.boundObjectRef.kind").to_owned();
    let name = value::text(&body, "spec.boundObjectRef.name").to_owned();
    let bound: Option<Value> = bound_object(ex, &kind, &name);
    let find = |kind: &str, name: &str| match &bound {
        Some(object) => Ok(Bound {
            object,
            node_uid: None,
        }),
        None => Err(Box::new(Status::not_found("", &plural(kind), name))),
    };
    let answer = token_request(
        body,
        &account,
        find,
        &ex.cluster.tokens,
        &ex.cluster.uid(),
        ex.now,
    )?;
    Ok(Reply::value(201, answer))
}

fn plural(kind: &str) -> String {
    format!("{}s", kind.to_ascii_lowercase())
}

fn bound_object(ex: &Exchange<'_>, kind: &str, name: &str) -> Option<Value> {
    let namespace = if kind == "Node" {
        ""
    } else {
        ex.target.namespace.as_str()
    };
    let stored = ex
        .cluster
        .store
        .get(&bucket("", &plural(kind)), namespace, name)?;
    Some(stored.decode_as("v1", kind))
}
