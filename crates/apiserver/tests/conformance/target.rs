//! What the suite knows of a server: it answers requests and streams watch events.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use std::time::Duration;
use tokio::sync::mpsc;

/// No answer of either server takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// One request, before it is addressed to a server.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// Who asks: a user of the kubeconfig, `nobody` or `stranger`.
    pub(crate) user: String,
    /// A bearer token that takes the user's place.
    pub(crate) token: Option<String>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An answer whose body goes on: one line is one event; the end of the channel is the end of the watch.
pub(crate) struct EventStream {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) lines: mpsc::UnboundedReceiver<Bytes>,
}

/// What begins with a code, whether or not there is more to come.
pub(crate) trait Coded {
    fn code(&self) -> StatusCode;
}

impl Coded for Answer {
    fn code(&self) -> StatusCode {
        self.code
    }
}

impl Coded for EventStream {
    fn code(&self) -> StatusCode {
        self.code
    }
}

/// A server to be judged.
pub(crate) trait Target: Send + Sync {
    /// Sends a request and waits for the whole answer.
    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, String>>;
    /// Sends a request and leaves its body open.
    fn watch(&self, call: Call) -> BoxFuture<'_, Result<EventStream, String>>;
    /// How many times the seconds of a `repeat` it may take here. The embedded server has what is written.
    fn patience(&self) -> u32 {
        1
    }
    /// Whether it may be too busy to do at once what it is asked. The embedded server never is.
    fn is_busy(&self) -> bool {
        false
    }
}

/// The HTTP form of a call. `tokens` maps user names to bearer tokens.
pub(crate) fn request(
    call: &Call,
    authority: &str,
    token: Option<&str>,
) -> Result<Request<Full<Bytes>>, String> {
    let mut builder = Request::builder()
        .method(call.method.clone())
        .uri(format!("https://{authority}{}", call.path));
    for (name, value) in &call.headers {
        builder = builder.header(name, value);
    }
    if let Some(token) = call.token.as_deref().or(token) {
        builder = builder.header("authorization", format!("Bearer {token}"));
    }
    builder
        .body(Full::new(call.body.clone()))
        .map_err(|e| format!("{}: {e}", call.path))
}

/// Reads a body to its end.
pub(crate) async fn whole<B>(response: http::Response<B>) -> Result<Answer, String>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let (head, body) = response.into_parts();
    let body = tokio::time::timeout(PATIENCE, body.collect())
        .await
        .map_err(|_| "the answer does not end".to_owned())?;
    let body = body
        .map_err(|e| format!("reading the answer: {e}"))?
        .to_bytes();
    Ok(Answer {
        code: head.status,
        headers: head.headers,
        body,
    })
}

/// Reads a body line by line in the background, until either side has enough.
pub(crate) fn stream<B>(response: http::Response<B>) -> EventStream
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display + Send,
{
    let (head, body) = response.into_parts();
    let (sender, lines) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut body = Box::pin(body);
        let mut pending = Vec::new();
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = sender.closed() => return,
            };
            let Some(Ok(frame)) = frame else { break };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            pending.extend_from_slice(&data);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if sender.send(Bytes::from(line)).is_err() {
                    return;
                }
            }
        }
        if !pending.is_empty() {
            // An answer that is no watch (an error) need not end in a newline.
            let _ = sender.send(Bytes::from(pending));
        }
    });
    EventStream {
        code: head.status,
        headers: head.headers,
        lines,
    }
}

/// Waits for the head of an answer.
pub(crate) async fn patiently<T, E: std::error::Error>(
    what: &str,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(format!("{what}: {}", with_causes(&error))),
        Err(_) => Err(format!("{what}: no answer in {} s", PATIENCE.as_secs())),
    }
}

/// hyper's own text leaves out why.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
