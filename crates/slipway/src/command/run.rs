//! `slipway run`: the operator.

use std::net::SocketAddr;

use anyhow::Result;
use slipway_api::zones::injected;
use slipway_restarts::{DefaultCriteria, Scope};
use slipway_runtime::Election;
use slipway_runtime::tls::{Files, Injection, SelfSigned, Source};
use slipway_runtime::webhook::Limits;
use slipway_zones::admit::Switches;

use super::operation::{Operation, Webhooks};
use crate::args::{PROGRAM, RestartScope, Run};
use crate::connect::Cluster;
use crate::exit::no_webhooks;
use crate::registry::{self, Settings};

/// Runs until it is told to end, then ends in good order.
pub(crate) fn run(arguments: &Run) -> Result<()> {
    operation(arguments)?.run()
}

/// What the options come to.
fn operation(arguments: &Run) -> Result<Operation> {
    let settings = Settings {
        restarts: restarts(arguments),
        zones: zones(arguments),
        webhooks: arguments.webhooks.is_on.then_some(Switches {
            tracks_zones: arguments.zones.use_zone_tracker,
            is_strict: arguments.webhooks.strict_admission,
        }),
    };
    let capabilities = registry::capabilities(&arguments.controllers, &settings)?;
    let hooks = registry::webhooks(&capabilities, &settings);
    if settings.webhooks.is_some() && hooks.is_empty() {
        return Err(no_webhooks().into());
    }
    let label = match arguments.namespace.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    let given = &arguments.webhooks;
    Ok(Operation {
        cluster: Cluster {
            kubeconfig: arguments.connection.kubeconfig.clone(),
            context: arguments.connection.context.clone(),
            server: None,
            in_pod: false,
            request_timeout: arguments.connection.request_timeout,
            label: None,
        },
        settings: operator(arguments),
        capabilities,
        probes: SocketAddr::new(arguments.bind, arguments.port),
        metrics: None,
        label: arguments.zones.cluster_label.clone().or(label),
        vet: None,
        webhooks: (!hooks.is_empty()).then(|| Webhooks {
            hooks,
            address: SocketAddr::new(arguments.bind, given.port),
            limits: Limits {
                request_timeout: given.request_timeout,
                ..Limits::default()
            },
            source: source(arguments),
            client_ca: given.client_ca.clone(),
            drain: given.drain,
        }),
    })
}

/// How the operator runs.
fn operator(arguments: &Run) -> slipway_runtime::Settings {
    let election = &arguments.election;
    let lease = election.lease_duration;
    let usual = Election::default();
    // The usual proportions, whatever the length.
    let part = |of: std::time::Duration| {
        lease.mul_f64(of.as_secs_f64() / usual.lease_duration.as_secs_f64())
    };
    slipway_runtime::Settings {
        replica: replica(election.replica.clone()),
        namespace: election.operator_namespace.clone(),
        namespaces: arguments.namespace.clone(),
        election: (!election.no_leader_elect).then(|| Election {
            lease_duration: lease,
            renew_deadline: part(usual.renew_deadline),
            retry_period: part(usual.retry_period),
            skew: part(usual.skew),
            without_lease: usual.without_lease,
        }),
        request_timeout: arguments.connection.request_timeout,
        ..slipway_runtime::Settings::default()
    }
}

/// The replica's name: as told, else the machine's and the process's, so that two on one machine differ.
pub(super) fn replica(told: Option<String>) -> String {
    told.unwrap_or_else(|| {
        let host = std::env::var("HOSTNAME")
            .ok()
            .filter(|name| !name.is_empty());
        let host = host.unwrap_or_else(|| "slipway".to_owned());
        format!("{host}_{}", std::process::id())
    })
}

/// A name that stays until the process ends.
pub(super) fn for_ever(name: &str) -> &'static str {
    String::leak(name.to_owned())
}

fn zones(arguments: &Run) -> slipway_zones::Settings {
    let given = &arguments.zones;
    slipway_zones::Settings {
        cluster_domain: given.cluster_domain.clone(),
        tracker: for_ever(&given.zone_tracker_config_map_name),
        poll: given.mirror_interval,
        question_timeout: given.pods_timeout,
        webhooks: arguments
            .webhooks
            .is_on
            .then(|| injected(&hooked(arguments))),
        ..slipway_zones::Settings::default()
    }
}

/// The namespaces whose webhook configurations are ours: that of the operator, and those that it looks after; none for
/// all.
fn hooked(arguments: &Run) -> Vec<String> {
    let mut all = arguments.namespace.clone();
    let own = &arguments.election.operator_namespace;
    if !all.is_empty() && !all.contains(own) {
        all.push(own.clone());
    }
    all
}

fn source(arguments: &Run) -> Source {
    let given = &arguments.webhooks;
    if let (Some(certificate), Some(key)) = (&given.tls_cert_file, &given.tls_key_file) {
        return Source::Files(Files {
            certificate: certificate.clone(),
            key: key.clone(),
        });
    }
    let home = &arguments.election.operator_namespace;
    let named = given.tls_self_signed_dns_name.clone();
    Source::SelfSigned(SelfSigned {
        namespace: home.clone(),
        secret: given.tls_self_signed_secret_name.clone(),
        names: vec![named.unwrap_or_else(|| format!("{PROGRAM}.{home}.svc"))],
        common_name: PROGRAM.to_owned(),
        organisation: given.tls_self_signed_org.clone(),
        lifetime: given.tls_self_signed_expiration,
        inject: (!given.no_ca_injection).then(|| Injection {
            selector: injected(&hooked(arguments)),
        }),
    })
}

fn restarts(arguments: &Run) -> slipway_restarts::Settings {
    let given = &arguments.restarts;
    let home = &arguments.election.operator_namespace;
    let usual = slipway_restarts::Settings::default();
    slipway_restarts::Settings {
        default_criteria: given.default_criteria.then(|| DefaultCriteria {
            labels: given.default_labels.iter().cloned().collect(),
            interval: given.default_interval,
            ..DefaultCriteria::default()
        }),
        scope: match given.scope {
            RestartScope::Cluster => Scope::Cluster,
            RestartScope::OwnNamespace => Scope::OwnNamespace,
        },
        protected_namespaces: given.protected_namespaces.iter().cloned().collect(),
        own_deployment: Some((home.clone(), arguments.election.operator_deployment.clone())),
        operator_namespace: Some(home.clone()),
        floor: given.min_interval.unwrap_or(usual.floor),
        max_concurrent: given.max_concurrent.and_then(|n| usize::try_from(n).ok()),
        ..usual
    }
}
