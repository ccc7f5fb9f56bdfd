//! A client of the data plane that asks at a steady pace and notes what becomes of each request.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::ledger::{Ledger, Outcome};
use crate::pods::{IMAGE, POD};

/// How many connections ask at once.
const CONNECTIONS: u32 = 8;
/// Whoever has no answer by then has lost it.
const WITHIN: Duration = Duration::from_secs(10);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: web.example.com\r\n\r\n";

/// Asks until the ledger is closed or the set is dropped, so often in a second.
pub(crate) fn start(port: u16, ledger: &Arc<Ledger>, in_a_second: u32) -> JoinSet<()> {
    let pace = Duration::from_secs(1) * CONNECTIONS / in_a_second.max(1);
    let mut all = JoinSet::new();
    for _ in 0..CONNECTIONS {
        all.spawn(ask_on(port, ledger.clone(), pace));
    }
    all
}

async fn ask_on(port: u16, ledger: Arc<Ledger>, pace: Duration) {
    let mut ticks = interval(pace);
    // Who was kept waiting does not flood afterwards.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut kept = None;
    while ledger.is_open() {
        ticks.tick().await;
        let epoch = ledger.epoch();
        let asked = timeout(WITHIN, ask(port, &mut kept)).await;
        let outcome = match asked {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(why)) => Outcome::Lost(format!("{why:#}")),
            Err(_) => {
                kept = None;
                Outcome::Lost(format!("no answer within {WITHIN:?}"))
            }
        };
        ledger.note(epoch, outcome);
    }
}

/// A connection that was closed while nobody used it is no loss: every client of HTTP asks again then.
async fn ask(port: u16, kept: &mut Option<TcpStream>) -> Result<Outcome> {
    if let Some(mut stream) = kept.take()
        && let Some(head) = exchange(&mut stream).await?
    {
        return read(&head, stream, kept);
    }
    let stream = TcpStream::connect(("127.0.0.1", port)).await;
    let mut stream = stream.context("connecting")?;
    stream.set_nodelay(true)?;
    let head = exchange(&mut stream).await?;
    let head = head.context("the connection was closed without an answer")?;
    read(&head, stream, kept)
}

/// Asks, and reads the whole answer; gives its head, or none where the connection was closed before any of it came.
async fn exchange(stream: &mut TcpStream) -> Result<Option<String>> {
    if stream.write_all(REQUEST).await.is_err() {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(512);
    loop {
        let is_empty = bytes.is_empty();
        let read = match stream.read_buf(&mut bytes).await {
            Ok(read) => read,
            Err(_) if is_empty => return Ok(None),
            Err(why) => return Err(why).context("in the middle of an answer"),
        };
        if read == 0 && is_empty {
            return Ok(None);
        }
        if read == 0 {
            bail!("closed in the middle of an answer");
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
        let length = header(&head, "content-length").context("an answer without a length")?;
        let length: usize = length.parse().context("reading a length")?;
        if bytes.len() >= end + 4 + length {
            return Ok(Some(head));
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut fields = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    fields.next().map(|(_, value)| value.trim())
}

fn read(head: &str, stream: TcpStream, kept: &mut Option<TcpStream>) -> Result<Outcome> {
    if header(head, "connection") != Some("close") {
        *kept = Some(stream);
    }
    let first = head.lines().next().unwrap_or_default();
    let status = first
        .split(' ')
        .nth(1)
        .context("an answer without status")?;
    let status: u16 = status.parse().context("reading a status")?;
    Ok(match (header(head, POD), header(head, IMAGE)) {
        (Some(pod), Some(image)) => Outcome::Answered {
            pod: pod.to_owned(),
            image: image.to_owned(),
            status,
        },
        // The data plane says itself that it found nobody.
        _ => Outcome::Lost(first.to_owned()),
    })
}
