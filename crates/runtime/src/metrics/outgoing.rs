//! Calls to the world outside, by whom they are to and how they ended. So many hosts are told apart, all others are one; of
//! those that nobody calls any more the place goes to others.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use slipway_kernel::question::{Answer, Failure};
use tokio::time::Instant;

use super::{Show as _, buckets};

/// Nobody was to be called in the end. No host has such a name.
pub(crate) const NONE: &str = "<none>";
/// All hosts that are not told apart.
const OTHER: &str = "<other>";
/// What is said of calls that were answered.
const ANSWERED: &str = "answered";

/// How many hosts are told apart.
const MOST: usize = 64;
/// Longer names are not told apart.
const LONGEST: usize = 128;
/// How long a host that nobody calls keeps its place from others.
const IDLE: Duration = Duration::from_mins(30);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    host: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    host: String,
}

/// All that is counted of calls.
pub(crate) struct Outgoing {
    calls: Family<Ended, Counter>,
    durations: Family<Of, Histogram, fn() -> Histogram>,
    /// The hosts that are told apart, and when each was last called.
    hosts: Mutex<BTreeMap<String, Instant>>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            durations: Family::new_with_constructor(buckets as fn() -> Histogram),
            hosts: Mutex::default(),
        }
    }
}

impl Outgoing {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.show(
            "slipway_outside_calls",
            "Calls to the world outside of the API, by how they ended",
            &self.calls,
        );
        registry.show(
            "slipway_outside_call_duration_seconds",
            "From the question to its answer, waiting included",
            &self.durations,
        );
    }

    /// A call has ended.
    pub(crate) fn asked(&self, host: &str, answer: &Answer, took: Duration) {
        let outcome = match answer {
            Ok(_) => ANSWERED,
            Err(failure) => failure.outcome(),
        };
        // Held until it is counted: a host that goes leaves nothing behind.
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let host = self.tell(&mut hosts, host).to_owned();
        let of = Of { host: host.clone() };
        self.calls.get_or_create(&Ended { host, outcome }).inc();
        self.durations
            .get_or_create(&of)
            .observe(took.as_secs_f64());
    }

    /// The host, or what stands for all further ones.
    fn tell<'a>(&self, hosts: &mut BTreeMap<String, Instant>, host: &'a str) -> &'a str {
        let now = Instant::now();
        if host.starts_with('<') {
            return host;
        }
        if let Some(last) = hosts.get_mut(host) {
            *last = now;
            return host;
        }
        if host.len() > LONGEST || hosts.len() >= MOST && !self.make_room(hosts, now) {
            return OTHER;
        }
        hosts.insert(host.to_owned(), now);
        host
    }

    /// Forgets the host that was not called for longest, if that is long.
    fn make_room(&self, hosts: &mut BTreeMap<String, Instant>, now: Instant) -> bool {
        let longest = hosts.iter().min_by_key(|(_, last)| **last);
        let longest = longest.filter(|(_, last)| now.saturating_duration_since(**last) >= IDLE);
        let Some(host) = longest.map(|(host, _)| host.clone()) else {
            return false;
        };
        hosts.remove(&host);
        for outcome in Failure::OUTCOMES.into_iter().chain([ANSWERED]) {
            let host = host.clone();
            self.calls.remove(&Ended { host, outcome });
        }
        self.durations.remove(&Of { host });
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use prometheus_client::encoding::text::encode;
    use slipway_kernel::question::Waiting;

    use super::*;

    fn failed() -> Answer {
        Err(Failure::Timeout(Waiting::Answer))
    }

    fn shown(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_that_nobody_calls_make_room_and_those_of_today_do_not() {
        let (outgoing, mut registry) = (Outgoing::default(), Registry::default());
        outgoing.register(&mut registry);
        let call = |host: &str| outgoing.asked(host, &failed(), Duration::from_secs(1));
        for n in 0..MOST {
            call(&format!("made-up-{n}.test"));
        }
        call("late.test");
        // Whoever is called that is known by another name than a host's takes nobody's place.
        call("other");
        call(NONE);
        let text = shown(&registry);
        assert!(
            text.contains("host=\"<other>\",outcome=\"timeout\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("host=\"<none>\",outcome=\"timeout\"} 1\n"),
            "{text}"
        );
        tokio::time::advance(IDLE).await;
        call("made-up-0.test");
        call("late.test");
        let text = shown(&registry);
        assert!(
            text.contains("host=\"late.test\",outcome=\"timeout\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains("host=\"made-up-0.test\",outcome=\"timeout\"} 2\n"),
            "{text}"
        );
        assert!(!text.contains("made-up-1.test"), "{text}");
        assert_eq!(outgoing.hosts.lock().unwrap().len(), MOST);
    }
}
