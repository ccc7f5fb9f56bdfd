//! `slipway apiserver`: the embedded Kubernetes API server on its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, PostParams};
use slipway_apiserver::authenticate::{MASTERS, User};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::collect;
use slipway_apiserver::dial::TlsDial;
use slipway_apiserver::environment::{Entropy, SystemClock, SystemEntropy};
use slipway_apiserver::https::{self, Https};
use slipway_apiserver::server::Server;
use slipway_apiserver::shell;
use slipway_sim::actors::{Actors, Script};
use tokio::sync::mpsc;

use crate::args::Apiserver;
use crate::{kubeconfig, output};

/// How many requests may wait for the core before the shell makes clients wait.
const WAITING: usize = 1024;

/// Runs the server until it is told to end.
pub(crate) fn run(arguments: &Apiserver) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the server's runtime")?;
    runtime.block_on(serve(arguments))
}

async fn serve(arguments: &Apiserver) -> Result<()> {
    let entropy = SystemEntropy::new().context("drawing the administrator's token")?;
    let token = format!("{:032x}", entropy.draw());
    // From here on nothing is left behind, whoever ends this when.
    let ended = super::until_told_to_end()?;
    let server = Server::default();
    for name in &arguments.clusters {
        if !is_segment(name) {
            bail!("--clusters: {name:?} cannot stand in a path; use letters, digits, '-' and '.'");
        }
        let config = Config::real(name, Arc::new(TlsDial::new(BTreeMap::new())))
            .with_context(|| format!("making cluster {name}"))?;
        let cluster = config
            .with_token(&token, User::new("admin", &[MASTERS]))
            .build();
        if !arguments.no_controllers {
            tokio::spawn(collect::run(cluster.clone()));
        }
        populate(arguments, &cluster, &token)
            .await
            .with_context(|| format!("filling cluster {name}"))?;
        server.add(cluster);
    }
    let (sender, receiver) = mpsc::channel(WAITING);
    let config = https::Config {
        port: arguments.port,
        ..https::Config::default()
    };
    let shell = Https::start(config, sender).with_context(|| {
        format!(
            "listening on 127.0.0.1:{}: is the port taken?",
            arguments.port
        )
    })?;
    tokio::spawn(shell::serve(Arc::new(server.clone()), receiver));
    let names = arguments.clusters.iter().map(String::as_str);
    let kubeconfig = kubeconfig::text(&shell, names, &token);
    publish(arguments, &shell, &kubeconfig)?;
    ended.await;
    for cluster in server.clusters() {
        cluster.shut_down();
    }
    shell.stop().await;
    if let Some(path) = &arguments.kubeconfig_out {
        // It holds a token of a server that is gone.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Gives a cluster our definitions and the simulator's controllers, where they are asked for.
async fn populate(arguments: &Apiserver, cluster: &Arc<Cluster>, token: &str) -> Result<()> {
    let client = |agent: &str| Client::new(cluster.service(token).with_agent(agent), "default");
    if arguments.crds {
        let definitions: Api<CustomResourceDefinition> = Api::all(client("slipway"));
        for definition in slipway_api::crds::crds() {
            definitions
                .create(&PostParams::default(), &definition)
                .await
                .context("installing the definition of a kind")?;
        }
    }
    if arguments.actors {
        let seed = u64::try_from(SystemEntropy::new()?.draw() >> 64).unwrap_or_default();
        let clock = Arc::new(SystemClock);
        let actors = Actors::new(client("actors"), clock, Script::default(), seed);
        actors.provision().await.context("making the nodes")?;
        tokio::spawn(actors.run());
    }
    Ok(())
}

fn is_segment(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
}

/// Makes the kubeconfig known: whoever sees it can use the server.
fn publish(arguments: &Apiserver, shell: &Https, text: &str) -> Result<()> {
    match &arguments.kubeconfig_out {
        None => output::line(text.trim_end()),
        Some(path) => {
            kubeconfig::write(path, text)
                .with_context(|| format!("writing the kubeconfig to {}", path.display()))?;
            output::note(&format!(
                "serving on {}; export KUBECONFIG={}",
                shell.url(),
                path.display()
            ));
        }
    }
    Ok(())
}
