//! What the tests stand on: a virtual cluster with actors, and somebody who watches the pods.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::environment::{Clock, TokioClock};
use slipway_sim::actors::{Actors, Script};

/// The moment at which the embedded server's virtual clock starts.
pub(crate) const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A cluster whose actors are at work.
pub(crate) struct Stage {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) client: Client,
}

/// Runs a test in virtual time, on a cluster with nodes and actors.
pub(crate) fn play<F, T>(seed: u64, script: &str, test: impl FnOnce(Stage) -> F) -> T
where
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = Config::seeded("test", seed, Arc::default())
            .with_admin("admin")
            .build();
        tokio::spawn(slipway_apiserver::collect::run(cluster.clone()));
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(EPOCH));
        let script = Script::from_yaml(script).unwrap();
        let client = Client::new(cluster.service("admin").with_agent("actors"), "default");
        if script.flux.is_some() {
            define(&client, slipway_sim::actors::flux_definitions()).await;
        }
        if script.gateway.is_some() {
            define(&client, slipway_sim::actors::gateway_definitions()).await;
        }
        let actors = Actors::new(client, clock, script, seed);
        actors.provision().await.unwrap();
        let client = Client::new(cluster.service("admin").with_agent("test"), "default");
        let stage = Stage { cluster, client };
        tokio::select! {
            biased;
            () = actors.run() => panic!("the actors ended"),
            out = test(stage) => out,
        }
    })
}

/// Installs definitions.
async fn define(client: &Client, definitions: Vec<Value>) {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    for definition in definitions {
        let definition = serde_json::from_value(definition).unwrap();
        api.create(&PostParams::default(), &definition)
            .await
            .unwrap();
    }
}

pub(crate) fn resource(kind: &str) -> ApiResource {
    if kind == "GitRepository" {
        // Its plural is not what anybody would guess.
        let kind = GroupVersionKind::gvk("source.toolkit.fluxcd.io", "v1", kind);
        return ApiResource::from_gvk_with_plural(&kind, "gitrepositories");
    }
    if kind == "Taken" {
        let kind = GroupVersionKind::gvk("dataplane.sim.slipway.dev", "v1", kind);
        return ApiResource::from_gvk_with_plural(&kind, "taken");
    }
    let (group, version) = match kind {
        "Pod"
        | "Node"
        | "Namespace"
        | "PersistentVolumeClaim"
        | "Service"
        | "Endpoints"
        | "ConfigMap"
        | "Secret" => ("", "v1"),
        "Kustomization" => ("kustomize.toolkit.fluxcd.io", "v1"),
        "HTTPRoute" => ("gateway.networking.k8s.io", "v1"),
        "TrafficSplit" => ("split.smi-spec.io", "v1alpha2"),
        "EndpointSlice" => ("discovery.k8s.io", "v1"),
        "PodDisruptionBudget" => ("policy", "v1"),
        "HorizontalPodAutoscaler" => ("autoscaling", "v2"),
        _ => ("apps", "v1"),
    };
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

impl Stage {
    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        if kind == "Node" {
            return Api::all_with(self.client.clone(), &resource(kind));
        }
        Api::default_namespaced_with(self.client.clone(), &resource(kind))
    }

    pub(crate) async fn create(&self, object: Value) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let created = self
            .api(&kind)
            .create(&PostParams::default(), &object)
            .await;
        created.unwrap();
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let patched = self
            .api(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.unwrap();
    }

    pub(crate) async fn set_image(&self, kind: &str, name: &str, image: &str) {
        let containers = json!([{"name": "main", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.patch(kind, name, patch).await;
    }

    pub(crate) async fn scale(&self, kind: &str, name: &str, replicas: i32) {
        self.patch(kind, name, json!({"spec": {"replicas": replicas}}))
            .await;
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.api(kind).get(name).await.unwrap()).unwrap()
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.api(kind).list(&ListParams::default()).await.unwrap();
        let items = list.items.iter();
        items
            .map(|item| serde_json::to_value(item).unwrap())
            .collect()
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let api = self.api(kind);
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until nothing has been written for a while.
    pub(crate) async fn settle(&self) {
        loop {
            let before = self.cluster.version();
            tokio::time::sleep(Duration::from_secs(20)).await;
            if self.cluster.version() == before {
                return;
            }
        }
    }

    /// The requests that the actors made, and how each ended.
    pub(crate) fn requests(&self) -> Vec<String> {
        let records = self.cluster.trace().records();
        let ours = records.iter().filter(|record| record.agent == "actors");
        ours.map(|r| {
            format!(
                "{} {} {} {}/{} {:?} {}",
                r.at, r.verb, r.resource, r.namespace, r.name, r.ending, r.reason
            )
        })
        .collect()
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// The names of the pods that are neither gone nor going, in order.
    pub(crate) async fn pods(&self) -> Vec<String> {
        let pods = self.list("Pod").await;
        let here = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        here.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The images of the pods, by name of the pod.
    pub(crate) async fn images(&self) -> BTreeMap<String, String> {
        let pods = self.list("Pod").await;
        let image = |pod: &Value| {
            pod["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        pods.iter()
            .map(|pod| {
                (
                    pod["metadata"]["name"].as_str().unwrap().to_owned(),
                    image(pod),
                )
            })
            .collect()
    }

    /// Looks at the pods on every change from now on.
    pub(crate) async fn watch_pods(&self) -> Watcher {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        let mut pods = BTreeMap::new();
        let list = api.list(&ListParams::default()).await.unwrap();
        for pod in list.items {
            pods.insert(pod.metadata.name.clone().unwrap(), pod);
        }
        let seen = Arc::new(Mutex::new(vec![Moment::of(&pods)]));
        let from = list.metadata.resource_version.unwrap();
        let out = seen.clone();
        let watch = async move {
            let params = WatchParams::default().disable_bookmarks();
            let mut events = api.watch(&params, &from).await.unwrap().boxed();
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        pods.insert(pod.metadata.name.clone().unwrap(), pod);
                    }
                    WatchEvent::Deleted(pod) => {
                        pods.remove(pod.metadata.name.as_ref().unwrap());
                    }
                    other => panic!("{other:?}"),
                }
                out.lock().unwrap().push(Moment::of(&pods));
            }
        };
        Watcher {
            seen,
            _task: Aborted(tokio::spawn(watch)),
        }
    }
}

/// The pods at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    /// Neither gone nor going.
    pub(crate) active: Vec<String>,
    /// Active and ready.
    pub(crate) ready: Vec<String>,
    pub(crate) going: Vec<String>,
}

impl Moment {
    fn of(pods: &BTreeMap<String, Pod>) -> Self {
        let is_ready = |pod: &Pod| {
            let conditions = pod
                .status
                .iter()
                .flat_map(|s| s.conditions.iter().flatten());
            conditions
                .into_iter()
                .any(|c| c.type_ == "Ready" && c.status == "True")
        };
        let names = |test: &dyn Fn(&Pod) -> bool| {
            let found = pods.iter().filter(|(_, pod)| test(pod));
            found.map(|(name, _)| name.clone()).collect()
        };
        let stays = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
        Self {
            active: names(&stays),
            ready: names(&|pod| stays(pod) && is_ready(pod)),
            going: names(&|pod| !stays(pod)),
        }
    }
}

pub(crate) struct Watcher {
    seen: Arc<Mutex<Vec<Moment>>>,
    _task: Aborted,
}

struct Aborted(tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watcher {
    pub(crate) fn moments(&self) -> Vec<Moment> {
        self.seen.lock().unwrap().clone()
    }

    /// The most pods and the fewest ready ones that were seen at once.
    pub(crate) fn extremes(&self) -> (usize, usize) {
        let moments = self.moments();
        let most = moments.iter().map(|moment| moment.active.len()).max();
        let fewest = moments.iter().map(|moment| moment.ready.len()).min();
        (most.unwrap(), fewest.unwrap())
    }
}

/// A workload with one container.
pub(crate) fn workload(kind: &str, name: &str, replicas: i32, image: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    });
    if kind != "DaemonSet" {
        object["spec"]["replicas"] = json!(replicas);
    }
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = json!(name);
    }
    for (key, value) in more.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

/// The reason of a condition, and its status.
pub(crate) fn condition(object: &Value, kind: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|c| c["type"] == kind).unwrap();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("status"))
}
