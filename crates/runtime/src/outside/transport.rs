//! What carries a request to whom it is for, and brings the answer.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use slipway_kernel::question::Failure;

/// The body of an answer, as it comes. It may have no end: whoever reads it stops when it has enough.
pub type Body = UnsyncBoxBody<Bytes, Failure>;

/// How a request is to be carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manner {
    /// Whose word is taken for who the other side is, in PEM; none means the system's authorities.
    pub trust: Option<String>,
    /// It is on behalf of somebody in another cluster.
    pub for_others: bool,
    /// How long resolving a name and connecting may take.
    pub connecting: Duration,
}

/// Carries requests: over sockets, or whatever a simulation puts in their place.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request to the whole URL that it has. Given up by being dropped.
    fn send(
        &self,
        request: Request<Bytes>,
        manner: &Manner,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>>;
}
