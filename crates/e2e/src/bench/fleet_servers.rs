//! The part of the clusters: a hub and leaves on embedded servers behind one listener; and in each leaf somebody who says at
//! once that whatever is assigned is applied.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::environment::InProcess;
use slipway_apiserver::https::{self, Https};
use slipway_apiserver::server::Server;
use slipway_apiserver::shell;
use slipway_e2e::install::printed;
use tokio::sync::mpsc;

use crate::role;

/// Where everything of the fleet is.
const PLACE: &str = "fleet";
/// How many requests may wait for the core.
const WAITING: usize = 1024;
/// How many connections may be open: one for each leaf, and some.
const CONNECTIONS: usize = 19_000;
/// The Rollout that is measured.
const ROLLOUT: &str = "measured";

fn name(number: usize) -> String {
    format!("leaf-{number:05}")
}

fn token(name: &str) -> String {
    format!("token-of-{name}")
}

fn cluster(name: &str) -> Result<Arc<Cluster>> {
    let config = Config::real(name, Arc::new(InProcess::default()));
    let config = config.with_context(|| format!("making {name}"))?;
    Ok(config.with_admin(&token(name)).build())
}

fn client(cluster: &Arc<Cluster>) -> Client {
    let service = cluster.service(&token(cluster.name()));
    Client::new(service.with_agent("people"), PLACE)
}

fn api(cluster: &Arc<Cluster>, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("fleet.squaremo.dev", "v1alpha1", kind);
    Api::namespaced_with(client(cluster), PLACE, &ApiResource::from_gvk(&kind))
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// What the leaves told, and the hub has not written yet: which leaf, and since when.
type News = Arc<Mutex<Vec<(usize, Instant)>>>;

/// Everything that is served.
struct Fleet {
    home: Arc<Cluster>,
    leaves: Vec<Arc<Cluster>>,
    assignments: usize,
    rollout: usize,
    news: News,
}

/// Serves until nobody asks any more.
pub(crate) fn run(count: usize, assignments: usize, rollout: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the servers' runtime")?;
    runtime.block_on(serve(count, assignments, rollout))
}

async fn serve(count: usize, assignments: usize, rollout: usize) -> Result<()> {
    let mut told = role::told();
    let server = Server::default();
    let (sender, receiver) = mpsc::channel(WAITING);
    let config = https::Config {
        connections: CONNECTIONS,
        ..https::Config::default()
    };
    let shell = Https::start(config, sender).context("listening on loopback")?;
    let definitions = printed(&["crds", "--controllers", "fleet"])?;
    let home = cluster("home")?;
    prepare(&home, &definitions).await?;
    server.add(home.clone());
    let mut leaves = Vec::new();
    for number in 0..count {
        let leaf = cluster(&name(number))?;
        let is_own = |one: &&Value| one["spec"]["names"]["kind"] == "Assemblage";
        let own: Vec<Value> = definitions.iter().filter(is_own).cloned().collect();
        prepare(&leaf, &own).await?;
        enlist(&home, &leaf, &shell, (number < rollout, assignments)).await?;
        server.add(leaf.clone());
        leaves.push(leaf);
    }
    let fleet = Fleet {
        home,
        leaves,
        assignments,
        rollout,
        news: News::default(),
    };
    for (number, leaf) in fleet.leaves.iter().enumerate() {
        tokio::spawn(stand_in(number, leaf.clone(), fleet.news.clone()));
    }
    tokio::spawn(shell::serve(Arc::new(server), receiver));
    let config = kubeconfig(&shell, &shell.url(), &token("home"));
    role::say(&Value::from(config))?;
    while let Some(wanted) = told.recv().await {
        let said = match wanted.as_str() {
            Some("steady") => fleet.steady().await?,
            Some("first") => fleet.roll("v1").await?,
            _ => fleet.roll("v2").await?,
        };
        role::say(&said)?;
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

/// Definitions, and the namespace.
async fn prepare(cluster: &Arc<Cluster>, definitions: &[Value]) -> Result<()> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let kinds: Api<DynamicObject> = Api::all_with(client(cluster), &ApiResource::from_gvk(&kind));
    for definition in definitions {
        create(&kinds, definition.clone()).await?;
    }
    let namespaces: Api<Namespace> = Api::all(client(cluster));
    create(&namespaces, json!({"metadata": {"name": PLACE}})).await
}

/// Has a leaf known in the hub, with so many assignments that others made.
async fn enlist(
    home: &Arc<Cluster>,
    leaf: &Arc<Cluster>,
    shell: &Https,
    (is_measured, assignments): (bool, usize),
) -> Result<()> {
    let name = leaf.name();
    let url = format!("{}/clusters/{name}", shell.url());
    let measured = if is_measured { "yes" } else { "no" };
    let secrets: Api<Secret> = Api::namespaced(client(home), PLACE);
    let secret = json!({
        "metadata": {"name": name, "labels": {"fleet.squaremo.dev/cluster": "", "measured": measured}},
        "stringData": {"value": kubeconfig(shell, &url, &token(name))},
    });
    create(&secrets, secret).await?;
    let syncs = (1..assignments).map(|number| {
        json!({
            "name": format!("other-{number:03}"), "revision": "1",
            "source": {"git": {"url": "https://git.example/other", "version": {"tag": "v1"}}},
            "package": {"kustomize": {"path": "deploy"}},
        })
    });
    let syncs: Vec<Value> = syncs.collect();
    let remote = json!({
        "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "RemoteAssemblage",
        "metadata": {"name": name},
        "spec": {"kubeconfigRef": {"name": name}, "assemblage": {"syncs": syncs}},
    });
    create(&api(home, "RemoteAssemblage"), remote).await
}

/// Stands in for agent and Flux: whatever is assigned is applied and healthy.
async fn stand_in(number: usize, leaf: Arc<Cluster>, news: News) {
    let assemblages = api(&leaf, "Assemblage");
    loop {
        let written = leaf.next_write();
        if let Ok(Some(found)) = assemblages.get_opt(leaf.name()).await
            && let Some(status) = wanted(&found.data)
        {
            let (parameters, patch) = (PatchParams::default(), json!({ "status": status }));
            let patch = Patch::Merge(patch);
            let patched = assemblages.patch_status(leaf.name(), &parameters, &patch);
            if patched.await.is_ok() {
                let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
                news.push((number, Instant::now()));
            }
        }
        written.await;
    }
}

/// The status that an assemblage should have; none if it has it.
fn wanted(assemblage: &Value) -> Option<Value> {
    let syncs = assemblage.pointer("/spec/syncs")?.as_array()?;
    let told = syncs.iter().map(|sync| {
        json!({
            "name": sync["name"], "observedRevision": sync["revision"], "state": "succeeded",
            "reason": "Applied", "since": "2026-01-05T00:00:00Z",
        })
    });
    let told: Vec<Value> = told.collect();
    let now = assemblage
        .pointer("/status/syncs")
        .and_then(Value::as_array);
    let generation = assemblage.pointer("/metadata/generation");
    (now != Some(&told)).then(|| json!({"observedGeneration": generation, "syncs": told}))
}

impl Fleet {
    /// Waits until the hub has told of every leaf that all it has is there.
    async fn steady(&self) -> Result<Value> {
        let remotes = api(&self.home, "RemoteAssemblage");
        for leaf in &self.leaves {
            loop {
                let written = self.home.next_write();
                let found = remotes.get(leaf.name()).await?;
                let succeeded = found.data.pointer("/status/summary/succeeded");
                let wanted = i64::try_from(self.assignments - 1)?;
                if succeeded.and_then(Value::as_i64) >= Some(wanted) {
                    break;
                }
                written.await;
            }
        }
        Ok(Value::Null)
    }

    /// Rolls a version out, and says how long that took, what the hub wrote, and how long it took to write what leaves told.
    async fn roll(&self, version: &str) -> Result<Value> {
        let rollouts = api(&self.home, "Rollout");
        let sync = json!({
            "source": {"git": {"url": "https://git.example/app", "version": {"tag": version}}},
            "package": {"kustomize": {"path": "deploy"}},
        });
        let rollout = json!({
            "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": ROLLOUT},
            "spec": {
                "selector": {"matchLabels": {"measured": "yes"}}, "strategy": "Incremental",
                "rollout": {"maxUnreadyClusters": "50%", "minReadySeconds": 0},
                "template": {"spec": {"sync": sync}},
            },
        });
        self.news
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let before = self.home.version();
        let began = Instant::now();
        let parameters = PatchParams::apply("people").force();
        rollouts
            .patch(ROLLOUT, &parameters, &Patch::Apply(rollout))
            .await?;
        let mut delays = Vec::new();
        loop {
            let written = self.home.next_write();
            self.take_news(&mut delays).await?;
            let found = rollouts.get(ROLLOUT).await?;
            if is_done(&found, self.rollout) {
                break;
            }
            written.await;
        }
        let seconds = began.elapsed().as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "figures for people")]
        let writes = (self.home.version() - before) as f64 / self.rollout as f64;
        delays.sort_by(f64::total_cmp);
        let percentile = |percent: usize| delays.get(delays.len() * percent / 100).copied();
        Ok(
            json!({"seconds": seconds, "writes": writes, "p50": percentile(50), "p99": percentile(99)}),
        )
    }

    /// How long it took the hub to write what leaves told, where it has.
    async fn take_news(&self, delays: &mut Vec<f64>) -> Result<()> {
        let waiting =
            std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        let remotes = api(&self.home, "RemoteAssemblage");
        let mut left = Vec::new();
        for (number, since) in waiting {
            let Some(leaf) = self.leaves.get(number) else {
                continue;
            };
            let found = remotes.get(leaf.name()).await?;
            let statuses = found
                .data
                .pointer("/status/syncs")
                .and_then(Value::as_array);
            let mut statuses = statuses.into_iter().flatten();
            let syncs = found
                .data
                .pointer("/spec/assemblage/syncs")
                .and_then(Value::as_array);
            let mut syncs = syncs.into_iter().flatten();
            let entry = syncs.find(|sync| sync["name"] == ROLLOUT);
            let told = statuses.find(|told| told["name"] == ROLLOUT);
            let is_told = entry.zip(told).is_some_and(|(entry, told)| {
                told["state"] == "succeeded" && told["observedRevision"] == entry["revision"]
            });
            if is_told {
                delays.push(since.elapsed().as_secs_f64() * 1e3);
            } else {
                left.push((number, since));
            }
        }
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        left.append(&mut news);
        *news = left;
        Ok(())
    }
}

fn is_done(rollout: &DynamicObject, clusters: usize) -> bool {
    let data = &rollout.data;
    let observed = data
        .pointer("/status/observedGeneration")
        .and_then(Value::as_i64);
    let ready = data.pointer("/status/counts/ready").and_then(Value::as_u64);
    let is_over = data.pointer("/status/run").is_none();
    observed == rollout.metadata.generation && is_over && ready == u64::try_from(clusters).ok()
}
