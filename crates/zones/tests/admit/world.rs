//! Zones, pods and budgets in stores, and an API that keeps `ConfigMap`s and refuses what is out of date.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_kernel::fact::{Answer, Question};
use slipway_kernel::{ClusterId, Stores};
use slipway_zones::Settings;
use slipway_zones::observe::interests;

use crate::harness::{Peer, said};

/// The objects of a cluster, from which stores are made.
#[derive(Debug, Default, Clone)]
pub(crate) struct World {
    pub(crate) sets: BTreeMap<String, Value>,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) budgets: Vec<Value>,
}

pub(crate) fn zone(letter: &str) -> String {
    format!("ingester-zone-{letter}")
}

impl World {
    /// Zones of three healthy pods each.
    pub(crate) fn healthy(zones: &[&str]) -> Self {
        let mut world = Self::default();
        for letter in zones {
            world.set(letter, 3);
            for ordinal in 0..3 {
                world.pod(letter, ordinal);
            }
        }
        world
    }

    pub(crate) fn set(&mut self, letter: &str, replicas: i64) {
        let name = zone(letter);
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name, "namespace": "default", "uid": format!("set-{letter}"), "resourceVersion": "1",
                "labels": {"rollout-group": "ingester"}, "annotations": {}},
            "spec": {"replicas": replicas, "serviceName": name,
                "template": {"metadata": {"labels": {"name": name}}}},
            "status": {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas}});
        self.sets.insert(name, set);
    }

    pub(crate) fn pod(&mut self, letter: &str, ordinal: i64) {
        let name = format!("{}-{ordinal}", zone(letter));
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": format!("pod-{letter}-{ordinal}"),
                "resourceVersion": "1", "labels": {"rollout-group": "ingester", "name": zone(letter)},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": zone(letter),
                    "uid": format!("set-{letter}"), "controller": true}]},
            "status": {"phase": "Running", "containerStatuses": [{"ready": true, "state": {"running": {}}}]}});
        self.pods.insert(name, pod);
    }

    pub(crate) fn pod_mut(&mut self, letter: &str, ordinal: i64) -> &mut Value {
        self.pods
            .get_mut(&format!("{}-{ordinal}", zone(letter)))
            .unwrap()
    }

    pub(crate) fn set_mut(&mut self, letter: &str) -> &mut Value {
        self.sets.get_mut(&zone(letter)).unwrap()
    }

    pub(crate) fn fail(&mut self, letter: &str, ordinal: i64) {
        self.pod_mut(letter, ordinal)["status"]["phase"] = json!("Failed");
    }

    pub(crate) fn budget(&mut self, fields: &Value) {
        let mut spec = json!({"selector": {"matchLabels": {"rollout-group": "ingester"}}});
        for (name, value) in fields.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let name = format!("budget-{}", self.budgets.len());
        self.budgets.push(json!({"apiVersion": "rollout-operator.grafana.com/v1",
            "kind": "ZoneAwarePodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default", "resourceVersion": "1"}, "spec": spec}));
    }

    /// This one, and everything of another in a namespace of its own.
    pub(crate) fn beside(&self, other: &Self, namespace: &str) -> Self {
        let moved = |object: &Value| {
            let text = object.to_string();
            let text = text.replace("\"set-", &format!("\"{namespace}-set-"));
            let text = text.replace("\"pod-", &format!("\"{namespace}-pod-"));
            let mut object: Value = serde_json::from_str(&text).unwrap();
            object["metadata"]["namespace"] = json!(namespace);
            object
        };
        let mut both = self.clone();
        let place =
            |(name, object): (&String, &Value)| (format!("{namespace}/{name}"), moved(object));
        both.sets.extend(other.sets.iter().map(place));
        both.pods.extend(other.pods.iter().map(place));
        both.budgets.extend(other.budgets.iter().map(moved));
        both
    }

    pub(crate) fn stores(&self) -> Stores {
        let mut stores = Stores::default();
        for interest in interests(&Settings::default()) {
            let objects: Vec<Value> = match interest.kind.kind.as_ref() {
                "StatefulSet" => self.sets.values().cloned().collect(),
                "Pod" => self.pods.values().cloned().collect(),
                "ZoneAwarePodDisruptionBudget" => self.budgets.clone(),
                _ => continue,
            };
            let key = stores.open(&ClusterId::local(), &interest);
            stores.store_mut(&key).unwrap().observe_list(&objects, "1");
        }
        stores
    }
}

/// An API server with `ConfigMap`s, and whatever else is put into it.
#[derive(Default)]
pub(crate) struct Api {
    /// `ConfigMap`s by path.
    pub(crate) maps: BTreeMap<String, Value>,
    /// Answers that go before all others, by method and a part of the address.
    pub(crate) fixed: Vec<(&'static str, String, Answer)>,
    /// All questions so far: method and address.
    pub(crate) log: Vec<String>,
    /// The questions in full.
    pub(crate) asked: Vec<Question>,
    version: u64,
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

impl Api {
    pub(crate) fn fix(&mut self, method: &'static str, part: &str, answer: Answer) {
        self.fixed.push((method, part.to_owned(), answer));
    }

    pub(crate) fn map(&self, name: &str) -> &Value {
        &self.maps[&format!("{MAPS}/{name}")]
    }

    pub(crate) fn put(&mut self, name: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.maps.insert(format!("{MAPS}/{name}"), object);
    }

    pub(crate) fn count(&self, start: &str) -> usize {
        self.log
            .iter()
            .filter(|line| line.starts_with(start))
            .count()
    }

    fn store(&mut self, question: &Question) -> Answer {
        let missing = said(404, &json!({"message": "not found"}));
        match question.method() {
            "GET" => self
                .maps
                .get(&*question.address())
                .map_or(missing, |map| said(200, map)),
            "POST" => {
                let name = question.request.body()["metadata"]["name"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                if self.maps.contains_key(&format!("{MAPS}/{name}")) {
                    return said(409, &json!({"message": "already exists"}));
                }
                self.put(&name, question.request.body().clone());
                said(201, self.map(&name))
            }
            "PUT" => {
                let Some(known) = self.maps.get(&*question.address()) else {
                    return missing;
                };
                let seen = &question.request.body()["metadata"]["resourceVersion"];
                assert!(seen.is_string(), "a write that names no version");
                if known["metadata"]["resourceVersion"] != *seen {
                    return said(409, &json!({"message": "the object has been modified"}));
                }
                let name = question.address().rsplit('/').next().unwrap().to_owned();
                self.put(&name, question.request.body().clone());
                said(200, self.map(&name))
            }
            other => panic!("{other} {}", question.address()),
        }
    }
}

impl Peer for Api {
    fn answer(&mut self, question: &Question) -> Answer {
        self.log
            .push(format!("{} {}", question.method(), question.address()));
        self.asked.push(question.clone());
        let fixed = self.fixed.iter().find(|(method, part, _)| {
            *method == question.method() && question.address().contains(part.as_str())
        });
        if let Some((_, _, answer)) = fixed {
            return answer.clone();
        }
        if question.address().starts_with(MAPS) {
            return self.store(question);
        }
        said(
            404,
            &json!({"message": format!("{} not found", question.address())}),
        )
    }
}
