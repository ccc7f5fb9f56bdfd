//! `slipway flagger`: canary in place of the original, with its flags, its Lease and its port.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use slipway_canary::CAPABILITY;
use slipway_canary::provider::Provider;
use slipway_kernel::address::{AllowedHosts, Rules};
use slipway_kernel::question::OtherNamespaces;
use slipway_runtime::Election;

use super::operation::Operation;
use super::run;
use crate::args::{Flagger, LogFormat};
use crate::connect::Cluster;
use crate::goflag::Stopped;
use crate::{logs, output};

/// A request takes no longer than this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs until it is told to end.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let options = match Flagger::parse(arguments) {
        Ok(options) => options,
        Err(Stopped::Help) => {
            output::note(Flagger::usage().trim_end());
            return ExitCode::SUCCESS;
        }
        Err(Stopped::Wrong(why)) => {
            output::note(&why);
            output::note(Flagger::usage().trim_end());
            return ExitCode::from(2);
        }
    };
    if let Err(why) = options.check() {
        output::note(&why);
        return ExitCode::FAILURE;
    }
    let format = if options.is_json() {
        LogFormat::Json
    } else {
        LogFormat::Logfmt
    };
    let level = options.level().unwrap_or("info");
    logs::start(format, &format!("warn,slipway={level}"));
    match operation(&options).and_then(Operation::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// What the options come to for Canaries.
fn settings(options: &Flagger) -> Result<slipway_canary::Settings> {
    let provider = Provider::of(&options.provider);
    let provider = provider.map_err(|error| anyhow!("-mesh-provider: {error}"))?;
    let event_webhook = Some(&options.event_webhook).filter(|url| !url.is_empty());
    Ok(slipway_canary::Settings {
        provider,
        selector_labels: Flagger::listed(&options.selector_labels),
        include_label_prefix: Flagger::listed(&options.include_label_prefix),
        config_tracking: options.tracks_configs,
        ingress_prefix: options.ingress_prefix.clone(),
        metrics_server: options.metrics_server.clone(),
        event_webhook: event_webhook.cloned(),
        operator_namespace: Some(options.election_namespace.clone()),
        cross_namespace: !options.is_narrow,
    })
}

/// What the options come to.
fn operation(options: &Flagger) -> Result<Operation> {
    let kubeconfig = Some(&options.kubeconfig).filter(|file| !file.is_empty());
    let port = options.port().map_err(|why| anyhow!(why))?;
    let only = Some(&options.namespace).filter(|name| !name.is_empty());
    let other_namespaces = if options.is_narrow {
        OtherNamespaces::Refused
    } else {
        OtherNamespaces::Allowed
    };
    Ok(Operation {
        cluster: Cluster {
            kubeconfig: kubeconfig.map(Into::into),
            context: None,
            server: None,
            in_pod: false,
            request_timeout: REQUEST_TIMEOUT,
            label: None,
        },
        settings: slipway_runtime::Settings {
            replica: run::replica(std::env::var("POD_NAME").ok()),
            namespace: options.election_namespace.clone(),
            namespaces: only.into_iter().cloned().collect(),
            // Whatever the flag says: the original, which may run beside us, waits for the same Lease.
            election: Some(Election::default()),
            request_timeout: REQUEST_TIMEOUT,
            ..slipway_runtime::Settings::default()
        },
        capabilities: vec![(CAPABILITY.controller)(&settings(options)?)],
        // As the original listens.
        probes: SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
        metrics: None,
        label: None,
        member_hosts: AllowedHosts::any(),
        rules: Rules::default(),
        other_namespaces,
        // As the original does: who asks a Prometheus by http with a password has to get their answers.
        credentials_over_http: true,
        request_filter: None,
        webhooks: None,
    })
}
