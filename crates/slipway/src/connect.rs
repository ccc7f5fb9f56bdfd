//! Which cluster to talk to, in kubectl's order: the file that is named, KUBECONFIG, ~/.kube/config, the pod's own
//! service account.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::header::{HeaderName, HeaderValue};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use slipway_runtime::Link;

/// What we call ourselves in requests.
pub(crate) const AGENT: &str = concat!("slipway/", env!("CARGO_PKG_VERSION"));
/// What says which cluster a request is meant for, to servers that look at it.
const CLUSTER: HeaderName = HeaderName::from_static("x-cluster");

/// A cluster, as it is to be found.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    /// A kubeconfig.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// One of its contexts; without it the current one.
    pub(crate) context: Option<String>,
    /// Another address of the API server than the kubeconfig's.
    pub(crate) server: Option<String>,
    /// Only the pod's own service account will do.
    pub(crate) in_pod: bool,
    /// How long a request may take.
    pub(crate) request_timeout: Duration,
    /// What requests say that they are meant for.
    pub(crate) label: Option<String>,
}

/// A client that retries nothing by itself: whether something is tried again is decided by who asked for it. With the
/// address of the API server, for people.
pub(crate) async fn client(cluster: &Cluster) -> Result<(Client, String)> {
    let mut config = find(cluster).await?;
    link(cluster.request_timeout).apply(&mut config);
    if let Some(label) = &cluster.label {
        let label = HeaderValue::from_str(label)
            .with_context(|| format!("sending the name {label:?} with each request"))?;
        config.headers.push((CLUSTER, label));
    }
    let server = config.cluster_url.to_string();
    tracing::info!(server, "connecting");
    let client = Client::try_from(config).context("making the client of the API server")?;
    Ok((client, server))
}

/// How API servers are spoken with.
pub(crate) fn link(request_timeout: Duration) -> Link {
    Link {
        request_timeout,
        agent: AGENT,
    }
}

async fn find(cluster: &Cluster) -> Result<Config> {
    if cluster.in_pod {
        return Config::incluster().context("failed to build Kubernetes client config");
    }
    let options = KubeConfigOptions {
        context: cluster.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = &cluster.kubeconfig {
        let read = Kubeconfig::read_from(path)
            .with_context(|| format!("reading the kubeconfig {}", path.display()))?;
        let mut config = Config::from_custom_kubeconfig(read, &options)
            .await
            .with_context(|| format!("using the kubeconfig {}", path.display()))?;
        if let Some(server) = &cluster.server {
            config.cluster_url = server
                .parse()
                .with_context(|| format!("using the API server at {server}"))?;
        }
        return Ok(config);
    }
    let from_file = match Config::from_kubeconfig(&options).await {
        Ok(config) => return Ok(config),
        Err(error) => error,
    };
    // Who names a file or a context means it.
    if cluster.context.is_some() || std::env::var_os("KUBECONFIG").is_some() {
        return Err(from_file).context("using the kubeconfig");
    }
    match Config::incluster() {
        Ok(config) => Ok(config),
        Err(from_pod) => bail!(
            "finding a cluster: there is no kubeconfig ({from_file}) and this is no pod ({from_pod}); \
             use --kubeconfig FILE"
        ),
    }
}
