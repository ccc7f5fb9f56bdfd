//! The webhooks over HTTPS: HTTP/1.1 and HTTP/2, as the API server likes.
//!
//! It promises bounds: on connections and how long they may be idle, on heads, bodies and how long each may take.
//! Whatever goes wrong on one connection ends that one. Dropping the future closes all of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

use super::{Admissions, Arrived, plain};
use crate::connections::{Bounds, Seat, accept};

const HANDSHAKE: Duration = Duration::from_secs(10);
/// For the head of a request, and so also between two requests of a connection.
const HEAD: Duration = Duration::from_secs(30);
const HEAD_BYTES: usize = 64 << 10;
const STREAMS: u32 = 250;
/// How much of large bodies is held at once; who comes with one when there is no room waits for it.
const ROOM: usize = 64 << 20;
/// A body that says it is no larger than this needs no room: large ones that come slowly hold up only each other.
const SMALL: usize = 256 << 10;

/// Why webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listener is none any more.
    #[error("serving webhooks: the listener cannot be used: {0}")]
    Listener(#[from] std::io::Error),
}

/// Serves until `stop`, then lets requests under way end. Connections are tasks of the runtime that it is polled on.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    admissions: Admissions,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    listener.local_addr()?;
    let mut tls = (*tls).clone();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let limits = admissions.limits();
    let bounds = Bounds {
        most: limits.connections,
        idle: limits.idle,
        grace: limits.request_timeout,
    };
    let door = Arc::new(Door {
        acceptor: TlsAcceptor::from(Arc::new(tls)),
        admissions,
        room: Arc::new(Semaphore::new(ROOM >> 10)),
    });
    accept(listener, bounds, stop, move |stream, seat| {
        let door = door.clone();
        async move { door.connection(stream, &seat).await }
    })
    .await;
    Ok(())
}

/// What all connections share.
struct Door {
    acceptor: TlsAcceptor,
    admissions: Admissions,
    /// In KiB.
    room: Arc<Semaphore>,
}

impl Door {
    async fn connection(&self, stream: TcpStream, seat: &Arc<Seat>) {
        let _ = stream.set_nodelay(true);
        let traffic = &self.admissions.0.shared.metrics.traffic;
        let shaken = tokio::select! {
            biased;
            shaken = timeout(HANDSHAKE, self.acceptor.accept(stream)) => shaken,
            () = seat.over() => return,
        };
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                traffic.shook_hands("failed");
                tracing::debug!(%error, "a TLS handshake failed");
                return;
            }
            Err(_) => {
                traffic.shook_hands("timeout");
                return;
            }
        };
        traffic.shook_hands("done");
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let builder = builder(is_h2);
        let service = service_fn(|request| {
            let (admissions, room) = (self.admissions.clone(), self.room.clone());
            let busy = seat.request();
            async move {
                let response = exchange(&admissions, &room, request).await;
                drop(busy);
                Ok::<_, Infallible>(response)
            }
        });
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        seat.serve(serving, auto::Connection::graceful_shutdown)
            .await;
    }
}

fn builder(is_h2: bool) -> auto::Builder<TokioExecutor> {
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut builder = if is_h2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX))
        .keep_alive_interval(HEAD)
        .keep_alive_timeout(HEAD / 2);
    builder
}

/// Why a body could not be read.
enum Unread {
    Large,
    Broken(String),
}

/// Reads a body as far as it may be long, and keeps its room until it is done with.
async fn read(
    body: Incoming,
    limit: usize,
    room: &Semaphore,
) -> Result<(Bytes, Option<SemaphorePermit<'_>>), Unread> {
    let announced = body.size_hint().upper();
    let announced = announced.map_or(limit, |n| usize::try_from(n).unwrap_or(usize::MAX));
    if announced > limit {
        return Err(Unread::Large);
    }
    let place = if announced > SMALL {
        let needed = (announced >> 10).min(ROOM >> 10);
        let needed = u32::try_from(needed).unwrap_or(1);
        room.acquire_many(needed).await.ok()
    } else {
        None
    };
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok((body.to_bytes(), place)),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::Large),
        Err(error) => Err(Unread::Broken(error.to_string())),
    }
}

/// Reads a request to its end, and answers it.
async fn exchange(
    admissions: &Admissions,
    room: &Semaphore,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let arrived = Instant::now();
    let limits = admissions.limits();
    let (head, body) = request.into_parts();
    let read = read(body, limits.body_bytes, room);
    let (body, _place) = match timeout(limits.request_timeout, read).await {
        Ok(Ok(read)) => read,
        Ok(Err(Unread::Large)) => {
            let code = StatusCode::PAYLOAD_TOO_LARGE;
            return admissions.turned_away(&head, code, "request body is too large", arrived);
        }
        Ok(Err(Unread::Broken(why))) => {
            let text = format!("the body could not be read: {why}");
            return admissions.turned_away(&head, StatusCode::BAD_REQUEST, &text, arrived);
        }
        Err(_) => {
            let text = "the body took too long";
            return admissions.turned_away(&head, StatusCode::REQUEST_TIMEOUT, text, arrived);
        }
    };
    let mut request = Request::from_parts(head, body);
    request.extensions_mut().insert(Arrived(arrived));
    admissions.answer(request).await.map(Full::new)
}

impl Admissions {
    /// Refuses a request that could not be read.
    fn turned_away(
        &self,
        head: &http::request::Parts,
        code: StatusCode,
        text: &str,
        arrived: Instant,
    ) -> Response<Full<Bytes>> {
        let under_way = self.meter(head.uri.path()).begin(&head.method, 0);
        let response = plain(code, text);
        under_way.end(code, response.body().len(), arrived.elapsed());
        response.map(Full::new)
    }
}
