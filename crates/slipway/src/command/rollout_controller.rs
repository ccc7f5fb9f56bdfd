//! `slipway rollout-controller`: restarts in place of the original, with its flags, its Lease, its default criteria and
//! its reach over the whole cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use slipway_kernel::address::{AllowedHosts, Rules};
use slipway_kernel::question::OtherNamespaces;
use slipway_restarts::CAPABILITY;
use slipway_runtime::Election;

use super::operation::Operation;
use super::run;
use crate::args::{LogFormat, RolloutController};
use crate::connect::Cluster;
use crate::goflag::Stopped;
use crate::{logs, manifests, output};

/// A request takes no longer than this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Where it is installed, as far as nobody says otherwise.
const NAMESPACE: &str = "rollout";
/// Where a pod finds its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Runs until it is told to end.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let options = match RolloutController::parse(arguments) {
        Ok(options) => options,
        Err(Stopped::Help) => {
            output::note(RolloutController::usage().trim_end());
            return ExitCode::SUCCESS;
        }
        Err(Stopped::Wrong(why)) => {
            output::note(&why);
            output::note(RolloutController::usage().trim_end());
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

/// What the options come to.
fn operation(options: &RolloutController) -> Result<Operation> {
    let home = namespace();
    let settings = slipway_restarts::Settings {
        own_deployment: Some((home.clone(), own_deployment(pod().as_deref()))),
        operator_namespace: Some(home.clone()),
        ..slipway_restarts::Settings::drop_in()
    };
    let kubeconfig = Some(&options.kubeconfig).filter(|file| !file.is_empty());
    // Somewhere it has to be; without an address nobody but this machine can ask.
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let probes = options.probes().map_err(|why| anyhow!(why))?;
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
            replica: run::replica(pod()),
            namespace: home,
            election: options.elects.then(Election::default),
            request_timeout: REQUEST_TIMEOUT,
            ..slipway_runtime::Settings::default()
        },
        capabilities: vec![(CAPABILITY.controller)(&settings)],
        probes: probes.unwrap_or(nowhere),
        metrics: options.metrics().map_err(|why| anyhow!(why))?,
        label: None,
        member_hosts: AllowedHosts::any(),
        rules: Rules::default(),
        other_namespaces: OtherNamespaces::Refused,
        credentials_over_http: false,
        request_filter: None,
        webhooks: None,
    })
}

fn pod() -> Option<String> {
    std::env::var("POD_NAME").ok()
}

/// The namespace of the pod, which is that of the Lease.
fn namespace() -> String {
    let told = std::env::var("POD_NAMESPACE").ok();
    let told = told.or_else(|| std::fs::read_to_string(NAMESPACE_FILE).ok());
    let told = told.map(|name| name.trim().to_owned());
    told.filter(|name| !name.is_empty())
        .unwrap_or_else(|| NAMESPACE.to_owned())
}

/// The Deployment of a pod: its name without the `ReplicaSet`'s and the pod's own endings. The original's manifests call it
/// otherwise than the design does.
fn own_deployment(pod: Option<&str>) -> String {
    let host = std::env::var("HOSTNAME").ok();
    let pod = pod.or(host.as_deref()).unwrap_or_default();
    let mut parts = pod.rsplitn(3, '-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(own), Some(_), Some(name)) if own.len() == 5 && !name.is_empty() => name.to_owned(),
        _ => manifests::DEPLOYMENT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::own_deployment;

    #[test]
    fn a_pod_knows_its_deployment_whatever_that_is_called() {
        for (pod, deployment) in [
            ("rollout-controller-7d4b9c6f5-x2x9z", "rollout-controller"),
            (
                "rollout-controller-manager-7d4b9c6f5-x2x9z",
                "rollout-controller-manager",
            ),
            ("laptop", "rollout-controller"),
            ("", "rollout-controller"),
        ] {
            assert_eq!(own_deployment(Some(pod)), deployment, "{pod}");
        }
    }
}
