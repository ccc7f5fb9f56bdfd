//! One running replica: its client, its probes, its webhooks, its end. Whoever knows the options fills this in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use futures::FutureExt;
use slipway_kernel::Capability;
use slipway_kernel::admission::Admit;
use slipway_runtime::gather::{Gatherer, Http};
use slipway_runtime::tls::{self, Certificates, Source};
use slipway_runtime::vet::Vet;
use slipway_runtime::webhook::{self, Limits};
use slipway_runtime::{Environment, Operator, Settings, probes};
use tokio::net::TcpListener;

use super::until_told_to_end;
use crate::connect::{self, Cluster};

/// What runs, and where.
pub(crate) struct Operation {
    /// Which cluster.
    pub(crate) cluster: Cluster,
    /// How the operator runs.
    pub(crate) settings: Settings,
    /// What it does.
    pub(crate) capabilities: Vec<Arc<dyn Capability>>,
    /// Where `/ready` and `/metrics` are.
    pub(crate) probes: SocketAddr,
    /// The header `X-Cluster` of requests to pods.
    pub(crate) label: Option<String>,
    /// Who looks at requests before they are answered.
    pub(crate) vet: Option<Arc<dyn Vet>>,
    /// What is served to the API server.
    pub(crate) webhooks: Option<Webhooks>,
}

/// Webhooks, and where they are served.
pub(crate) struct Webhooks {
    /// The webhooks.
    pub(crate) hooks: Vec<Arc<dyn Admit>>,
    /// Where.
    pub(crate) address: SocketAddr,
    /// How long, and how much.
    pub(crate) limits: Limits,
    /// The certificate.
    pub(crate) source: Source,
}

impl Operation {
    /// Runs until it is told to end, then ends in good order.
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("starting the operator's runtime")?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> Result<()> {
        let stop = until_told_to_end()?.boxed().shared();
        let environment = Environment::system().context("drawing random numbers")?;
        let listener = listen(self.probes).await?;
        let (client, server) = connect::client(&self.cluster).await?;
        let settings = Settings {
            server,
            ..self.settings
        };
        let mut operator = Operator::new(environment.clone(), client, settings);
        for capability in self.capabilities {
            operator = operator.with(capability);
        }
        let mut gatherer = Gatherer::new(operator.client(), Arc::new(Http::new()));
        if let Some(label) = &self.label {
            gatherer = gatherer.labelled(label);
        }
        operator = operator.gathering(Arc::new(gatherer));
        if let Some(vet) = self.vet {
            operator = operator.vetting(vet);
        }
        let mut door = None;
        if let Some(webhooks) = self.webhooks {
            operator = operator.admitting(webhooks.hooks).limited(webhooks.limits);
            let listener = listen(webhooks.address).await?;
            let opened = Door::open(&operator, listener, webhooks.source, environment);
            door = Some(opened.await?);
        }
        let address = listener.local_addr().context("finding the port")?;
        tracing::info!(%address, "serving /healthz, /ready and /metrics");
        let probing = tokio::spawn(probes::serve(listener, operator.view()));
        let door = async {
            match door {
                Some(door) => door.serve(stop.clone()).await,
                None => Ok(()),
            }
        };
        let (ended, closed) = tokio::join!(operator.run(stop.clone()), door);
        probing.abort();
        ended.context("running the operator")?;
        closed?;
        tracing::info!("ended in good order");
        Ok(())
    }
}

/// The server of webhooks.
struct Door {
    listener: TcpListener,
    certificates: Certificates,
    admissions: webhook::Admissions,
}

impl Door {
    /// Looks for the certificate. Where the API does not let us see it, it is looked for again while
    /// everything else goes on.
    async fn open(
        operator: &Operator,
        listener: TcpListener,
        source: Source,
        environment: Environment,
    ) -> Result<Self> {
        let client = operator.client();
        let certificates =
            Certificates::new(source, environment, Some(client), Some(&operator.view()));
        match certificates.prepare().await {
            Ok(()) => {}
            Err(error @ (tls::Error::Secret { .. } | tls::Error::Restless { .. })) => {
                tracing::error!(%error, "webhooks have no certificate yet");
            }
            Err(error) => return Err(error).context("failed to get certificate"),
        }
        Ok(Self {
            listener,
            certificates,
            admissions: operator.admissions(),
        })
    }

    async fn serve(self, stop: impl Future<Output = ()> + Send + Clone) -> Result<()> {
        let address = self.listener.local_addr().context("finding the port")?;
        let paths: Vec<&str> = self.admissions.paths().collect();
        tracing::info!(%address, paths = paths.join(","), "serving webhooks");
        let tls = self.certificates.server_config();
        let serving = webhook::serve(self.listener, tls, self.admissions, stop.clone());
        let (served, ()) = tokio::join!(serving, self.certificates.keep(stop));
        served.context("serving webhooks")
    }
}

/// Takes a port. All addresses are those of both families, where there are two.
async fn listen(address: SocketAddr) -> Result<TcpListener> {
    let taken = match TcpListener::bind(address).await {
        Err(_) if address.ip().is_unspecified() && address.is_ipv6() => {
            let fallback = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
            TcpListener::bind(fallback).await
        }
        other => other,
    };
    taken.with_context(|| format!("listening on {address}: is the port taken?"))
}
