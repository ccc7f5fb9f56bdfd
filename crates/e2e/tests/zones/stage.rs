//! A cluster with our kinds and nodes; each test makes its own namespace.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::install::node;
use slipway_e2e::server::Server;
use slipway_e2e::zones::{GROUP, Place, ZONES, definitions, zone};

/// How long something that should happen at once may take on a loaded machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Where tests play.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    /// Whether this is a real control plane.
    pub(crate) real: bool,
}

impl Stage {
    /// Installs our kinds.
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let cluster = Cluster::new(kubectl, server.kubeconfig())?;
        let real = server.name() == "real";
        if real {
            for index in 0..3 {
                cluster.apply(&node(index).to_string())?;
            }
        }
        cluster.apply(&definitions()?)?;
        Ok(Self { cluster, real })
    }

    /// Nodes that a test closed are opened again; namespaces go by themselves.
    pub(crate) fn clear(&self) -> Result<()> {
        self.open()
    }

    /// A namespace of this name with a service account and roles.
    pub(crate) fn place(&self, name: &str) -> Result<Place<'_>> {
        Place::new(&self.cluster, name)
    }

    /// A namespace with the first so many zones, ready with version 1.
    pub(crate) fn zones(&self, name: &str, count: usize, replicas: usize) -> Result<Place<'_>> {
        let place = self.place(name)?;
        place.apply(&zones(count, replicas, "app:1", 1))?;
        place.settled(count * replicas, "app:1", SOON)?;
        Ok(place)
    }

    /// No pod finds a node any more.
    pub(crate) fn close(&self) -> Result<()> {
        self.nodes("cordon")
    }

    /// Pods find nodes again.
    pub(crate) fn open(&self) -> Result<()> {
        self.nodes("uncordon")
    }

    fn nodes(&self, verb: &str) -> Result<()> {
        self.cluster
            .kubectl(&[verb, "node-0", "node-1", "node-2"])
            .map(drop)
    }
}

/// The first so many zones.
pub(crate) fn zones(count: usize, replicas: usize, image: &str, away: usize) -> Vec<Value> {
    let names = ZONES.iter().take(count);
    names
        .map(|name| zone(name, replicas, image, away))
        .collect()
}

/// A budget for all zones, with these fields besides its selector.
pub(crate) fn budget(fields: &Value) -> Value {
    let mut budget = json!({
        "apiVersion": "rollout-operator.grafana.com/v1",
        "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"name": "mock-budget"},
        "spec": {"selector": {"matchLabels": {"rollout-group": GROUP}}},
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        budget["spec"][key] = value.clone();
    }
    budget
}
