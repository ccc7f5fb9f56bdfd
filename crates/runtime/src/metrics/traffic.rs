//! Requests, those that come and those that go. What their names begin with is said by the capabilities that run.
//! Whatever is sent, the series are few: see [`labels`].

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use slipway_kernel::admission::{Count, InFlight};

use super::Show as _;
use super::labels::{self, Few};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Served {
    method: &'static str,
    route: String,
    status_code: String,
    ws: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    path: String,
    method: &'static str,
    status_code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Handshake {
    outcome: &'static str,
}

type Timings<L> = Family<L, Histogram, fn() -> Histogram>;
type Labels = Vec<(String, String)>;

/// Metrics that others name, and the values of their labels.
#[derive(Default)]
struct Named {
    registry: Registry,
    families: BTreeMap<&'static str, Family<Labels, Counter>>,
    in_flight: BTreeMap<&'static str, Gauge>,
    values: BTreeMap<(&'static str, &'static str), Few>,
}

const SECONDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0,
];

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

fn bytes() -> Histogram {
    Histogram::new(exponential_buckets(4.0, 4.0, 15))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Limited {
    api_group: String,
}

/// All that is counted of requests.
pub(crate) struct Traffic {
    served: Timings<Served>,
    requests: Timings<Route>,
    responses: Timings<Route>,
    inflight: Family<Route, Gauge>,
    api: Timings<Called>,
    pods: Timings<Called>,
    limited: Family<Limited, Counter>,
    handshakes: Family<Handshake, Counter>,
    /// What a mirrored resource or a pod's annotation may name.
    api_paths: Few,
    api_groups: Few,
    pod_paths: Few,
    /// Metrics that others name: counters are made when they are first counted.
    named: Mutex<Named>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            served: Family::new_with_constructor(seconds as fn() -> Histogram),
            requests: Family::new_with_constructor(bytes as fn() -> Histogram),
            responses: Family::new_with_constructor(bytes as fn() -> Histogram),
            inflight: Family::default(),
            api: Family::new_with_constructor(seconds as fn() -> Histogram),
            pods: Family::new_with_constructor(seconds as fn() -> Histogram),
            limited: Family::default(),
            handshakes: Family::default(),
            api_paths: Few::default(),
            api_groups: Few::default(),
            pod_paths: Few::default(),
            named: Mutex::default(),
        }
    }
}

impl Traffic {
    pub(super) fn register(&self, registry: &mut Registry, prefix: &str) {
        let under = registry.sub_registry_with_prefix(prefix);
        under.show(
            "request_duration_seconds",
            "Time to answer requests",
            &self.served,
        );
        under.show("request_message_bytes", "Size of requests", &self.requests);
        under.show("response_message_bytes", "Size of answers", &self.responses);
        under.show(
            "inflight_requests",
            "Requests that are being answered",
            &self.inflight,
        );
        under.show(
            "kubernetes_api_client_request_duration_seconds",
            "Time until the API answers",
            &self.api,
        );
        under.show(
            "kubernetes_api_client_rate_limited_requests",
            "Requests rate-limited by the API server",
            &self.limited,
        );
        for group in ["core", "apps"] {
            // Zero is an answer too.
            let labels = Limited {
                api_group: group.to_owned(),
            };
            drop(self.limited.get_or_create(&labels));
        }
        under.show(
            "pod_http_client_request_duration_seconds",
            "Time until pods answer",
            &self.pods,
        );
        registry.show(
            "slipway_tls_handshakes",
            "TLS handshakes by how they ended",
            &self.handshakes,
        );
    }

    /// Lets somebody read the metrics that others named.
    pub(super) fn named<T>(&self, read: impl FnOnce(&Registry) -> T) -> T {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        read(&named.registry)
    }

    /// One more of what somebody counts.
    pub(crate) fn count(&self, count: &Count) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let Named {
            registry,
            families,
            values,
            ..
        } = &mut *named;
        let labels: Labels = count
            .labels
            .iter()
            .map(|(label, value)| {
                let few = values.entry((count.name, *label)).or_default();
                ((*label).to_owned(), few.tell(value).to_owned())
            })
            .collect();
        let family = families.entry(count.name).or_insert_with(|| {
            let family = Family::default();
            // The encoder adds the ending itself.
            let name = count.name.strip_suffix("_total").unwrap_or(count.name);
            registry.register(name, count.help, family.clone());
            family
        });
        family.get_or_create(&labels).inc();
    }

    /// The API has answered, or not.
    pub(crate) fn asked_api(&self, path: &str, method: &str, code: Option<u16>, took: Duration) {
        observe(&self.api, self.api_paths.tell(path), method, code, took);
    }

    /// The API has too much to do.
    pub(crate) fn limited(&self, api_group: &str) {
        let labels = Limited {
            api_group: self.api_groups.tell(api_group).to_owned(),
        };
        self.limited.get_or_create(&labels).inc();
    }

    /// A pod has answered, or not.
    pub(crate) fn asked_pod(&self, path: &str, method: &str, code: Option<u16>, took: Duration) {
        observe(&self.pods, self.pod_paths.tell(path), method, code, took);
    }

    /// A TLS handshake has ended.
    pub(crate) fn shook_hands(&self, outcome: &'static str) {
        self.handshakes.get_or_create(&Handshake { outcome }).inc();
    }

    /// The gauge of reviews under way that a webhook names.
    fn in_flight(&self, wanted: InFlight) -> Gauge {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let Named {
            registry,
            in_flight,
            ..
        } = &mut *named;
        let gauge = in_flight.entry(wanted.name).or_insert_with(|| {
            let gauge = Gauge::default();
            registry.register(wanted.name, wanted.help, gauge.clone());
            gauge
        });
        gauge.clone()
    }

    /// What measures the requests to a path, most of which are of this method; on another gauge too, if one is named.
    pub(crate) fn meter(&self, method: &Method, path: &str, also: Option<InFlight>) -> Meter {
        let route = route(path);
        let method = labels::method(method.as_str());
        let labels = Route {
            method,
            route: route.clone(),
        };
        let ok = Served::new(method, &route, StatusCode::OK);
        Meter {
            served: self.served.clone(),
            ok: self.served.get_or_create(&ok).clone(),
            requests: self.requests.get_or_create(&labels).clone(),
            responses: self.responses.get_or_create(&labels).clone(),
            inflight: self.inflight.get_or_create(&labels).clone(),
            also: also.map(|wanted| self.in_flight(wanted)),
            method,
            route,
        }
    }
}

fn observe(timings: &Timings<Called>, path: &str, method: &str, code: Option<u16>, took: Duration) {
    let labels = Called {
        path: path.to_owned(),
        method: labels::method(method),
        status_code: code.map_or_else(|| "error".to_owned(), labels::status),
    };
    timings.get_or_create(&labels).observe(took.as_secs_f64());
}

/// As dashboards spell a path.
fn route(path: &str) -> String {
    let letters = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let route: String = path.chars().map(letters).collect();
    route.trim_matches('_').to_owned()
}

impl Served {
    fn new(method: &'static str, route: &str, code: StatusCode) -> Self {
        Self {
            method,
            route: route.to_owned(),
            status_code: labels::status(code.as_u16()),
            ws: "false",
        }
    }
}

/// Measures the requests to one path. The usual ones are counted without looking anything up.
pub(crate) struct Meter {
    method: &'static str,
    route: String,
    served: Timings<Served>,
    ok: Histogram,
    requests: Histogram,
    responses: Histogram,
    inflight: Gauge,
    also: Option<Gauge>,
}

impl Meter {
    /// A request has come.
    pub(crate) fn begin(&self, method: &Method, size: usize) -> UnderWay<'_> {
        self.inflight.inc();
        if let Some(also) = &self.also {
            also.inc();
        }
        self.requests.observe(number(size));
        UnderWay {
            meter: self,
            method: labels::method(method.as_str()),
        }
    }
}

/// A request that is being answered; over when it is dropped.
pub(crate) struct UnderWay<'a> {
    meter: &'a Meter,
    method: &'static str,
}

impl UnderWay<'_> {
    /// It has been answered.
    pub(crate) fn end(self, code: StatusCode, size: usize, took: Duration) {
        let meter = self.meter;
        meter.responses.observe(number(size));
        if code == StatusCode::OK && self.method == meter.method {
            meter.ok.observe(took.as_secs_f64());
        } else {
            let labels = Served::new(self.method, &meter.route, code);
            let timing = meter.served.get_or_create(&labels);
            timing.observe(took.as_secs_f64());
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.meter.inflight.dec();
        if let Some(also) = &self.meter.also {
            also.dec();
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "no body has 2^52 bytes")]
fn number(size: usize) -> f64 {
    size as f64
}
