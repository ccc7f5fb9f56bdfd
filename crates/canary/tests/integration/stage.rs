//! What the tests stand on: a cluster with controllers, a gateway, an operator that can be killed, and somebody who looks at
//! every moment whether clients are served.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::environment::{Clock, TokioClock};
use slipway_apiserver::trace::Record;
use slipway_canary::{Canaries, Settings};
use slipway_kernel::address::Rules;
use slipway_kernel::fields::merge;
use slipway_kernel::question::OtherNamespaces;
use slipway_runtime::gather::{Gatherer, NoPods};
use slipway_runtime::outside::{ApiSecrets, Limits, Outside, SystemResolver, Terms};
use slipway_runtime::{Environment, Operator};
use slipway_sim::actors::{Actors, Script};
use tokio::task::JoinHandle;

use crate::world::World;

/// When the virtual clock starts.
const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
pub(crate) const CANARIES: &str = "/apis/flagger.app/v1beta1/namespaces/default/canaries";
pub(crate) const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The operator, as requests name it.
const OPERATOR: &str = "slipway";

/// A cluster.
#[derive(Clone)]
pub(crate) struct Stage {
    cluster: Arc<Cluster>,
    pub(crate) world: World,
    /// What somebody who looked at every moment objects to.
    objections: Arc<Mutex<Vec<String>>>,
    started: tokio::time::Instant,
}

/// Plays in virtual time.
pub(crate) fn play<F: Future<Output = ()>>(test: impl FnOnce(Stage) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = Config::seeded("test", 1, Arc::default())
            .with_admin("admin")
            .build();
        tokio::spawn(slipway_apiserver::collect::run(cluster.clone()));
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(EPOCH));
        let script =
            "{nodes: 3, start: 2s, pods: [{match: {image: 'web:broken'}, crash: {after: 1s}}]}";
        let script = Script::from_yaml(script).unwrap();
        let stage = Stage {
            cluster,
            world: World::default(),
            objections: Arc::default(),
            started: tokio::time::Instant::now(),
        };
        let actors = Actors::new(stage.client("actors"), clock, script, 1);
        actors.provision().await.unwrap();
        let story = async {
            stage.prepare().await;
            tokio::spawn(stage.clone().gateway());
            tokio::spawn(stage.clone().look());
            test(stage.clone()).await;
        };
        tokio::select! {
            biased;
            () = actors.run() => panic!("the actors ended"),
            () = story => {}
        }
        let objections = stage.objections.lock().unwrap().clone();
        assert!(objections.is_empty(), "{objections:#?}");
    });
}

/// A definition of somebody else's kind, of which nothing is checked.
fn foreign(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        // Groups of Kubernetes itself are defined by who says where that was approved.
        "metadata": {"name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

impl Stage {
    pub(crate) fn client(&self, agent: &str) -> Client {
        Client::new(self.cluster.service("admin").with_agent(agent), "default")
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Option<Value> {
        let content = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(body)
            .unwrap();
        match self.client("test").request(request).await {
            Ok(value) => Some(value),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) {
        self.send("POST", path, body).await.unwrap();
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) {
        self.send("PATCH", path, body).await.unwrap();
    }

    pub(crate) async fn find(&self, path: &str) -> Option<Value> {
        self.send("GET", path, &Value::Null).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let found = self.find(path).await;
        found.unwrap_or_else(|| panic!("{path} is not there"))
    }

    async fn prepare(&self) {
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "slipway-system"}});
        self.create("/api/v1/namespaces", &system).await;
        let ours = (slipway_canary::CAPABILITY.profile.definitions)().unwrap();
        let route = foreign("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes");
        for definition in ours.iter().chain([&route]) {
            self.create(DEFINITIONS, definition).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    /// A gateway that takes each route a moment after it was written.
    async fn gateway(self) {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let Some(list) = self.find(ROUTES).await else {
                continue;
            };
            for route in list["items"].as_array().into_iter().flatten() {
                let generation = &route["metadata"]["generation"];
                let seen = &route["status"]["parents"][0]["conditions"][0]["observedGeneration"];
                if seen == generation {
                    continue;
                }
                let accepted =
                    json!({"type": "Accepted", "status": "True", "observedGeneration": generation});
                let parent = json!({"parentRef": {"name": "gateway"}, "conditions": [accepted]});
                let path = format!(
                    "{ROUTES}/{}/status",
                    route["metadata"]["name"].as_str().unwrap()
                );
                self.patch(&path, &json!({"status": {"parents": [parent]}}))
                    .await;
            }
        }
    }

    /// Looks at every tenth of a second whether who has traffic can serve.
    async fn look(self) {
        let mut is_set_up = false;
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let primary = self.find(&format!("{DEPLOYMENTS}/web-primary")).await;
            let (Some(primary), Some(target)) =
                (primary, self.find(&format!("{DEPLOYMENTS}/web")).await)
            else {
                continue;
            };
            let available = |one: &Value| one["status"]["availableReplicas"].as_i64().unwrap_or(0);
            is_set_up |= self.phase().await == "Initialized";
            let share = self.share().await;
            let at = self.started.elapsed().as_secs_f64();
            let object = |what: String| {
                self.objections
                    .lock()
                    .unwrap()
                    .push(format!("{at:.1} s: {what}"));
            };
            if share > 0 && available(&target) == 0 {
                object(format!(
                    "{share}% of the traffic goes to a version without pods"
                ));
            }
            if is_set_up && share < 100 && available(&primary) == 0 {
                object(format!(
                    "{}% of the traffic goes to a copy without pods",
                    100 - share
                ));
            }
        }
    }

    /// The share of the traffic that the new version has.
    pub(crate) async fn share(&self) -> i64 {
        let Some(route) = self.find(&format!("{ROUTES}/web")).await else {
            return 0;
        };
        let backends = route["spec"]["rules"][0]["backendRefs"].as_array().cloned();
        let backends = backends.unwrap_or_default();
        let mut of_target = backends.iter().filter(|one| one["name"] == "web-canary");
        of_target
            .next()
            .map_or(0, |one| one["weight"].as_i64().unwrap_or(0))
    }

    /// A Deployment `web` of three pods.
    pub(crate) async fn workload(&self, image: &str) {
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": image}]}}},
        });
        self.create(DEPLOYMENTS, &body).await;
    }

    /// A Canary `web` about it: this on top of the usual.
    pub(crate) async fn canary(&self, spec: &Value) {
        let mut whole = json!({
            "provider": "kubernetes",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "service": {"port": 80},
            "metricsServer": "http://prometheus.test:9090",
            "analysis": {"interval": "10s", "threshold": 2},
        });
        merge(&mut whole, spec);
        let body = json!({
            "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
            "metadata": {"name": "web"}, "spec": whole,
        });
        self.create(CANARIES, &body).await;
    }

    /// Somebody pushes an image.
    pub(crate) async fn push(&self, image: &str) {
        let containers = json!([{"name": "c", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.patch(&format!("{DEPLOYMENTS}/web"), &patch).await;
    }

    pub(crate) async fn status(&self) -> Value {
        let canary = self.find(&format!("{CANARIES}/web")).await;
        canary
            .map(|canary| canary["status"].clone())
            .unwrap_or_default()
    }

    pub(crate) async fn phase(&self) -> String {
        self.status().await["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Waits for a phase; gives how many seconds it took.
    pub(crate) async fn until(&self, phase: &str, at_most: u64) -> u64 {
        let began = tokio::time::Instant::now();
        while self.phase().await != phase {
            let status = self.status().await;
            assert!(
                began.elapsed() < Duration::from_secs(at_most),
                "it is not {phase} after {at_most} s: {status:#}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        began.elapsed().as_secs()
    }

    pub(crate) async fn image(&self, name: &str) -> String {
        let found = self.get(&format!("{DEPLOYMENTS}/{name}")).await;
        let containers = &found["spec"]["template"]["spec"]["containers"];
        containers[0]["image"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn replicas(&self, name: &str) -> i64 {
        let found = self.get(&format!("{DEPLOYMENTS}/{name}")).await;
        found["spec"]["replicas"].as_i64().unwrap()
    }

    /// Why it waits, as the status says.
    pub(crate) async fn waits(&self) -> Vec<String> {
        let status = self.status().await;
        let all = status["waitingFor"].as_array().cloned().unwrap_or_default();
        all.iter()
            .map(|one| one["reason"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What is told on the Canary.
    pub(crate) async fn events(&self) -> Vec<String> {
        let list = self
            .get("/apis/events.k8s.io/v1/namespaces/default/events")
            .await;
        let all = list["items"].as_array().cloned().unwrap_or_default();
        let about = all
            .iter()
            .filter(|one| one["regarding"]["kind"] == "Canary");
        about
            .map(|one| one["note"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub(crate) async fn suspend(&self, is_suspended: bool) {
        let patch = json!({"spec": {"suspend": is_suspended}});
        self.patch(&format!("{CANARIES}/web"), &patch).await;
    }

    /// Somebody asks for something by annotation.
    pub(crate) async fn command(&self, verb: &str, id: &str) {
        let command = json!({"verb": verb, "id": id, "by": "ann", "reason": "because"});
        let annotations = json!({slipway_api::flagger::COMMAND: command.to_string()});
        let patch = json!({"metadata": {"annotations": annotations}});
        self.patch(&format!("{CANARIES}/web"), &patch).await;
    }

    /// How many requests there have been.
    pub(crate) fn requests(&self) -> u64 {
        self.cluster.trace().len()
    }

    /// How many watches are open.
    pub(crate) fn watches(&self) -> usize {
        self.cluster.watches()
    }

    /// All that the operator has asked for since there were so many requests. Whether the API is there at all it asks whatever it
    /// works on: that is left out.
    pub(crate) fn asked_since(&self, before: u64) -> Vec<Record> {
        let mut all = self.cluster.trace().records();
        let oldest = all.first().map_or(before, |record| record.index);
        assert!(oldest <= before, "what is looked for is forgotten");
        let is_probe = |uri: &str| uri.split(['?', '&']).any(|part| part == "limit=1");
        let is_ours = |record: &Record| record.agent == OPERATOR && !is_probe(&record.uri);
        all.retain(|record| record.index >= before && is_ours(record));
        all
    }

    /// How many writes the operator has sent since there were so many requests.
    pub(crate) fn writes_since(&self, before: u64) -> usize {
        let all = self.asked_since(before);
        let ours = all
            .iter()
            .filter(|record| record.context.starts_with("controller=canary"));
        ours.filter(|record| !matches!(record.verb.as_str(), "get" | "list" | "watch"))
            .count()
    }

    /// Makes a workload and a Canary of it with this in its spec, starts an operator, and when it is initialized brings a new version.
    pub(crate) async fn roll(&self, spec: &Value) -> Replica {
        self.workload("web:1").await;
        self.canary(spec).await;
        let operator = self.operate();
        self.until("Initialized", 60).await;
        self.push("web:2").await;
        operator
    }

    /// Starts an operator.
    pub(crate) fn operate(&self) -> Replica {
        self.operate_with(Settings::default())
    }

    pub(crate) fn operate_with(&self, settings: Settings) -> Replica {
        let now = EPOCH.checked_add(self.started.elapsed()).unwrap();
        let environment = Environment::virtual_from(now, 7);
        let alone = slipway_runtime::Settings {
            replica: "one".to_owned(),
            election: None,
            ..slipway_runtime::Settings::default()
        };
        let operator = Operator::new(environment, self.client(OPERATOR), alone);
        let terms = Terms {
            rules: Rules::default(),
            other_namespaces: OtherNamespaces::Refused,
            credentials_over_http: false,
            limits: Limits::default(),
            resolver: Arc::new(SystemResolver),
            secrets: Arc::new(ApiSecrets::new(self.client(OPERATOR))),
            agent: "slipway/test",
        };
        let outside = Outside::over(terms, Arc::new(self.world.clone()));
        let gatherer = Gatherer::new(operator.client(), Arc::new(NoPods)).asking(&outside);
        let operator = operator
            .with(Arc::new(Canaries::new(settings)))
            .gathering(Arc::new(gatherer));
        let task = tokio::spawn(async move {
            operator.run(std::future::pending()).await.unwrap();
        });
        Replica { task }
    }
}

pub(crate) async fn secs(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

/// A running operator. Dropping it is a crash.
pub(crate) struct Replica {
    task: JoinHandle<()>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}
