//! Asks what plans want to know from outside of the API.

use futures::future::BoxFuture;
use slipway_kernel::fact::{Answer, Question};

/// Puts a question to whoever it is for. A failure is an answer; the caller enforces [`Question::timeout`].
pub trait Gather: Send + Sync + 'static {
    /// Asks.
    fn gather(&self, question: Question) -> BoxFuture<'static, Answer>;
}

/// Answers every question with a refusal: what an operator has unless told otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Gather for Nobody {
    fn gather(&self, _question: Question) -> BoxFuture<'static, Answer> {
        Box::pin(async { Answer::Refused("no gatherer".to_owned()) })
    }
}
