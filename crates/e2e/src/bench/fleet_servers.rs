//! The part of the clusters: a hub and leaves on embedded servers behind one listener, and people who roll something out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::trace::Record;
use slipway_e2e::install::printed;

use crate::leaf::{PLACE, api, enlist, object, other, stand_in, written};
use crate::listener::{Listener, client};
use crate::role;

/// The Rollout that is measured.
const ROLLOUT: &str = "measured";
/// Between two changes that are followed.
const PACE: Duration = Duration::from_millis(50);
/// Between two looks at what has come of a rollout or of all assignments: to look after each of thousands of writes would be much of
/// what is measured.
const LOOK: Duration = Duration::from_millis(20);
/// After this time nobody waits for a switch any more.
const GIVEN_UP: Duration = Duration::from_mins(1);

/// How many of what.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Sizes {
    /// How many leaves
    pub(crate) count: usize,
    /// How many assignments each
    pub(crate) assignments: usize,
    /// How many of them the rollout is for
    pub(crate) rollout: usize,
}

impl Sizes {
    fn is_measured(self, number: usize) -> bool {
        number < self.rollout
    }

    /// How many assignments of others a leaf has: with that of the rollout they are as many as asked for.
    fn others(self, number: usize) -> usize {
        self.assignments - usize::from(self.is_measured(number))
    }
}

/// Everything that is served.
struct Fleet {
    home: Arc<Cluster>,
    leaves: Vec<Arc<Cluster>>,
    sizes: Sizes,
}

pub(crate) async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Serves until nobody asks any more. Says where home is, and then does what it is told: `steady`, `roll` or `follow`.
pub(crate) fn run(sizes: Sizes) -> Result<()> {
    // On one thread a write into one cluster would wait for those into all others, which no server of a cluster does.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the servers' runtime")?;
    runtime.block_on(serve(sizes))
}

async fn serve(sizes: Sizes) -> Result<()> {
    let mut told = role::told();
    let listener = Listener::open()?;
    let definitions = printed(&["crds", "--controllers", "fleet"])?;
    let home = listener.home()?;
    prepare(&home, &definitions).await?;
    let is_leafs = |one: &&Value| one["spec"]["names"]["kind"] == "Assemblage";
    let of_leaf: Vec<Value> = definitions.iter().filter(is_leafs).cloned().collect();
    let mut leaves = Vec::new();
    for number in 0..sizes.count {
        let leaf = listener.cluster(&format!("leaf-{number:05}"))?;
        prepare(&leaf, &of_leaf).await?;
        let of = (sizes.is_measured(number), sizes.others(number));
        enlist(&home, &leaf, &listener, of).await?;
        tokio::spawn(stand_in(leaf.clone()));
        leaves.push(leaf);
    }
    let fleet = Fleet {
        home,
        leaves,
        sizes,
    };
    role::say(&Value::from(listener.kubeconfig(&fleet.home)))?;
    while let Some(wanted) = told.recv().await {
        role::say(&fleet.does(&wanted).await?)?;
    }
    Ok(())
}

/// Definitions, and the namespace.
async fn prepare(cluster: &Arc<Cluster>, definitions: &[Value]) -> Result<()> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let kind = ApiResource::from_gvk(&kind);
    let kinds: Api<DynamicObject> = Api::all_with(client(cluster, PLACE), &kind);
    for definition in definitions {
        create(&kinds, definition.clone()).await?;
    }
    let namespaces: Api<Namespace> = Api::all(client(cluster, PLACE));
    create(&namespaces, json!({"metadata": {"name": PLACE}})).await
}

impl Fleet {
    async fn does(&self, wanted: &Value) -> Result<Value> {
        if let Some(version) = wanted.get("roll").and_then(Value::as_str) {
            return self.roll(version).await;
        }
        if let Some(changes) = wanted.get("follow").and_then(Value::as_u64) {
            return self.follow(usize::try_from(changes)?).await;
        }
        self.steady().await
    }

    /// Waits until the hub has told of every leaf that all it has is there.
    async fn steady(&self) -> Result<Value> {
        let remotes = api(&self.home, "RemoteAssemblage");
        for (number, leaf) in self.leaves.iter().enumerate() {
            let wanted = i64::try_from(self.sizes.others(number))?;
            loop {
                let written = self.home.next_write();
                let found = remotes.get(leaf.name()).await?;
                let succeeded = found.data.pointer("/status/summary/succeeded");
                if succeeded.and_then(Value::as_i64) >= Some(wanted) {
                    break;
                }
                written.await;
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(Value::Null)
    }

    /// Rolls a version out, and says how long that took and what the hub wrote.
    async fn roll(&self, version: &str) -> Result<Value> {
        let rollouts = api(&self.home, "Rollout");
        let sync = json!({
            "source": {"git": {"url": "https://git.example/app", "version": {"tag": version}}},
            "package": {"kustomize": {"path": "deploy"}},
        });
        let spec = json!({
            "selector": {"matchLabels": {"measured": "yes"}}, "strategy": "Incremental",
            "rollout": {"maxUnreadyClusters": "50%", "minReadySeconds": 0},
            "template": {"spec": {"sync": sync}},
        });
        let rollout = object("Rollout", ROLLOUT, &spec);
        let before = self.home.version();
        let began = Instant::now();
        let parameters = PatchParams::apply("people").force();
        let patch = Patch::Apply(rollout);
        rollouts.patch(ROLLOUT, &parameters, &patch).await?;
        loop {
            let written = self.home.next_write();
            if is_done(&rollouts.get(ROLLOUT).await?, self.sizes.rollout) {
                break;
            }
            written.await;
            tokio::time::sleep(LOOK).await;
        }
        let seconds = began.elapsed().as_secs_f64();
        let [specs, statuses, others] = self.writes(before)?;
        Ok(json!({"seconds": seconds, "specs": specs, "statuses": statuses, "others": others}))
    }

    /// What was written in the hub after this version, for each cluster of the rollout: to what assemblages ask for, to what they
    /// tell, and to all else.
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    fn writes(&self, before: u64) -> Result<[f64; 3]> {
        let (changes, _) = self.home.history(before).map_err(|forgotten| {
            anyhow::anyhow!("what was written is forgotten up to {}", forgotten.oldest)
        })?;
        let mut all = [0_u32; 3];
        let [specs, statuses, others] = &mut all;
        for (resource, change) in &changes {
            let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
            let now = generation(&change.object.decode());
            let then = change.before.as_ref();
            let then = then.and_then(|before| generation(&before.decode()));
            let is_assemblage = resource.ends_with("/remoteassemblages");
            let count = match (is_assemblage, now == then) {
                (true, false) => &mut *specs,
                (true, true) => &mut *statuses,
                (false, _) => &mut *others,
            };
            *count += 1;
        }
        // Hundredths that are added up are no whole.
        Ok(all.map(|count| f64::from(count) / self.sizes.rollout as f64))
    }

    /// Makes changes one after the other, in leaves that are spread over all, and gives in milliseconds how long each took until
    /// the switch, and how much of that it was the operator's turn.
    async fn follow(&self, changes: usize) -> Result<Value> {
        let mut all = Vec::new();
        for number in 0..changes {
            // A stride that shares no divisor with powers of ten comes to every one.
            let at = number.wrapping_mul(7_919) % self.leaves.len().max(1);
            let leaf = self.leaves.get(at).context("there are no leaves")?;
            let revision = format!("change-{number}");
            let followed = followed(self.home.clone(), leaf.clone(), revision);
            all.push(tokio::spawn(tokio::time::timeout(GIVEN_UP, followed)));
            tokio::time::sleep(PACE).await;
        }
        let (mut switches, mut requests) = (Vec::new(), Vec::new());
        for one in all {
            let (switch, request) = one.await?.context("a change was followed by no switch")??;
            switches.push(switch.as_secs_f64() * 1e3);
            requests.push(request.as_secs_f64() * 1e3);
        }
        Ok(json!({"switches": switches, "requests": requests}))
    }
}

/// Assigns another revision to a leaf, and waits until the leaf has it. Gives how long that took, and how long it was from when home
/// had taken the change in until the request for it came in at the leaf: that is without what both take to carry out a write, and with
/// the way to the operator and from it.
async fn followed(
    home: Arc<Cluster>,
    leaf: Arc<Cluster>,
    revision: String,
) -> Result<(Duration, SignedDuration)> {
    let remotes = api(&home, "RemoteAssemblage");
    let syncs = json!([{"name": other(0), "revision": revision}]);
    let spec = json!({"assemblage": {"syncs": syncs}});
    let patch = Patch::Apply(object("RemoteAssemblage", leaf.name(), &spec));
    let parameters = PatchParams::apply("pipeline").force();
    let mut seen = leaf.version();
    let began = Instant::now();
    remotes.patch(leaf.name(), &parameters, &patch).await?;
    let changed = Timestamp::now();
    let has_it = |assemblage: &Value| {
        let syncs = assemblage.pointer("/spec/syncs").and_then(Value::as_array);
        let mut syncs = syncs.into_iter().flatten();
        syncs.any(|sync| sync["revision"] == revision.as_str())
    };
    loop {
        let next = leaf.next_write();
        let (found, until) = written(&leaf, seen);
        if let Some(found) = found.iter().find(|found| has_it(&found.decode())) {
            let switch = began.elapsed();
            let requested = requested(&leaf, found.version).await;
            return Ok((switch, requested.duration_since(changed)));
        }
        seen = until;
        next.await;
    }
}

/// When the request came in that made the assemblage of a leaf this version. It is recorded when it has been answered.
async fn requested(leaf: &Cluster, version: u64) -> Timestamp {
    let is_it = |record: &Record| {
        let (before, after) = record.versions;
        let is_write = record.verb == "patch" && record.resource.ends_with("/assemblages");
        is_write && (before + 1..=after).contains(&version)
    };
    loop {
        let records = leaf.trace().records();
        if let Some(record) = records.iter().rev().find(|record| is_it(record)) {
            return record.at;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn is_done(rollout: &DynamicObject, clusters: usize) -> bool {
    let data = &rollout.data;
    let number = |path: &str| data.pointer(path).and_then(Value::as_i64);
    let is_over = data.pointer("/status/run").is_none();
    let is_observed = number("/status/observedGeneration") == rollout.metadata.generation;
    let ready = number("/status/counts/ready");
    is_observed && is_over && ready == i64::try_from(clusters).ok()
}
