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
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// The nodes of both servers.
pub(crate) const NODES: [&str; 3] = ["node-0", "node-1", "node-2"];

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

    /// A namespace of this name with a service account and roles.
    pub(crate) fn place(&self, name: &str) -> Result<Place<'_>> {
        Place::new(&self.cluster, name)
    }

    /// A namespace with the first so many zones, ready with version 1. Their pods need nodes that are open to them.
    pub(crate) fn zones(&self, name: &str, count: usize, replicas: usize) -> Result<Place<'_>> {
        let place = self.place(name)?;
        self.open(&place, &NODES)?;
        place.apply(&bound(name, zones(count, replicas, "app:1", 1)))?;
        place.settled(count * replicas, "app:1", SOON)?;
        Ok(place)
    }

    /// No pod of a place finds a node any more.
    pub(crate) fn close(&self, place: &Place<'_>) -> Result<()> {
        self.label(&place.name, "closed", &NODES)
    }

    /// Pods of a place find nodes again, on these.
    pub(crate) fn open(&self, place: &Place<'_>, nodes: &[&str]) -> Result<()> {
        self.label(&place.name, "open", nodes)
    }

    fn label(&self, place: &str, value: &str, nodes: &[&str]) -> Result<()> {
        let label = format!("{place}={value}");
        let mut words = vec!["label", "--overwrite", "node"];
        words.extend(nodes);
        words.push(&label);
        self.cluster.kubectl(&words).map(drop)
    }
}

/// The first so many zones.
pub(crate) fn zones(count: usize, replicas: usize, image: &str, away: usize) -> Vec<Value> {
    let names = ZONES.iter().take(count);
    names
        .map(|name| zone(name, replicas, image, away))
        .collect()
}

/// Zones whose pods need nodes that are open to a place.
pub(crate) fn bound(place: &str, mut zones: Vec<Value>) -> Vec<Value> {
    for zone in &mut zones {
        zone["spec"]["template"]["spec"]["nodeSelector"] = json!({place: "open"});
        zone["spec"]["template"]["metadata"]["labels"]["place"] = json!(place);
    }
    zones
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
