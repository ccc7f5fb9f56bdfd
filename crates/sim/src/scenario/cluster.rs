//! The clusters of a scenario besides the one that the operator runs in: its members.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::action::signed;
use super::{Named, Workload, length, object};

/// The name of the cluster that the operator runs in, where one has to be said.
pub const HOME: &str = "hub";

/// What no name of a cluster has in it: what is told of a run in a line is divided by these.
const DIVIDERS: [char; 6] = ['~', '/', '@', '+', ',', ' '];

/// A cluster besides home: an API server of its own, with its own ids, versions, time and controllers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cluster {
    /// Its name, by which credentials at home, people and faults mean it.
    pub name: String,
    /// Whether our definitions are installed there.
    #[serde(default = "yes")]
    pub definitions: bool,
    /// Whether somebody looks after workloads there.
    #[serde(default = "yes")]
    pub actors: bool,
    /// How far its clock is off: `30s`, `-5m`.
    #[serde(default, deserialize_with = "signed")]
    pub clock: i64,
    /// An operator that runs in this cluster, and knows of no other; none if nothing is said.
    #[serde(default)]
    pub operator: Option<Within>,
    /// Resources that the operator has no right to there, of those that it asks for.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// Workloads at the start, in few words.
    #[serde(default)]
    pub workloads: Vec<Workload>,
    /// Manifests of everything else at the start.
    #[serde(default)]
    pub objects: Vec<Value>,
}

/// An operator that runs in a cluster besides home.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Within {
    /// What it is set up with; only the wiring knows what it means.
    #[serde(default)]
    pub settings: Value,
    /// When it starts.
    #[serde(default, deserialize_with = "length")]
    pub starts: Duration,
}

fn yes() -> bool {
    true
}

impl Cluster {
    /// All manifests of the start; `applied` is what people apply later, whose namespaces have to be there.
    pub(super) fn manifests<'a>(&'a self, applied: impl Iterator<Item = &'a Value>) -> Vec<Value> {
        let workloads = self.workloads.iter().flat_map(Workload::manifests);
        let workloads: Vec<_> = workloads.collect();
        object::with_namespaces(&workloads, &self.objects, applied)
    }

    /// What is wrong with it: the field, and the problem.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        if self.name.is_empty() || self.name == HOME || self.name.contains(DIVIDERS) {
            let problem = format!("{:?} cannot be the name of a member", self.name);
            return Err(("name".to_owned(), problem));
        }
        for (n, manifest) in self.objects.iter().enumerate() {
            Named::of(manifest).map_err(|error| (format!("objects[{n}]"), error.to_string()))?;
        }
        for (n, workload) in self.workloads.iter().enumerate() {
            let checked = workload.check();
            checked.map_err(|problem| (format!("workloads[{n}]"), problem))?;
        }
        Ok(())
    }
}
