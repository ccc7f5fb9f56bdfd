//! Bodies across the bridge: requests are read whole and within bounds, answers may stream.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::Config;
use crate::cluster::Lost;
use crate::shell::{Body, Exchange};
use crate::status::Status;

/// How many KiB of bodies may be in memory on their way in, over all connections.
const BUDGET_KIB: usize = 256 << 10;

/// How many times the limit is read of a body that is too large before the connection is cut.
const DRAINED_LIMITS: usize = 16;

/// The shell's end of the channel to the core.
#[derive(Debug)]
pub(super) struct Bridge {
    requests: mpsc::Sender<Exchange>,
    limit: usize,
    read: Duration,
    budget: Semaphore,
}

enum Refused {
    TooLarge,
    TooSlow,
    Broken,
}

impl Bridge {
    pub(super) fn new(requests: mpsc::Sender<Exchange>, config: &Config) -> Self {
        Self {
            requests,
            limit: config.body_bytes,
            read: config.body_read,
            budget: Semaphore::new(BUDGET_KIB),
        }
    }

    /// Reads a request whole, has the core answer it, and passes the answer on.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Response<Outgoing>, Lost> {
        let (mut head, body) = request.into_parts();
        let is_bodiless = head.method == Method::HEAD;
        // HTTP/2 carries the host in the URI; the core sees the path alone, whatever the protocol.
        if let Some(path) = head.uri.path_and_query().cloned() {
            head.uri = path.into();
        }
        let read = timeout(self.read, self.collect(body)).await;
        let body = match read.unwrap_or(Err(Refused::TooSlow)) {
            Ok(body) => body,
            Err(refused) => return Ok(full(&refused.status(self.limit))),
        };
        let (reply, answer) = oneshot::channel();
        let exchange = (Request::from_parts(head, body), reply);
        if self.requests.send(exchange).await.is_err() {
            let status = Status::failure(503, "ServiceUnavailable", "apiserver is shutting down");
            return Ok(full(&status));
        }
        match answer.await {
            // HTTP/1 would leave it out by itself, HTTP/2 does not.
            Ok(response) if is_bodiless => {
                Ok(response.map(|_| Outgoing::new(Body::Full(Bytes::new()), stopped)))
            }
            Ok(response) => Ok(response.map(|body| Outgoing::new(body, stopped))),
            // The core gave no answer at all, on purpose (a fault) or because its task died: the connection breaks.
            Err(_) => Err(Lost),
        }
    }

    async fn collect(&self, mut body: Incoming) -> Result<Bytes, Refused> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let hint = body.size_hint();
        let expected = usize::try_from(hint.upper().unwrap_or_default()).unwrap_or(usize::MAX);
        let length_known = hint.upper().is_some();
        if expected > self.limit {
            return Err(self.drain(body).await);
        }
        let reserve = if length_known { expected } else { self.limit };
        let kib = u32::try_from((reserve >> 10).clamp(1, BUDGET_KIB)).unwrap_or(1);
        let _place = self.budget.acquire_many(kib).await;
        let mut whole = BytesMut::with_capacity(if length_known { expected } else { 0 });
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refused::Broken)?;
            if let Ok(piece) = frame.into_data() {
                if whole.len() + piece.len() > self.limit {
                    drop(whole);
                    return Err(self.drain(body).await);
                }
                whole.extend_from_slice(&piece);
            }
        }
        Ok(whole.freeze())
    }

    /// Reads on and forgets, for a while: a client that is cut off while it writes does not see the answer.
    async fn drain(&self, mut body: Incoming) -> Refused {
        let mut left = self.limit.saturating_mul(DRAINED_LIMITS);
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, Bytes::len);
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
        Refused::TooLarge
    }
}

impl Refused {
    fn status(&self, limit: usize) -> Status {
        match self {
            Self::TooLarge => {
                Status::too_large(format!("Request entity too large: limit is {limit}"))
            }
            Self::TooSlow => {
                Status::failure(408, "Timeout", "the request's body did not arrive in time")
            }
            Self::Broken => Status::bad_request("the request's body could not be read"),
        }
    }
}

fn full(status: &Status) -> Response<Outgoing> {
    let text = serde_json::to_string(status).unwrap_or_default();
    let length = HeaderValue::from(text.len());
    let mut response = Response::new(Outgoing {
        body: Some(Body::Full(text.into())),
        stopped: None,
    });
    *response.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, length);
    response
}

/// An answer on its way out. A stream ends when the core ends it or the shell stops.
pub(super) struct Outgoing {
    body: Option<Body>,
    stopped: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Outgoing {
    fn new(body: Body, mut stopped: watch::Receiver<bool>) -> Self {
        let stopped = matches!(body, Body::Stream(_)).then(|| {
            let wait = async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            Box::pin(wait) as Pin<Box<dyn Future<Output = ()> + Send>>
        });
        Self {
            body: Some(body),
            stopped,
        }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.body.take() {
            None => Poll::Ready(None),
            Some(Body::Full(bytes)) if bytes.is_empty() => Poll::Ready(None),
            Some(Body::Full(bytes)) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Some(Body::Stream(mut pieces)) => {
                let stop = self.stopped.as_mut();
                if stop.is_none_or(|stop| stop.as_mut().poll(cx).is_ready()) {
                    self.stopped = None;
                    return Poll::Ready(None);
                }
                let polled = pieces.poll_recv(cx);
                if !matches!(polled, Poll::Ready(None)) {
                    self.body = Some(Body::Stream(pieces));
                }
                polled.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            None => true,
            Some(Body::Full(bytes)) => bytes.is_empty(),
            Some(Body::Stream(_)) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            None => SizeHint::with_exact(0),
            Some(Body::Full(bytes)) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Some(Body::Stream(_)) => SizeHint::default(),
        }
    }
}
