//! The part of the clusters: home and members on embedded servers behind one listener, each with a path and a token of its own;
//! and people who change things in them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::environment::InProcess;
use slipway_apiserver::https::{self, Https};
use slipway_apiserver::server::Server;
use slipway_apiserver::shell;
use tokio::sync::mpsc;

use crate::flotilla::{CARGO, ENTRY, PLACE, SHIP, UID};
use crate::role;

/// How many requests may wait for the core.
const WAITING: usize = 1024;
/// How many connections may be open: one for each member, and some.
const CONNECTIONS: usize = 19_000;
/// Between two changes.
const PACE: Duration = Duration::from_millis(20);
/// After this time nobody waits for a write any more.
const GIVEN_UP: Duration = Duration::from_mins(1);

fn name(number: usize) -> String {
    format!("member-{number:05}")
}

fn token(name: &str) -> String {
    format!("token-of-{name}")
}

fn cluster(name: &str) -> Result<Arc<Cluster>> {
    // Nothing is called: there are no webhooks.
    let config = Config::real(name, Arc::new(InProcess::default()));
    let config = config.with_context(|| format!("making {name}"))?;
    Ok(config.with_admin(&token(name)).build())
}

fn client(cluster: &Arc<Cluster>) -> Client {
    let service = cluster.service(&token(cluster.name()));
    Client::new(service.with_agent("people"), PLACE)
}

/// Serves until nobody asks any more. Says where home is, and after that, whenever it is told a number, how long so many changes
/// took until the write that came of them.
pub(crate) fn run(count: usize, objects: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the servers' runtime")?;
    runtime.block_on(serve(count, objects))
}

async fn serve(count: usize, objects: usize) -> Result<()> {
    let mut told = role::told();
    let server = Server::default();
    let (sender, receiver) = mpsc::channel(WAITING);
    let config = https::Config {
        connections: CONNECTIONS,
        ..https::Config::default()
    };
    let shell = Https::start(config, sender).context("listening on loopback")?;
    let home = cluster("home")?;
    server.add(home.clone());
    let mut members = Vec::new();
    for number in 0..count {
        let member = cluster(&name(number))?;
        fill(&member, objects).await?;
        enlist(&home, &member, &shell).await?;
        server.add(member.clone());
        members.push(member);
    }
    tokio::spawn(shell::serve(Arc::new(server), receiver));
    let config = kubeconfig(&shell, &shell.url(), &token("home"));
    role::say(&Value::from(config))?;
    while let Some(wanted) = told.recv().await {
        let changes = wanted.as_u64().unwrap_or_default();
        let delays = follow(&members, usize::try_from(changes)?).await?;
        role::say(&json!(delays))?;
    }
    Ok(())
}

fn kubeconfig(shell: &Https, url: &str, token: &str) -> String {
    let context = https::Context {
        name: "here".to_owned(),
        server: url.to_owned(),
    };
    https::kubeconfig(&[context], shell.ca_pem(), token)
}

/// Puts objects into a member.
async fn fill(member: &Arc<Cluster>, objects: usize) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client(member), PLACE);
    for number in 0..objects {
        let map = json!({
            "metadata": {"name": format!("cargo-{number}"), "labels": {CARGO: "yes"}},
            "data": {"want": "0", "have": "0"},
        });
        let map = serde_json::from_value(map)?;
        maps.create(&PostParams::default(), &map).await?;
    }
    Ok(())
}

/// Has a member known at home.
async fn enlist(home: &Arc<Cluster>, member: &Arc<Cluster>, shell: &Https) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client(member));
    let system = namespaces.get("kube-system").await?;
    let name = member.name();
    let url = format!("{}/clusters/{name}", shell.url());
    let secret = json!({
        "metadata": {"name": name},
        "stringData": {ENTRY: kubeconfig(shell, &url, &token(name))},
    });
    let secrets: Api<Secret> = Api::namespaced(client(home), PLACE);
    let secret = serde_json::from_value(secret)?;
    secrets.create(&PostParams::default(), &secret).await?;
    let ship = json!({"metadata": {
        "name": name,
        "labels": {SHIP: "yes"},
        "annotations": {UID: system.metadata.uid},
    }});
    let maps: Api<ConfigMap> = Api::namespaced(client(home), PLACE);
    let ship = serde_json::from_value(ship)?;
    maps.create(&PostParams::default(), &ship).await?;
    Ok(())
}

/// Makes changes one after the other, in members that are spread over all, and gives in milliseconds how long each took.
async fn follow(members: &[Arc<Cluster>], changes: usize) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    for number in 0..changes {
        // A stride that shares no divisor with powers of ten comes to every one.
        let at = number.wrapping_mul(7_919) % members.len().max(1);
        let Some(member) = members.get(at).cloned() else {
            break;
        };
        let followed = followed(member, (number + 1).to_string());
        all.push(tokio::spawn(tokio::time::timeout(GIVEN_UP, followed)));
        tokio::time::sleep(PACE).await;
    }
    let mut delays = Vec::new();
    for one in all {
        let delay = one.await?.context("a change was followed by no write")??;
        delays.push(delay.as_secs_f64() * 1e3);
    }
    Ok(delays)
}

/// Changes an object, and waits for the write that comes of it.
async fn followed(member: Arc<Cluster>, value: String) -> Result<Duration> {
    let maps: Api<ConfigMap> = Api::namespaced(client(&member), PLACE);
    let began = Instant::now();
    let body = json!({"data": {"want": value}});
    let parameters = PatchParams::default();
    maps.patch("cargo-0", &parameters, &Patch::Merge(body))
        .await?;
    loop {
        let written = member.next_write();
        let map = maps.get("cargo-0").await?;
        let data = map.data.unwrap_or_default();
        // A later change of the same object may have overtaken this one.
        if data.get("have") == data.get("want") {
            return Ok(began.elapsed());
        }
        written.await;
    }
}
