//! Scenarios: what there is, what people do when, what goes wrong, and what must come of it. One YAML file each.
//!
//! A file that cannot be read is refused as a whole, with the name of the field. Nothing here runs anything.

mod action;
mod cluster;
mod expect;
mod object;
mod path;
mod workload;
mod world;

pub use action::{Action, Confirmation, Deed, Marks};
pub use cluster::{Cluster, HOME, Within};
pub use expect::{Expectation, Instead, When};
pub use object::{Named, UnknownKind};
pub use path::look;
pub use workload::{Workload, WorkloadKind};
pub use world::{Behind, Measures, Peer, Says};

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::actors::Script;
use crate::fault::Rates;
use crate::spell::Spell;

/// Why a scenario is none.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no YAML of this shape.
    #[error("reading scenario {name}: {problem}")]
    Shape {
        /// The file.
        name: String,
        /// What is wrong, with line and column.
        problem: String,
    },
    /// Its parts do not fit together.
    #[error("scenario {name}: {field}: {problem}")]
    Sense {
        /// The scenario.
        name: String,
        /// Which field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// One scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// What it is asked for by.
    pub name: String,
    /// What it shows, in a sentence for people.
    pub about: String,
    /// When it begins.
    #[serde(default = "epoch")]
    pub start: Timestamp,
    /// How long it lasts.
    #[serde(deserialize_with = "length")]
    pub duration: Duration,
    /// Nothing is due in this last stretch: the operator writes nothing then.
    #[serde(default, deserialize_with = "length")]
    pub quiet: Duration,
    /// Whether nothing is due after its end, however long one waits: then a run in which something goes wrong late goes on until that is
    /// over, and is judged as any other.
    #[serde(default)]
    pub rests: bool,
    /// Clusters besides the one that the operator runs in, which everything is about that names none of these.
    #[serde(default)]
    pub clusters: Vec<Cluster>,
    /// How many replicas of the operator there are.
    #[serde(default = "one")]
    pub replicas: u32,
    /// When the operator starts.
    #[serde(default, deserialize_with = "length")]
    pub operator_starts: Duration,
    /// What the capabilities are set up with; only their wiring knows what it means.
    #[serde(default)]
    pub settings: Value,
    /// Who looks after workloads.
    #[serde(default)]
    pub controllers: Controllers,
    /// How containers behave.
    #[serde(default)]
    pub script: Script,
    /// Manifests that were stored before our definitions came: older definitions, and objects that these let through.
    #[serde(default)]
    pub before: Vec<Value>,
    /// Workloads at the start, in few words.
    #[serde(default)]
    pub workloads: Vec<Workload>,
    /// Manifests of everything else at the start.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// Who there is outside of clusters.
    #[serde(default)]
    pub world: Vec<Peer>,
    /// What is done when.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// When faults are drawn, from the run's seed.
    #[serde(default)]
    pub faults: Vec<Window>,
    /// What goes wrong for a time in every run, because the scenario is about that.
    #[serde(default)]
    pub spells: Vec<Spell>,
    /// What must come of it.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Which oracles watch; all of them if none is named.
    #[serde(default)]
    pub oracles: Vec<String>,
    /// Oracles that do not apply here, with the reason.
    #[serde(default)]
    pub except: BTreeMap<String, String>,
}

/// Who looks after workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Controllers {
    /// All of them, with pods that start and stop.
    #[default]
    Full,
    /// Deployments roll without pods, for scenarios that are not about these.
    Quick,
}

/// A time in which faults are drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Window {
    /// From when.
    #[serde(deserialize_with = "length")]
    pub from: Duration,
    /// Until when.
    #[serde(deserialize_with = "length")]
    pub to: Duration,
    /// How many of a thousand.
    pub rates: Rates,
}

impl Scenario {
    /// Reads a scenario; `name` is where the text is from.
    pub fn read(name: &str, text: &str) -> Result<Self, Unreadable> {
        let scenario: Self = serde_saphyr::from_str(text).map_err(|error| Unreadable::Shape {
            name: name.to_owned(),
            problem: error.to_string(),
        })?;
        scenario.make_sense()?;
        Ok(scenario)
    }

    /// When it ends.
    pub fn end(&self) -> Timestamp {
        self.moment(self.duration)
    }

    /// The moment this long after the start.
    pub fn moment(&self, after: Duration) -> Timestamp {
        self.start.checked_add(after).unwrap_or(Timestamp::MAX)
    }

    /// All manifests of the start at home: namespaces that are spoken of, workloads, other objects.
    pub fn manifests(&self) -> Vec<Value> {
        let workloads = self.workloads.iter().flat_map(Workload::manifests);
        let workloads: Vec<_> = workloads.collect();
        object::with_namespaces(&workloads, &self.objects, self.applied(None))
    }

    /// The same of a cluster besides home.
    pub fn manifests_in(&self, cluster: &Cluster) -> Vec<Value> {
        cluster.manifests(self.applied(Some(&cluster.name)))
    }

    /// What people apply later in a cluster.
    fn applied<'a>(&'a self, cluster: Option<&'a str>) -> impl Iterator<Item = &'a Value> {
        let actions = self.actions.iter();
        let there = actions.filter(move |action| action.cluster.as_deref() == cluster);
        there.filter_map(|action| action.apply.as_ref())
    }

    /// The place of a cluster among all: home is the first, and what is meant where none is named.
    pub fn place(&self, cluster: Option<&str>) -> Option<usize> {
        let Some(name) = cluster else { return Some(0) };
        let at = self.clusters.iter().position(|known| known.name == name)?;
        Some(at + 1)
    }

    /// Whether this oracle watches.
    pub fn asks(&self, oracle: &str) -> bool {
        !self.except.contains_key(oracle)
            && (self.oracles.is_empty() || self.oracles.iter().any(|name| name == oracle))
    }

    fn make_sense(&self) -> Result<(), Unreadable> {
        let nonsense = |field: String, problem: String| Unreadable::Sense {
            name: self.name.clone(),
            field,
            problem,
        };
        if self.quiet > self.duration {
            let problem = "it is longer than the whole scenario".to_owned();
            return Err(nonsense("quiet".to_owned(), problem));
        }
        let manifests = [("before", &self.before), ("objects", &self.objects)];
        for (field, list) in manifests {
            for (n, manifest) in list.iter().enumerate() {
                Named::of(manifest)
                    .map_err(|error| nonsense(format!("{field}[{n}]"), error.to_string()))?;
            }
        }
        for (n, workload) in self.workloads.iter().enumerate() {
            workload
                .check()
                .map_err(|problem| nonsense(format!("workloads[{n}]"), problem))?;
        }
        for (n, peer) in self.world.iter().enumerate() {
            peer.check()
                .map_err(|problem| nonsense(format!("world[{n}]"), problem))?;
        }
        self.clusters_make_sense(&nonsense)?;
        for (n, action) in self.actions.iter().enumerate() {
            action
                .check(self)
                .map_err(|problem| nonsense(format!("actions[{n}]"), problem))?;
        }
        for (n, expectation) in self.expect.iter().enumerate() {
            expectation
                .check(self)
                .map_err(|problem| nonsense(format!("expect[{n}]"), problem))?;
        }
        Ok(())
    }

    fn clusters_make_sense(
        &self,
        nonsense: &dyn Fn(String, String) -> Unreadable,
    ) -> Result<(), Unreadable> {
        for (n, cluster) in self.clusters.iter().enumerate() {
            let checked = cluster.check();
            checked
                .map_err(|(field, problem)| nonsense(format!("clusters[{n}].{field}"), problem))?;
            if self.place(Some(&cluster.name)) != Some(n + 1) {
                let problem = format!("there are two of the name {:?}", cluster.name);
                return Err(nonsense(format!("clusters[{n}].name"), problem));
            }
        }
        for (n, spell) in self.spells.iter().enumerate() {
            if self.place(spell.cluster.as_deref()).is_none() {
                let problem = format!("{spell}: there is no such cluster");
                return Err(nonsense(format!("spells[{n}]"), problem));
            }
        }
        Ok(())
    }
}

fn epoch() -> Timestamp {
    // 2026-01-05, a Monday.
    Timestamp::constant(1_767_571_200, 0)
}

fn one() -> u32 {
    1
}

/// A duration as people write it.
pub(crate) fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    slipway_kernel::duration::parse(&text).map_err(serde::de::Error::custom)
}

/// A duration as people write it, where there may be none.
pub(crate) fn maybe_length<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    length(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
