//! Questions about rights and tokens, asked as objects that are never stored.

use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::status::Outcome;

/// Answers POST of a review.
pub(super) fn review(ex: &Exchange<'_>) -> Outcome<Reply> {
    WriteOptions::parse(&ex.query, "CreateOptions")?;
    let (object, warnings) = ex.decode_object()?;
    let answer = crate::authorize::review(
        ex.kind(),
        object,
        &ex.user,
        &ex.target.namespace,
        &ex.cluster.policy(),
        &ex.cluster.tokens,
        ex.now,
    )?;
    Ok(Reply::value(201, answer).with_warnings(warnings))
}
