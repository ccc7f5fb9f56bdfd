//! `slipway rollout-operator`: the operator in place of the original, with its flags, its messages and its exit codes.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use slipway_kernel::address::{AllowedHosts, Rules};
use slipway_kernel::question::OtherNamespaces;
use slipway_runtime::request_filter::RequestFilter;
use slipway_runtime::tls::{Files, Injection, SelfSigned, Source};
use slipway_runtime::webhook::Limits;
use slipway_runtime::{Election, WithoutLease};
use slipway_zones::admit::Switches;
use slipway_zones::{CAPABILITY, Replicas, Setup};

use super::operation::{Operation, Webhooks};
use super::run;
use crate::args::{LogFormat, PROGRAM, RolloutOperator};
use crate::capabilities::zones::for_ever;
use crate::cluster_label::ClusterLabel;
use crate::connect::Cluster;
use crate::goflag::Stopped;
use crate::{logs, output};

/// A request of ours takes no longer than this, whatever the flag allows: the original's five minutes are for its
/// watches.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs until it is told to end.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let options = match RolloutOperator::parse(arguments) {
        Ok(options) => options,
        Err(Stopped::Help) => {
            output::note(RolloutOperator::usage().trim_end());
            return ExitCode::SUCCESS;
        }
        Err(Stopped::Wrong(why)) => {
            output::note(&why);
            output::note(RolloutOperator::usage().trim_end());
            return ExitCode::from(2);
        }
    };
    if let Err(why) = options.check() {
        output::note(&why);
        return ExitCode::FAILURE;
    }
    start_logs(&options);
    match operation(&options).and_then(Operation::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start_logs(options: &RolloutOperator) {
    let format = match options.log_format.as_str() {
        "json" => LogFormat::Json,
        _ => LogFormat::Logfmt,
    };
    logs::start(format, &logs::own(&options.log_level));
    let tracing = [
        "OTEL_TRACES_EXPORTER",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "JAEGER_AGENT_HOST",
        "JAEGER_ENDPOINT",
    ];
    if tracing.iter().any(|name| std::env::var_os(name).is_some()) {
        tracing::warn!("traces are asked for by the environment; this operator exports none");
    }
}

/// What the options come to.
fn operation(options: &RolloutOperator) -> Result<Operation> {
    let setup = setup(options);
    let timeout = match options.client_timeout {
        Duration::ZERO => REQUEST_TIMEOUT,
        given => given.min(REQUEST_TIMEOUT),
    };
    let webhooks = if options.tls.is_enabled {
        Some(Webhooks {
            hooks: (CAPABILITY.webhooks)(&setup),
            address: everywhere("-server-tls.port", options.tls.port)?,
            limits: Limits {
                request_timeout: options.tls.request_timeout,
                ..Limits::default()
            },
            source: source(options),
            client_ca: None,
            // Its manifests have one replica: there is nobody else to whom requests could go meanwhile.
            drain: Duration::ZERO,
        })
    } else {
        None
    };
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(Operation {
        cluster: Cluster {
            kubeconfig: given(&options.config_file).map(Into::into),
            context: None,
            server: given(&options.api_url),
            in_pod: options.config_file.is_empty(),
            request_timeout: timeout,
            label: given(&options.namespace),
        },
        settings: slipway_runtime::Settings {
            replica: run::replica(std::env::var("POD_NAME").ok()),
            namespace: options.namespace.clone(),
            namespaces: vec![options.namespace.clone()],
            request_timeout: timeout,
            // The original is one replica, and its Role has no Lease.
            election: Some(Election {
                without_lease: WithoutLease::Alone,
                ..Election::default()
            }),
            ..slipway_runtime::Settings::default()
        },
        capabilities: vec![(CAPABILITY.controller)(&setup)],
        probes: everywhere("-server.port", options.port)?,
        metrics: None,
        label: given(&options.namespace),
        member_hosts: AllowedHosts::any(),
        rules: Rules::default(),
        other_namespaces: OtherNamespaces::Refused,
        credentials_over_http: false,
        request_filter: ClusterLabel::new(&options.namespace, &options.validation)?.map(shared),
        webhooks,
    })
}

fn shared(label: ClusterLabel) -> Arc<dyn RequestFilter> {
    Arc::new(label)
}

fn setup(options: &RolloutOperator) -> Setup {
    let is_served = options.tls.is_enabled;
    let selector = format!(
        "{}={}",
        slipway_api::zones::WEBHOOK_NAMESPACE,
        options.namespace
    );
    let usual = slipway_zones::Settings::default();
    Setup {
        settings: slipway_zones::Settings {
            cluster_domain: options.cluster_domain.clone(),
            tracker: for_ever(&options.zone_tracker),
            poll: options.interval.max(Duration::from_millis(100)),
            question_timeout: match options.pods_timeout {
                Duration::ZERO => usual.question_timeout,
                given => given,
            },
            webhooks: is_served.then_some(selector),
            replicas: Replicas::OneWithoutLease,
            ..usual
        },
        webhooks: is_served.then_some(Switches {
            tracks_zones: options.use_zone_tracker,
            is_strict: false,
        }),
    }
}

/// A port on all addresses, as Go listens.
fn everywhere(flag: &str, port: i64) -> Result<SocketAddr> {
    let port = u16::try_from(port)
        .map_err(|_| anyhow!("listen tcp: address {port}: invalid port ({flag})"))?;
    Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port))
}

fn source(options: &RolloutOperator) -> Source {
    let tls = &options.tls;
    if !tls.is_self_signed {
        return Source::Files(Files {
            certificate: tls.cert_file.clone().into(),
            key: tls.key_file.clone().into(),
        });
    }
    let namespaces = [options.namespace.clone()];
    Source::SelfSigned(SelfSigned {
        namespace: options.namespace.clone(),
        secret: tls.secret.clone(),
        names: vec![options.dns_name()],
        common_name: PROGRAM.to_owned(),
        organisation: tls.organization.clone(),
        lifetime: tls.expiration,
        inject: tls.updates_bundles.then(|| Injection {
            selector: slipway_api::zones::injected(&namespaces),
        }),
    })
}
