//! Pods over sockets.
//!
//! Their names are made by capabilities, in the administrator's domain. Where those lead is said by Services, which people
//! write: one without a selector, or by another name, leads anywhere. So each address that a name has is checked, and none is
//! dialled that no pod can have. Who is named by an address is named by the administrator.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{Request, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use slipway_kernel::address::{Host, Rules};
use tower::Service;

use super::{Dial, Unreached};
use crate::outside::{Resolve, SystemResolver};

/// What is not read of an answer.
const LARGEST_ANSWER: usize = 1 << 20;
/// How long a connection without a request is kept.
const IDLE: Duration = Duration::from_secs(30);

/// The addresses of a name, if a pod can have every one of them: public or private ones.
#[derive(Clone)]
struct OfPods(Arc<dyn Resolve>);

impl Service<Name> for OfPods {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let found = self.0.resolve(name.as_str());
        Box::pin(async move {
            let host = Host::parse(name.as_str()).map_err(io::Error::other)?;
            let found = found.await?;
            for address in &found {
                let checked = Rules::default().check_address(&host, *address);
                checked.map_err(io::Error::other)?;
            }
            let all = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(all.collect::<Vec<_>>().into_iter())
        })
    }
}

/// Reaches pods by plain HTTP/1.1, without proxies and redirects. Needs a tokio runtime with real time and I/O.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client<HttpConnector<OfPods>, Full<Bytes>>,
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

impl Http {
    /// One without connections.
    pub fn new() -> Self {
        Self::resolving(Arc::new(SystemResolver))
    }

    /// One that looks names up there.
    pub fn resolving(resolver: Arc<dyn Resolve>) -> Self {
        let mut connector = HttpConnector::new_with_resolver(OfPods(resolver));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(1)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { client }
    }
}

impl Dial for Http {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Unreached>> {
        let url = request.uri().clone();
        let answer = self.client.request(request.map(Full::new));
        Box::pin(async move {
            let answer = answer
                .await
                .map_err(|error| Unreached::Refused(format!("{url}: {}", whole(&error))))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await;
            let body = body.map_err(|error| Unreached::Malformed(format!("{url}: {error}")))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        })
    }
}

/// An error with all that caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Where a Service without a selector leads.
    struct Elsewhere(&'static str);

    impl Resolve for Elsewhere {
        fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<std::net::IpAddr>>> {
            let address = self.0.parse().unwrap();
            Box::pin(async move { Ok(vec![address]) })
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_where_no_pod_is_is_not_followed() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for (address, part) in [("127.0.0.1", "loopback"), ("169.254.169.254", "metadata")] {
            let http = Http::resolving(Arc::new(Elsewhere(address)));
            let url = format!("http://a-0.a.ns.svc.cluster.local.:{port}/");
            let request = Request::post(url).body(Bytes::new()).unwrap();
            let refused = http.call(request).await.unwrap_err();
            assert!(
                matches!(&refused, Unreached::Refused(why) if why.contains(part)),
                "{refused}"
            );
        }
    }

    #[tokio::test]
    async fn a_pod_is_reached_over_a_socket_and_a_closed_port_is_an_answer() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let pod = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 1_024];
            let n = stream.read(&mut head).await.unwrap();
            let answer =
                "HTTP/1.1 409 Conflict\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
            stream.write_all(answer.as_bytes()).await.unwrap();
            head.truncate(n);
            String::from_utf8(head).unwrap()
        });
        let http = Http::new();
        let post = || {
            let request = Request::post(format!("http://{address}/ingester/prepare?a=b"));
            request.body(Bytes::new()).unwrap()
        };
        let answer = http.call(post()).await.unwrap();
        assert_eq!(answer.status().as_u16(), 409);
        assert_eq!(answer.into_body(), "no");
        let head = pod.await.unwrap();
        assert!(
            head.starts_with("POST /ingester/prepare?a=b HTTP/1.1\r\n"),
            "{head}"
        );
        let refused = http.call(post()).await.unwrap_err();
        assert!(
            matches!(&refused, Unreached::Refused(why) if why.contains("efused")),
            "{refused}"
        );
    }
}
