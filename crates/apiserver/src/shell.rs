//! The contract between a shell that speaks HTTP to the outside and the core that answers.
//!
//! The shell lives on a thread and runtime of its own. Requests cross over a channel and are answered on the core's
//! runtime, so that the core never needs to know of sockets, threads or real time.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::sync::{mpsc, oneshot};

/// What a request is answered with.
pub enum Body {
    /// All of it.
    Full(Bytes),
    /// Piece by piece, until the sender is dropped. When the client goes away the receiver is dropped, which the
    /// sender notices.
    Stream(mpsc::Receiver<Bytes>),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(bytes) => f.debug_tuple("Full").field(&bytes.len()).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full(bytes)
    }
}

/// Answers requests.
pub trait Core: Send + Sync + 'static {
    /// Answers one request, whose body is complete and within limits; none breaks the connection. Dropping the
    /// future means that the client has gone away.
    fn handle(&self, request: Request<Bytes>) -> BoxFuture<'static, Option<Response<Body>>>;
}

/// A request on its way to the core, and where the answer goes.
pub type Exchange = (Request<Bytes>, oneshot::Sender<Response<Body>>);

/// Answers requests on the runtime that this runs on, each in a task of its own, until the shell is gone.
pub async fn serve(core: Arc<dyn Core>, mut requests: mpsc::Receiver<Exchange>) {
    while let Some((request, mut reply)) = requests.recv().await {
        let answer = core.handle(request);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                response = answer => {
                    // If sending fails the client went away in this very moment.
                    if let Some(response) = response {
                        let _ = reply.send(response);
                    }
                }
                () = reply.closed() => {}
            }
        });
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        use std::task::Poll;
        match self.get_mut() {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => {
                Poll::Ready(Some(Ok(http_body::Frame::data(std::mem::take(bytes)))))
            }
            Self::Stream(pieces) => pieces
                .poll_recv(cx)
                .map(|piece| piece.map(|bytes| Ok(http_body::Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Full(bytes) => http_body::SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => http_body::SizeHint::default(),
        }
    }
}
