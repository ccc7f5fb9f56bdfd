//! Options of `slipway flagger`: the flags of the original, by name, with its defaults.
//!
//! What we cannot keep a promise of is refused at the start, and not taken silently.

use crate::goflag::{Flag, Slot, Stopped, parse, usage};
use std::time::Duration;

/// What the original is called, and this program when it stands in for it.
pub(crate) const PROGRAM: &str = "flagger";

/// All options. The default is the original's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flagger {
    pub(crate) kubeconfig: String,
    pub(crate) namespace: String,
    pub(crate) provider: String,
    pub(crate) metrics_server: String,
    pub(crate) selector_labels: String,
    pub(crate) include_label_prefix: String,
    pub(crate) tracks_configs: bool,
    pub(crate) is_narrow: bool,
    pub(crate) ingress_prefix: String,
    pub(crate) event_webhook: String,
    pub(crate) port: String,
    pub(crate) elects: bool,
    pub(crate) election_namespace: String,
    log_level: String,
    encoding: String,
    ignored: Ignored,
    refused: Refused,
}

/// What says how the original works inside.
#[derive(Debug, Clone, PartialEq)]
struct Ignored {
    master: String,
    interval: Duration,
    threads: i64,
    qps: i64,
    burst: i64,
    replaces_globals: bool,
    ingress_class: String,
    cluster_name: String,
}

/// What is not built.
#[derive(Debug, Clone, Default, PartialEq)]
struct Refused {
    slack_url: String,
    slack_token: String,
    slack_user: String,
    slack_channel: String,
    slack_proxy: String,
    teams_url: String,
    teams_proxy: String,
    mesh_kubeconfig: String,
    version: bool,
}

impl Default for Flagger {
    fn default() -> Self {
        Self {
            kubeconfig: String::new(),
            namespace: String::new(),
            provider: "istio".to_owned(),
            metrics_server: "http://prometheus:9090".to_owned(),
            selector_labels: "app,name,app.kubernetes.io/name".to_owned(),
            include_label_prefix: String::new(),
            tracks_configs: true,
            is_narrow: false,
            ingress_prefix: "nginx.ingress.kubernetes.io".to_owned(),
            event_webhook: String::new(),
            port: "8080".to_owned(),
            elects: false,
            election_namespace: "kube-system".to_owned(),
            log_level: "debug".to_owned(),
            encoding: "json".to_owned(),
            ignored: Ignored {
                master: String::new(),
                interval: Duration::from_secs(10),
                threads: 2,
                qps: 100,
                burst: 250,
                replaces_globals: false,
                ingress_class: String::new(),
                cluster_name: String::new(),
            },
            refused: Refused::default(),
        }
    }
}

const fn flag(name: &'static str, slot: Slot<Flagger>, usage: &'static str) -> Flag<Flagger> {
    Flag { name, usage, slot }
}

/// Every flag of the original.
const FLAGS: &[Flag<Flagger>] = &[
    flag(
        "kubeconfig",
        Slot::Text(|o| &mut o.kubeconfig),
        "A kubeconfig. In a pod none is needed.",
    ),
    flag(
        "master",
        Slot::Text(|o| &mut o.ignored.master),
        "Not supported: say the server in the kubeconfig.",
    ),
    flag(
        "namespace",
        Slot::Text(|o| &mut o.namespace),
        "The only namespace that is looked after; all if none is named.",
    ),
    flag(
        "mesh-provider",
        Slot::Text(|o| &mut o.provider),
        "What shifts traffic where a Canary does not say.",
    ),
    flag(
        "metrics-server",
        Slot::Text(|o| &mut o.metrics_server),
        "Where builtin metrics and inline queries are asked where a Canary does not say.",
    ),
    flag(
        "selector-labels",
        Slot::Text(|o| &mut o.selector_labels),
        "Labels by which a workload selects its pods, in the order in which they are looked for.",
    ),
    flag(
        "include-label-prefix",
        Slot::Text(|o| &mut o.include_label_prefix),
        "What names of labels and annotations begin with that are copied to what serves; * for all.",
    ),
    flag(
        "enable-config-tracking",
        Slot::Bool(|o| &mut o.tracks_configs),
        "Track ConfigMaps and Secrets.",
    ),
    flag(
        "no-cross-namespace-refs",
        Slot::Bool(|o| &mut o.is_narrow),
        "Refuse Canaries that name templates and alert providers of other namespaces.",
    ),
    flag(
        "ingress-annotations-prefix",
        Slot::Text(|o| &mut o.ingress_prefix),
        "What annotations of ingress-nginx begin with.",
    ),
    flag(
        "event-webhook",
        Slot::Text(|o| &mut o.event_webhook),
        "Who is told everything about Canaries that name no webhook of type event.",
    ),
    flag(
        "port",
        Slot::Text(|o| &mut o.port),
        "The port of /healthz and /metrics.",
    ),
    flag(
        "enable-leader-election",
        Slot::Bool(|o| &mut o.elects),
        "The Lease flagger-leader-election is held while acting, whatever this says: of several replicas one acts, and the original waits for it.",
    ),
    flag(
        "leader-election-namespace",
        Slot::Text(|o| &mut o.election_namespace),
        "Where that Lease is.",
    ),
    flag(
        "log-level",
        Slot::Text(|o| &mut o.log_level),
        "What is logged: debug, info, warning or error, and what is worse.",
    ),
    flag(
        "zap-encoding",
        Slot::Text(|o| &mut o.encoding),
        "How log lines are written: console (key=value) or json.",
    ),
    flag(
        "zap-replace-globals",
        Slot::Bool(|o| &mut o.ignored.replaces_globals),
        "Accepted, without effect.",
    ),
    flag(
        "control-loop-interval",
        Slot::Duration(|o| &mut o.ignored.interval),
        "Accepted, without effect: there is no such loop.",
    ),
    flag(
        "threadiness",
        Slot::Int(|o| &mut o.ignored.threads),
        "Accepted, without effect: no Canary waits for another.",
    ),
    flag(
        "kubeconfig-qps",
        Slot::Int(|o| &mut o.ignored.qps),
        "Accepted, without effect.",
    ),
    flag(
        "kubeconfig-burst",
        Slot::Int(|o| &mut o.ignored.burst),
        "Accepted, without effect.",
    ),
    flag(
        "ingress-class",
        Slot::Text(|o| &mut o.ignored.ingress_class),
        "Accepted, without effect: of a provider that is not built.",
    ),
    flag(
        "cluster-name",
        Slot::Text(|o| &mut o.ignored.cluster_name),
        "Accepted, without effect.",
    ),
    flag(
        "slack-url",
        Slot::Text(|o| &mut o.refused.slack_url),
        "Not supported: use an AlertProvider.",
    ),
    flag(
        "slack-token",
        Slot::Text(|o| &mut o.refused.slack_token),
        "Not supported: use an AlertProvider.",
    ),
    flag(
        "slack-user",
        Slot::Text(|o| &mut o.refused.slack_user),
        "Accepted, without effect.",
    ),
    flag(
        "slack-channel",
        Slot::Text(|o| &mut o.refused.slack_channel),
        "Accepted, without effect.",
    ),
    flag(
        "slack-proxy-url",
        Slot::Text(|o| &mut o.refused.slack_proxy),
        "Accepted, without effect.",
    ),
    flag(
        "msteams-url",
        Slot::Text(|o| &mut o.refused.teams_url),
        "Not supported: use an AlertProvider.",
    ),
    flag(
        "msteams-proxy-url",
        Slot::Text(|o| &mut o.refused.teams_proxy),
        "Accepted, without effect.",
    ),
    flag(
        "kubeconfig-service-mesh",
        Slot::Text(|o| &mut o.refused.mesh_kubeconfig),
        "Not supported: routes are in the cluster of the workload.",
    ),
    flag(
        "version",
        Slot::Bool(|o| &mut o.refused.version),
        "Not supported: ask slipway --version.",
    ),
];

impl Flagger {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Stopped> {
        parse(FLAGS, |_| None, arguments)
    }

    /// What is printed for `-h`.
    pub(crate) fn usage() -> String {
        usage(PROGRAM, FLAGS)
    }

    /// The first thing that it cannot start with.
    pub(crate) fn check(&self) -> Result<(), String> {
        let refused = [
            ("master", &self.ignored.master),
            ("slack-url", &self.refused.slack_url),
            ("slack-token", &self.refused.slack_token),
            ("msteams-url", &self.refused.teams_url),
            ("kubeconfig-service-mesh", &self.refused.mesh_kubeconfig),
        ];
        if let Some((name, _)) = refused.iter().find(|(_, value)| !value.is_empty()) {
            let why = FLAGS.iter().find(|flag| flag.name == *name);
            let why = why.map_or("", |flag| flag.usage);
            return Err(format!("-{name}: {why}"));
        }
        if self.refused.version {
            return Err("-version is not supported: ask slipway --version".to_owned());
        }
        if !matches!(self.encoding.as_str(), "console" | "json") {
            return Err(format!("-zap-encoding: {:?} is not known", self.encoding));
        }
        self.level()?;
        self.port()?;
        Ok(())
    }

    /// Whether log lines are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.encoding == "json"
    }

    /// From which level on is logged.
    pub(crate) fn level(&self) -> Result<&'static str, String> {
        match self.log_level.as_str() {
            "debug" => Ok("debug"),
            "info" => Ok("info"),
            "warn" | "warning" => Ok("warn"),
            "error" | "fatal" | "panic" => Ok("error"),
            other => Err(format!("-log-level: {other:?} is not known")),
        }
    }

    /// Where probes and metrics are.
    pub(crate) fn port(&self) -> Result<u16, String> {
        let port = self.port.parse();
        port.map_err(|_| format!("-port: {:?} is not a port", self.port))
    }

    /// Texts between commas.
    pub(crate) fn listed(text: &str) -> Vec<String> {
        let parts = text.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(line: &str) -> Result<Flagger, Stopped> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Flagger::parse(&arguments)
    }

    #[test]
    fn the_flags_of_the_original_s_chart_are_read() {
        let line = "-log-level=info -mesh-provider=gatewayapi:v1 -metrics-server=http://p:9090 -enable-config-tracking=true \
            -slack-user=flagger -enable-leader-election=true -leader-election-namespace=flagger-system -namespace=shop";
        let options = read(line).unwrap();
        assert_eq!(options.check(), Ok(()));
        assert_eq!(options.provider, "gatewayapi:v1");
        assert!(options.elects && options.tracks_configs);
        assert_eq!(options.election_namespace, "flagger-system");
        assert_eq!((options.level(), options.port()), (Ok("info"), Ok(8080)));
    }

    #[test]
    fn what_cannot_be_kept_is_refused_at_the_start() {
        for line in [
            "-slack-url=https://hooks.slack.com/x",
            "-msteams-url=https://x",
            "-kubeconfig-service-mesh=/mesh",
            "-log-level=loud",
            "-port=here",
            "-zap-encoding=xml",
        ] {
            assert!(read(line).unwrap().check().is_err(), "{line}");
        }
        assert!(read("-unheard-of").is_err());
    }

    #[test]
    fn lists_are_between_commas() {
        assert_eq!(Flagger::listed("a, b,,"), ["a", "b"]);
        assert!(Flagger::listed("").is_empty());
    }
}
