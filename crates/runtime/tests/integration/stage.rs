//! What the tests stand on: virtual time, a cluster, replicas that can be paused and crashed.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::status::Status;
use slipway_apiserver::trace::{Ending, Record};
use slipway_runtime::{Election, Environment, Error, Operator, Settings, View, WithoutLease};
use tokio::task::JoinHandle;

use crate::ground::request;
pub(crate) use crate::ground::{ADMIN, epoch, secs, virtually};
use crate::toy::Toy;

/// A cluster with a namespace for the operator.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) cluster: Arc<Cluster>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::seeded(1).await
    }

    pub(crate) async fn seeded(seed: u64) -> Self {
        Self::built(Config::seeded("test", seed, Arc::default())).await
    }

    /// One on an API server of one's own making.
    pub(crate) async fn built(config: Config) -> Self {
        let cluster = config
            .with_admin(ADMIN)
            .with_token(
                "weak",
                slipway_apiserver::authenticate::User::new("weak", &["system:authenticated"]),
            )
            .build();
        let stage = Self { cluster };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "slipway-system"}});
        stage.create("/api/v1/namespaces", &namespace).await;
        stage
    }

    pub(crate) fn client(&self, agent: &str) -> Client {
        Client::new(self.cluster.service(ADMIN).with_agent(agent), "default")
    }

    /// The client of a user who may only do what it was granted.
    pub(crate) fn weak_client(&self, agent: &str) -> Client {
        Client::new(self.cluster.service("weak").with_agent(agent), "default")
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.client("test"))
    }

    /// Creates any object.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        self.send("POST", path, body).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let content = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = request(method, path, content, body);
        self.client("test").request(request).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null).await
    }

    /// A config map that wants something.
    pub(crate) async fn map(&self, name: &str, data: Value) {
        let map = json!({"metadata": {"name": name}, "data": data});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        self.maps()
            .create(&PostParams::default(), &map)
            .await
            .unwrap();
    }

    pub(crate) async fn want(&self, name: &str, value: &str) {
        let patch = json!({"data": {"want": value}});
        let params = PatchParams::default();
        self.maps()
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn entry(&self, name: &str, entry: &str) -> Option<String> {
        let map = self.maps().get_opt(name).await.unwrap()?;
        map.data.unwrap_or_default().get(entry).cloned()
    }

    pub(crate) async fn have(&self, name: &str) -> String {
        self.entry(name, "have").await.unwrap_or_default()
    }

    /// Waits until a config map has what it wants; gives how long that took.
    pub(crate) async fn until_have(&self, name: &str, value: &str, at_most: u64) -> Duration {
        let began = tokio::time::Instant::now();
        while self.have(name).await != value {
            assert!(
                began.elapsed() < Duration::from_secs(at_most),
                "{name} has no {value} after {at_most} s"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        began.elapsed()
    }

    /// Starts a replica.
    pub(crate) fn start(&self, settings: Settings, toy: Toy) -> Replica {
        let environment = Environment::virtual_from(epoch(), 7);
        let client = self.client(&settings.replica);
        Replica::run(Operator::new(environment, client, settings).with(Arc::new(toy)))
    }

    /// Starts a replica whose user may only do what it was granted.
    pub(crate) fn start_weak(&self, settings: Settings, toy: Toy) -> Replica {
        let environment = Environment::virtual_from(epoch(), 7);
        let client = self.weak_client(&settings.replica);
        Replica::run(Operator::new(environment, client, settings).with(Arc::new(toy)))
    }

    /// What replicas wrote: neither reads nor leases nor events.
    pub(crate) fn writes(&self) -> Vec<Record> {
        self.records(|record| {
            record.context.starts_with("controller=toy")
                && !matches!(record.verb.as_str(), "get" | "list" | "watch")
                && !record.resource.contains("events")
        })
    }

    /// Has such requests refused.
    pub(crate) fn refuse(&self, about: Match, code: u16, reason: &str, frequency: Frequency) {
        let status = Status::failure(code, reason, "not allowed");
        let refuse = Fault::Refuse(Box::new(status));
        self.cluster.faults().add(about, frequency, refuse);
    }

    pub(crate) fn records(&self, want: impl Fn(&Record) -> bool) -> Vec<Record> {
        let all = self.cluster.trace().records();
        all.into_iter().filter(|record| want(record)).collect()
    }
}

/// Whether a request changed something.
pub(crate) fn committed(record: &Record) -> bool {
    matches!(
        record.ending,
        Ending::Answered(200..=299) | Ending::Lost(200..=299)
    )
}

/// One replica, which alone acts.
pub(crate) fn alone() -> Settings {
    Settings {
        replica: "one".to_owned(),
        election: None,
        ..Settings::default()
    }
}

/// One of several replicas.
pub(crate) fn one_of_many(name: &str) -> Settings {
    Settings {
        replica: name.to_owned(),
        ..Settings::default()
    }
}

/// The only replica there is, whether or not it may use a Lease.
pub(crate) fn only_one(name: &str) -> Settings {
    let election = Election {
        without_lease: WithoutLease::Alone,
        ..Election::default()
    };
    Settings {
        election: Some(election),
        ..one_of_many(name)
    }
}

/// Stops polling a replica, as a stopped process or a slow machine would.
#[derive(Clone, Default)]
pub(crate) struct Pause(Arc<Mutex<(bool, Option<Waker>)>>);

impl Pause {
    pub(crate) fn set(&self, paused: bool) {
        let mut inner = self.0.lock().unwrap();
        inner.0 = paused;
        if !paused && let Some(waker) = inner.1.take() {
            waker.wake();
        }
    }
}

struct Pausable<F> {
    pause: Pause,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Pausable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut inner = self.pause.0.lock().unwrap();
            inner.1 = Some(cx.waker().clone());
            if inner.0 {
                return Poll::Pending;
            }
        }
        self.future.as_mut().poll(cx)
    }
}

/// A running replica. Dropping it is a crash.
pub(crate) struct Replica {
    pub(crate) view: View,
    pub(crate) pause: Pause,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: JoinHandle<Result<(), Error>>,
}

impl Replica {
    /// Whether something is off, by the name that metrics have for it.
    pub(crate) fn lacks(&self, feature: &str) -> bool {
        let facts = self.view.facts();
        facts.missing.iter().any(|one| one.to_string() == feature)
    }

    pub(crate) fn run(operator: Operator) -> Self {
        Self::run_with(operator, Pause::default())
    }

    pub(crate) fn run_with(operator: Operator, pause: Pause) -> Self {
        let view = operator.view();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let future = Box::pin(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            operator.run(stopped).await
        });
        let task = tokio::spawn(Pausable {
            pause: pause.clone(),
            future,
        });
        Self {
            view,
            pause,
            stop: Some(stop),
            task,
        }
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        (&mut self.task).await.unwrap().unwrap();
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}
