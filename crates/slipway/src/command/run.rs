//! `slipway run`: the operator.

use std::net::SocketAddr;

use anyhow::Result;
use slipway_api::zones::injected;
use slipway_kernel::address::{AllowedHosts, Patterns};
use slipway_runtime::Election;
use slipway_runtime::tls::{Files, Injection, SelfSigned, Source};
use slipway_runtime::webhook::Limits;

use super::operation::{Operation, Webhooks};
use crate::args::{PROGRAM, Run};
use crate::capabilities::{Common, Served};
use crate::connect::Cluster;
use crate::exit::Usage;
use crate::registry::Registry;

/// Runs until it is told to end, then ends in good order.
pub(crate) fn run(registry: &Registry, arguments: &Run) -> Result<()> {
    operation(registry, arguments)?.run()
}

/// What the options come to.
pub(crate) fn operation(registry: &Registry, arguments: &Run) -> Result<Operation> {
    let given = &arguments.given.webhooks;
    let common = Common {
        namespace: &arguments.election.operator_namespace,
        deployment: Some(&arguments.election.operator_deployment),
        is_alone: arguments.election.no_leader_elect,
        webhooks: given.is_on.then(|| Served {
            selector: Some(injected(&hooked(arguments))),
            is_strict: given.strict_admission,
        }),
    };
    let (mut capabilities, mut hooks, mut told) = (Vec::new(), Vec::new(), None);
    for entry in registry.named(&arguments.controllers)? {
        let running = (entry.from_options)(&arguments.given.matches, &common)?;
        capabilities.push(running.controller);
        hooks.extend(running.hooks);
        told = told.or(running.cluster_label);
    }
    if given.is_on && hooks.is_empty() {
        return Err(registry.no_webhooks().into());
    }
    let label = match arguments.namespace.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
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
        label: told.or(label),
        member_hosts: member_hosts(&arguments.members.hosts)?,
        rules: arguments.outside.rules()?,
        other_namespaces: arguments.outside.secrets()?,
        credentials_over_http: arguments.outside.credentials_over_http,
        request_filter: None,
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

/// Which API servers kubeconfigs of members may name; all, if none is named.
fn member_hosts(named: &[String]) -> Result<AllowedHosts> {
    if named.is_empty() {
        return Ok(AllowedHosts::any());
    }
    let patterns = Patterns::parse(named.iter().map(String::as_str));
    let patterns = patterns.map_err(|error| Usage(format!("--member-hosts: {error}")))?;
    Ok(AllowedHosts::only(patterns))
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
        members: arguments.members.settings(),
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
    let given = &arguments.given.webhooks;
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
