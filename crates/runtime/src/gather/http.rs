//! Pods over sockets.

use std::time::Duration;

use ::http::{Request, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::{Dial, Unreached};

/// What is not read of an answer.
const LARGEST_ANSWER: usize = 1 << 20;
/// How long a connection without a request is kept.
const IDLE: Duration = Duration::from_secs(30);

/// Reaches pods by plain HTTP/1.1, without proxies and redirects. Needs a tokio runtime with real time and I/O.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

impl Http {
    /// One without connections.
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
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
