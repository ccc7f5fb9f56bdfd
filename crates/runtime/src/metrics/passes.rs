//! Passes over keys, for capabilities that have each key shown: how many, how many failed, how long, and when last.
//!
//! Only whoever acts for a key shows it: the series of a key go with it, and with the leadership.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use slipway_kernel::capability::ReconcileMetricNames;
use slipway_kernel::identity::Key;

type Labels = Vec<(String, String)>;

/// The buckets that Prometheus' clients have by default.
const BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

fn buckets() -> Histogram {
    Histogram::new(BUCKETS)
}

/// The passes of one controller.
struct Shown {
    label: &'static str,
    /// Whether the namespace is a label too: where more than one is watched.
    namespaced: bool,
    total: Family<Labels, Counter>,
    failed: Family<Labels, Counter>,
    duration: Family<Labels, Histogram, fn() -> Histogram>,
    last_success: Family<Labels, Gauge<f64, AtomicU64>>,
}

/// How a pass ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    /// How long it took.
    pub(crate) took: Duration,
    /// When it ended.
    pub(crate) at: Timestamp,
    /// Whether it failed.
    pub(crate) failed: bool,
}

/// The passes of all controllers that have them shown.
#[derive(Default)]
pub(super) struct Shows(BTreeMap<&'static str, Shown>);

/// What a counter is registered as: its name in the text gets the ending.
fn stem(name: &'static str) -> &'static str {
    name.strip_suffix("_total").unwrap_or(name)
}

impl Shows {
    pub(super) fn add(
        &mut self,
        controller: &'static str,
        passes: ReconcileMetricNames,
        namespaced: bool,
        registry: &mut Registry,
    ) {
        let shown = Shown {
            label: passes.label,
            namespaced,
            total: Family::default(),
            failed: Family::default(),
            duration: Family::new_with_constructor(buckets as fn() -> Histogram),
            last_success: Family::default(),
        };
        registry.register(stem(passes.total), "Passes over a key", shown.total.clone());
        registry.register(
            stem(passes.failed),
            "Passes over a key that failed",
            shown.failed.clone(),
        );
        registry.register(
            passes.duration,
            "How long a pass over a key took",
            shown.duration.clone(),
        );
        registry.register(
            passes.last_success,
            "When a pass over a key last succeeded",
            shown.last_success.clone(),
        );
        self.0.insert(controller, shown);
    }

    pub(super) fn passed(&self, key: &Key, pass: Pass) {
        let Some(shown) = self.0.get(key.controller) else {
            return;
        };
        let labels = shown.labels(key);
        shown.total.get_or_create(&labels).inc();
        let took = pass.took.as_secs_f64();
        shown.duration.get_or_create(&labels).observe(took);
        // Both are there from the first pass on.
        let failed = shown.failed.get_or_create(&labels);
        let last = shown.last_success.get_or_create(&labels);
        if pass.failed {
            failed.inc();
        } else {
            last.set(pass.at.as_duration().as_secs_f64());
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        let Some(shown) = self.0.get(key.controller) else {
            return;
        };
        let labels = shown.labels(key);
        shown.total.remove(&labels);
        shown.failed.remove(&labels);
        shown.duration.remove(&labels);
        shown.last_success.remove(&labels);
    }
}

impl Shown {
    fn labels(&self, key: &Key) -> Labels {
        let mut labels = vec![(self.label.to_owned(), key.name.clone())];
        if self.namespaced {
            labels.push(("namespace".to_owned(), key.namespace.clone()));
        }
        if !key.cluster.is_local() {
            labels.push(("cluster".to_owned(), key.cluster.to_string()));
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use prometheus_client::encoding::text::encode;
    use slipway_kernel::identity::ClusterId;

    use super::*;

    const PASSES: ReconcileMetricNames = ReconcileMetricNames {
        label: "group",
        total: "toy_total",
        failed: "toy_failed_total",
        duration: "toy_duration_seconds",
        last_success: "toy_last_seconds",
    };

    fn key(name: &str) -> Key {
        Key {
            cluster: ClusterId::local(),
            controller: "toy",
            namespace: "a".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_key_is_shown_from_its_first_pass_until_it_is_gone() {
        let mut registry = Registry::default();
        let mut shows = Shows::default();
        shows.add("toy", PASSES, false, &mut registry);
        let text = |registry: &Registry| {
            let mut text = String::new();
            encode(&mut text, registry).unwrap();
            text
        };
        let pass = |failed| Pass {
            took: Duration::from_millis(20),
            at: Timestamp::from_second(1_000).unwrap(),
            failed,
        };
        shows.passed(&key("one"), pass(true));
        shows.passed(&key("two"), pass(false));
        let shown = text(&registry);
        for line in [
            "toy_total{group=\"one\"} 1",
            "toy_failed_total{group=\"one\"} 1",
            "toy_last_seconds{group=\"one\"} 0",
            "toy_failed_total{group=\"two\"} 0",
            "toy_last_seconds{group=\"two\"} 1000",
            "toy_duration_seconds_bucket{le=\"0.025\",group=\"two\"} 1",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        shows.forget(&key("one"));
        assert!(!text(&registry).contains("\"one\""));
        assert!(text(&registry).contains("\"two\""));
    }
}
