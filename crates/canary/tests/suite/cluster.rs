//! A cluster of plain objects: whole runs of the standalone mode, with controllers that do at once what they are asked to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::canary::{Canary, Phase};
use slipway_canary::engine::{Answer, Answers, Check, Reading, Run, advance, deeds};
use slipway_canary::reasons::Reason;
use slipway_canary::router::{Objects, Write};
use slipway_canary::settings::Settings;
use slipway_canary::standalone::acts::{Act, acts};
use slipway_canary::standalone::configs::{Config, ConfigKind, Known, known};
use slipway_canary::standalone::scene::{Obstacle, Seen, Stand, stand};
use slipway_canary::standalone::{adopt, cookies};
use slipway_kernel::fields::{merge, strings};

use crate::play::check_answered;

pub(crate) struct Cluster {
    pub(crate) canary: Canary,
    pub(crate) objects: Objects,
    pub(crate) configs: BTreeMap<Config, Known>,
    pub(crate) settings: Settings,
    pub(crate) now: Timestamp,
    /// Whether workloads become ready.
    pub(crate) heals: bool,
    /// What measures say.
    pub(crate) value: f64,
    pub(crate) phases: Vec<Phase>,
    /// The weights of the data plane, as clients see them: the share of the target.
    pub(crate) shares: Vec<u8>,
    pub(crate) holds: BTreeSet<Reason>,
    pub(crate) writes: usize,
    /// After how many writes the process dies, if it does: what its plan asks for besides is not done.
    pub(crate) dies_after: Option<usize>,
}

pub(crate) fn workload(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": 1},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": image}],
                    "volumes": [{"name": "v", "configMap": {"name": "conf"}}]}}},
    })
}

pub(crate) fn canary(spec: &Value) -> Canary {
    let mut whole = json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "service": {"port": 80},
        "analysis": {"interval": "10s", "threshold": 2, "stepWeight": 50,
            "metrics": [{"name": "errors", "query": "q", "thresholdRange": {"max": 1.0}}]},
    });
    merge(&mut whole, spec);
    serde_json::from_value(json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 1},
        "spec": whole,
    }))
    .unwrap()
}

impl Cluster {
    pub(crate) fn new(spec: &Value) -> Self {
        let mut cluster = Self {
            canary: canary(spec),
            objects: Objects::default(),
            configs: BTreeMap::new(),
            settings: Settings::default(),
            now: Timestamp::from_second(1_000_000).unwrap(),
            heals: true,
            value: 0.0,
            phases: Vec::new(),
            shares: Vec::new(),
            holds: BTreeSet::new(),
            writes: 0,
            dies_after: None,
        };
        cluster.put(workload("web", "web:1"));
        cluster.config("conf", "1");
        cluster.controllers();
        cluster
    }

    pub(crate) fn config(&mut self, name: &str, value: &str) {
        let config = Config {
            kind: ConfigKind::ConfigMap,
            name: name.to_owned(),
        };
        let object = json!({"data": {"k": value}});
        self.configs
            .insert(config, known(ConfigKind::ConfigMap, &object));
    }

    /// What is in a config.
    pub(crate) fn checksum(&self, name: &str) -> String {
        let mut all = self.configs.iter();
        let found = all.find(|(config, _)| config.name == name).unwrap();
        found.1.checksum.clone()
    }

    pub(crate) fn put(&mut self, object: Value) {
        let text = |path: &str| object.pointer(path).unwrap().as_str().unwrap().to_owned();
        let key = (text("/kind"), text("/metadata/name"));
        self.objects.0.insert(key, object);
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> &Value {
        let found = self.objects.get(kind, name);
        found.unwrap_or_else(|| panic!("{kind} {name} is not there"))
    }

    pub(crate) fn change(&mut self, kind: &str, name: &str, patch: &Value) {
        let key = (kind.to_owned(), name.to_owned());
        let object = self.objects.0.get_mut(&key).unwrap();
        let before = object["spec"].clone();
        merge(object, patch);
        if object["spec"] != before {
            let generation = object["metadata"]["generation"]
                .as_i64()
                .unwrap_or_default();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        self.controllers();
    }

    pub(crate) fn push(&mut self, image: &str) {
        let containers = json!([{"name": "c", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.change("Deployment", "web", &patch);
    }

    /// What controllers of Kubernetes and of a gateway do.
    pub(crate) fn controllers(&mut self) {
        let heals = self.heals;
        for ((kind, _), object) in &mut self.objects.0 {
            let generation = object["metadata"]["generation"].clone();
            if kind == "Deployment" {
                let replicas = object["spec"]["replicas"].clone();
                let is_known = object["status"]["observedGeneration"] == generation;
                if heals || !is_known {
                    let available = if heals { replicas.clone() } else { json!(0) };
                    object["status"] = json!({"observedGeneration": generation, "replicas": replicas,
                        "updatedReplicas": replicas, "availableReplicas": available});
                }
            }
            if kind == "HTTPRoute" {
                object["status"] = json!({"parents": [{"parentRef": {"name": "gw"}, "conditions": [
                    {"type": "Accepted", "status": "True", "observedGeneration": generation}]}]});
            }
        }
    }

    pub(crate) fn with_seen<T>(&self, look: impl FnOnce(&Seen<'_>) -> T) -> T {
        look(&Seen {
            canary: &self.canary,
            objects: &self.objects,
            configs: &self.configs,
            settings: &self.settings,
            now: self.now,
        })
    }

    pub(crate) fn stand(&self) -> Result<Stand, Obstacle> {
        self.with_seen(stand)
    }

    fn answers(&self, stand: &Stand) -> Answers {
        let next = advance(
            &stand.asked.rules,
            &stand.run,
            &stand.sight,
            &Answers::new(),
            self.now,
        );
        let answer = |check: Check| match check {
            Check::Hook(_) => Answer::Yes,
            Check::Metric(_) => Answer::Value(Reading {
                value: self.value,
                ..Reading::default()
            }),
        };
        let asks = next.asks.into_iter();
        asks.map(|ask| (ask, answer(ask.check))).collect()
    }

    /// One pass; gives whether something was written, and when to look again.
    pub(crate) fn pass(&mut self) -> (bool, Option<Timestamp>) {
        self.holds.clear();
        let stand = match self.stand() {
            Ok(stand) => stand,
            Err(obstacle) => {
                self.holds.insert(obstacle.reason);
                return (false, None);
            }
        };
        let answers = self.answers(&stand);
        let next = advance(
            &stand.asked.rules,
            &stand.run,
            &stand.sight,
            &answers,
            self.now,
        );
        self.holds.extend(next.holds.iter().map(|hold| hold.reason));
        if next.run != stand.run {
            self.remember(&next.run);
            return (true, None);
        }
        let is_sent_back = stand.run.weight == 0;
        check_answered(&stand.asked.rules, &stand.run, &stand.sight, is_sent_back);
        let deeds = deeds(&stand.asked.rules, &stand.run, &stand.sight, self.now);
        let acts = self.with_seen(|seen| acts(seen, &stand, &deeds));
        self.holds
            .extend(acts.obstacles.iter().map(|one| one.reason));
        let is_something = !acts.list.is_empty();
        for act in acts.list {
            if self.dies_after == Some(self.writes) {
                self.dies_after = None;
                break;
            }
            self.act(act);
        }
        self.controllers();
        self.share();
        (is_something, next.wake)
    }

    fn remember(&mut self, run: &Run) {
        let before = self.canary.status.clone().unwrap_or_default();
        let mut after = adopt::status(run, &before, 1, self.now);
        cookies::record(&self.canary, run, &mut after);
        self.canary.status = Some(after);
        if self.phases.last() != Some(&run.phase) {
            self.phases.push(run.phase);
        }
        self.writes += 1;
    }

    fn act(&mut self, act: Act) {
        self.writes += 1;
        match act {
            Act::Copy(copy) => {
                let mut value = self.configs[&copy.config].clone();
                value.owners.insert("u1".to_owned());
                let to = Config {
                    kind: copy.config.kind,
                    name: copy.to,
                };
                self.configs.insert(to, value);
            }
            Act::Write(Write::Apply { kind, name, body }) => {
                if self.objects.get(&kind.kind, &name).is_none() {
                    let mut object = body;
                    object["metadata"]["uid"] = json!(format!("uid-{name}"));
                    object["metadata"]["generation"] = json!(1);
                    self.put(object);
                } else {
                    self.change(&kind.kind, &name, &body);
                }
            }
            Act::Write(Write::Patch { kind, name, body }) => self.change(&kind.kind, &name, &body),
        }
    }

    /// How many available pods the apex leads to: of the target, and of the source.
    pub(crate) fn led(&self) -> (i64, i64) {
        let selector = strings(self.get("Service", "web"), "/spec/selector");
        let count = |name: &str| {
            let workload = self.get("Deployment", name);
            let labels = strings(workload, "/spec/template/metadata/labels");
            let is_found = selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value));
            let available = &workload["status"]["availableReplicas"];
            if is_found {
                available.as_i64().unwrap_or_default()
            } else {
                0
            }
        };
        (count("web"), count("web-primary"))
    }

    /// What clients would see now.
    fn share(&mut self) {
        let Some(route) = self.objects.get("HTTPRoute", "web") else {
            return;
        };
        let weight = &route["spec"]["rules"][0]["backendRefs"][1]["weight"];
        let share = u8::try_from(weight.as_i64().unwrap_or_default()).unwrap();
        let target = self.get("Deployment", "web");
        let alive = target["status"]["availableReplicas"]
            .as_i64()
            .unwrap_or_default();
        assert!(share == 0 || alive > 0, "traffic to nobody");
        let primary = self.get("Deployment", "web-primary");
        let ready = primary["status"]["availableReplicas"]
            .as_i64()
            .unwrap_or_default();
        let is_taken = self.shares.last().is_some_and(|before| share < *before);
        let is_dead = share < 100 && ready == 0 && (self.heals || is_taken);
        assert!(!is_dead || alive == 0, "traffic to nobody");
        if self.shares.last() != Some(&share) {
            self.shares.push(share);
        }
    }

    /// Passes until nothing comes of it at this moment.
    pub(crate) fn settle(&mut self) -> Option<Timestamp> {
        for _ in 0..100 {
            if let (false, wake) = self.pass() {
                return wake;
            }
        }
        panic!("it does not settle: {:?}", self.canary.status);
    }

    pub(crate) fn finish(&mut self) -> Phase {
        for _ in 0..100 {
            let Some(wake) = self.settle() else { break };
            self.now = wake;
        }
        self.phase()
    }

    pub(crate) fn phase(&self) -> Phase {
        let status = self.canary.status.as_ref();
        Phase::of(status.and_then(|status| status.phase.as_deref()))
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.settle();
    }

    pub(crate) fn image(&self, name: &str) -> String {
        let containers = &self.get("Deployment", name)["spec"]["template"]["spec"]["containers"];
        containers[0]["image"].as_str().unwrap().to_owned()
    }

    pub(crate) fn replicas(&self, name: &str) -> i64 {
        self.get("Deployment", name)["spec"]["replicas"]
            .as_i64()
            .unwrap()
    }
}
