//! Many requests to a server, such as one of webhooks, over TLS that is checked as an API server checks it: by the CA that the operator
//! made, for the name that it made it for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::cluster::Cluster;

/// Where the webhooks of one operator are.
#[derive(Clone)]
pub struct Target {
    port: u16,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

/// What is asked, again and again.
pub struct Question<'a> {
    /// As in `/admission/no-downscale`.
    pub path: &'a str,
    /// The review.
    pub body: &'a str,
    /// What is in every right answer.
    pub answer: &'a str,
}

/// What is asked of any server, by number: each request may be another one.
pub struct Load<'a> {
    /// How many at once.
    pub connections: usize,
    /// How many in all; the flood ends after them.
    pub most: usize,
    /// The request of a number, from 0, as it goes over the wire.
    pub request: &'a dyn Fn(usize) -> Vec<u8>,
    /// What is in every right answer.
    pub answer: &'a str,
}

/// What a flood came to.
#[derive(Default)]
pub struct Figures {
    /// How long each answer took, sorted.
    pub latencies: Vec<Duration>,
    /// Requests without the right answer, and connections that could not be made.
    pub failed: usize,
    /// A wrong answer, if there was one.
    pub wrong: Option<String>,
    /// From the first to the last.
    pub took: Duration,
}

impl Figures {
    /// Right answers in a second.
    #[allow(clippy::cast_precision_loss, reason = "counts of a bench are small")]
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// The latency that so many percent stayed within.
    pub fn percentile(&self, percent: usize) -> Duration {
        let place = self.latencies.len() * percent / 100;
        let last = self.latencies.len().saturating_sub(1);
        self.latencies
            .get(place.min(last))
            .copied()
            .unwrap_or_default()
    }
}

impl Target {
    /// The operator on this port, with the CA of its Secret.
    pub fn new(
        cluster: &Cluster,
        namespace: &str,
        secret: &str,
        name: &str,
        port: u16,
    ) -> Result<Self> {
        let object = cluster.json(&["get", "secret", secret, "-n", namespace])?;
        let mut bundle = Vec::new();
        for key in ["ca", "ca-previous"] {
            if let Some(text) = object
                .pointer(&format!("/data/{key}"))
                .and_then(Value::as_str)
            {
                bundle.extend(BASE64_STANDARD.decode(text).context("reading the CA")?);
            }
        }
        Self::trusting(&bundle, name, port)
    }

    /// The operator on this port, if one of these CAs vouches for it.
    pub fn trusting(bundle: &[u8], name: &str, port: u16) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle) {
            roots.add(certificate.context("reading the CA")?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // Each connection is to be a whole handshake.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self {
            port,
            name: ServerName::try_from(name.to_owned())?,
            config: Arc::new(config),
        })
    }

    /// The same over this protocol of ALPN.
    #[must_use]
    pub fn speaking(&self, protocol: &[u8]) -> Self {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// A stream after a whole handshake.
    pub async fn open(&self) -> Result<TlsStream<TcpStream>> {
        let socket = TcpStream::connect(("127.0.0.1", self.port))
            .await
            .context("reaching the server")?;
        socket.set_nodelay(true)?;
        TlsConnector::from(self.config.clone())
            .connect(self.name.clone(), socket)
            .await
            .context("shaking hands with the server")
    }

    /// One connection, with a whole handshake.
    pub async fn connect(&self) -> Result<Connection> {
        Ok(Connection {
            stream: self.open().await?,
            buffer: Vec::with_capacity(4096),
        })
    }
}

/// A connection that stays open from request to request.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// The request as it goes over the wire.
    pub fn request(path: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// The certificate that the server showed.
    pub fn certificate(&self) -> Vec<u8> {
        let (_, session) = self.stream.get_ref();
        let first = session.peer_certificates().and_then(<[_]>::first);
        first
            .map(|certificate| certificate.to_vec())
            .unwrap_or_default()
    }

    /// Sends a request and gives its answer, head and body.
    pub async fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.buffer.clear();
        let mut whole = None;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
            if whole.is_none() {
                whole = length(&self.buffer)?;
            }
            let is_whole = match whole {
                Some(Length::Known(bytes)) => self.buffer.len() >= bytes,
                Some(Length::Chunked) => self.buffer.ends_with(LAST_CHUNK),
                None => false,
            };
            if is_whole {
                return Ok(&self.buffer);
            }
        }
    }
}

/// How an answer in chunks ends; JSON has no such line ends in it.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// How long an answer will be, head and body.
#[derive(Clone, Copy)]
enum Length {
    Known(usize),
    Chunked,
}

/// What an answer says of its length, once its head is there.
fn length(answer: &[u8]) -> Result<Option<Length>> {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(answer.get(..head).unwrap_or_default());
    let header = |wanted: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
    };
    if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(Some(Length::Chunked));
    }
    let body: usize = header("content-length")
        .and_then(|value| value.parse().ok())
        .with_context(|| format!("an answer without a length: {text}"))?;
    Ok(Some(Length::Known(head + 4 + body)))
}

fn has(answer: &[u8], wanted: &str) -> bool {
    answer
        .windows(wanted.len())
        .any(|part| part == wanted.as_bytes())
}

/// Asks over so many connections, each one request after another, until `stop` is set.
pub async fn flood(
    target: &Target,
    question: &Question<'_>,
    connections: usize,
    stop: &AtomicBool,
) -> Figures {
    let request = Connection::request(question.path, question.body);
    let load = Load {
        connections,
        most: usize::MAX,
        request: &|_| request.clone(),
        answer: question.answer,
    };
    pour(target, &load, stop).await
}

/// Asks over so many connections, each one request after another, until `stop` is set or all has been asked.
pub async fn pour(target: &Target, load: &Load<'_>, stop: &AtomicBool) -> Figures {
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    let each = (0..load.connections).map(|_| one(target, load, &next, stop));
    let mut all = Figures::default();
    for figures in futures::future::join_all(each).await {
        all.latencies.extend(figures.latencies);
        all.failed += figures.failed;
        all.wrong = all.wrong.or(figures.wrong);
    }
    all.latencies.sort();
    all.took = start.elapsed();
    all
}

async fn one(target: &Target, load: &Load<'_>, next: &AtomicUsize, stop: &AtomicBool) -> Figures {
    let mut figures = Figures::default();
    let is_over = || stop.load(Ordering::Relaxed) || next.load(Ordering::Relaxed) >= load.most;
    while !is_over() {
        let Ok(mut connection) = target.connect().await else {
            figures.failed += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        while !is_over() {
            let request = (load.request)(next.fetch_add(1, Ordering::Relaxed));
            let start = Instant::now();
            match connection.ask(&request).await {
                Ok(text) if has(text, load.answer) => figures.latencies.push(start.elapsed()),
                Ok(text) => {
                    figures.failed += 1;
                    let said = || String::from_utf8_lossy(text).into_owned();
                    figures.wrong.get_or_insert_with(said);
                }
                Err(_) => {
                    figures.failed += 1;
                    break;
                }
            }
        }
    }
    figures
}

/// Floods from a thread of its own until this value is asked for what it came to.
pub struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Result<Figures>>>,
}

impl Flood {
    /// Starts it.
    pub fn start(
        target: Target,
        path: String,
        body: String,
        answer: String,
        connections: usize,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let watched = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let question = Question {
                path: &path,
                body: &body,
                answer: &answer,
            };
            Ok(runtime.block_on(flood(&target, &question, connections, &watched)))
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Ends it.
    pub fn end(mut self) -> Result<Figures> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the flood has ended")?;
        match thread.join() {
            Ok(figures) => figures,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
