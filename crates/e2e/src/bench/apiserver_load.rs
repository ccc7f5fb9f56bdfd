//! Requests over HTTPS, and how long they take.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use slipway_e2e::flood::{Connection, Figures, Load, pour};
use slipway_e2e::process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::objects::{self, Template};
use crate::servers::Running;

/// Connections of a flood.
const CONNECTIONS: usize = 32;
/// What of a flood is not counted, and how long each run is that is.
const WARM: Duration = Duration::from_secs(2);
const RUN: Duration = Duration::from_secs(4);
/// Runs of which the middle one counts.
const RUNS: usize = 3;
/// Lists of which the fastest counts: the first finds nothing prepared.
const LISTS: usize = 3;
/// Where the requests of floods go, and where objects are weighed.
pub(crate) const FLOOD: &str = "bench-flood";
const STORE: &str = "bench-store";
/// Where watches look.
pub(crate) const FAN: &str = "bench-fan";

/// What a flood came to.
#[derive(Default)]
pub(crate) struct Rate {
    /// Right answers in a second.
    pub(crate) a_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// Processor time of the server for each answer: what else the machine does is not in it.
    pub(crate) each: Duration,
    /// How much of its processor the asking process needed, from 0 to 1.
    pub(crate) asker: f64,
}

/// A list of everything.
#[derive(Default)]
pub(crate) struct Listed {
    /// From the request to the last byte.
    pub(crate) took: Duration,
    pub(crate) bytes: usize,
}

/// A request as it goes over the wire.
pub(crate) fn wire(method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The collection of a kind in a namespace.
pub(crate) fn collection(namespace: &str, plural: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{plural}")
}

/// Makes the namespaces, and one small object.
pub(crate) async fn prepare(server: &Running) -> Result<()> {
    let mut connection = server.target.connect().await?;
    let mut make = async |path: &str, body: &str| -> Result<()> {
        let request = wire("POST", path, &server.token, body);
        let answer = connection.ask(&request).await?;
        let code = answer.get(..12).unwrap_or_default();
        // The real one's store remembers what the process before wrote.
        ensure!(
            code == b"HTTP/1.1 201" || code == b"HTTP/1.1 409",
            "POST {path}: {}",
            String::from_utf8_lossy(answer)
        );
        Ok(())
    };
    for name in [FLOOD, STORE, FAN] {
        let body =
            format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        make("/api/v1/namespaces", &body).await?;
    }
    make(
        &collection(FLOOD, "configmaps"),
        &objects::small().named("small"),
    )
    .await
}

/// One small object, again and again.
pub(crate) async fn get(server: &Running) -> Result<Rate> {
    let path = format!("{}/small", collection(FLOOD, "configmaps"));
    let request = wire("GET", &path, &server.token, "");
    flood(&|_| request.clone(), "HTTP/1.1 200", server).await
}

/// New small objects.
pub(crate) async fn post(server: &Running) -> Result<Rate> {
    let path = collection(FLOOD, "configmaps");
    let template = objects::small();
    let total = AtomicUsize::new(0);
    let request = |_| {
        let number = total.fetch_add(1, Ordering::Relaxed);
        let body = template.named(&format!("p-{}-{number:07}", server.id()));
        wire("POST", &path, &server.token, &body)
    };
    flood(&request, "HTTP/1.1 201", server).await
}

async fn flood(request: &dyn Fn(usize) -> Vec<u8>, answer: &str, server: &Running) -> Result<Rate> {
    let load = Load {
        connections: CONNECTIONS,
        most: usize::MAX,
        request,
        answer,
    };
    let mut runs = Vec::new();
    for (index, time) in std::iter::once(WARM).chain([RUN; RUNS]).enumerate() {
        let used = || -> Result<[Duration; 2]> {
            let of = process::processor_time;
            Ok([of(std::process::id())?, of(server.id())?])
        };
        let before = used()?;
        let stop = AtomicBool::new(false);
        let end = async {
            tokio::time::sleep(time).await;
            stop.store(true, Ordering::Relaxed);
        };
        let (figures, ()) = tokio::join!(pour(&server.target, &load, &stop), end);
        right(&figures)?;
        let [asker, each] = used()?;
        let [asker, each] = [
            asker.saturating_sub(before[0]),
            each.saturating_sub(before[1]),
        ];
        if index > 0 {
            let answers = u32::try_from(figures.latencies.len())?.max(1);
            runs.push(Rate {
                a_second: figures.rate(),
                p50: figures.percentile(50),
                p99: figures.percentile(99),
                each: each / answers,
                asker: asker.as_secs_f64() / figures.took.as_secs_f64(),
            });
        }
    }
    runs.sort_by(|a, b| a.a_second.total_cmp(&b.a_second));
    runs.into_iter().nth(RUNS / 2).context("there was no run")
}

/// Nothing that is measured may have failed.
fn right(figures: &Figures) -> Result<()> {
    ensure!(
        figures.failed == 0,
        "{} requests failed: {}",
        figures.failed,
        figures.wrong.as_deref().unwrap_or("the connection broke")
    );
    Ok(())
}

/// Creates so many objects.
pub(crate) async fn fill(
    server: &Running,
    plural: &str,
    template: &Template,
    count: usize,
) -> Result<Figures> {
    let path = collection(STORE, plural);
    let request = |number| {
        let body = template.named(&format!("object-{number:06}"));
        wire("POST", &path, &server.token, &body)
    };
    let load = Load {
        connections: CONNECTIONS,
        most: count,
        request: &request,
        answer: "HTTP/1.1 201",
    };
    let figures = pour(&server.target, &load, &AtomicBool::new(false)).await;
    right(&figures).with_context(|| format!("creating {count} {plural}"))?;
    Ok(figures)
}

/// Lists so many objects in one answer.
pub(crate) async fn list(server: &Running, plural: &str, count: usize) -> Result<Listed> {
    let mut fastest: Option<Listed> = None;
    for _ in 0..LISTS {
        let (took, answer) = whole(server, &collection(STORE, plural)).await?;
        let found = answer
            .windows(16)
            .filter(|part| part == b"\"name\":\"object-0" || part == b"\"name\":\"object-1")
            .count();
        ensure!(found == count, "{found} of {count} {plural} were listed");
        if fastest.as_ref().is_none_or(|listed| took < listed.took) {
            fastest = Some(Listed {
                took,
                bytes: answer.len(),
            });
        }
    }
    fastest.context("nothing was listed")
}

/// An answer of any length, on a connection of its own. In HTTP/1.0, where an answer is not cut into chunks.
async fn whole(server: &Running, path: &str) -> Result<(Duration, Vec<u8>)> {
    let mut stream = server.target.open().await?;
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n\
         Authorization: Bearer {}\r\n\r\n",
        server.token
    );
    let start = Instant::now();
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(1 << 20);
    while stream.read_buf(&mut answer).await? > 0 {}
    let took = start.elapsed();
    ensure!(
        answer.starts_with(b"HTTP/1.0 200"),
        "GET {path}: {}",
        String::from_utf8_lossy(answer.get(..400).unwrap_or(&answer))
    );
    Ok((took, answer))
}

/// A connection for single requests.
pub(crate) async fn connection(server: &Running) -> Result<Connection> {
    server.target.connect().await
}
