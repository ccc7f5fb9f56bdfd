//! Options of `slipway run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Command, FromArgMatches};

use super::members::Members;
use super::outside::Outside;
use super::webhooks::Webhooks;

/// Options of `slipway run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Which controllers to run
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "restarts",
        value_name = "NAME,…"
    )]
    pub(crate) controllers: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Namespaces to watch (default: all)
    #[arg(long, short = 'n', value_delimiter = ',', value_name = "NS,…")]
    pub(crate) namespace: Vec<String>,
    /// Where `/healthz`, `/ready` and `/metrics` are served; 0 for any free port, which is logged
    #[arg(long, default_value_t = 8001)]
    pub(crate) port: u16,
    /// On which address they are served
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    pub(crate) bind: std::net::IpAddr,
    #[command(flatten)]
    pub(crate) members: Members,
    #[command(flatten)]
    pub(crate) outside: Outside,
    #[command(flatten)]
    pub(crate) election: Election,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Logfmt)]
    pub(crate) log_format: LogFormat,
    /// What is logged: this and what is more severe. `RUST_LOG` overrides it
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    #[command(flatten)]
    pub(crate) given: Given,
}

/// The options that the registry adds: those of capabilities, which only these can read, and those of webhooks, which
/// follow them.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// Those of capabilities.
    pub(crate) matches: ArgMatches,
    /// Those of webhooks.
    pub(crate) webhooks: Webhooks,
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            matches: matches.clone(),
            webhooks: Webhooks::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// Which cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Connection {
    /// The kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the pod's own service account
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without it the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// How long a request may take
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
    pub(crate) request_timeout: Duration,
}

/// Who of several replicas acts.
#[derive(Debug, clap::Args)]
pub(crate) struct Election {
    /// The name of this replica; no two may have the same
    #[arg(long, env = "POD_NAME", hide_env_values = true, value_name = "NAME")]
    pub(crate) replica: Option<String>,
    /// The namespace that the operator itself is in, with its Lease
    #[arg(
        long,
        env = "POD_NAMESPACE",
        default_value = "rollout",
        value_name = "NS"
    )]
    pub(crate) operator_namespace: String,
    /// The Deployment that the operator itself runs from, which it never restarts
    #[arg(long, default_value = crate::manifests::DEPLOYMENT, value_name = "NAME")]
    pub(crate) operator_deployment: String,
    /// Act without holding a Lease: only where there can be no second replica. Without this option, a replica that may
    /// not use its Lease serves webhooks and probes, and does nothing else
    #[arg(long)]
    pub(crate) no_leader_elect: bool,
    /// Lease duration: how long a leader stays leader after its last sign of life
    #[arg(long, default_value = "15s", value_parser = duration, value_name = "DURATION")]
    pub(crate) lease_duration: Duration,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `key=value` pairs
    Logfmt,
    /// One JSON object a line
    Json,
}

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogLevel {
    /// Every reconcile
    Debug,
    /// What is done
    Info,
    /// What somebody should look at
    Warn,
    /// What failed
    Error,
}

impl LogLevel {
    /// As it is written in a line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// A duration as a Flipper's interval is written, but not none at all.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = pause(text)?;
    if parsed.is_zero() {
        return Err("must be longer than nothing".to_owned());
    }
    Ok(parsed)
}

/// A duration that may be none at all.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    slipway_kernel::duration::parse(text).map_err(|error| error.to_string())
}
