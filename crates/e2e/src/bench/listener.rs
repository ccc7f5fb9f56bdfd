//! Embedded servers of a bench: home, and maybe many others, behind one listener, each with a path and a token of its own.

use std::sync::Arc;

use anyhow::{Context, Result};
use kube::Client;
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::environment::InProcess;
use slipway_apiserver::https::{self, Https};
use slipway_apiserver::server::Server;
use slipway_apiserver::shell;
use tokio::sync::mpsc;

/// What the cluster is called that the operator runs in.
const HOME: &str = "home";
/// How many requests may wait for the core.
const WAITING: usize = 1024;
/// How many connections may be open: one for each cluster, and some.
const CONNECTIONS: usize = 19_000;

/// A listener, and what answers there.
pub(crate) struct Listener {
    server: Server,
    shell: Https,
}

impl Listener {
    /// Listens on loopback, with nobody who answers yet.
    pub(crate) fn open() -> Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let config = https::Config {
            connections: CONNECTIONS,
            ..https::Config::default()
        };
        let shell = Https::start(config, sender).context("listening on loopback")?;
        let server = Server::default();
        tokio::spawn(shell::serve(Arc::new(server.clone()), receiver));
        Ok(Self { server, shell })
    }

    /// An empty home, which answers from now on.
    pub(crate) fn home(&self) -> Result<Arc<Cluster>> {
        self.cluster(HOME)
    }

    /// An empty cluster, which answers from now on.
    pub(crate) fn cluster(&self, name: &str) -> Result<Arc<Cluster>> {
        // Nothing is called: there are no webhooks.
        let config = Config::real(name, Arc::new(InProcess::default()));
        let config = config.with_context(|| format!("making {name}"))?;
        let cluster = config.with_admin(&token(name)).build();
        self.server.add(cluster.clone());
        Ok(cluster)
    }

    /// The kubeconfig of a cluster's administrator.
    pub(crate) fn kubeconfig(&self, cluster: &Cluster) -> String {
        let name = cluster.name();
        let url = self.shell.url();
        let context = https::Context {
            name: "here".to_owned(),
            server: if name == HOME {
                url
            } else {
                format!("{url}/clusters/{name}")
            },
        };
        https::kubeconfig(&[context], self.shell.ca_pem(), &token(name))
    }
}

fn token(name: &str) -> String {
    format!("token-of-{name}")
}

/// Somebody who works on a cluster without a connection.
pub(crate) fn client(cluster: &Arc<Cluster>, namespace: &str) -> Client {
    let service = cluster.service(&token(cluster.name()));
    Client::new(service.with_agent("people"), namespace)
}
