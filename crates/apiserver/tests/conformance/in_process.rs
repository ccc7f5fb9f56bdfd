//! The embedded server as a target: a `tower::Service`, called without a socket.

use crate::target::{Answer, Call, EventStream, Target, patiently, request, stream, whole};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use slipway_apiserver::authenticate::User;
use slipway_apiserver::cluster::Config;
use slipway_apiserver::environment::InProcess as Services;
use slipway_apiserver::server::InProcessService;
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
    S::Error: std::error::Error + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send,
{
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
    S::Error: std::error::Error + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send,
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
pub(crate) fn embedded() -> Arc<dyn Target> {
    let mut alice = User::new("alice", &["dev"]);
    "alice-uid".clone_into(&mut alice.uid);
    let mut admin = User::new("admin", &["system:masters"]);
    "admin".clone_into(&mut admin.uid);
    let cluster = Config::seeded("conformance", 1, Arc::new(Services::default()))
        .with_token("admin-token", admin)
        .with_token("alice-token", alice)
        .build();
    tokio::spawn(slipway_apiserver::collect::run(cluster.clone()));
    Arc::new(InProcess::new(InProcessService::new(cluster, None)))
}
