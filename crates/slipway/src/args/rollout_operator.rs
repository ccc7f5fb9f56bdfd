//! Options of `slipway rollout-operator`: the flags of the original, by name, with its defaults, checks and messages.
//!
//! Flags that have nothing to do here are accepted all the same: the API of a cluster protects itself, pods are not
//! annotated, and a pass is not a poll.

use std::time::Duration;

use crate::goflag::{Flag, Slot, Stopped, parse, usage};

/// What the original calls itself.
pub(crate) const PROGRAM: &str = "rollout-operator";

/// All options. The default is the original's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RolloutOperator {
    pub(crate) log_format: String,
    pub(crate) log_level: String,
    pub(crate) port: i64,
    pub(crate) api_url: String,
    pub(crate) config_file: String,
    pub(crate) client_timeout: Duration,
    pub(crate) client_qps: f64,
    pub(crate) client_burst: i64,
    pub(crate) pods_timeout: Duration,
    pub(crate) cluster_domain: String,
    pub(crate) namespace: String,
    pub(crate) interval: Duration,
    pub(crate) validation: ClusterValidation,
    pub(crate) tls: Tls,
    pub(crate) use_zone_tracker: bool,
    pub(crate) zone_tracker: String,
    pub(crate) ready_patch_timeout: Duration,
}

/// Whether requests must name this cluster, by the header `X-Cluster`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClusterValidation {
    pub(crate) is_enabled: bool,
    pub(crate) is_soft: bool,
    pub(crate) excluded_paths: Vec<String>,
    pub(crate) excluded_agents: Vec<String>,
}

/// The server of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) is_enabled: bool,
    pub(crate) port: i64,
    pub(crate) cert_file: String,
    pub(crate) key_file: String,
    pub(crate) request_timeout: Duration,
    pub(crate) is_self_signed: bool,
    pub(crate) secret: String,
    pub(crate) dns_name: String,
    pub(crate) organization: String,
    pub(crate) expiration: Duration,
    pub(crate) updates_bundles: bool,
}

impl Default for RolloutOperator {
    fn default() -> Self {
        Self {
            log_format: "logfmt".to_owned(),
            log_level: "debug".to_owned(),
            port: 8001,
            api_url: String::new(),
            config_file: String::new(),
            client_timeout: Duration::from_mins(5),
            client_qps: 5.0,
            client_burst: 10,
            pods_timeout: Duration::from_secs(5),
            cluster_domain: "cluster.local.".to_owned(),
            namespace: String::new(),
            interval: Duration::from_secs(5),
            validation: ClusterValidation::default(),
            tls: Tls::default(),
            use_zone_tracker: false,
            zone_tracker: slipway_api::zones::ZONE_TRACKER.to_owned(),
            ready_patch_timeout: Duration::from_secs(5),
        }
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            is_enabled: false,
            port: 8443,
            cert_file: String::new(),
            key_file: String::new(),
            request_timeout: Duration::from_secs(10),
            is_self_signed: true,
            secret: "rollout-operator-self-signed-certificate".to_owned(),
            dns_name: String::new(),
            organization: "Grafana Labs".to_owned(),
            expiration: Duration::from_hours(365 * 24),
            updates_bundles: true,
        }
    }
}

const fn flag(
    name: &'static str,
    slot: Slot<RolloutOperator>,
    usage: &'static str,
) -> Flag<RolloutOperator> {
    Flag { name, usage, slot }
}

/// Every flag of the original.
pub(crate) const FLAGS: &[Flag<RolloutOperator>] = &[
    flag(
        "log.format",
        Slot::Text(|o| &mut o.log_format),
        "How log lines are written: logfmt or json.",
    ),
    flag(
        "log.level",
        Slot::Text(|o| &mut o.log_level),
        "What is logged: debug, info, warn or error, and what is worse.",
    ),
    flag(
        "server.port",
        Slot::Int(|o| &mut o.port),
        "The port of /ready and /metrics.",
    ),
    flag(
        "kubernetes.api-url",
        Slot::Text(|o| &mut o.api_url),
        "The address of the API server. In a pod it is known.",
    ),
    flag(
        "kubernetes.config-file",
        Slot::Text(|o| &mut o.config_file),
        "A kubeconfig. In a pod none is needed.",
    ),
    flag(
        "kubernetes.client-timeout",
        Slot::Duration(|o| &mut o.client_timeout),
        "How long a request to the API server may take; ours end after 10s at the latest.",
    ),
    flag(
        "kubernetes.client-qps",
        Slot::Float(|o| &mut o.client_qps),
        "Accepted, without effect: there are few requests, and the API server says when it has too many.",
    ),
    flag(
        "kubernetes.client-burst",
        Slot::Int(|o| &mut o.client_burst),
        "Accepted, without effect, like -kubernetes.client-qps.",
    ),
    flag(
        "pods.client-timeout",
        Slot::Duration(|o| &mut o.pods_timeout),
        "How long a request to a pod may take.",
    ),
    flag(
        "kubernetes.cluster-domain",
        Slot::Text(|o| &mut o.cluster_domain),
        "The DNS domain of the cluster.",
    ),
    flag(
        "kubernetes.namespace",
        Slot::Text(|o| &mut o.namespace),
        "The namespace that is looked after. Mandatory.",
    ),
    flag(
        "reconcile.interval",
        Slot::Duration(|o| &mut o.interval),
        "How often the scale of a mirrored resource is looked at. Everything else happens at once.",
    ),
    flag(
        "server.cluster-validation.http.enabled",
        Slot::Bool(|o| &mut o.validation.is_enabled),
        "Refuse requests whose header X-Cluster is not the namespace.",
    ),
    flag(
        "server.cluster-validation.http.soft-validation",
        Slot::Bool(|o| &mut o.validation.is_soft),
        "Only log and count such requests. Together with server.cluster-validation.http.enabled.",
    ),
    flag(
        "server.cluster-validation.http.excluded-paths",
        Slot::List(|o| &mut o.validation.excluded_paths),
        "Paths, between commas, that need no such header. If there are none, the four webhooks.",
    ),
    flag(
        "server.cluster-validation.http.excluded-user-agents",
        Slot::List(|o| &mut o.validation.excluded_agents),
        "Regular expressions, between commas, of user agents that need no such header.",
    ),
    flag(
        "server-tls.enabled",
        Slot::Bool(|o| &mut o.tls.is_enabled),
        "Serve the webhooks.",
    ),
    flag(
        "server-tls.port",
        Slot::Int(|o| &mut o.tls.port),
        "The port of the webhooks.",
    ),
    flag(
        "server-tls.cert-file",
        Slot::Text(|o| &mut o.tls.cert_file),
        "The certificate, if it is not self-signed. It is read again when it changes.",
    ),
    flag(
        "server-tls.key-file",
        Slot::Text(|o| &mut o.tls.key_file),
        "The private key, if the certificate is not self-signed.",
    ),
    flag(
        "server-tls.request-timeout",
        Slot::Duration(|o| &mut o.tls.request_timeout),
        "How long a webhook may take. It decides after nine tenths of that.",
    ),
    flag(
        "server-tls.self-signed-cert.enabled",
        Slot::Bool(|o| &mut o.tls.is_self_signed),
        "Make a self-signed certificate, and renew it.",
    ),
    flag(
        "server-tls.self-signed-cert.secret-name",
        Slot::Text(|o| &mut o.tls.secret),
        "The Secret that the self-signed certificate is kept in.",
    ),
    flag(
        "server-tls.self-signed-cert.dns-name",
        Slot::Text(|o| &mut o.tls.dns_name),
        "The name that the self-signed certificate is for. If empty, rollout-operator.<namespace>.svc.",
    ),
    flag(
        "server-tls.self-signed-cert.org",
        Slot::Text(|o| &mut o.tls.organization),
        "The organization in the self-signed certificate.",
    ),
    flag(
        "server-tls.self-signed-cert.expiration",
        Slot::Long(|o| &mut o.tls.expiration),
        "How long a self-signed certificate is valid, by Prometheus' grammar: 90d, 1y.",
    ),
    flag(
        "webhooks.update-ca-bundle",
        Slot::Bool(|o| &mut o.tls.updates_bundles),
        "Write the CA of the self-signed certificate into webhook configurations that are labelled for it.",
    ),
    flag(
        "use-zone-tracker",
        Slot::Bool(|o| &mut o.use_zone_tracker),
        "Keep the times of downscales in a ConfigMap.",
    ),
    flag(
        "zone-tracker.config-map-name",
        Slot::Text(|o| &mut o.zone_tracker),
        "The name of that ConfigMap.",
    ),
    flag(
        "zpdb.pod-ready-annotation-patch-timeout",
        Slot::Duration(|o| &mut o.ready_patch_timeout),
        "Accepted, without effect: pods are not annotated.",
    ),
];

/// Names that early versions had: `kubernetes-namespace`.
fn known_as(name: &str) -> Option<String> {
    let rest = name.strip_prefix("kubernetes-")?;
    Some(format!("kubernetes.{rest}"))
}

impl RolloutOperator {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Stopped> {
        parse(FLAGS, known_as, arguments)
    }

    /// What is printed for `-h`.
    pub(crate) fn usage() -> String {
        usage(PROGRAM, FLAGS)
    }

    /// The first thing that the original refuses to start with.
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = |message: &str| Err(message.to_owned());
        if self.cluster_domain.is_empty() {
            return wrong("-kubernetes.cluster-domain cannot be an empty string");
        }
        if self.namespace.is_empty() {
            return wrong("-kubernetes.namespace has not been specified");
        }
        if self.api_url.is_empty() != self.config_file.is_empty() {
            return wrong(
                "either configure both -kubernetes.api-url and -kubernetes.config-file or neither",
            );
        }
        if self.tls.request_timeout.is_zero() {
            return wrong("-server-tls.request-timeout must be positive");
        }
        if self.client_qps > 0.0 && self.client_burst < 1 {
            return wrong(
                "-kubernetes.client-burst must be at least 1 when -kubernetes.client-qps is greater than 0",
            );
        }
        if self.ready_patch_timeout.is_zero() {
            return wrong("-zpdb.pod-ready-annotation-patch-timeout must be positive");
        }
        if self.use_zone_tracker && self.zone_tracker.is_empty() {
            return wrong(
                "-use-zone-tracker is true, but -zone-tracker.config-map-name has not been specified",
            );
        }
        if self.validation.is_soft && !self.validation.is_enabled {
            return wrong(
                "http: soft validation can be enabled only if cluster validation is enabled",
            );
        }
        if !matches!(self.log_level.as_str(), "debug" | "info" | "warn" | "error") {
            return Err(format!("unknown log level: {}", self.log_level));
        }
        if !matches!(self.log_format.as_str(), "logfmt" | "json") {
            return Err(format!("unknown log format: {}", self.log_format));
        }
        self.check_tls()
    }

    fn check_tls(&self) -> Result<(), String> {
        let tls = &self.tls;
        if !tls.is_enabled || tls.is_self_signed {
            return Ok(());
        }
        if tls.cert_file.is_empty() || tls.key_file.is_empty() {
            return Err(
                "either self-signed certificate should be enabled or path to the certificate and key should be provided"
                    .to_owned(),
            );
        }
        if tls.updates_bundles {
            return Err(
                "self-signed certificate should be enabled to update the CA bundle in the webhook configurations"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The name that a self-signed certificate is for.
    pub(crate) fn dns_name(&self) -> String {
        if self.tls.dns_name.is_empty() {
            format!("{PROGRAM}.{}.svc", self.namespace)
        } else {
            self.tls.dns_name.clone()
        }
    }
}

#[cfg(test)]
mod tests;
