//! The ways of requests to API servers.
//!
//! A `kube::Client` has a task, and a queue with room for dozens of requests, in front of whatever it wraps; one that wraps another
//! has both twice. That is nothing at home, and was a third of what an idle member cost. So members, and the watches of all clusters,
//! are spoken to over a channel: a `kube::Client` where somebody has given one, or else the connection itself.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, SizeHint};
use kube::client::Body as Sent;
use kube::core::Status;
use serde::de::DeserializeOwned;

use crate::member::wire::{self, Wire};
use crate::metrics::client::Began;
use crate::state::Shared;

/// What is read of one answer at most: a page of the largest objects that there may be.
pub(crate) const LARGEST_ANSWER: usize = 128 << 20;

/// What is read of one that refuses: that is a sentence.
const LARGEST_REFUSAL: usize = 1 << 20;

/// An answer has more than is read of it.
#[derive(Debug, thiserror::Error)]
#[error("the answer has more than {0} bytes")]
struct TooLong(usize);

/// Whether an answer has more than is read of it.
pub(crate) fn is_too_long(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(error) if error.is::<TooLong>())
}

/// A way to one API server. Clones share it.
#[derive(Clone)]
pub struct Channel {
    way: Way,
    /// Who measures what goes over it.
    shared: Option<Arc<Shared>>,
    /// The number of the only connection that anything is sent over; any, if none is said.
    over: Option<u64>,
}

#[derive(Clone)]
enum Way {
    Client(Arc<kube::Client>),
    Wire(Arc<Wire>),
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").finish_non_exhaustive()
    }
}

impl From<kube::Client> for Channel {
    fn from(client: kube::Client) -> Self {
        Self {
            way: Way::Client(Arc::new(client)),
            shared: None,
            over: None,
        }
    }
}

impl From<Wire> for Channel {
    fn from(wire: Wire) -> Self {
        Self {
            way: Way::Wire(Arc::new(wire)),
            shared: None,
            over: None,
        }
    }
}

impl Channel {
    /// The same, measured until the head of each answer.
    pub(crate) fn measured(self, shared: &Arc<Shared>) -> Self {
        Self {
            shared: Some(shared.clone()),
            ..self
        }
    }

    /// A `kube::Client` that goes this way, for whoever needs one: not for each member. Requests that name no namespace are about
    /// this one.
    pub fn client(&self, namespace: &str) -> kube::Client {
        if let (Way::Client(client), None) = (&self.way, &self.shared) {
            return client.as_ref().clone();
        }
        let channel = self.clone();
        let service = tower::service_fn(move |request: Request<Sent>| {
            let channel = channel.clone();
            async move { channel.carry(request).await.map_err(tower::BoxError::from) }
        });
        kube::Client::new(service, namespace)
    }

    /// The number of the connection that what is sent next goes over, as far as that can be told: who answers over another one may
    /// be somebody else. None while it is not known.
    pub(crate) fn connection(&self) -> Option<u64> {
        match &self.way {
            Way::Client(_) => Some(1),
            Way::Wire(wire) => wire.number(),
        }
    }

    /// The same over the connection of this number only; over any, if none is said.
    pub(crate) fn over(&self, over: Option<u64>) -> Tied {
        Tied {
            channel: Self {
                over,
                ..self.clone()
            },
            is_unsent: AtomicBool::new(false),
        }
    }

    /// Sends a request, and reads the whole answer.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<T, kube::Error> {
        let answer = self.carry(request.map(Sent::from)).await?;
        whole(good(answer).await?).await
    }

    async fn pass(&self, request: Request<Sent>) -> Result<Response<Answer>, kube::Error> {
        // Both are large while they last, and are not for most of the time: whoever waits here should not keep room for them.
        match &self.way {
            Way::Client(client) => {
                let answer = Box::pin(client.send(request)).await?;
                Ok(answer.map(|body| Answer(Kind::Client(body))))
            }
            Way::Wire(wire) => {
                let answer = Box::pin(wire.send(request, self.over)).await?;
                Ok(answer.map(|body| Answer(Kind::Wire(body))))
            }
        }
    }
}

/// Whoever takes requests to an API server.
pub(crate) trait Carry: Sync {
    /// Sends a request; gives the answer as soon as its head is there.
    fn carry(
        &self,
        request: Request<Sent>,
    ) -> impl Future<Output = Result<Response<Answer>, kube::Error>> + Send;
}

impl Carry for Channel {
    async fn carry(&self, request: Request<Sent>) -> Result<Response<Answer>, kube::Error> {
        let Some(shared) = &self.shared else {
            return self.pass(request).await;
        };
        let began = Began::of(&request);
        let answer = self.pass(request).await;
        began.ended(shared, answer.as_ref().ok().map(Response::status));
        answer
    }
}

/// A channel that ends with a connection: whoever answers over the next one may be somebody else.
pub(crate) struct Tied {
    channel: Channel,
    is_unsent: AtomicBool,
}

impl Tied {
    /// A `kube::Client` that goes this way.
    pub(crate) fn client(&self, namespace: &str) -> kube::Client {
        self.channel.client(namespace)
    }

    /// Whether something was not sent, because the connection was there no more.
    pub(crate) fn is_unsent(&self) -> bool {
        self.is_unsent.load(Ordering::Acquire)
    }
}

impl Carry for Tied {
    async fn carry(&self, request: Request<Sent>) -> Result<Response<Answer>, kube::Error> {
        let answer = self.channel.carry(request).await;
        if answer.as_ref().err().is_some_and(wire::is_elsewhere) {
            self.is_unsent.store(true, Ordering::Release);
        }
        answer
    }
}

impl Carry for kube::Client {
    async fn carry(&self, request: Request<Sent>) -> Result<Response<Answer>, kube::Error> {
        let answer = self.send(request).await?;
        Ok(answer.map(|body| Answer(Kind::Client(body))))
    }
}

/// The body of an answer.
pub(crate) struct Answer(Kind);

enum Kind {
    Client(Sent),
    Wire(wire::Answer),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kube::Error>>> {
        match &mut self.0 {
            Kind::Client(body) => Pin::new(body).poll_frame(cx),
            Kind::Wire(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Client(body) => body.is_end_stream(),
            Kind::Wire(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Client(body) => body.size_hint(),
            Kind::Wire(body) => body.size_hint(),
        }
    }
}

/// An answer that is no refusal; a refusal as the API words it. Whoever points elsewhere, as proxies do before people have signed in,
/// refuses too.
pub(crate) async fn good<B>(answer: Response<B>) -> Result<Response<B>, kube::Error>
where
    B: Body<Data = Bytes, Error = kube::Error>,
{
    let code = answer.status();
    if code.is_success() {
        return Ok(answer);
    }
    let said = collected(answer, LARGEST_REFUSAL).await?;
    let status = serde_json::from_slice::<Status>(&said).unwrap_or_else(|_| {
        // Proxies answer with pages, and servers that do not know a path with a line.
        let text = String::from_utf8_lossy(&said);
        Status::failure(text.trim(), "Failed to parse error data").with_code(code.as_u16())
    });
    Err(kube::Error::Api(status.boxed()))
}

/// What is in an answer, all of it.
pub(crate) async fn whole<T: DeserializeOwned, B>(answer: Response<B>) -> Result<T, kube::Error>
where
    B: Body<Data = Bytes, Error = kube::Error>,
{
    understood(&collected(answer, LARGEST_ANSWER).await?)
}

/// What is in an answer that has been read.
pub(crate) fn understood<T: DeserializeOwned>(said: &[u8]) -> Result<T, kube::Error> {
    serde_json::from_slice(said).map_err(kube::Error::SerdeError)
}

/// The same as it was sent, if it has no more than so many bytes.
pub(crate) async fn collected<B>(answer: Response<B>, most: usize) -> Result<Bytes, kube::Error>
where
    B: Body<Data = Bytes, Error = kube::Error>,
{
    let body = Limited::new(answer.into_body(), most);
    let body = Box::pin(body.collect()).await;
    let body = body.map_err(|error| match error.downcast::<kube::Error>() {
        Ok(error) => *error,
        Err(error) if error.is::<LengthLimitError>() => {
            kube::Error::Service(Box::new(TooLong(most)))
        }
        Err(error) => kube::Error::Service(error),
    })?;
    Ok(body.to_bytes())
}
