//! Tokens of service accounts.

use crate::decode;
use crate::exchange::{Exchange, Reply};
use crate::status::Outcome;

/// Answers POST on `token`.
pub(super) fn token(ex: &Exchange<'_>) -> Outcome<Reply> {
    let account = super::get::find(&ex.for_object(&ex.target.namespace, &ex.target.name))?;
    let body = decode::parse_body(&ex.body, ex.media()?, "TokenRequest")?.value;
    let answer = ex.cluster.tokens.request(
        &body,
        &account.header.namespace,
        &account.header.name,
        &account.header.uid,
        ex.now,
    )?;
    Ok(Reply::value(201, answer))
}
