//! What the person who runs the operator decides about Canaries. The default is what Flagger does.

use slipway_api::foreign::ingress_nginx;

use crate::provider::Provider;

/// Where Flagger asks, unless it is told otherwise.
pub const METRICS_SERVER: &str = "http://prometheus:9090";

/// All settings of canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What shifts traffic where a Canary does not say.
    pub provider: Provider,
    /// Labels by which a workload selects its pods, in the order in which they are looked for; empty for the usual ones.
    pub selector_labels: Vec<String>,
    /// What names of labels and annotations have to begin with to be copied to the primary; `*` for all.
    pub include_label_prefix: Vec<String>,
    /// Whether `ConfigMap`s and Secrets are tracked.
    pub config_tracking: bool,
    /// What annotations of ingress-nginx begin with.
    pub ingress_prefix: String,
    /// Where builtin metrics and inline queries are asked, where a Canary does not say.
    pub metrics_server: String,
    /// Who is told everything about Canaries that name no webhook of type `event`.
    pub event_webhook: Option<String>,
    /// The operator's own namespace, where its Lease is.
    pub operator_namespace: Option<String>,
    /// Whether a Canary may name templates and alert providers of other namespaces.
    pub cross_namespace: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            selector_labels: Vec::new(),
            include_label_prefix: Vec::new(),
            config_tracking: true,
            ingress_prefix: ingress_nginx::PREFIX.to_owned(),
            metrics_server: METRICS_SERVER.to_owned(),
            event_webhook: None,
            operator_namespace: None,
            cross_namespace: true,
        }
    }
}
