//! A server: one process, many clusters, in-process or over HTTPS.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};

use crate::cluster::{Cluster, Lost, encode};
use crate::exchange::Reply;
use crate::negotiate::Form;
use crate::shell::{self, Body};
use crate::status::Status;

/// The largest body a request may have, as in the real server.
pub const MAX_BODY: usize = 3 * 1024 * 1024;

/// Clusters by name. Requests below `/clusters/NAME` go to that one, all others to the first.
#[derive(Debug, Default, Clone)]
pub struct Server {
    clusters: Arc<RwLock<BTreeMap<String, Arc<Cluster>>>>,
    first: Arc<RwLock<Option<Arc<Cluster>>>>,
}

impl Server {
    /// Adds a cluster; the first one also answers without prefix.
    pub fn add(&self, cluster: Arc<Cluster>) {
        let mut first = self.first.write().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| cluster.clone());
        let mut clusters = self
            .clusters
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        clusters.insert(cluster.name().to_owned(), cluster);
    }

    /// Removes a cluster and ends its watches.
    pub fn remove(&self, name: &str) {
        let removed = self
            .clusters
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
        if let Some(cluster) = removed {
            cluster.shut_down();
        }
    }

    /// The cluster of this name.
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.clusters
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    /// All clusters, by name.
    pub fn clusters(&self) -> Vec<Arc<Cluster>> {
        self.clusters
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Answers one request.
    pub async fn handle(&self, mut request: Request<Bytes>) -> Result<Response<Body>, Lost> {
        let Some(cluster) = self.route(&mut request) else {
            let status = Status::failure(404, "NotFound", "there is no cluster of this name");
            return Ok(encode(Reply::status(&status), Form::default(), false));
        };
        cluster.handle(request).await
    }

    /// The cluster a request is for; its prefix is taken off.
    fn route(&self, request: &mut Request<Bytes>) -> Option<Arc<Cluster>> {
        let path_and_query = request.uri().path_and_query().map_or("/", |p| p.as_str());
        let Some(rest) = path_and_query.strip_prefix("/clusters/") else {
            return self
                .first
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let cluster = self.cluster(name)?;
        let rest = if rest.starts_with('/') {
            rest.to_owned()
        } else {
            format!("/{rest}")
        };
        *request.uri_mut() = rest.parse::<Uri>().ok()?;
        Some(cluster)
    }
}

impl shell::Core for Server {
    fn handle(&self, request: Request<Bytes>) -> BoxFuture<'static, Option<Response<Body>>> {
        let server = self.clone();
        Box::pin(async move { Self::handle(&server, request).await.ok() })
    }
}

/// One cluster as a `tower::Service`, for `kube::Client::new`.
#[derive(Debug, Clone)]
pub struct InProcessService {
    cluster: Arc<Cluster>,
    headers: HeaderMap,
}

impl InProcessService {
    /// A service for `cluster`; requests without credentials get this bearer token.
    pub fn new(cluster: Arc<Cluster>, token: Option<&str>) -> Self {
        let service = Self {
            cluster,
            headers: HeaderMap::new(),
        };
        match token {
            Some(token) => service.with_header(AUTHORIZATION, &format!("Bearer {token}")),
            None => service,
        }
    }

    /// Requests that name no program of their own come from this one (`User-Agent`): faults, traces and field managers
    /// go by it.
    #[must_use]
    pub fn with_agent(self, agent: &str) -> Self {
        self.with_header(USER_AGENT, agent)
    }

    /// Requests without this header get it; a value that HTTP does not allow is left out.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

impl<B> tower::Service<Request<B>> for InProcessService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let cluster = self.cluster.clone();
        let headers = self.headers.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            for (name, value) in &headers {
                parts.headers.entry(name).or_insert_with(|| value.clone());
            }
            if let Ok(body) = Limited::new(body, MAX_BODY).collect().await {
                cluster
                    .handle(Request::from_parts(parts, body.to_bytes()))
                    .await
            } else {
                let status =
                    Status::too_large(format!("Request entity too large: limit is {MAX_BODY}"));
                Ok(encode(Reply::status(&status), Form::default(), false))
            }
        })
    }
}
