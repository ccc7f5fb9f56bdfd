//! All time and entropy of one replica.
//!
//! Waiting is tokio's, which a paused runtime makes virtual; "now" is the system's clock, or one that follows tokio's
//! time from a given moment. Nothing else in this crate reads a clock or draws a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Where "now" comes from.
#[derive(Debug, Clone, Copy)]
enum Clock {
    System,
    Following { epoch: Timestamp, start: Instant },
}

/// Clock and entropy. Clones share one sequence of draws, and the setting of the clock.
#[derive(Debug, Clone)]
pub struct Environment {
    clock: Clock,
    skew: SignedDuration,
    /// By how many milliseconds the clock was set.
    set: Arc<AtomicI64>,
    seed: u64,
    next: Arc<AtomicU64>,
}

impl Environment {
    /// The system's clock and entropy.
    pub fn system() -> std::io::Result<Self> {
        let mut seed = [0; 8];
        rustls::crypto::ring::default_provider()
            .secure_random
            .fill(&mut seed)
            .map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
        Ok(Self::new(Clock::System, u64::from_be_bytes(seed)))
    }

    /// A clock that shows `epoch` now and follows tokio's time, paused or not; draws are a function of the seed. Needs
    /// a tokio runtime.
    pub fn virtual_from(epoch: Timestamp, seed: u64) -> Self {
        let start = Instant::now();
        Self::new(Clock::Following { epoch, start }, seed)
    }

    fn new(clock: Clock, seed: u64) -> Self {
        Self {
            clock,
            skew: SignedDuration::ZERO,
            set: Arc::default(),
            seed,
            next: Arc::default(),
        }
    }

    /// The same with a clock that is wrong by this much.
    #[must_use]
    pub fn skewed(&self, by: SignedDuration) -> Self {
        Self {
            skew: self.skew.saturating_add(by),
            ..self.clone()
        }
    }

    /// Sets the clock by this many seconds, also that of all clones, as people and time servers do.
    pub fn set_clock_by(&self, seconds: i32) {
        let millis = i64::from(seconds) * 1_000;
        self.set.fetch_add(millis, Ordering::Relaxed);
    }

    /// The present moment, as this replica believes.
    pub fn now(&self) -> Timestamp {
        let truth = match self.clock {
            Clock::System => system_now(),
            Clock::Following { epoch, start } => {
                epoch.checked_add(start.elapsed()).unwrap_or(Timestamp::MAX)
            }
        };
        let set = SignedDuration::from_millis(self.set.load(Ordering::Relaxed));
        let wrong = self.skew.saturating_add(set);
        truth.checked_add(wrong).unwrap_or(truth)
    }

    /// A number that has not been drawn before.
    pub fn draw(&self) -> u64 {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        mix(self.seed ^ mix(n))
    }

    /// Waits.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// `wait` after `from`; what is further away than the clock can tell is a year away.
pub(crate) fn after(from: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_hours(365 * 24);
    from.checked_add(wait).unwrap_or_else(|| from + FAR)
}

#[allow(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the system's clock"
)]
fn system_now() -> Timestamp {
    Timestamp::now()
}

/// `SplitMix64`'s finaliser.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
