//! What carries a request to whom it is for, and brings the answer.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use slipway_kernel::question::Failure;

/// The body of an answer, as it comes. It may have no end: whoever reads it stops when it has enough.
pub type Body = UnsyncBoxBody<Bytes, Failure>;

/// Carries requests: over sockets, or whatever a simulation puts in their place.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request to the whole URL that it has. Whose word is taken for who the other side is comes in PEM; none means
    /// the system's authorities. Given up by being dropped.
    fn send(
        &self,
        request: Request<Bytes>,
        trust: Option<&String>,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>>;
}
