//! Questions about rights and tokens, asked as objects that are never stored.

use crate::authenticate::{self, User};
use crate::authorize;
use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::status::{Outcome, Status};

/// Answers POST of a review.
pub(super) fn review(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = WriteOptions::parse(&ex.query, "CreateOptions")?;
    let (mut object, warnings) = ex.decode_object("CreateOptions")?;
    super::create::own(
        ex,
        &mut object,
        &options,
        &ex.version()?.schema,
        &ex.api_version(),
    );
    let policy = ex.cluster.policy();
    let user: &User = &ex.user;
    let answer = match ex.kind() {
        "SelfSubjectAccessReview" => authorize::self_subject_access_review(object, user, &policy)?,
        "SubjectAccessReview" => authorize::subject_access_review(object, &policy)?,
        "LocalSubjectAccessReview" => {
            authorize::local_subject_access_review(object, &ex.target.namespace, &policy)?
        }
        "SelfSubjectRulesReview" => authorize::self_subject_rules_review(&object, user, &policy)?,
        "TokenReview" => authenticate::token_review(object, &ex.cluster.tokens, ex.now)?,
        "SelfSubjectReview" => authenticate::self_subject_review(&object, user, ex.now),
        _ => return Err(Box::new(Status::method_not_allowed_here())),
    };
    Ok(Reply::value(201, answer).with_warnings(warnings))
}
