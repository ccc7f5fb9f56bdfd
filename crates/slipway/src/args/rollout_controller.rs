//! Options of `slipway rollout-controller`: the flags of the original, by name, with its defaults.
//!
//! What to restart when nobody has said so is not among them: those are the default criteria of the design.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::goflag::{Flag, Slot, Stopped, parse, usage};

/// What the original's Deployment is called, and this program when it stands in for it.
pub(crate) const PROGRAM: &str = "rollout-controller";

/// All options. The default is the original's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RolloutController {
    pub(crate) kubeconfig: String,
    pub(crate) metrics: String,
    pub(crate) is_secure: bool,
    pub(crate) probes: String,
    pub(crate) elects: bool,
    zap: Zap,
}

/// How the original logs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zap {
    is_development: bool,
    encoder: String,
    level: String,
    stacktrace: String,
    time: String,
}

impl Default for RolloutController {
    fn default() -> Self {
        Self {
            kubeconfig: String::new(),
            metrics: OFF.to_owned(),
            is_secure: false,
            probes: ":8081".to_owned(),
            elects: false,
            zap: Zap {
                is_development: true,
                encoder: String::new(),
                level: String::new(),
                stacktrace: String::new(),
                time: String::new(),
            },
        }
    }
}

/// The address that means that nothing is served.
const OFF: &str = "0";

const fn flag(
    name: &'static str,
    slot: Slot<RolloutController>,
    usage: &'static str,
) -> Flag<RolloutController> {
    Flag { name, usage, slot }
}

/// Every flag of the original.
const FLAGS: &[Flag<RolloutController>] = &[
    flag(
        "kubeconfig",
        Slot::Text(|o| &mut o.kubeconfig),
        "A kubeconfig. In a pod none is needed.",
    ),
    flag(
        "metrics-bind-address",
        Slot::Text(|o| &mut o.metrics),
        "The address of /metrics, such as :8080; 0 switches it off.",
    ),
    flag(
        "metrics-secure",
        Slot::Bool(|o| &mut o.is_secure),
        "Not supported: metrics are served without TLS, or not at all.",
    ),
    flag(
        "health-probe-bind-address",
        Slot::Text(|o| &mut o.probes),
        "The address of /healthz and /readyz.",
    ),
    flag(
        "leader-elect",
        Slot::Bool(|o| &mut o.elects),
        "Hold the Lease d5a9c41d.github.com while acting, so that of several replicas only one acts.",
    ),
    flag(
        "zap-devel",
        Slot::Bool(|o| &mut o.zap.is_development),
        "Accepted, without effect: say the encoder and the level.",
    ),
    flag(
        "zap-encoder",
        Slot::Text(|o| &mut o.zap.encoder),
        "How log lines are written: console (key=value) or json.",
    ),
    flag(
        "zap-log-level",
        Slot::Text(|o| &mut o.zap.level),
        "What is logged: debug, info or error, and what is worse; a number above 0 is debug.",
    ),
    flag(
        "zap-stacktrace-level",
        Slot::Text(|o| &mut o.zap.stacktrace),
        "Accepted, without effect: there are no stack traces.",
    ),
    flag(
        "zap-time-encoding",
        Slot::Text(|o| &mut o.zap.time),
        "Accepted, without effect: times are RFC 3339.",
    ),
];

impl RolloutController {
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
        if !matches!(self.zap.encoder.as_str(), "" | "console" | "json") {
            return Err(format!("unknown log encoder: {}", self.zap.encoder));
        }
        self.level()?;
        address("-health-probe-bind-address", &self.probes)?;
        if address("-metrics-bind-address", &self.metrics)?.is_some() && self.is_secure {
            return Err(
                "-metrics-secure is not supported: put a proxy with TLS in front of -metrics-bind-address"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Whether log lines are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.zap.encoder == "json"
    }

    /// From which level on is logged.
    pub(crate) fn level(&self) -> Result<&'static str, String> {
        match self.zap.level.as_str() {
            "" | "info" => Ok("info"),
            "debug" => Ok("debug"),
            "error" | "panic" => Ok("error"),
            number if number.parse::<u8>().is_ok_and(|level| level > 0) => Ok("debug"),
            other => Err(format!("invalid log level {other:?}")),
        }
    }

    /// Where the probes are; none if nowhere.
    pub(crate) fn probes(&self) -> Result<Option<SocketAddr>, String> {
        address("-health-probe-bind-address", &self.probes)
    }

    /// Where metrics are; none if nowhere.
    pub(crate) fn metrics(&self) -> Result<Option<SocketAddr>, String> {
        address("-metrics-bind-address", &self.metrics)
    }
}

/// An address as Go listens on it: `:8081` is a port on all addresses.
fn address(flag: &str, text: &str) -> Result<Option<SocketAddr>, String> {
    if text == OFF || text.is_empty() {
        return Ok(None);
    }
    let everywhere = |port: &str| {
        let port = port.parse().ok()?;
        Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port))
    };
    let read = match text.strip_prefix(':') {
        Some(port) => everywhere(port),
        None => text.replace("localhost:", "127.0.0.1:").parse().ok(),
    };
    read.map(Some)
        .ok_or_else(|| format!("{flag}: {text:?} is not an address; write :8081 or 127.0.0.1:8081"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(line: &str) -> Result<RolloutController, Stopped> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        RolloutController::parse(&arguments)
    }

    #[test]
    fn the_flags_of_the_original_s_deployment_are_read() {
        let options = read("--leader-elect --health-probe-bind-address=:8081").unwrap();
        assert!(options.elects);
        assert_eq!(options.check(), Ok(()));
        let probes = options.probes().unwrap().unwrap();
        assert_eq!((probes.port(), probes.ip().is_unspecified()), (8081, true));
        assert_eq!(options.metrics(), Ok(None));
        assert!(!read("").unwrap().elects, "off unless it is asked for");
    }

    #[test]
    fn logs_follow_zap_s_flags() {
        for (line, level, is_json) in [
            ("", "info", false),
            ("--zap-log-level=debug --zap-encoder=json", "debug", true),
            ("--zap-log-level=3 --zap-devel=false", "debug", false),
            ("--zap-log-level error", "error", false),
        ] {
            let options = read(line).unwrap();
            assert_eq!(options.check(), Ok(()), "{line}");
            assert_eq!((options.level(), options.is_json()), (Ok(level), is_json));
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused_at_the_start() {
        for line in [
            "--zap-log-level=loud",
            "--zap-encoder=xml",
            "--health-probe-bind-address=here",
            "--metrics-bind-address=:8080 --metrics-secure",
        ] {
            assert!(read(line).unwrap().check().is_err(), "{line}");
        }
        assert_eq!(read("--metrics-secure").unwrap().check(), Ok(()));
        assert!(read("--default-interval=1m").is_err());
    }
}
