//! From objects to what is written: a Rollout over clusters, as the API has them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_bindings::{Found, Known, Read, Reference};
use slipway_fleet::observe::Refused;
use slipway_fleet::observe::cluster::{Registered, registered};
use slipway_fleet::observe::gather::{Gathered, Parts, gather};
use slipway_fleet::observe::kept::Kept;
use slipway_fleet::render::rollout::{Writes, writes};
use slipway_fleet::{decide, plan};

use crate::stage::noon;

/// The objects of a namespace.
struct Hub {
    rollout: Value,
    clusters: BTreeMap<String, Registered>,
    assemblages: BTreeMap<String, Value>,
    revisions: BTreeMap<String, (TemplateSpec, Timestamp)>,
    known: Known,
    secrets: BTreeSet<String>,
    refused: BTreeMap<String, Refused>,
    taken: BTreeSet<String>,
}

impl Hub {
    fn new(rollout: &Value) -> Self {
        let cluster = |name: &str| {
            json!({
                "metadata": {"namespace": "fleet", "name": name, "labels": {"env": "prod"}},
                "status": {"initialization": {"controlPlaneInitialized": true}},
            })
        };
        let clusters = ["berlin", "paris", "rome"].map(cluster);
        Self {
            rollout: json!({
                "metadata": {"namespace": "fleet", "name": "web", "uid": "u", "generation": 1}, "spec": rollout,
            }),
            clusters: registered(&clusters, []),
            assemblages: BTreeMap::new(),
            revisions: BTreeMap::new(),
            known: Known::new(),
            secrets: BTreeSet::new(),
            refused: BTreeMap::new(),
            taken: BTreeSet::new(),
        }
    }

    fn look<T>(&self, with: impl FnOnce(&Parts<'_>) -> T) -> T {
        let kept = self.assemblages.iter();
        let kept: BTreeMap<&String, Kept> = kept
            .map(|(name, object)| (name, Kept::remote(object)))
            .collect();
        let assemblages = kept.iter().map(|(name, kept)| ((*name).clone(), kept));
        let assemblages = assemblages.collect();
        with(&Parts {
            rollout: &self.rollout,
            clusters: &self.clusters,
            assemblages: &assemblages,
            revisions: &self.revisions,
            known: &self.known,
            unreachable: &BTreeMap::new(),
            unread: &BTreeSet::new(),
            refused: &self.refused,
            taken: &self.taken,
            named: &BTreeSet::new(),
            is_blind: false,
        })
    }

    fn gather(&self) -> Gathered {
        self.look(gather)
    }

    /// Plans, and carries it out as the API would.
    fn step(&mut self) -> Writes {
        let gathered = self.gather();
        let decision = decide(&gathered.world, noon());
        let status = plan::status(&gathered.world, &decision, noon());
        let made = self.look(|parts| writes(parts, &gathered, &decision, &self.secrets));
        for applied in &made.applied {
            let name = applied.object.name.clone();
            match applied.object.kind.kind.as_ref() {
                "RemoteAssemblage" => drop(self.assemblages.insert(name, applied.body.clone())),
                "Secret" => drop(self.secrets.insert(name)),
                "Module" => {
                    let template = serde_json::from_value(applied.body["spec"].clone()).unwrap();
                    let revision = decision.make.clone().unwrap();
                    self.revisions.insert(revision, (template, noon()));
                }
                kind => panic!("{kind}"),
            }
        }
        self.rollout["status"] = serde_json::to_value(status).unwrap();
        made
    }

    fn entry(&self, cluster: &str) -> &Value {
        &self.assemblages[cluster]["spec"]["assemblage"]["syncs"][0]
    }

    /// What the leaf says of its sync.
    fn report(&mut self, cluster: &str, state: &str) {
        let revision = self.entry(cluster)["revision"].clone();
        let status =
            json!({"syncs": [{"name": "web", "observedRevision": revision, "state": state}]});
        self.assemblages.get_mut(cluster).unwrap()["status"] = status;
    }
}

fn spec(bindings: Value, tag: &str) -> Value {
    json!({
        "selector": {"matchLabels": {"env": "prod"}}, "rollout": {"maxUnreadyClusters": 2},
        "template": {"spec": {
            "controlPlaneBindings": bindings,
            "sync": {"source": {"git": {"url": "https://example.com/web.git", "version": {"tag": tag}}}},
        }},
    })
}

#[test]
fn a_rollout_goes_from_objects_to_objects() {
    let mut hub = Hub::new(&spec(
        json!([{"name": "C", "value": "$(CLUSTER_NAME)"}]),
        "v1",
    ));
    let first = hub.step();
    let kinds: Vec<&str> = first
        .applied
        .iter()
        .map(|a| a.object.kind.kind.as_ref())
        .collect();
    assert_eq!(kinds, ["Module"]);
    let canary = hub.step();
    assert_eq!(canary.applied.len(), 1);
    let name = canary.applied[0].object.name.clone();
    assert_eq!(canary.applied[0].manager, "slipway-fleet/Rollout/web");
    assert_eq!(
        hub.entry(&name)["bindings"],
        json!([{"name": "C", "value": name}])
    );
    assert!(
        hub.step().applied.is_empty(),
        "the first one is not ready yet"
    );
    hub.report(&name, "succeeded");
    let others = hub.step();
    assert_eq!(others.applied.len(), 2);
    for cluster in ["berlin", "paris", "rome"] {
        assert_eq!(
            hub.assemblages[cluster]["spec"]["kubeconfigRef"]["name"],
            format!("{cluster}-kubeconfig")
        );
        hub.report(cluster, "succeeded");
    }
    assert!(hub.step().applied.is_empty());
    assert_eq!(hub.rollout["status"]["counts"]["ready"], 3);
    assert_eq!(hub.rollout["status"]["run"], Value::Null);
    assert!(hub.rollout["status"]["stableRevision"].is_string());
    let before = hub.rollout.clone();
    assert!(hub.step().applied.is_empty());
    assert_eq!(
        hub.rollout, before,
        "nothing is written when nothing is to be done"
    );
}

#[test]
fn a_secret_is_there_before_who_refers_to_it() {
    let binding = json!([{"name": "P", "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/p"}}]);
    let mut hub = Hub::new(&spec(binding, "v1"));
    let gathered = hub.gather();
    assert_eq!(gathered.needs.len(), 1);
    let reference: Reference = gathered.needs.into_iter().next().unwrap();
    let secret = json!({"apiVersion": "v1", "metadata": {"uid": "s", "resourceVersion": "1"}, "data": {"p": "aHVudGVyMg=="}});
    hub.known.insert(reference, Read::Found(Found::new(secret)));
    hub.step();
    let prepared = hub.step();
    assert!(prepared.prepares);
    assert_eq!(prepared.applied[0].object.kind.kind, "Secret");
    assert!(hub.assemblages.is_empty());
    let assigned = hub.step();
    let body = assigned.applied[0].body.to_string();
    assert!(
        !assigned.prepares && !body.contains("hunter2") && !body.contains("aHVudGVyMg"),
        "{body}"
    );
    assert_eq!(assigned.applied[0].object.kind.kind, "RemoteAssemblage");
}

#[test]
fn a_cluster_that_is_full_is_told_and_others_go_on() {
    let mut hub = Hub::new(&spec(json!([]), "v1"));
    let syncs: Vec<Value> = (0..1_000)
        .map(|n| json!({"name": format!("s{n}"), "module": {"name": "m"}}))
        .collect();
    hub.assemblages.insert(
        "rome".to_owned(),
        json!({"spec": {"assemblage": {"syncs": syncs}}}),
    );
    hub.step();
    hub.step();
    let status = &hub.rollout["status"]["clusters"];
    assert_eq!(status[2]["reason"], "AssemblageFull", "{status}");
    assert_eq!(hub.rollout["status"]["counts"]["blocked"], 1);
}

/// Whoever edits a selector and breaks it takes nothing away from anybody.
#[test]
fn a_broken_selector_takes_nothing_away() {
    let mut hub = Hub::new(&spec(json!([]), "v1"));
    for _ in 0..6 {
        hub.step();
        let names: Vec<String> = hub.assemblages.keys().cloned().collect();
        for name in names {
            hub.report(&name, "succeeded");
        }
    }
    assert_eq!(hub.assemblages.len(), 3);
    let before = hub.assemblages.clone();
    hub.rollout["spec"]["selector"] =
        json!({"matchExpressions": [{"key": "env", "operator": "Is"}]});
    assert!(hub.step().applied.is_empty());
    hub.rollout["spec"]
        .as_object_mut()
        .unwrap()
        .remove("selector");
    assert!(
        hub.step().applied.is_empty(),
        "no selector selects none, which needs a person's word"
    );
    assert_eq!(hub.assemblages, before);
    assert_eq!(
        hub.rollout["status"]["waitingFor"][0]["reason"],
        "MassUnassignment"
    );
}

impl Hub {
    /// So many plans, between which every cluster becomes ready.
    fn play(&mut self, plans: usize) {
        for _ in 0..plans {
            self.step();
            let names: Vec<String> = self.assemblages.keys().cloned().collect();
            for name in names {
                self.report(&name, "succeeded");
            }
        }
    }
}

#[test]
fn a_lost_secret_is_made_again() {
    let binding = json!([{"name": "P", "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/p"}}]);
    let mut hub = Hub::new(&spec(binding, "v1"));
    let reference = hub.gather().needs.into_iter().next().unwrap();
    let secret = json!({"apiVersion": "v1", "metadata": {"uid": "s", "resourceVersion": "1"}, "data": {"p": "aHVudGVyMg=="}});
    hub.known.insert(reference, Read::Found(Found::new(secret)));
    hub.play(20);
    let made = hub.secrets.clone();
    assert_eq!(made.len(), 3);
    assert!(hub.step().applied.is_empty());
    hub.secrets.clear();
    let again: BTreeSet<String> = hub
        .step()
        .applied
        .iter()
        .map(|applied| applied.object.name.clone())
        .collect();
    assert_eq!(again, made);
    assert!(hub.step().applied.is_empty());
}

/// What is written into the assemblage of another cluster would reach that one.
#[test]
fn an_assemblage_of_another_cluster_is_left_alone() {
    let mut hub = Hub::new(&spec(json!([]), "v1"));
    hub.taken.insert("rome".to_owned());
    hub.play(10);
    let names: Vec<&String> = hub.assemblages.keys().collect();
    assert_eq!(names, ["berlin", "paris"]);
    assert_eq!(
        hub.rollout["status"]["clusters"][2]["reason"],
        "OwnedByOther"
    );
}

#[test]
fn a_cluster_that_nobody_lists_any_more_is_deselected_and_many_wait() {
    let mut hub = Hub::new(&spec(json!([]), "v1"));
    hub.play(10);
    for cluster in hub.clusters.values_mut() {
        cluster.is_listed = false;
    }
    hub.step();
    assert_eq!(hub.assemblages.len(), 3);
    assert_eq!(
        hub.rollout["status"]["waitingFor"][0]["reason"],
        "MassUnassignment"
    );
}
