//! A hub, three leaves, a repository, and the operator in the hub.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::git::Repository;
use slipway_e2e::install::{node, printed};
use slipway_e2e::operator::Operator;
use slipway_e2e::server::{Real, Running, Server, Supervised};

use crate::files;
use crate::leaf::Leaf;
use crate::registry::{self, Known};

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
    /// Somebody else's, which ours has as a submodule.
    theirs: Repository,
    /// The operator in the hub; none while it is stopped.
    operator: Mutex<Option<Operator>>,
}

impl Stage {
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let hub = Cluster::new(kubectl, server.kubeconfig())?;
        let leaves = leaves(kubectl, server)?;
        for definition in printed(&["crds", "--controllers", "fleet"])? {
            hub.apply(&definition.to_string())?;
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}});
        hub.apply(&namespace.to_string())?;
        registry::define(&hub)?;
        let stage = Self {
            hub,
            leaves,
            repository: Repository::start()?,
            theirs: Repository::start()?,
            operator: Mutex::new(None),
        };
        for version in ["v1", "v2", "v3", "v4"] {
            stage.repository.release(version, &files::of(version)?)?;
        }
        for leaf in &stage.leaves {
            for index in 0..2 {
                leaf.cluster().apply(&node(index).to_string())?;
            }
            registry::register(&stage.hub, leaf)?;
        }
        stage.start()?;
        Ok(stage)
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

    /// Gives our repository a version with somebody else's configuration in this folder.
    pub(crate) fn adapt(&self, version: &str, folder: &str) -> Result<()> {
        self.theirs.release("v1", &files::theirs())?;
        self.repository.release_with(version, folder, &self.theirs)
    }

    /// An object of the fleet in the hub, if it is there.
    pub(crate) fn find_any(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = [
            "get",
            kind,
            name,
            "-n",
            PLACE,
            "--ignore-not-found",
            "-o",
            "json",
        ];
        Ok(serde_json::from_str(&self.hub.kubectl(&found)?).ok())
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

/// The clusters besides the hub, of the same kind: the last one is known by a Secret, the others by Cluster API.
fn leaves(kubectl: &Path, server: &dyn Server) -> Result<Vec<Leaf>> {
    let members: Vec<Box<dyn Supervised + Sync>> = if server.name() == "real" {
        boxed(Real::members())
    } else {
        boxed(Running::members())
    };
    let found = members.len();
    let variables = "SLIPWAY_REAL_MEMBERS and SLIPWAY_EMBEDDED_MEMBERS";
    ensure!(
        found == LEAVES,
        "{found} leaves and not {LEAVES}: are {variables} set?"
    );
    let leaf = |(index, server)| {
        let known = if index + 1 < LEAVES {
            Known::ByClusterApi
        } else {
            Known::BySecret
        };
        Leaf::new(kubectl, &format!("leaf-{index}"), known, server)
    };
    members.into_iter().enumerate().map(leaf).collect()
}

fn boxed<S: Supervised + Sync + 'static>(all: Vec<S>) -> Vec<Box<dyn Supervised + Sync>> {
    let all = all.into_iter();
    all.map(|one| Box::new(one) as Box<dyn Supervised + Sync>)
        .collect()
}
