//! What the tests stand on: virtual time, a hub, three clusters and the lines to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::authenticate::User;
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_apiserver::status::Status;
use slipway_apiserver::trace::Record;
use slipway_fleet::{Agent, Hub};
use slipway_kernel::Controller;
use slipway_runtime::connect::Connect;
use slipway_runtime::{Environment, Error, Operator, Settings};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub(crate) use crate::ground::{ADMIN, secs, virtually};
use crate::ground::{epoch, request};
use crate::line::{Lines, Mode};
use crate::{definitions, flux};

/// Somebody who may do only what was granted.
const WEAK: &str = "weak";
pub(crate) const NAMESPACE: &str = "fleet";
pub(crate) const CLUSTERS: [&str; 3] = ["berlin", "paris", "rome"];

/// Where it is said which kinds there are.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const FLEET: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet";

/// One API server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) cluster: Arc<Cluster>,
    began: Instant,
}

impl Server {
    async fn new(name: &str, seed: u64) -> Self {
        let config = Config::seeded(name, seed, Arc::default());
        let server = Self {
            cluster: config
                .with_admin(ADMIN)
                .with_token(WEAK, User::new(WEAK, &["system:authenticated"]))
                .build(),
            began: Instant::now(),
        };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "slipway-system"}});
        server.create("/api/v1/namespaces", &namespace).await;
        for definition in definitions::flux().into_iter().chain(definitions::fleet()) {
            server.define(&definition).await;
        }
        server
    }

    pub(crate) async fn define(&self, definition: &Value) {
        self.create(DEFINITIONS, definition).await;
    }

    /// It does not know any more what an Assemblage is.
    pub(crate) async fn undefine_assemblages(&self) {
        let path = format!("{DEFINITIONS}/assemblages.fleet.squaremo.dev");
        self.delete(&path).await;
    }

    /// The definition of Assemblages comes to it, and nothing of it.
    pub(crate) async fn define_assemblages(&self) {
        for definition in definitions::fleet() {
            if definition["spec"]["names"]["kind"] == "Assemblage" {
                self.define(&definition).await;
            }
        }
    }

    /// How long there has been something.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn client(&self, agent: &str) -> Client {
        Client::new(self.cluster.service(ADMIN).with_agent(agent), "default")
    }

    /// Grants rights on these groups to whoever may do only what was granted: each with its resources.
    pub(crate) async fn grant(&self, groups: &[(&str, &[&str])]) {
        let api = "rbac.authorization.k8s.io";
        let rules: Vec<Value> = groups
            .iter()
            .map(|(group, resources)| {
                json!({"apiGroups": [group], "resources": resources, "verbs": ["*"]})
            })
            .collect();
        let root = format!("/apis/{api}/v1");
        let role = json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": WEAK}, "rules": rules,
        });
        self.create(&format!("{root}/clusterroles"), &role).await;
        let binding = json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": WEAK},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": WEAK},
            "subjects": [{"apiGroup": api, "kind": "User", "name": WEAK}],
        });
        self.create(&format!("{root}/clusterrolebindings"), &binding)
            .await;
    }

    async fn try_send(
        &self,
        method: &str,
        path: &str,
        (content, body): (&str, &Value),
    ) -> Result<Value, kube::Error> {
        let request = request(method, path, content, body);
        self.client("test").request(request).await
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        let sent = self.try_send("POST", path, ("application/json", body));
        sent.await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Value {
        let sent = self.try_send("PATCH", path, ("application/merge-patch+json", body));
        sent.await.unwrap()
    }

    /// Applies as somebody else would with kubectl.
    pub(crate) async fn apply(&self, path: &str, manager: &str, body: &Value) -> Value {
        let path = format!("{path}?fieldManager={manager}");
        let sent = self.try_send("PATCH", &path, ("application/apply-patch+yaml", body));
        sent.await.unwrap()
    }

    /// The same, with parameters of one's own.
    pub(crate) async fn apply_at(&self, path: &str, body: &Value) -> Value {
        let sent = self.try_send("PATCH", path, ("application/apply-patch+yaml", body));
        sent.await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) {
        let sent = self.try_send("DELETE", path, ("application/json", &Value::Null));
        sent.await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let sent = self.try_send("GET", path, ("application/json", &Value::Null));
        sent.await.unwrap()
    }

    pub(crate) async fn find(&self, path: &str) -> Option<Value> {
        let sent = self.try_send("GET", path, ("application/json", &Value::Null));
        sent.await.ok()
    }

    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let found = self.get(path).await;
        found["items"].as_array().cloned().unwrap_or_default()
    }

    /// The hub has no right any more to anything of this kind.
    pub(crate) fn forbid(&self, resource: &str) {
        let about = Match {
            agent: "one".to_owned(),
            resource: resource.to_owned(),
            ..Match::default()
        };
        let faults = self.cluster.faults();
        faults.add_watch(about.clone(), Frequency::always(), WatchFault::Close);
        let refuse = Status::failure(403, "Forbidden", "not any more");
        let refuse = Fault::Refuse(Box::new(refuse));
        faults.add(about, Frequency::always(), refuse);
    }

    pub(crate) fn records(&self, want: impl Fn(&Record) -> bool) -> Vec<Record> {
        let all = self.cluster.trace().records();
        all.into_iter().filter(|record| want(record)).collect()
    }

    /// What our controllers wrote: neither leases nor events.
    pub(crate) fn writes(&self) -> Vec<Record> {
        self.records(|record| {
            record.context.starts_with("controller=")
                && !matches!(record.verb.as_str(), "get" | "list" | "watch")
                && !record.resource.contains("events")
                && !record.resource.contains("leases")
        })
    }
}

/// A running replica. Dropping it is a crash.
pub(crate) struct Replica {
    task: JoinHandle<Result<(), Error>>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn run(operator: Operator) -> Replica {
    let task = tokio::spawn(async move { operator.run(std::future::pending()).await });
    Replica { task }
}

fn operator(server: &Server, name: &str, controller: Arc<dyn Controller>) -> Operator {
    operator_of(server.client(name), name, controller)
}

/// The operator of whoever may do only what was granted.
fn weak_operator(server: &Server, name: &str, controller: Arc<dyn Controller>) -> Operator {
    let service = server.cluster.service(WEAK).with_agent(name);
    operator_of(Client::new(service, "default"), name, controller)
}

fn operator_of(client: Client, name: &str, controller: Arc<dyn Controller>) -> Operator {
    let settings = Settings {
        replica: name.to_owned(),
        election: None,
        ..Settings::default()
    };
    let environment = Environment::virtual_from(epoch(), 7);
    Operator::new(environment, client, settings).with(controller)
}

/// A hub and its clusters.
pub(crate) struct Fleet {
    pub(crate) hub: Server,
    pub(crate) leaves: BTreeMap<String, Server>,
    pub(crate) lines: Lines,
    pub(crate) replica: Option<Replica>,
    agents: Vec<Replica>,
    flux: Vec<JoinHandle<()>>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop_flux();
    }
}

impl Fleet {
    /// A hub that knows three clusters: berlin and paris of Cluster API, rome by a Secret.
    pub(crate) async fn new() -> Self {
        let mut fleet = Self::empty().await;
        for name in CLUSTERS {
            fleet.register(name).await;
        }
        fleet.start();
        fleet
    }

    /// The same, and all are ready with the Rollout `web`.
    pub(crate) async fn settled(strategy: &str, tag: &str) -> Self {
        let fleet = Self::new().await;
        let web = rollout(strategy, tag);
        fleet.make("rollouts", "web", &web).await;
        fleet.until_ready("web", 120).await;
        fleet
    }

    /// A hub whose clusters do not know what an Assemblage is.
    pub(crate) async fn bare() -> Self {
        let mut fleet = Self::empty().await;
        for leaf in fleet.leaves.values() {
            leaf.undefine_assemblages().await;
        }
        secs(10).await;
        for name in CLUSTERS {
            fleet.register(name).await;
        }
        fleet.start();
        fleet
    }

    /// A hub that knows no cluster yet, and nobody works.
    pub(crate) async fn empty() -> Self {
        let hub = Server::new("hub", 1).await;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        hub.create("/api/v1/namespaces", &namespace).await;
        hub.define(&definitions::cluster_api()).await;
        let (mut leaves, mut working) = (BTreeMap::new(), Vec::new());
        for (seed, name) in (2..).zip(CLUSTERS) {
            let leaf = Server::new(name, seed).await;
            working.push(flux::run(&leaf));
            leaves.insert(name.to_owned(), leaf);
        }
        working.push(flux::run(&hub));
        let clusters = leaves.iter();
        let clusters =
            clusters.map(|(name, leaf)| (format!("{NAMESPACE}/{name}"), leaf.cluster.clone()));
        let mut fleet = Self {
            lines: Lines::new(clusters.collect()),
            hub,
            leaves,
            replica: None,
            agents: Vec::new(),
            flux: working,
        };
        fleet.start_agents();
        secs(1).await;
        fleet
    }

    /// Another hub, which reaches the same clusters and knows none of them yet.
    pub(crate) async fn another_hub(&self) -> Self {
        let hub = Server::new("another hub", 9).await;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        hub.create("/api/v1/namespaces", &namespace).await;
        hub.define(&definitions::cluster_api()).await;
        let clusters = self.leaves.iter();
        let clusters =
            clusters.map(|(name, leaf)| (format!("{NAMESPACE}/{name}"), leaf.cluster.clone()));
        Self {
            lines: Lines::new(clusters.collect()),
            hub,
            leaves: self.leaves.clone(),
            replica: None,
            agents: Vec::new(),
            flux: Vec::new(),
        }
    }

    /// Starts the agents of all clusters.
    pub(crate) fn start_agents(&mut self) {
        let leaves = self.leaves.values();
        let agents = leaves.map(|leaf| run(operator(leaf, "agent", Arc::new(Agent))));
        self.agents = agents.collect();
    }

    /// The agents are gone, as if they had crashed.
    pub(crate) fn stop_agents(&mut self) {
        self.agents.clear();
    }

    /// Flux does nothing any more.
    pub(crate) fn stop_flux(&self) {
        self.flux.iter().for_each(JoinHandle::abort);
    }

    /// Starts the hub's controller.
    pub(crate) fn start(&mut self) {
        self.start_by(Arc::new(self.lines.of("one")));
    }

    /// The same, which reaches clusters in this way.
    pub(crate) fn start_by(&mut self, connect: Arc<dyn Connect>) {
        let operator = operator(&self.hub, "one", Arc::new(Hub::default()));
        self.replica = Some(run(operator.connecting(connect)));
    }

    /// Starts the hub's controller, which may do only what was granted in the hub.
    pub(crate) fn start_weak(&mut self) {
        let operator = weak_operator(&self.hub, "one", Arc::new(Hub::default()));
        let lines = self.lines.of("one");
        self.replica = Some(run(operator.connecting(Arc::new(lines))));
    }

    /// Starts the agents of all clusters, which may do only what was granted in them.
    pub(crate) fn start_weak_agents(&mut self) {
        let leaves = self.leaves.values();
        let agents = leaves.map(|leaf| run(weak_operator(leaf, "agent", Arc::new(Agent))));
        self.agents = agents.collect();
    }

    /// Makes a cluster known to the hub.
    pub(crate) async fn register(&self, name: &str) {
        let labels = json!({"env": "prod", "name": name});
        let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
        if name == "rome" {
            let mut labels = labels;
            labels["fleet.squaremo.dev/cluster"] = json!("true");
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
                "data": {"value": STANDARD.encode(ADMIN)},
            });
            self.hub.create(&secrets, &secret).await;
            return;
        }
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("{name}-kubeconfig"), "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "data": {"value": STANDARD.encode(ADMIN)},
        });
        self.hub.create(&secrets, &secret).await;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name, "labels": labels}, "spec": {},
        });
        let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/clusters");
        self.hub.create(&path, &cluster).await;
        let status = json!({"status": {"initialization": {"controlPlaneInitialized": true}}});
        self.hub
            .patch(&format!("{path}/{name}/status"), &status)
            .await;
    }

    pub(crate) fn cut(&self, name: &str) {
        self.lines
            .set(&format!("{NAMESPACE}/{name}"), Mode::Refused);
    }

    pub(crate) fn mend(&self, name: &str) {
        self.lines.set(&format!("{NAMESPACE}/{name}"), Mode::Up);
    }

    /// Makes an object of ours in the hub.
    pub(crate) async fn make(&self, plural: &str, name: &str, spec: &Value) {
        let kind = match plural {
            "rollouts" => "Rollout",
            "modules" => "Module",
            "bootstrapmodules" => "BootstrapModule",
            "remoteassemblages" => "RemoteAssemblage",
            other => panic!("{other}"),
        };
        let object = json!({
            "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.hub.create(&format!("{FLEET}/{plural}"), &object).await;
    }

    pub(crate) async fn change(&self, plural: &str, name: &str, patch: &Value) {
        self.hub
            .patch(&format!("{FLEET}/{plural}/{name}"), patch)
            .await;
    }

    pub(crate) async fn get(&self, plural: &str, name: &str) -> Option<Value> {
        self.hub.find(&format!("{FLEET}/{plural}/{name}")).await
    }

    pub(crate) async fn delete(&self, plural: &str, name: &str) {
        self.hub.delete(&format!("{FLEET}/{plural}/{name}")).await;
    }

    /// Changes the tag of a Rollout.
    pub(crate) async fn roll(&self, name: &str, tag: &str) {
        let version = json!({"source": {"git": {"version": {"tag": tag}}}});
        let patch = json!({"spec": {"template": {"spec": {"sync": version}}}});
        self.change("rollouts", name, &patch).await;
    }

    /// The sync of this name that a cluster is assigned.
    pub(crate) async fn assigned(&self, cluster: &str, sync: &str) -> Option<Value> {
        let found = self.get("remoteassemblages", cluster).await?;
        let all = found["spec"]["assemblage"]["syncs"].as_array()?.clone();
        all.into_iter().find(|one| one["name"] == sync)
    }

    /// The tag that a cluster is assigned.
    pub(crate) async fn tag(&self, cluster: &str, sync: &str) -> Option<String> {
        let found = self.assigned(cluster, sync).await?;
        let tag = found["source"]["git"]["version"]["tag"].as_str()?;
        Some(tag.to_owned())
    }

    /// How many clusters are assigned this tag.
    pub(crate) async fn with_tag(&self, sync: &str, tag: &str) -> usize {
        let mut count = 0;
        for cluster in CLUSTERS {
            count += usize::from(self.tag(cluster, sync).await.as_deref() == Some(tag));
        }
        count
    }

    /// The Kustomization of a sync in a cluster.
    pub(crate) async fn kustomization(&self, cluster: &str, sync: &str) -> Option<Value> {
        let path = format!(
            "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations/{cluster}-{sync}"
        );
        self.leaves[cluster].find(&path).await
    }

    /// A condition of what a cluster is assigned.
    pub(crate) async fn condition(&self, cluster: &str, kind: &str) -> Option<Value> {
        let found = self.get("remoteassemblages", cluster).await?;
        let conditions = found["status"]["conditions"].as_array()?.clone();
        conditions.into_iter().find(|one| one["type"] == kind)
    }

    /// What is told of whether a cluster can be reached.
    pub(crate) async fn reachable(&self, cluster: &str) -> Option<Value> {
        self.condition(cluster, "Reachable").await
    }

    /// Waits until something is so, looking all the while that a law holds.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        at_most: u64,
        mut look: impl AsyncFnMut(&Self) -> Option<T>,
    ) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look(self).await {
                return found;
            }
            if began.elapsed() > Duration::from_secs(at_most) {
                let rollouts = self.hub.list(&format!("{FLEET}/rollouts")).await;
                let remotes = self.hub.list(&format!("{FLEET}/remoteassemblages")).await;
                let told: Vec<&Value> = rollouts
                    .iter()
                    .chain(&remotes)
                    .map(|one| &one["status"])
                    .collect();
                let writes = self.hub.writes();
                for write in writes.iter().rev().take(6) {
                    eprintln!(
                        "{} {} {} {:?}",
                        write.verb, write.resource, write.context, write.ending
                    );
                }
                panic!(
                    "not {what} after {at_most} s: {}",
                    serde_json::to_string_pretty(&told).unwrap()
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until a Rollout says that it is ready with this tag everywhere.
    pub(crate) async fn until_ready(&self, rollout: &str, at_most: u64) -> Value {
        self.until(
            &format!("{rollout} ready"),
            at_most,
            async |fleet: &Self| {
                let found = fleet.get("rollouts", rollout).await?;
                is_ready(&found).then_some(found)
            },
        )
        .await
    }
}

/// Whether an object says that it is ready with what it asks for now.
pub(crate) fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
    let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    is_current && ready.is_some_and(|ready| ready["status"] == "True")
}

/// What a Rollout says of a cluster.
pub(crate) fn of_cluster(rollout: &Value, name: &str) -> Value {
    let all = rollout["status"]["clusters"].as_array();
    let found = all.and_then(|all| all.iter().find(|one| one["name"] == name));
    found.cloned().unwrap_or_default()
}

/// The spec of a Rollout over all clusters.
pub(crate) fn rollout(strategy: &str, tag: &str) -> Value {
    json!({
        "selector": {"matchLabels": {"env": "prod"}}, "strategy": strategy,
        "template": {"spec": module(tag)},
    })
}

/// What a module says.
pub(crate) fn module(tag: &str) -> Value {
    json!({"sync": {
        "source": {"git": {"url": "https://example.com/web.git", "version": {"tag": tag}}},
        "package": {"kustomize": {"path": "./deploy"}},
    }})
}
