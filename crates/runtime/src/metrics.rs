//! Numbers for operators of the operator. No object's name is in a label, and what others send has few values there.

pub(crate) mod client;
mod labels;
pub(crate) mod outgoing;
mod passes;
mod process;
mod scrape;
pub(crate) mod traffic;

use std::sync::Mutex;
use std::sync::PoisonError;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};
use slipway_kernel::Purpose;
use slipway_kernel::capability::ReconcileMetricNames;
use slipway_kernel::identity::Key;

use crate::gather::Gather;
use crate::state::Shared;
pub(crate) use passes::Pass;
use passes::Shows;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconcile {
    controller: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Act {
    controller: &'static str,
    verb: &'static str,
    kind: String,
    purpose: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failure {
    cluster: String,
    kind: String,
}

/// Registers what goes on being counted elsewhere.
trait Show {
    fn show(&mut self, name: &str, help: &str, metric: &(impl Metric + Clone));
}

impl Show for Registry {
    fn show(&mut self, name: &str, help: &str, metric: &(impl Metric + Clone)) {
        self.register(name, help, metric.clone());
    }
}

/// All that is counted.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    reconciles: Family<Reconcile, Counter>,
    durations: Family<OfController, Histogram, fn() -> Histogram>,
    actions: Family<Act, Counter>,
    /// Kinds that were acted on: that of a mirrored resource is named by an annotation.
    kinds: labels::Few,
    watch_failures: Family<Failure, Counter>,
    events: Family<OfController, Counter>,
    passes: Mutex<Shows>,
    pub(crate) traffic: traffic::Traffic,
}

fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 9))
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Mutex::default(),
            reconciles: Family::default(),
            durations: Family::new_with_constructor(buckets as fn() -> Histogram),
            actions: Family::default(),
            kinds: labels::Few::default(),
            watch_failures: Family::default(),
            events: Family::default(),
            passes: Mutex::default(),
            traffic: traffic::Traffic::default(),
        };
        {
            let mut registry = metrics
                .registry
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            registry.show(
                "slipway_reconciles",
                "Plans by how they ended",
                &metrics.reconciles,
            );
            registry.show(
                "slipway_reconcile_duration_seconds",
                "From the plan to the answer to its last write",
                &metrics.durations,
            );
            registry.show(
                "slipway_actions",
                "Writes by how they ended",
                &metrics.actions,
            );
            registry.show(
                "slipway_watch_failures",
                "Failed lists and watches",
                &metrics.watch_failures,
            );
            registry.show("slipway_events_published", "Events told", &metrics.events);
            process::build(&mut registry);
        }
        metrics
    }
}

impl Metrics {
    pub(crate) fn reconciled(&self, controller: &'static str, outcome: &'static str, took: f64) {
        let labels = Reconcile {
            controller,
            outcome,
        };
        self.reconciles.get_or_create(&labels).inc();
        let labels = OfController { controller };
        self.durations.get_or_create(&labels).observe(took);
    }

    /// From now on the passes of a controller are shown, key by key.
    pub(crate) fn show_passes(
        &self,
        controller: &'static str,
        passes: ReconcileMetricNames,
        namespaced: bool,
    ) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shows = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        shows.add(controller, passes, namespaced, &mut registry);
    }

    /// From now on what a gatherer counts is shown too.
    pub(crate) fn show_also(&self, gatherer: &dyn Gather) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        gatherer.register(&mut registry);
    }

    /// A pass over a key has ended.
    pub(crate) fn passed(&self, key: &Key, pass: Pass) {
        let shows = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        shows.passed(key, pass);
    }

    /// This replica has nothing to do with a key any more.
    pub(crate) fn forget(&self, key: &Key) {
        let shows = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        shows.forget(key);
    }

    pub(crate) fn acted(
        &self,
        controller: &'static str,
        (verb, kind, purpose): (&'static str, &str, Purpose),
        outcome: &'static str,
    ) {
        let labels = Act {
            controller,
            verb,
            kind: self.kinds.tell(kind).to_owned(),
            purpose: purpose.as_str(),
            outcome,
        };
        self.actions.get_or_create(&labels).inc();
    }

    pub(crate) fn watch_failed(&self, cluster: &str, kind: &str) {
        let labels = Failure {
            cluster: cluster.to_owned(),
            kind: kind.to_owned(),
        };
        self.watch_failures.get_or_create(&labels).inc();
    }

    pub(crate) fn published(&self, controller: &'static str) {
        self.events
            .get_or_create(&OfController { controller })
            .inc();
    }

    /// All as `OpenMetrics` text: what was counted, and what the state shows now.
    pub(crate) fn text(&self, shared: &Shared) -> String {
        let mut text = String::new();
        // Writing into a text cannot fail.
        let _ = encode_registry(
            &mut text,
            &self.registry.lock().unwrap_or_else(PoisonError::into_inner),
        );
        let mut requests = Registry::default();
        self.traffic.register(&mut requests, prefix(shared));
        process::now(&mut requests);
        let _ = encode_registry(&mut text, &requests);
        let _ = self
            .traffic
            .named(|registry| encode_registry(&mut text, registry));
        let _ = encode_registry(&mut text, &scrape::registry(shared));
        let _ = encode_eof(&mut text);
        text
    }
}

/// What the metrics of requests begin with: as a capability asks whose dashboards look for other names than ours.
fn prefix(shared: &Shared) -> &'static str {
    let capabilities = &shared.lock().capabilities;
    let mut asked = capabilities.iter().filter_map(|c| c.request_prefix());
    asked.next().unwrap_or("slipway")
}
