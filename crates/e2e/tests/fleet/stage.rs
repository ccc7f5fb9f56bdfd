//! A hub, three leaves, a repository, and the operator in the hub.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::git::Repository;
use slipway_e2e::install::{node, printed};
use slipway_e2e::operator::Operator;
use slipway_e2e::server::{Real, Server};

use crate::leaf::Leaf;

/// How many leaves there are.
const LEAVES: usize = 3;
/// Where everything of the fleet is.
pub(crate) const PLACE: &str = "fleet";
/// How long something may take that nothing delays, on a loaded machine.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// Where tests play.
pub(crate) struct Stage {
    pub(crate) hub: Cluster,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) repository: Repository,
    /// The operator in the hub; none while it is stopped.
    operator: Mutex<Option<Operator>>,
}

impl Stage {
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let hub = Cluster::new(kubectl, server.kubeconfig())?;
        let members = Real::members().into_iter().enumerate();
        let leaves = members
            .map(|(index, real)| Leaf::new(kubectl, &format!("leaf-{index}"), real))
            .collect::<Result<Vec<Leaf>>>()?;
        let found = leaves.len();
        ensure!(
            found == LEAVES,
            "{found} leaves and not {LEAVES}: is SLIPWAY_REAL_MEMBERS set?"
        );
        for definition in printed(&["crds", "--controllers", "fleet"])? {
            hub.apply(&definition.to_string())?;
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}});
        hub.apply(&namespace.to_string())?;
        let stage = Self {
            hub,
            leaves,
            repository: Repository::start()?,
            operator: Mutex::new(None),
        };
        for version in ["v1", "v2", "v3", "v4"] {
            stage.repository.release(version, &files(version)?)?;
        }
        for leaf in &stage.leaves {
            for index in 0..2 {
                leaf.cluster().apply(&node(index).to_string())?;
            }
            stage.register(leaf)?;
        }
        stage.start()?;
        Ok(stage)
    }

    /// Makes a leaf a cluster of the fleet.
    fn register(&self, leaf: &Leaf) -> Result<()> {
        let kubeconfig = leaf.cluster().inline_kubeconfig(None)?;
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": leaf.name, "namespace": PLACE,
                "labels": {"fleet.squaremo.dev/cluster": "", "env": "prod", "leaf": leaf.name},
            },
            "stringData": {"value": kubeconfig.to_string()},
        });
        self.hub.apply(&secret.to_string()).map(drop)
    }

    fn operator(&self) -> MutexGuard<'_, Option<Operator>> {
        self.operator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the operator in the hub.
    pub(crate) fn start(&self) -> Result<()> {
        let mut operator = Operator::start(
            &self.hub.kubeconfig,
            &["--controllers", "fleet", "--operator-namespace", PLACE],
        )?;
        operator.wait_until_ready(SOON)?;
        *self.operator() = Some(operator);
        Ok(())
    }

    /// Ends it.
    pub(crate) fn stop(&self) -> Result<()> {
        match self.operator().take() {
            Some(operator) => operator.terminate(),
            None => Ok(()),
        }
    }

    /// Applies a Rollout of this name with this spec.
    pub(crate) fn rollout(&self, name: &str, spec: &Value) -> Result<()> {
        let rollout = json!({
            "apiVersion": "fleet.squaremo.dev/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": name, "namespace": PLACE},
            "spec": spec,
        });
        self.hub.apply(&rollout.to_string()).map(drop)
    }

    /// A source and a folder of the repository at a version, as a sync has them.
    pub(crate) fn sync(&self, version: &str, path: &str, more: &Value) -> Value {
        let mut kustomize = json!({"path": path, "timeout": "30s", "retryInterval": "10s"});
        for (name, value) in more.as_object().into_iter().flatten() {
            kustomize[name] = value.clone();
        }
        json!({
            "source": {"git": {"url": self.repository.url(), "version": {"tag": version}}},
            "package": {"kustomize": kustomize},
        })
    }

    /// An object of the fleet in the hub.
    pub(crate) fn find(&self, kind: &str, name: &str) -> Result<Value> {
        self.hub.json(&["get", kind, name, "-n", PLACE])
    }

    /// What a failing test wants to show.
    fn situation(&self) -> String {
        let kinds = "rollouts.fleet.squaremo.dev,remoteassemblages.fleet.squaremo.dev,assemblages.fleet.squaremo.dev";
        let all = self.hub.kubectl(&["get", kinds, "-n", PLACE, "-o", "yaml"]);
        let log = self.operator().as_ref().map(Operator::log);
        let log = log.unwrap_or_default();
        let end: Vec<&str> = log.lines().rev().take(40).collect();
        format!("{}\n{}", all.unwrap_or_default(), end.join("\n"))
    }

    /// Waits until something holds.
    pub(crate) fn eventually<T>(
        &self,
        what: &str,
        mut probe: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let waited = self.hub.eventually(what, SOON, |_| probe());
        waited.map_err(|error| error.context(self.situation()))
    }

    /// Waits until a Rollout is ready, with everything that it was last asked for.
    pub(crate) fn done(&self, rollout: &str) -> Result<Value> {
        self.eventually(&format!("{rollout} is rolled out"), || {
            let found = self.find("rollouts.fleet.squaremo.dev", rollout)?;
            let is_current = found.pointer("/status/observedGeneration")
                == found.pointer("/metadata/generation");
            Ok((is_current && is_ready(&found)).then_some(found))
        })
    }
}

/// Whether an object says that it is ready.
pub(crate) fn is_ready(object: &Value) -> bool {
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// The files of a version. The third one never becomes ready.
fn files(version: &str) -> Result<BTreeMap<String, String>> {
    let mut spec = json!({"terminationGracePeriodSeconds": 0, "containers": [{"name": "web", "image": format!("web:{version}")}]});
    if version == "v3" {
        spec["nodeSelector"] = json!({"no": "where"});
    }
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    });
    let values = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "values"},
        "data": {
            "literal": "${LITERAL}", "cluster": "${CLUSTER}", "label": "${LABEL}", "control": "${CONTROL}",
            "local": "${LOCAL}", "module": "${MODULE}",
        },
    });
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"token": "${TOKEN}"}});
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}, "data": {"version": version}});
    // Whoever reads this repository finds a kustomization, and not only manifests.
    let kustomization = "resources: [all.yaml]\n".to_owned();
    let mut files = BTreeMap::new();
    for (folder, manifests) in [
        ("deploy", vec![deployment]),
        ("values", vec![values, token]),
        ("plain", vec![plain]),
        ("agent", agent()?),
    ] {
        let texts: Vec<String> = manifests.iter().map(Value::to_string).collect();
        files.insert(format!("{folder}/all.yaml"), texts.join("\n---\n"));
        files.insert(
            format!("{folder}/kustomization.yaml"),
            kustomization.clone(),
        );
    }
    Ok(files)
}

/// What `slipway` installs for the agent.
fn agent() -> Result<Vec<Value>> {
    printed(&[
        "manifests",
        "--controllers",
        "agent",
        "--operator-namespace",
        crate::leaf::AGENT_NAMESPACE,
    ])
}
