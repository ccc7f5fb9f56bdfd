//! The one connection to a member: HTTP/2 over TLS, made when it is first needed, and again when it has ended.
//!
//! One task keeps it going; requests and streams are h2's own, without queues and tasks of theirs. Nothing is sent twice: what was
//! on its way when a connection ended has no answer. What is meant for one connection goes over no other. A member that says nothing
//! while something is open is asked whether it is there, and a connection that nobody uses is closed.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, poll_fn};
use h2::client::{Connection, SendRequest};
use h2::{Ping, Reason, RecvStream};
use http::header::CONTENT_LENGTH;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use hyper::body::{Body, Frame};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, oneshot};
use tokio::task::coop::poll_proceed;
use tokio::time::{Instant, sleep_until, timeout};

use crate::line::Stream;

/// How much of one answer may be on its way without having been read.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all answers of a member together.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The largest head of an answer.
const LARGEST_HEAD: u32 = 64 * 1024;
/// How many headers of former answers are kept to tell the next ones by, in bytes: heads are small, and seldom.
const KEPT_HEADERS: u32 = 0;
/// So many requests may be under way before the member has said how many it takes.
const AT_ONCE: usize = 100;
/// A member that says nothing while something is open is asked this often whether it is there. Longer than between two questions
/// which cluster it is, a quarter more included: as long as it answers those, it is asked nothing else.
const PING_EVERY: Duration = Duration::from_secs(40);
/// How long the answer to that may take.
const PING_ANSWER: Duration = Duration::from_secs(10);
/// A connection without requests is closed after this time.
const IDLE: Duration = Duration::from_secs(90);

/// Opens a connection.
pub(super) type Dial =
    Box<dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Stream>>> + Send + Sync>;

/// The way to one member.
pub(crate) struct Wire {
    dial: Dial,
    /// How long that may take, with what follows until requests can be sent.
    patience: Duration,
    authority: Authority,
    /// What is before each path.
    prefix: String,
    /// What is sent with each request.
    headers: Vec<(HeaderName, HeaderValue)>,
    open: Mutex<Option<Open>>,
    /// How many connections there have been.
    made: AtomicU64,
}

/// Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[error("the connection that it was meant for is there no more")]
struct Elsewhere;

/// Whether nothing was sent, because it would have gone over another connection than the one that it was meant for.
pub(crate) fn is_elsewhere(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(error) if error.is::<Elsewhere>())
}

/// A connection, as those see it who use it.
struct Open {
    sender: SendRequest<Bytes>,
    life: Arc<Life>,
    /// When this goes, whoever drives the connection looks whether anybody uses it.
    _wanted: oneshot::Sender<Infallible>,
}

/// What is known of a connection.
struct Life {
    began: Instant,
    /// When something last came, in milliseconds after that.
    heard: AtomicU64,
    /// When somebody last began to use it; likewise.
    asked: AtomicU64,
    /// When somebody last ceased to use it; likewise.
    left: AtomicU64,
    /// Requests and streams under way.
    users: AtomicUsize,
}

impl Life {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            heard: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            left: AtomicU64::new(0),
            users: AtomicUsize::new(0),
        }
    }

    fn note(&self, moment: &AtomicU64) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        moment.store(now, Ordering::Relaxed);
    }

    fn at(&self, moment: &AtomicU64) -> Instant {
        self.began + Duration::from_millis(moment.load(Ordering::Relaxed))
    }

    /// Something has come.
    fn hear(&self) {
        self.note(&self.heard);
    }

    fn heard(&self) -> Instant {
        self.at(&self.heard)
    }

    fn is_used(&self) -> bool {
        self.users.load(Ordering::Acquire) > 0
    }

    /// Whether something should come: somebody waits, or has given up waiting, and nothing has come since.
    fn is_awaited(&self) -> bool {
        self.is_used() || self.at(&self.asked) > self.heard()
    }

    /// When something has to be done if nothing comes.
    fn due(&self) -> Instant {
        if self.is_awaited() {
            self.heard() + PING_EVERY
        } else {
            self.at(&self.left) + IDLE
        }
    }

    /// When it has to be looked at again: whoever begins to use it meanwhile waits no longer than others.
    fn next(&self) -> Instant {
        self.due().min(Instant::now() + PING_EVERY)
    }
}

/// Somebody uses a connection.
struct Use(Arc<Life>);

impl Use {
    fn of(life: &Arc<Life>) -> Self {
        life.users.fetch_add(1, Ordering::AcqRel);
        life.note(&life.asked);
        Self(life.clone())
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // Whoever gives up has heard nothing.
        self.0.note(&self.0.left);
        self.0.users.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Wire {
    /// A way to this server; these headers are sent with each request.
    pub(super) fn new(
        (dial, patience): (Dial, Duration),
        server: &Uri,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Option<Self> {
        Some(Self {
            dial,
            patience,
            authority: server.authority()?.clone(),
            prefix: server.path().trim_end_matches('/').to_owned(),
            headers,
            open: Mutex::new(None),
            made: AtomicU64::new(0),
        })
    }

    /// The number of the connection that what is sent next goes over, if it does not end before; none while that is not known.
    pub(crate) fn number(&self) -> Option<u64> {
        let mut open = self.open.try_lock().ok()?;
        let mut context = Context::from_waker(Waker::noop());
        let is_standing = open.as_mut().is_some_and(|open| {
            let ready = open.sender.poll_ready(&mut context);
            matches!(ready, Poll::Ready(Ok(())))
        });
        Some(self.made.load(Ordering::Acquire) + u64::from(!is_standing))
    }

    /// Sends a request, over the connection of this number if one is said; gives the answer as soon as its head is there.
    pub(crate) async fn send(
        self: &Arc<Self>,
        request: Request<kube::client::Body>,
        over: Option<u64>,
    ) -> Result<Response<Answer>, kube::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let mut head = Request::from_parts(head, ());
        *head.uri_mut() = self.uri(head.uri()).map_err(kube::Error::HttpError)?;
        let headers = head.headers_mut();
        headers.extend(self.headers.iter().cloned());
        if !body.is_empty() {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let failed = |error: h2::Error| kube::Error::Service(Box::new(error));
        let (mut sender, using) = self.sender(over).await?;
        let (answer, mut rest) = sender.send_request(head, body.is_empty()).map_err(failed)?;
        drop(sender);
        if !body.is_empty() {
            rest.send_data(body, true).map_err(failed)?;
        }
        let answer = answer.await.map_err(failed)?;
        using.0.hear();
        Ok(answer.map(|stream| Answer { stream, using }))
    }

    /// The address of what is wanted, on this server.
    fn uri(&self, wanted: &Uri) -> Result<Uri, http::Error> {
        let place = wanted.path_and_query().map_or("/", PathAndQuery::as_str);
        Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(self.authority.clone())
            .path_and_query(format!("{}{place}", self.prefix))
            .build()
    }

    /// Somebody to give a request to, on the connection that there is, or on one that is made now: of this number, if one is said.
    async fn sender(
        self: &Arc<Self>,
        over: Option<u64>,
    ) -> Result<(SendRequest<Bytes>, Use), kube::Error> {
        let mut open = self.open.lock().await;
        let made = self.made.load(Ordering::Acquire);
        let is_meant = |number: u64| match over {
            Some(over) if over != number => Err(kube::Error::Service(Box::new(Elsewhere))),
            _ => Ok(()),
        };
        if let Some(known) = open.as_ref()
            && let Ok(sender) = known.sender.clone().ready().await
        {
            is_meant(made)?;
            return Ok((sender, Use::of(&known.life)));
        }
        *open = None;
        is_meant(made + 1)?;
        let connecting = async { shaken((self.dial)().await?).await.map_err(io::Error::other) };
        let connected = timeout(self.patience, connecting).await;
        let connected = connected.unwrap_or_else(|_| {
            let why = format!("no connection within {:?}", self.patience);
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        });
        let (sender, connection) = connected.map_err(boxed)?;
        self.made.fetch_add(1, Ordering::AcqRel);
        let (life, (wanted, unwanted)) = (Arc::new(Life::new()), oneshot::channel());
        let using = Use::of(&life);
        tokio::spawn(drive(
            connection,
            life.clone(),
            unwanted,
            Arc::downgrade(self),
        ));
        *open = Some(Open {
            sender: sender.clone(),
            life,
            _wanted: wanted,
        });
        Ok((sender, using))
    }

    /// Nobody is given this connection any more, unless somebody takes it at this very moment.
    fn forget(&self, life: &Arc<Life>) {
        let Ok(mut open) = self.open.try_lock() else {
            return;
        };
        let is_it = |open: &Open| Arc::ptr_eq(&open.life, life) && !life.is_used();
        if open.as_ref().is_some_and(is_it) {
            *open = None;
        }
    }
}

fn boxed(error: io::Error) -> kube::Error {
    kube::Error::Service(Box::new(error))
}

/// Begins to speak HTTP/2.
async fn shaken<T>(stream: T) -> Result<(SendRequest<Bytes>, Connection<T, Bytes>), h2::Error>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    h2::client::Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(LARGEST_HEAD)
        .header_table_size(KEPT_HEADERS)
        .initial_max_send_streams(AT_ONCE)
        .enable_push(false)
        .handshake(stream)
        .await
}

/// Keeps a connection going until it ends, is not answered, or is not used any more.
async fn drive<T>(
    mut connection: Connection<T, Bytes>,
    life: Arc<Life>,
    mut unwanted: oneshot::Receiver<Infallible>,
    wire: Weak<Wire>,
) where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let Some(mut pings) = connection.ping_pong() else {
        return;
    };
    let mut is_unwanted = false;
    // Whether the member has been asked whether it is there.
    let mut is_asked = false;
    let mut rest = pin!(sleep_until(life.next()));
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => return,
            // It ends by itself, now that it is looked at, or with the last stream.
            _ = &mut unwanted, if !is_unwanted => is_unwanted = true,
            pong = poll_fn(|cx| pings.poll_pong(cx)), if is_asked => {
                if pong.is_err() {
                    return;
                }
                is_asked = false;
                life.hear();
                rest.as_mut().reset(life.next());
            }
            () = &mut rest => {
                let now = Instant::now();
                let next = if is_asked {
                    // The answer may be behind much else that comes.
                    let last = life.heard() + PING_ANSWER;
                    if last <= now {
                        return;
                    }
                    last
                } else if now < life.due() {
                    life.next()
                } else if life.is_awaited() {
                    is_asked = pings.send_ping(Ping::opaque()).is_ok();
                    now + PING_ANSWER
                } else if is_unwanted {
                    // It should have ended by itself, and whoever is there does not let it.
                    return;
                } else {
                    if let Some(wire) = wire.upgrade() {
                        wire.forget(&life);
                    }
                    now + PING_EVERY
                };
                rest.as_mut().reset(next);
            }
        }
    }
}

/// The body of an answer.
pub(crate) struct Answer {
    stream: RecvStream,
    using: Use,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kube::Error>>> {
        // What comes without end, if only in crumbs, takes nobody else's turn.
        let turn = ready!(poll_proceed(cx));
        let told = ready!(self.stream.poll_data(cx));
        turn.made_progress();
        let data = match told {
            None => return Poll::Ready(None),
            Some(Ok(data)) => data,
            Some(Err(error)) => {
                // It will say no more, and there is nothing wrong with what it has said.
                let is_end = matches!(error.reason(), Some(Reason::NO_ERROR | Reason::CANCEL));
                let failed = || Err(kube::Error::Service(Box::new(error)));
                return Poll::Ready((!is_end).then(failed));
            }
        };
        self.using.0.hear();
        // It fails where the stream has ended, and then nobody waits for room.
        let _ = self.stream.flow_control().release_capacity(data.len());
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}

#[cfg(test)]
mod tests;
