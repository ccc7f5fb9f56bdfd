//! Everything a server takes from outside: time, entropy and outgoing calls.
//!
//! A virtual environment opens no socket and draws ids from counters; a system one is what `slipway apiserver`
//! runs with. Nothing else in this crate reads a clock or a random number.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;

/// Where "now" comes from. Waiting is always `tokio::time`, which a paused runtime makes virtual.
pub trait Clock: Debug + Send + Sync {
    /// The present moment, as written into `creationTimestamp` and friends.
    fn now(&self) -> Timestamp;
}

/// Where uids and generated names come from.
pub trait Entropy: Debug + Send + Sync {
    /// A fresh 128-bit value.
    fn draw(&self) -> u128;
}

/// One outgoing admission or conversion call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Where to: `https://host:port/path`, or for a service `https://name.namespace.svc:port/path`.
    pub url: String,
    /// The PEM bundle that must have signed the peer's certificate; empty means the system's roots.
    pub ca_bundle: Vec<u8>,
    /// The JSON body.
    pub body: Bytes,
    /// When to give up.
    pub timeout: Duration,
}

/// How an outgoing call ended without an HTTP answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// No answer within [`Call::timeout`].
    #[error("context deadline exceeded")]
    Timeout,
    /// The peer could not be reached or spoke something else.
    #[error("{0}")]
    Failed(String),
}

/// Makes outgoing calls. The answer is an HTTP status code and its body.
pub trait Dial: Debug + Send + Sync {
    /// Whether somebody is known to listen at this URL, whatever services there are in the cluster.
    fn knows(&self, _url: &str) -> bool {
        false
    }

    /// Posts `call.body` to `call.url`.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<(u16, Bytes), CallError>>;
}

/// A clock that reads the system's.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the system's clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a fixed moment and follows tokio's time, paused or not.
#[derive(Debug)]
pub struct TokioClock {
    epoch: Timestamp,
    start: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that shows `epoch` now. Needs to be built inside a tokio runtime.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self {
            epoch,
            start: tokio::time::Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.start.elapsed();
        self.epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

/// A counter: the n-th draw is a function of the seed and n.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    next: AtomicU64,
}

impl SeededEntropy {
    /// Starts the sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            next: AtomicU64::new(0),
        }
    }
}

impl Entropy for SeededEntropy {
    fn draw(&self) -> u128 {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let high = mix(self.seed ^ mix(n));
        let low = mix(high.wrapping_add(n).wrapping_add(0x9e37_79b9_7f4a_7c15));
        (u128::from(high) << 64) | u128::from(low)
    }
}

/// 128 bits in the form of a random (version 4) UUID.
pub fn uuid(bits: u128) -> String {
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}

/// `SplitMix64`'s finaliser: a bijection on 64 bits, so distinct draws stay distinct.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A dialler for which nobody is at home: every call times out at once.
///
/// This is what a virtual environment starts with; tests register services in the process instead.
#[derive(Debug, Default)]
pub struct NobodyHome;

impl Dial for NobodyHome {
    fn call(&self, _call: Call) -> BoxFuture<'static, Result<(u16, Bytes), CallError>> {
        Box::pin(async { Err(CallError::Timeout) })
    }
}

/// Answers calls in the process: the longest registered URL prefix wins.
#[derive(Default)]
pub struct InProcess {
    peers: Mutex<Vec<(String, Peer)>>,
}

/// A service that answers calls in the process.
pub type Peer = std::sync::Arc<
    dyn Fn(Call) -> BoxFuture<'static, Result<(u16, Bytes), CallError>> + Send + Sync,
>;

impl Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

impl InProcess {
    /// Routes calls whose URL starts with `prefix` to `peer`.
    pub fn register(&self, prefix: impl Into<String>, peer: Peer) {
        if let Ok(mut peers) = self.peers.lock() {
            peers.push((prefix.into(), peer));
        }
    }
}

impl Dial for InProcess {
    fn knows(&self, url: &str) -> bool {
        self.peers.lock().is_ok_and(|peers| {
            peers
                .iter()
                .any(|(prefix, _)| url.starts_with(prefix.as_str()))
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<(u16, Bytes), CallError>> {
        let found = self.peers.lock().ok().and_then(|peers| {
            peers
                .iter()
                .filter(|(prefix, _)| call.url.starts_with(prefix.as_str()))
                .max_by_key(|(prefix, _)| prefix.len())
                .map(|(_, peer)| peer.clone())
        });
        match found {
            Some(peer) => Box::pin(async move {
                let timeout = call.timeout;
                tokio::time::timeout(timeout, peer(call))
                    .await
                    .unwrap_or(Err(CallError::Timeout))
            }),
            None => NobodyHome.call(call),
        }
    }
}

/// Random numbers of the system: the source of everything that must not be guessed.
#[derive(Debug)]
pub struct SystemEntropy {
    key: [u8; 32],
    next: AtomicU64,
}

impl SystemEntropy {
    /// Draws a key from the system.
    pub fn new() -> std::io::Result<Self> {
        use rustls::crypto::SecureRandom;
        let provider = rustls::crypto::ring::default_provider();
        let random: &dyn SecureRandom = provider.secure_random;
        let mut key = [0; 32];
        random
            .fill(&mut key)
            .map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
        Ok(Self {
            key,
            next: AtomicU64::new(0),
        })
    }
}

impl Entropy for SystemEntropy {
    fn draw(&self) -> u128 {
        use sha2::Digest;
        // A keyed hash of a counter: as hard to guess as the key, and it cannot fail after the start.
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let digest = sha2::Sha256::new()
            .chain_update(self.key)
            .chain_update(n.to_be_bytes())
            .finalize();
        digest
            .iter()
            .take(16)
            .fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
    }
}
