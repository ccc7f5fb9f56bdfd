//! Options of `slipway run` about webhooks, whosever they are.

use std::path::PathBuf;
use std::time::Duration;

use super::run::{duration, pause};

/// Options of webhooks.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct Webhooks {
    /// Serve the webhooks of the controllers that have some
    #[arg(id = "webhooks", long = "webhooks")]
    pub(crate) is_on: bool,
    /// The port of webhooks; 0 for any free one, which is logged
    #[arg(
        id = "webhooks_port",
        long = "webhooks-port",
        default_value_t = 8443,
        value_name = "PORT"
    )]
    pub(crate) port: u16,
    /// How long a webhook may take; it decides after nine tenths of that
    #[arg(id = "webhooks_request_timeout", long = "webhooks-request-timeout", default_value = "10s", value_parser = duration, value_name = "DURATION")]
    pub(crate) request_timeout: Duration,
    /// Serve webhooks only to callers with a certificate of the CA in this file: the API server's; without it, to anybody
    #[arg(
        id = "webhooks_client_ca",
        long = "webhooks-client-ca",
        value_name = "FILE"
    )]
    pub(crate) client_ca: Option<PathBuf>,
    /// How long webhooks are still served after the operator was told to end, until nobody is sent to it any more
    #[arg(id = "webhooks_drain", long = "webhooks-drain", default_value = "10s", value_parser = pause, value_name = "DURATION")]
    pub(crate) drain: Duration,
    /// Refuse a downscale also where it cannot be seen whether it is allowed
    #[arg(long)]
    pub(crate) strict_admission: bool,
    /// The certificate of webhooks; without it one is made and renewed
    #[arg(long, requires = "tls_key_file", value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, requires = "tls_cert_file", value_name = "FILE")]
    pub(crate) tls_key_file: Option<PathBuf>,
    /// The Secret that a certificate of our own is kept in
    #[arg(long, default_value = crate::registry::SECRET, value_name = "NAME")]
    pub(crate) tls_self_signed_secret_name: String,
    /// The name that a certificate of our own is for; without it rollout-operator.NS.svc, where NS is our namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_self_signed_dns_name: Option<String>,
    /// The organization in a certificate of our own
    #[arg(long, default_value = "Grafana Labs", value_name = "NAME")]
    pub(crate) tls_self_signed_org: String,
    /// How long a certificate of our own is valid; it is renewed after two thirds of that
    #[arg(long, default_value = "365d", value_parser = duration, value_name = "DURATION")]
    pub(crate) tls_self_signed_expiration: Duration,
    /// Leave it to somebody else to have the certificate trusted
    #[arg(long)]
    pub(crate) no_ca_injection: bool,
}
