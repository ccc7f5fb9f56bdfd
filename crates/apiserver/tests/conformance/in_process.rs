//! The embedded server as a target: a `tower::Service`, called without a socket.

use crate::target::{Answer, Call, EventStream, Target, patiently, request, stream, whole};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use std::sync::Arc;
use tower::{Service, ServiceExt};

/// A service that is cloned for each request, and the tokens it knows.
pub(crate) struct InProcess<S> {
    service: S,
    /// User name and bearer token.
    tokens: Vec<(&'static str, &'static str)>,
}

impl<S, B> InProcess<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: std::fmt::Display + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display + Send,
{
    #[expect(dead_code, reason = "the server is wired in by `embedded`")]
    pub(crate) fn new(service: S) -> Self {
        Self {
            service,
            tokens: vec![
                ("admin", "admin-token"),
                ("alice", "alice-token"),
                ("stranger", "unknown-token"),
            ],
        }
    }

    async fn call(&self, call: Call) -> Result<Response<B>, String> {
        let token = self
            .tokens
            .iter()
            .find(|(user, _)| *user == call.user)
            .map(|(_, token)| *token);
        let request = request(&call, "embedded", token)?;
        patiently(&call.path, self.service.clone().oneshot(request)).await
    }
}

impl<S, B> Target for InProcess<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: std::fmt::Display + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display + Send,
{
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move { whole(self.call(call).await?).await })
    }

    fn watch(&self, call: Call) -> BoxFuture<'_, Result<EventStream, String>> {
        Box::pin(async move { Ok(stream(self.call(call).await?)) })
    }
}

/// A fresh embedded cluster, with garbage collection and the end of namespaces, that knows the users `admin`
/// (`admin-token`, group `system:masters`) and `alice` (`alice-token`, uid `alice-uid`, group `dev`).
/// Called once for each behaviour, on a tokio runtime.
pub(crate) fn embedded() -> Result<Arc<dyn Target>, String> {
    Err("the embedded server is not wired into the suite yet (tests/conformance/in_process.rs, `embedded`)".to_owned())
}
