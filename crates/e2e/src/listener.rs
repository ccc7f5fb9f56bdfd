//! Small HTTP servers on loopback: each holds its port from the moment that it is known, and ends with the value that stands for it.

use std::convert::Infallible;
use std::future::Future;
use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// An answer that is there as a whole.
pub type Answer = Response<Full<Bytes>>;

/// A server that answers until this value is dropped.
pub struct Listener {
    port: u16,
    served: JoinHandle<()>,
}

impl Listener {
    /// Listens on a free port of loopback, in the runtime that this is called in.
    pub async fn start<F, A>(answer: F) -> Result<Self>
    where
        F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("listening on loopback")?;
        let port = listener.local_addr()?.port();
        let served = tokio::spawn(serve(listener, answer));
        Ok(Self { port, served })
    }

    /// Where it is.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Connections end with the one who accepts them.
async fn serve<F, A>(listener: TcpListener, answer: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let answer = answer.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A connection that breaks is the client's to report.
            let _ = connection.await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// An answer with this status and text.
pub fn text(status: u16, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    if let Ok(status) = http::StatusCode::from_u16(status) {
        *answer.status_mut() = status;
    }
    answer
}
