//! One running replica: its client, its probes, its webhooks, its end. Whoever knows the options fills this in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use futures::FutureExt;
use slipway_kernel::Controller;
use slipway_kernel::address::{AllowedHosts, Rules};
use slipway_kernel::admission::Admit;
use slipway_kernel::question::OtherNamespaces;
use slipway_runtime::gather::{Gatherer, Http};
use slipway_runtime::member::ByKubeconfig;
use slipway_runtime::outside::{self, NoSecrets, Outside, SystemResolver, Terms};
use slipway_runtime::request_filter::RequestFilter;
use slipway_runtime::tls::{self, Certificates, Source};
use slipway_runtime::webhook::{self, Limits};
use slipway_runtime::{Environment, Operator, Settings, cores, probes};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::until_told_to_end;
use crate::cluster_label::Origin;
use crate::connect::{self, Cluster};

/// What runs, and where.
pub(crate) struct Operation {
    /// Which cluster.
    pub(crate) cluster: Cluster,
    /// How the operator runs.
    pub(crate) settings: Settings,
    /// What it does.
    pub(crate) capabilities: Vec<Arc<dyn Controller>>,
    /// Where `/ready` and `/metrics` are.
    pub(crate) probes: SocketAddr,
    /// Where metrics are as well.
    pub(crate) metrics: Option<SocketAddr>,
    /// The header `X-Cluster` of requests to pods.
    pub(crate) label: Option<String>,
    /// Who looks at requests before they are answered.
    pub(crate) request_filter: Option<Arc<dyn RequestFilter>>,
    /// Which API servers kubeconfigs of members may name.
    pub(crate) member_hosts: AllowedHosts,
    /// Who outside may be called.
    pub(crate) rules: Rules,
    /// Whose Secrets may be used for that.
    pub(crate) other_namespaces: OtherNamespaces,
    /// Whether that may be where anybody on the way can read it.
    pub(crate) credentials_over_http: bool,
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
    /// The CA of those who may call; none if anybody may.
    pub(crate) client_ca: Option<PathBuf>,
    /// How long they are served after the end was told: until nobody is sent here any more.
    pub(crate) drain: Duration,
}

impl Operation {
    /// Runs until it is told to end, then ends in good order.
    pub(crate) fn run(self) -> Result<()> {
        // It will hold credentials and keys. Where the system does not let us, it runs all the same.
        if let Err(error) = cores::forbid() {
            tracing::warn!(%error, "a core of this process can be written, with secrets in it");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("starting the operator's runtime")?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> Result<()> {
        let stop = until_told_to_end()?.boxed().shared();
        let environment = Environment::system().context("drawing random numbers")?;
        let listener = listen(self.probes, "/healthz, /ready and /metrics").await?;
        let (client, server) = connect::client(&self.cluster).await?;
        let settings = Settings {
            server,
            ..self.settings
        };
        let mut operator = Operator::new(environment.clone(), client, settings);
        for capability in self.capabilities {
            operator = operator.with(capability);
        }
        let link = connect::link(self.cluster.request_timeout);
        operator = operator.connecting(Arc::new(ByKubeconfig::new(self.member_hosts, link)));
        let outside = Outside::new(Terms {
            rules: self.rules,
            other_namespaces: self.other_namespaces,
            credentials_over_http: self.credentials_over_http,
            limits: outside::Limits::default(),
            resolver: Arc::new(SystemResolver),
            secrets: Arc::new(NoSecrets),
            agent: connect::AGENT,
        });
        let gatherer = Gatherer::new(operator.client(), Arc::new(Http::new()));
        let gatherer = gatherer.asking(&outside);
        let origin = Origin::new(self.label.as_deref());
        operator = operator.gathering(Arc::new(gatherer.sent_by(Arc::new(origin))));
        if let Some(filter) = self.request_filter {
            operator = operator.with_request_filter(filter);
        }
        let mut door = None;
        if let Some(webhooks) = self.webhooks {
            let hooks = webhooks.hooks.clone();
            operator = operator.admitting(hooks).limited(webhooks.limits);
            let listener = listen(webhooks.address, "webhooks").await?;
            door = Some(Door::open(&operator, listener, webhooks, environment).await?);
        }
        let address = listener.local_addr().context("finding the port")?;
        tracing::info!(%address, "serving /healthz, /ready and /metrics");
        let mut probing = vec![tokio::spawn(probes::serve(listener, operator.view()))];
        if let Some(address) = self.metrics {
            let listener = listen(address, "metrics").await?;
            probing.push(tokio::spawn(probes::serve(listener, operator.view())));
        }
        // What webhooks decide on is watched, and what they leave to be undone is done, as long as they are served.
        let (shut, is_shut) = oneshot::channel::<()>();
        operator = operator.outlasting(is_shut.map(drop));
        let door = async {
            let served = match door {
                Some(door) => door.serve(stop.clone()).await,
                None => Ok(()),
            };
            drop(shut);
            served
        };
        let (ended, closed) = tokio::join!(operator.run(stop.clone()), door);
        for probing in probing {
            probing.abort();
        }
        ended.context("running the operator")?;
        closed?;
        tracing::info!("shut down cleanly");
        Ok(())
    }
}

/// The server of webhooks.
struct Door {
    listener: TcpListener,
    certificates: Certificates,
    admissions: webhook::Admissions,
    drain: Duration,
}

impl Door {
    /// Looks for the certificate. Where the API does not let us see it, it is looked for again while
    /// everything else goes on.
    async fn open(
        operator: &Operator,
        listener: TcpListener,
        webhooks: Webhooks,
        environment: Environment,
    ) -> Result<Self> {
        let (client, view) = (operator.client(), operator.view());
        let mut certificates =
            Certificates::new(webhooks.source, environment, Some(client), Some(&view));
        if let Some(ca) = webhooks.client_ca {
            certificates = certificates.only_for(ca);
        }
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
            drain: webhooks.drain,
        })
    }

    /// Serves until a while after `stop`: the replica is not ready any more, but API servers learn of that later.
    async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let address = self.listener.local_addr().context("finding the port")?;
        let paths: Vec<&str> = self.admissions.paths().collect();
        tracing::info!(%address, paths = paths.join(","), "serving webhooks");
        let tls = self.certificates.server_config();
        let drain = self.drain;
        let stop = stop.then(move |()| tokio::time::sleep(drain)).boxed();
        let stop = stop.shared();
        let serving = webhook::serve(self.listener, tls, self.admissions, stop.clone());
        let (served, ()) = tokio::join!(serving, self.certificates.keep(stop));
        served.context("serving webhooks")
    }
}

/// Takes a port. All addresses are those of both families, where there are two.
async fn listen(address: SocketAddr, what: &str) -> Result<TcpListener> {
    let taken = match TcpListener::bind(address).await {
        Err(_) if address.ip().is_unspecified() && address.is_ipv6() => {
            let fallback = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
            TcpListener::bind(fallback).await
        }
        other => other,
    };
    taken.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow!("cannot listen on {address} for {what}: port in use; choose another")
        }
        _ => anyhow!(error).context(format!("cannot listen on {address} for {what}")),
    })
}
