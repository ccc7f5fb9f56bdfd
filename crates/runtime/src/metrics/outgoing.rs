//! Calls to the world outside, by whom they are to and how they ended. The first hosts are told apart, all others are one.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use slipway_kernel::question::Answer;

use super::labels::Few;
use super::{Show as _, buckets};

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
    hosts: Few,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            durations: Family::new_with_constructor(buckets as fn() -> Histogram),
            hosts: Few::default(),
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

    /// A call has ended; the host is empty where nobody was to be called in the end.
    pub(crate) fn asked(&self, host: &str, answer: &Answer, took: Duration) {
        let host = if host.is_empty() {
            "none"
        } else {
            self.hosts.tell(host)
        };
        let outcome = match answer {
            Ok(_) => "answered",
            Err(failure) => failure.outcome(),
        };
        let host = host.to_owned();
        let of = Of { host: host.clone() };
        self.calls.get_or_create(&Ended { host, outcome }).inc();
        self.durations
            .get_or_create(&of)
            .observe(took.as_secs_f64());
    }
}
