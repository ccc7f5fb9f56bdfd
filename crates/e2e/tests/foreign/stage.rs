//! A cluster with nodes; each test makes its own namespace.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::install::node;
use slipway_e2e::server::Server;
use slipway_e2e::suite;
use slipway_e2e::watch::Watch;

/// How long something that should happen at once may take on a loaded machine.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// How many nodes there are.
pub(crate) const NODES: u32 = 3;

/// Where tests play.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    /// How many pods a Deployment has; a recording wants more of them.
    pub(crate) crowd: usize,
    server: &'static str,
}

impl Stage {
    /// Makes the nodes.
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let cluster = Cluster::new(kubectl, server.kubeconfig())?;
        for index in 0..NODES {
            cluster.apply(&node(index).to_string())?;
        }
        let crowd = std::env::var("SLIPWAY_FOREIGN_CROWD").ok();
        let crowd = crowd.map_or(Ok(3), |text| text.parse());
        Ok(Self {
            cluster,
            crowd: crowd.context("SLIPWAY_FOREIGN_CROWD is no number")?,
            server: server.name(),
        })
    }

    /// A namespace of this name.
    pub(crate) fn place(&self, name: &'static str) -> Result<Place<'_>> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.cluster.apply(&namespace.to_string())?;
        Ok(Place { stage: self, name })
    }
}

/// A namespace.
pub(crate) struct Place<'a> {
    stage: &'a Stage,
    pub(crate) name: &'static str,
}

impl Place<'_> {
    /// Says in one line what the programs did.
    pub(crate) fn say(&self, text: &str) {
        suite::say(&format!("  {} {}: {text}", self.stage.server, self.name));
    }

    /// kubectl in this namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut all = vec!["-n", self.name];
        all.extend(arguments);
        self.stage.cluster.kubectl(&all)
    }

    /// Creates an object at a path of the API.
    pub(crate) fn raw(&self, path: &str, object: &Value) -> Result<String> {
        self.stage.cluster.post(path, &object.to_string())
    }

    /// What kubectl shows here as JSON, with who wrote it.
    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = vec!["-n", self.name];
        all.extend(arguments);
        all.push("--show-managed-fields");
        self.stage.cluster.json(&all)
    }

    /// Watches the pods here.
    pub(crate) fn watch_pods(&self) -> Result<Watch> {
        let path = format!("/api/v1/namespaces/{}/pods", self.name);
        Watch::start(&self.stage.cluster, &path, |pod| {
            pod["metadata"]["name"].clone()
        })
    }

    /// Applies an object here.
    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(self.name);
        self.stage.cluster.apply(&object.to_string()).map(drop)
    }

    /// The objects of a kind with the label `app` of this value.
    pub(crate) fn of_app(&self, kind: &str, app: &str) -> Result<Vec<Value>> {
        let list = self.json(&["get", kind, "-l", &format!("app={app}")])?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// An object, if it is there.
    pub(crate) fn find(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let text = self.kubectl(&[
            "get",
            kind,
            name,
            "--ignore-not-found",
            "--show-managed-fields",
            "-o",
            "json",
        ])?;
        Ok(serde_json::from_str(&text).ok())
    }

    /// Waits until something holds.
    pub(crate) fn eventually<T>(
        &self,
        what: &str,
        mut probe: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        self.stage
            .cluster
            .eventually(what, SOON, |_| probe())
            .map_err(|error| error.context(self.situation()))
    }

    /// What a reader wants to see when a test fails.
    fn situation(&self) -> String {
        let pods = self.kubectl(&["get", "pods,events"]).unwrap_or_default();
        format!("in namespace {}:\n{pods}", self.name)
    }

    /// Waits until exactly so many pods of an app run this image and are ready, each on a node.
    pub(crate) fn settled(&self, app: &str, count: usize, image: &str) -> Result<Vec<Value>> {
        self.eventually(&format!("{count} ready pods of {app} with {image}"), || {
            let pods = self.of_app("pods", app)?;
            let is_settled =
                pods.len() == count && pods.iter().all(|pod| is_ready_with(pod, image));
            Ok(is_settled.then_some(pods))
        })
    }

    /// How many events there are of each reason, by who reports them.
    pub(crate) fn events(&self) -> Result<BTreeMap<(String, String), u64>> {
        let list = self.json(&["get", "events"])?;
        let mut all = BTreeMap::new();
        for event in list["items"].as_array().into_iter().flatten() {
            let text = |path: &str| {
                let found = event.pointer(path).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            let who = match text("/reportingComponent") {
                empty if empty.is_empty() => text("/source/component"),
                who => who,
            };
            let times = event["count"].as_u64().unwrap_or(1).max(1);
            *all.entry((who, text("/reason"))).or_default() += times;
        }
        Ok(all)
    }

    /// What was done to these pods, by whom.
    pub(crate) fn story(&self, pods: &[Value]) -> Result<String> {
        let by = |program: &str| {
            pods.iter()
                .filter(|pod| managers(pod).any(|who| who == program))
                .count()
        };
        let bound = self
            .events()?
            .get(&("default-scheduler".to_owned(), "Scheduled".to_owned()))
            .copied()
            .unwrap_or_default();
        Ok(format!(
            "kube-controller-manager made {} pods, kube-scheduler bound {bound}, kwok made {} ready",
            by("kube-controller-manager"),
            by("kwok"),
        ))
    }
}

/// Who has written to an object.
pub(crate) fn managers(object: &Value) -> impl Iterator<Item = &str> {
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["manager"].as_str())
}

/// A pod's or a workload's image.
pub(crate) fn image(object: &Value) -> &str {
    [
        "/spec/containers/0/image",
        "/spec/template/spec/containers/0/image",
    ]
    .iter()
    .find_map(|path| object.pointer(path))
    .and_then(Value::as_str)
    .unwrap_or_default()
}

fn is_ready_with(pod: &Value, wanted: &str) -> bool {
    let ready = pod.pointer("/status/conditions").and_then(Value::as_array);
    let is_ready = ready
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    is_ready
        && image(pod) == wanted
        && pod.pointer("/spec/nodeName").is_some()
        && pod.pointer("/metadata/deletionTimestamp").is_none()
}

/// A workload of this kind with pods that end at once.
pub(crate) fn workload(kind: &str, name: &str, replicas: usize, image: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "app", "image": image}]},
            },
        },
    });
    if kind != "DaemonSet" {
        object["spec"]["replicas"] = json!(replicas);
    }
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = json!(name);
    }
    object
}
