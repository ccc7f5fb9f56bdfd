//! The part of the clusters: home and members on embedded servers behind one listener, each with a path and a token of its own;
//! and people who change things in them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;

use crate::flotilla::{CARGO, ENTRY, PLACE, SHIP, UID};
use crate::listener::{Listener, client};
use crate::role;

/// Between two changes.
const PACE: Duration = Duration::from_millis(20);
/// After this time nobody waits for a write any more.
const GIVEN_UP: Duration = Duration::from_mins(1);

fn name(number: usize) -> String {
    format!("member-{number:05}")
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
    let listener = Listener::open()?;
    let home = listener.home()?;
    let mut members = Vec::new();
    for number in 0..count {
        let member = listener.cluster(&name(number))?;
        fill(&member, objects).await?;
        enlist(&home, &member, &listener).await?;
        members.push(member);
    }
    role::say(&Value::from(listener.kubeconfig(&home)))?;
    while let Some(wanted) = told.recv().await {
        let changes = wanted.as_u64().unwrap_or_default();
        let delays = follow(&members, usize::try_from(changes)?).await?;
        role::say(&json!(delays))?;
    }
    Ok(())
}

/// Puts objects into a member.
async fn fill(member: &Arc<Cluster>, objects: usize) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client(member, PLACE), PLACE);
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
async fn enlist(home: &Arc<Cluster>, member: &Arc<Cluster>, listener: &Listener) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client(member, PLACE));
    let system = namespaces.get("kube-system").await?;
    let name = member.name();
    let secret = json!({
        "metadata": {"name": name},
        "stringData": {ENTRY: listener.kubeconfig(member)},
    });
    let secrets: Api<Secret> = Api::namespaced(client(home, PLACE), PLACE);
    let secret = serde_json::from_value(secret)?;
    secrets.create(&PostParams::default(), &secret).await?;
    let ship = json!({"metadata": {
        "name": name,
        "labels": {SHIP: "yes"},
        "annotations": {UID: system.metadata.uid},
    }});
    let maps: Api<ConfigMap> = Api::namespaced(client(home, PLACE), PLACE);
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
    let maps: Api<ConfigMap> = Api::namespaced(client(&member, PLACE), PLACE);
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
