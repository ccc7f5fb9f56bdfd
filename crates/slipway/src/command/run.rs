//! `slipway run`: the operator.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use slipway_restarts::{DefaultCriteria, Scope};
use slipway_runtime::{Election, Environment, Operator, probes};
use tokio::net::TcpListener;

use super::until_told_to_end;
use crate::args::{RestartScope, Run};
use crate::connect;
use crate::registry::{self, Settings};

/// Runs until it is told to end, then ends in good order.
pub(crate) fn run(arguments: &Run) -> Result<()> {
    let settings = Settings {
        restarts: restarts(arguments),
    };
    let capabilities = registry::capabilities(&arguments.controllers, &settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the operator's runtime")?;
    runtime.block_on(async {
        let environment = Environment::system().context("drawing random numbers")?;
        let client = connect::client(&arguments.connection).await?;
        let mut operator = Operator::new(environment, client, operator(arguments));
        for capability in capabilities {
            operator = operator.with(capability);
        }
        let address = SocketAddr::new(arguments.bind, arguments.port);
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("listening on {address}: is the port taken?"))?;
        let address = listener.local_addr().context("finding the port")?;
        tracing::info!(%address, "serving /healthz, /ready and /metrics");
        let serving = tokio::spawn(probes::serve(listener, operator.view()));
        let ended = operator.run(until_told_to_end()?).await;
        serving.abort();
        ended.context("running the operator")?;
        tracing::info!("ended in good order");
        Ok(())
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
        replica: replica(arguments),
        namespace: election.operator_namespace.clone(),
        namespaces: arguments.namespace.clone(),
        election: (!election.no_leader_elect).then(|| Election {
            lease_duration: lease,
            renew_deadline: part(usual.renew_deadline),
            retry_period: part(usual.retry_period),
            skew: part(usual.skew),
        }),
        request_timeout: arguments.connection.request_timeout,
        ..slipway_runtime::Settings::default()
    }
}

/// The replica's name: as told, else the machine's and the process's, so that two on one machine differ.
fn replica(arguments: &Run) -> String {
    arguments.election.replica.clone().unwrap_or_else(|| {
        let host = std::env::var("HOSTNAME")
            .ok()
            .filter(|name| !name.is_empty());
        let host = host.unwrap_or_else(|| "slipway".to_owned());
        format!("{host}_{}", std::process::id())
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
