//! Which cluster to talk to, in kubectl's order: the file that is named, KUBECONFIG, ~/.kube/config, the pod's own
//! service account.

use anyhow::{Context, Result, bail};
use http::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::args::Connection;

/// What we call ourselves in requests.
const AGENT: &str = concat!("slipway/", env!("CARGO_PKG_VERSION"));

/// A client that retries nothing by itself: whether something is tried again is decided by who asked for it.
pub(crate) async fn client(connection: &Connection) -> Result<Client> {
    let mut config = find(connection).await?;
    config.default_retry = false;
    // Watches have their own deadlines; requests are limited by the operator.
    config.connect_timeout = Some(connection.request_timeout);
    config.write_timeout = Some(connection.request_timeout);
    let agent = (USER_AGENT, HeaderValue::from_static(AGENT));
    config.headers.push(agent);
    tracing::info!(server = %config.cluster_url, "connecting");
    Client::try_from(config).context("making the client of the API server")
}

async fn find(connection: &Connection) -> Result<Config> {
    let options = KubeConfigOptions {
        context: connection.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = &connection.kubeconfig {
        let read = Kubeconfig::read_from(path)
            .with_context(|| format!("reading the kubeconfig {}", path.display()))?;
        return Config::from_custom_kubeconfig(read, &options)
            .await
            .with_context(|| format!("using the kubeconfig {}", path.display()));
    }
    let from_file = match Config::from_kubeconfig(&options).await {
        Ok(config) => return Ok(config),
        Err(error) => error,
    };
    // Who names a file or a context means it.
    if connection.context.is_some() || std::env::var_os("KUBECONFIG").is_some() {
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
