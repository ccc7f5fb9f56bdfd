//! The demo's clusters over HTTPS on loopback, for kubectl.
//!
//! The world's own tokens are known to everybody who reads the sources, so from outside only the one in the kubeconfig
//! counts, which nobody can guess.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::{Entropy, SystemEntropy};
use slipway_apiserver::https::{self, Https};
use slipway_apiserver::server::Server;
use slipway_apiserver::shell::{self, Body, Core};
use slipway_sim::stage;
use tokio::sync::mpsc;

use crate::kubeconfig::{self, Folder, Written};

/// How many requests may wait before the shell makes clients wait.
const WAITING: usize = 1024;

/// Clusters that can be reached with kubectl until this is dropped.
pub(crate) struct Open {
    folder: Folder,
    shell: Https,
    server: Server,
}

impl Open {
    /// Serves the clusters and writes a kubeconfig into a folder of its own. Call it on the runtime of the clusters.
    pub(crate) fn start(clusters: &[Arc<Cluster>]) -> Result<Self> {
        let entropy = SystemEntropy::new().context("drawing a token")?;
        let token = format!("{:032x}", entropy.draw());
        let folder = Folder::make(&format!("slipway-demo-{:016x}", entropy.draw() >> 64))
            .context("making a folder for the kubeconfig")?;
        let server = Server::default();
        for cluster in clusters {
            server.add(cluster.clone());
        }
        let (sender, receiver) = mpsc::channel(WAITING);
        let shell =
            Https::start(https::Config::default(), sender).context("listening on loopback")?;
        let door = Door {
            server: server.clone(),
            token: format!("Bearer {token}"),
        };
        tokio::spawn(shell::serve(Arc::new(door), receiver));
        let open = Self {
            folder,
            shell,
            server,
        };
        let names = clusters.iter().map(|cluster| cluster.name());
        let text = kubeconfig::text(&open.shell, names, &token);
        // It goes with its folder, whatever kubectl has made of it.
        Written::create(open.folder.path().join("kubeconfig").as_path(), &text)
            .context("writing the kubeconfig")?;
        Ok(open)
    }

    /// What to set KUBECONFIG to.
    pub(crate) fn kubeconfig(&self) -> String {
        self.folder.path().join("kubeconfig").display().to_string()
    }

    /// Ends watches, closes the port and removes the kubeconfig.
    pub(crate) async fn close(self) {
        for cluster in self.server.clusters() {
            cluster.shut_down();
        }
        self.shell.stop().await;
    }
}

/// Lets in who has the token of the kubeconfig, as administrator.
struct Door {
    server: Server,
    token: String,
}

impl Core for Door {
    fn handle(
        &self,
        mut request: Request<bytes::Bytes>,
    ) -> BoxFuture<'static, Option<Response<Body>>> {
        let headers = request.headers_mut();
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let inner = |token: &str| format!("Bearer {token}");
        let own = [stage::ADMIN, stage::TOKEN].map(inner);
        if given == Some(self.token.as_bytes()) {
            if let Ok(admin) = HeaderValue::from_str(&inner(stage::ADMIN)) {
                headers.insert(AUTHORIZATION, admin);
            }
        } else if own.iter().any(|own| given == Some(own.as_bytes())) {
            headers.remove(AUTHORIZATION);
        }
        Core::handle(&self.server, request)
    }
}
