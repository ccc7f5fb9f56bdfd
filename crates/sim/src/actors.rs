//! Controllers that behave as the real ones do: Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet`, scheduler, kubelets,
//! disruption budgets, autoscalers, the endpoints of Services, Flux, and a gateway.
//!
//! Each actor is a pure function of what is known and the time to a [`write::Step`]; this module is the one loop around
//! them: it takes in watches, does due work in a fixed order, one request after the other, and sleeps until something
//! happens. Same seed and same history, same requests in the same order. Nothing is written when nothing changes, and no
//! timer runs when nothing is due. What fails is tried again later, from what is known then.
//!
//! Garbage collection and namespaces are not theirs: the embedded API server does these itself.

mod amount;
mod autoscaler;
mod budget;
mod custom;
mod daemonset;
mod deployment;
mod endpoints;
mod feed;
mod flux;
mod gateway;
mod hash;
mod interest;
mod key;
mod kubelet;
mod owner;
mod pod;
mod provision;
mod replicaset;
mod revision;
mod scheduler;
pub mod script;
mod statefulset;
mod told;
mod world;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{SelectAll, StreamExt, select_all};
use jiff::Timestamp;
use kube::Client;
use slipway_apiserver::environment::Clock;

use feed::News;
pub use flux::script::{Flux, FluxMatch, FluxRule, Repository, Stage as FluxStage};
use futures::stream::BoxStream;
pub use gateway::Gateway;
use key::{Actor, Job};
use script::Scene;
pub use script::Script;
use world::{Failure, World};
use write::{Step, Write};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(30);
/// The wait after a first failure of a job, and the longest, in seconds.
const RETRY: (i64, i64) = (1, 300);

/// Finds a way into another cluster, by its name.
pub type Reach = Arc<dyn Fn(&str) -> Option<Client> + Send + Sync>;

/// The definitions of the kinds that Flux is played with.
pub fn flux_definitions() -> Vec<serde_json::Value> {
    flux::definitions::all()
}

/// The definitions of the kinds that a gateway is played with.
pub fn gateway_definitions() -> Vec<serde_json::Value> {
    gateway::definitions::all()
}

/// The controllers of one cluster.
pub struct Actors {
    client: Client,
    /// How Flux reaches other clusters, if it does.
    reach: Option<Reach>,
    clock: Arc<dyn Clock>,
    script: Script,
    seed: u64,
}

impl std::fmt::Debug for Actors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actors")
            .field("script", &self.script)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Actors {
    /// Controllers that work through `client`, tell the time by `clock` and let containers behave as `script` says.
    /// What the script leaves open comes from the seed.
    pub fn new(client: Client, clock: Arc<dyn Clock>, script: Script, seed: u64) -> Self {
        Self {
            client,
            reach: None,
            clock,
            script,
            seed,
        }
    }

    /// The same, whose Flux can apply to other clusters.
    #[must_use]
    pub fn reaching(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }

    /// Creates the nodes of the script, ready. Nodes that are there stay as they are.
    pub async fn provision(&self) -> kube::Result<()> {
        let kind = key::Kind::Node;
        for body in provision::nodes(self.script.nodes, self.clock.now()) {
            let name = slipway_apiserver::value::text(&body, "metadata.name").to_owned();
            let create = Write::Ensure { kind, body };
            // The server taints a new node until somebody sees that it is ready.
            let untaint = Write::Patch {
                kind,
                key: key::Key::new("", &name),
                subresource: "",
                body: serde_json::json!({"spec": {"taints": null}}),
            };
            for write in [create, untaint] {
                let request = write.request("kubelet").map_err(kube::Error::HttpError)?;
                match self.client.request_text(request).await {
                    Err(kube::Error::Api(status)) if status.code == 409 => break,
                    other => {
                        other?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The way to where a write goes.
    fn client_of(&self, write: &Write) -> Result<Client, String> {
        let Some(cluster) = write.cluster() else {
            return Ok(self.client.clone());
        };
        let found = self.reach.as_ref().and_then(|reach| reach(cluster));
        found.ok_or_else(|| format!("there is no way to the cluster {cluster}"))
    }

    /// Works until dropped.
    pub async fn run(self) {
        let mut feeds = feeds(&self.client, &self.script);
        let mut stage = Stage {
            started: self.clock.now(),
            world: World::of(&self.script),
            actors: self,
            queue: BTreeSet::new(),
            timers: Timers::default(),
        };
        loop {
            while let Some(Some(news)) = feeds.next().now_or_never() {
                stage.learn(news);
            }
            if !stage.world.is_synced() {
                match feeds.next().await {
                    Some(news) => stage.learn(news),
                    None => return,
                }
                continue;
            }
            let now = stage.actors.clock.now();
            stage.wake(now);
            if let Some(job) = stage.queue.pop_first() {
                stage.work(job, now).await;
                continue;
            }
            let wait = stage.timers.next().map(|at| until(at, now));
            tokio::select! {
                biased;
                news = feeds.next() => match news {
                    Some(news) => stage.learn(news),
                    None => return,
                },
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }
}

/// What Flux says of a manifest that the API refuses.
fn refused(manifest: &serde_json::Value, status: &kube::core::Status) -> String {
    let text = |path: &str| slipway_apiserver::value::text(manifest, path);
    let (kind, namespace, name) = (
        text("kind"),
        text("metadata.namespace"),
        text("metadata.name"),
    );
    let (reason, message) = (&status.reason, &status.message);
    format!("{kind}/{namespace}/{name} dry-run failed ({reason}): {message}\n")
}

/// One watch for each kind.
fn feeds(client: &Client, script: &Script) -> SelectAll<BoxStream<'static, News>> {
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use k8s_openapi::api::{apps::v1 as apps, autoscaling::v2, core::v1, policy::v1 as policy};
    let mut all = vec![
        feed::watch::<apps::Deployment>(client.clone()),
        feed::watch::<apps::ReplicaSet>(client.clone()),
        feed::watch::<apps::StatefulSet>(client.clone()),
        feed::watch::<apps::DaemonSet>(client.clone()),
        feed::watch::<apps::ControllerRevision>(client.clone()),
        feed::watch::<v1::Pod>(client.clone()),
        feed::watch::<v1::Node>(client.clone()),
        feed::watch::<policy::PodDisruptionBudget>(client.clone()),
        feed::watch::<v2::HorizontalPodAutoscaler>(client.clone()),
        feed::watch::<v1::Service>(client.clone()),
        feed::watch::<v1::Endpoints>(client.clone()),
        feed::watch::<EndpointSlice>(client.clone()),
    ];
    if script.flux.is_some() {
        all.extend([
            feed::watch::<v1::Secret>(client.clone()),
            feed::watch::<v1::ConfigMap>(client.clone()),
            feed::watch::<flux::GitRepository>(client.clone()),
            feed::watch::<flux::Kustomization>(client.clone()),
        ]);
    }
    if script.gateway.is_some() {
        use k8s_openapi::api::networking::v1::Ingress;
        all.extend([
            feed::watch::<gateway::HttpRoute>(client.clone()),
            feed::watch::<gateway::VirtualService>(client.clone()),
            feed::watch::<gateway::TrafficSplit>(client.clone()),
            feed::watch::<Ingress>(client.clone()),
            feed::watch::<gateway::Taken>(client.clone()),
        ]);
    }
    select_all(all)
}

/// How long from now until then; at least a moment, so that waiting always lets time pass.
fn until(at: Timestamp, now: Timestamp) -> Duration {
    let wait = at.duration_since(now);
    let wait = Duration::try_from(wait).unwrap_or_default();
    wait.max(Duration::from_millis(1))
}

/// The state of the loop.
struct Stage {
    actors: Actors,
    started: Timestamp,
    world: World,
    queue: BTreeSet<Job>,
    timers: Timers,
}

/// When a job has to be looked at again, if nothing happens before.
#[derive(Default)]
struct Timers {
    by_job: BTreeMap<Job, Timestamp>,
    by_time: BTreeSet<(Timestamp, Job)>,
}

impl Timers {
    /// Sets or clears the one timer of a job.
    fn set(&mut self, job: &Job, at: Option<Timestamp>) {
        if let Some(old) = self.by_job.remove(job) {
            self.by_time.remove(&(old, job.clone()));
        }
        if let Some(at) = at {
            self.by_job.insert(job.clone(), at);
            self.by_time.insert((at, job.clone()));
        }
    }

    fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<Job> {
        let (at, job) = self.by_time.first()?.clone();
        (at <= now).then(|| self.set(&job, None))?;
        Some(job)
    }
}

impl Stage {
    fn learn(&mut self, news: News) {
        news(&mut self.world);
        self.follow();
    }

    /// Queues what follows from the latest changes.
    fn follow(&mut self) {
        for change in self.world.take_changes() {
            self.queue.extend(interest::jobs(&self.world, &change));
        }
    }

    /// Queues what is due.
    fn wake(&mut self, now: Timestamp) {
        while let Some(job) = self.timers.pop_due(now) {
            self.queue.insert(job);
        }
    }

    fn step(&mut self, job: &Job, now: Timestamp) -> Step {
        let (world, key) = (&mut self.world, &job.key);
        let scene = Scene {
            script: &self.actors.script,
            seed: self.actors.seed,
            started: self.started,
        };
        match job.actor {
            Actor::Deployment => deployment::reconcile(world, key, now),
            Actor::ReplicaSet => replicaset::reconcile(world, key, now),
            Actor::StatefulSet => statefulset::reconcile(world, key, now),
            Actor::DaemonSet => daemonset::reconcile(world, key, now),
            Actor::Scheduler => scheduler::reconcile(world, scene, key, now),
            Actor::Kubelet => kubelet::reconcile(world, scene, key, now),
            Actor::Budget => budget::reconcile(world, key, now),
            Actor::Autoscaler => autoscaler::reconcile(world, scene, key, now),
            Actor::Endpoints => endpoints::reconcile(world, key),
            Actor::Source => flux::source::reconcile(world, scene, key, now),
            Actor::Kustomize => flux::kustomize::reconcile(world, scene, key, now),
            Actor::Gateway(kind) => gateway::reconcile(world, scene, (kind, key), now),
        }
    }

    /// Does one job.
    async fn work(&mut self, job: Job, now: Timestamp) {
        let step = self.step(&job, now);
        self.timers.set(&job, step.wake);
        for write in step.writes {
            if let Err(message) = self.write(&write, job.actor).await {
                tracing::debug!(?job, %message, "a write failed");
                let about_pods = !matches!(write, Write::Patch { .. });
                self.fail(job, message, about_pods);
                return;
            }
        }
        let failure = self.world.failures.get(&job);
        if failure.is_some_and(|failure| !failure.about_pods || failure.retry_at <= now) {
            self.world.failures.remove(&job);
            self.queue.insert(job);
        }
    }

    /// Makes one request and takes its answer in.
    async fn write(&mut self, write: &Write, actor: Actor) -> Result<(), String> {
        let request = write
            .request(actor.manager())
            .map_err(|error| format!("cannot write the request: {error}"))?;
        let client = self.actors.client_of(write)?;
        let answer = client.request_text(request);
        let answer = tokio::time::timeout(REQUEST, answer).await;
        let text = match answer {
            Err(_) => return Err("no answer in time".to_owned()),
            Ok(Err(kube::Error::Api(status))) => {
                match (write, status.code) {
                    (Write::Ensure { .. }, 409) | (Write::Remove { .. }, 404) => {}
                    (Write::Delete { kind, key, .. }, 404) => self.world.forget_key(*kind, key),
                    (Write::Apply { body, .. }, _) => return Err(refused(body, &status)),
                    _ => return Err(status.message),
                }
                self.follow();
                return Ok(());
            }
            Ok(Err(error)) => return Err(error.to_string()),
            Ok(Ok(text)) => text,
        };
        self.take(write, &text)
            .map_err(|error| format!("cannot read the answer: {error}"))?;
        self.follow();
        Ok(())
    }

    fn take(&mut self, write: &Write, text: &str) -> serde_json::Result<()> {
        match write {
            Write::Create { kind, .. } | Write::Ensure { kind, .. } => {
                self.world.learn_text(*kind, text)
            }
            Write::Patch {
                subresource: "scale",
                ..
            }
            | Write::Apply { .. }
            | Write::Remove { .. } => Ok(()),
            Write::Patch { kind, .. } => self.world.learn_text(*kind, text),
            Write::Bind { key, node, .. } => {
                self.world.assume_bound(key, node);
                Ok(())
            }
            Write::Delete { kind, key, .. } => {
                let object: serde_json::Value = serde_json::from_str(text)?;
                let finalizers = object.pointer("/metadata/finalizers");
                let finalizers = finalizers.and_then(serde_json::Value::as_array);
                let grace = object.pointer("/metadata/deletionGracePeriodSeconds");
                let grace = grace.and_then(serde_json::Value::as_i64);
                if finalizers.is_some_and(|list| !list.is_empty()) || grace > Some(0) {
                    return self.world.learn_text(*kind, text);
                }
                self.world.forget_key(*kind, key);
                Ok(())
            }
        }
    }

    /// Notes a failure and comes back to the job later, each time after a longer wait.
    fn fail(&mut self, job: Job, message: String, about_pods: bool) {
        self.follow();
        let attempts = self.world.failures.get(&job).map_or(0, |f| f.attempts);
        let wait = (RETRY.0 << attempts.min(9)).min(RETRY.1);
        let retry_at = pod::later(self.actors.clock.now(), wait);
        let failure = Failure {
            message,
            about_pods,
            attempts: attempts + 1,
            retry_at,
        };
        self.world.failures.insert(job.clone(), failure);
        self.timers.set(&job, Some(retry_at));
        // A ReplicaSet that cannot have its pods says so on itself at once, and so does a Kustomization that is refused.
        if matches!(job.actor, Actor::ReplicaSet | Actor::Kustomize) && about_pods {
            self.queue.insert(job);
        }
    }
}
