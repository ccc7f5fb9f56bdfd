//! One write, and many watches that must see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::sync::Notify;

use crate::load::{FAN, collection, connection, wire};
use crate::objects;
use crate::servers::Running;

/// How many watch.
pub(crate) const WATCHERS: usize = 1_000;
/// How many connections they share: the real server allows 100 streams on one.
const CONNECTIONS: usize = 20;
/// Writes that do not count, and those that do.
pub(crate) const WARM: usize = 5;
pub(crate) const WRITES: usize = 30;
/// How long one may take.
const WITHIN: Duration = Duration::from_secs(20);

/// From the answer to a write to the last watch's having it.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) p50: Duration,
    pub(crate) most: Duration,
}

impl Figures {
    /// Of all times; those that do not count come first.
    pub(crate) fn of(times: &[Duration]) -> Self {
        let mut counted: Vec<Duration> = times.iter().skip(WARM).copied().collect();
        counted.sort();
        Self {
            p50: counted.get(counted.len() / 2).copied().unwrap_or_default(),
            most: counted.last().copied().unwrap_or_default(),
        }
    }
}

/// Counts the watches that have seen the latest write.
#[derive(Default)]
pub(crate) struct Seen {
    count: AtomicUsize,
    all: Notify,
}

impl Seen {
    /// What one watch received: each line is an event.
    pub(crate) fn count(&self, piece: &[u8]) {
        let lines = piece.split(|byte| *byte == b'\n').count();
        let events = lines.saturating_sub(1);
        let before = self.count.fetch_add(events, Ordering::Relaxed);
        if events > 0 && (before + events).is_multiple_of(WATCHERS) {
            self.all.notify_one();
        }
    }

    /// Waits until all have seen what was written at this moment.
    pub(crate) async fn all(&self, written: Instant) -> Result<Duration> {
        tokio::time::timeout(WITHIN, self.all.notified())
            .await
            .with_context(|| {
                let count = self.count.load(Ordering::Relaxed) % WATCHERS;
                format!("only {count} of {WATCHERS} watches saw a write within {WITHIN:?}")
            })?;
        Ok(written.elapsed())
    }
}

/// Over HTTP/2, on few connections.
pub(crate) async fn measure(server: &Running) -> Result<Figures> {
    let path = collection(FAN, "configmaps");
    let mut writer = connection(server).await?;
    let answer = writer
        .ask(&wire("GET", &format!("{path}?limit=1"), &server.token, ""))
        .await?;
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = answer.get(body.context("an answer without a body")? + 4..);
    let list: Value = serde_json::from_slice(body.unwrap_or_default()).context("reading a list")?;
    let version = list
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str);
    let version = version.context("a list without a version")?;
    let seen = Arc::new(Seen::default());
    let mut watches = tokio::task::JoinSet::new();
    let uri = format!("https://localhost{path}?watch=true&resourceVersion={version}");
    for _ in 0..CONNECTIONS {
        watch(server, &uri, WATCHERS / CONNECTIONS, &seen, &mut watches).await?;
    }
    let template = objects::small();
    let mut times = Vec::new();
    for number in 0..WARM + WRITES {
        let body = template.named(&format!("f-{}-{number}", server.id()));
        let answer = writer
            .ask(&wire("POST", &path, &server.token, &body))
            .await?;
        let written = Instant::now();
        ensure!(
            answer.starts_with(b"HTTP/1.1 201"),
            "POST {path}: {}",
            String::from_utf8_lossy(answer)
        );
        times.push(seen.all(written).await?);
        // Nothing is left to do when the next one comes.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(Figures::of(&times))
}

/// Opens so many watches on one connection.
async fn watch(
    server: &Running,
    uri: &str,
    count: usize,
    seen: &Arc<Seen>,
    watches: &mut tokio::task::JoinSet<()>,
) -> Result<()> {
    let stream = server.target.speaking(b"h2").open().await?;
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .handshake(TokioIo::new(stream))
        .await?;
    watches.spawn(async move {
        let _ = connection.await;
    });
    for _ in 0..count {
        let request = http::Request::get(uri)
            .header("authorization", format!("Bearer {}", server.token))
            .header("accept", "application/json")
            .header("user-agent", "bench/1")
            .body(Empty::<Bytes>::new())?;
        sender.ready().await?;
        let response = tokio::time::timeout(WITHIN, sender.send_request(request))
            .await
            .context("a watch was not answered")??;
        ensure!(
            response.status() == 200,
            "a watch was answered with {}",
            response.status()
        );
        let (seen, mut body) = (seen.clone(), response.into_body());
        let sender = sender.clone();
        watches.spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                if let Some(piece) = frame.data_ref() {
                    seen.count(piece);
                }
            }
            drop(sender);
        });
    }
    Ok(())
}
