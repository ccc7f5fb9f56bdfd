//! `slipway apiserver`: the embedded Kubernetes API server on its own.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, PostParams};
use slipway_apiserver::authenticate::{MASTERS, User};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::collect;
use slipway_apiserver::dial::{self, TlsDial};
use slipway_apiserver::environment::{Call, CallError, Dial, Entropy, SystemClock, SystemEntropy};
use slipway_apiserver::https::{self, Https};
use slipway_apiserver::server::Server;
use slipway_apiserver::shell;
use slipway_sim::actors::{Actors, Script};
use tokio::sync::mpsc;

use crate::args::Apiserver;
use crate::exit::Usage;
use crate::kubeconfig::{self, Written};
use crate::output;

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
    if let Some(path) = &arguments.kubeconfig_out
        && kubeconfig::is_taken(path)
    {
        return Err(taken(path).into());
    }
    let entropy = SystemEntropy::new().context("drawing the administrator's token")?;
    let token = format!("{:032x}", entropy.draw());
    // From here on nothing is left behind, whoever ends this when.
    let ended = super::until_told_to_end()?;
    let server = Server::default();
    let dial: Arc<dyn Dial> = Arc::new(Outside::new(arguments));
    for name in &arguments.clusters {
        if !is_segment(name) {
            bail!("--clusters: {name:?} cannot stand in a path; use letters, digits, '-' and '.'");
        }
        let config =
            Config::real(name, dial.clone()).with_context(|| format!("making cluster {name}"))?;
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
    let shell = Https::start(config, sender).map_err(|error| listening(error, arguments.port))?;
    tokio::spawn(shell::serve(Arc::new(server.clone()), receiver));
    let names = arguments.clusters.iter().map(String::as_str);
    let kubeconfig = kubeconfig::text(&shell, names, &token);
    let written = publish(arguments, &shell, &kubeconfig)?;
    ended.await;
    for cluster in server.clusters() {
        cluster.shut_down();
    }
    shell.stop().await;
    // It holds a token of a server that is gone.
    if let (Some(path), Some(written)) = (&arguments.kubeconfig_out, written)
        && !written.remove()
    {
        let path = path.display();
        output::note(&format!(
            "{path} was changed by somebody else and is left in place"
        ));
    }
    Ok(())
}

/// Why nobody can be listened to.
fn listening(error: std::io::Error, port: u16) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::AddrInUse {
        return anyhow!(
            "cannot listen on 127.0.0.1:{port}: port in use; choose another with --port"
        );
    }
    anyhow!(error).context(format!("cannot listen on 127.0.0.1:{port}"))
}

/// A file is there that is not ours.
fn taken(path: &Path) -> Usage {
    let path = path.display();
    Usage(format!(
        "--kubeconfig-out: {path} exists and is not overwritten; remove it or name another file"
    ))
}

/// Calls webhooks where `--service` says, and tells once of each Service of which nothing is said.
#[derive(Debug)]
struct Outside {
    dial: TlsDial,
    /// Services, as their host names begin, of which something is known or has been told.
    known: Mutex<BTreeSet<String>>,
}

impl Outside {
    fn new(arguments: &Apiserver) -> Self {
        let services = arguments.services.iter();
        let places = services.map(|s| (s.host.clone(), s.place.clone()));
        let known = arguments.services.iter().map(|s| s.host.clone());
        Self {
            dial: TlsDial::new(places.collect()),
            known: Mutex::new(known.collect()),
        }
    }

    /// The flag that is missing, if this is the first call to a Service of which nothing is known.
    fn missing(&self, url: &str) -> Option<String> {
        let url: http::Uri = url.parse().ok()?;
        let host = dial::service(url.host()?)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, namespace) = host.split_once('.')?;
        known
            .insert(host.to_owned())
            .then(|| format!("--service {namespace}/{name}=HOST:PORT"))
    }
}

impl Dial for Outside {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<(u16, Bytes), CallError>> {
        if let Some(flag) = self.missing(&call.url) {
            output::note(&format!(
                "a webhook is called at {}, and nothing listens there: say where it is with {flag}",
                call.url
            ));
        }
        self.dial.call(call)
    }
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
fn publish(arguments: &Apiserver, shell: &Https, text: &str) -> Result<Option<Written>> {
    let Some(path) = &arguments.kubeconfig_out else {
        output::line(text.trim_end());
        return Ok(None);
    };
    let written = Written::create(path, text).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => taken(path).into(),
        _ => anyhow!(error).context(format!("writing the kubeconfig to {}", path.display())),
    })?;
    output::note(&format!(
        "serving on {}; export KUBECONFIG={}",
        shell.url(),
        path.display()
    ));
    Ok(Some(written))
}
