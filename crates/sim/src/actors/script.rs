//! The script: how the containers, nodes and metrics of a simulated cluster behave.
//!
//! ```yaml
//! nodes: 3
//! start: 2s            # from the binding of a pod until its containers run
//! jitter: 1s           # up to so much is added to it, by the seed and the pod
//! stop: 1s             # from the deletion of a pod until it is gone, at most its grace
//! pods:                # of the rules that match, each field is taken from the last that sets it
//! - match: {namespace: shop, namePrefix: web-, labels: {app: web}, image: "web:2*"}
//!   from: 1m           # since the actors started; the rule holds until `until`
//!   until: 10m
//!   start: 5s
//!   ready: never       # or a time after the start of the containers
//!   crash: {after: 1s} # each run ends so long after its start; restarts back off as in a real kubelet
//!   unschedulable: true
//!   http: 500          # what its HTTP endpoints answer; 200 if nothing is said
//! metrics:
//! - {namespace: shop, autoscaler: web, steps: [{at: 0s, value: 40}, {at: 5m, value: 120}]}
//! flux: {}             # Flux is there; what is in git, see [`Flux`]
//! gateway: {within: 5s} # a gateway is there, and takes an object so long after it was written at most, see [`Gateway`]
//! ```

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod};
use serde::{Deserialize, Deserializer, Serialize};

use super::flux::script::Flux;
use super::gateway::Gateway;
use super::hash;

/// How the cluster behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Script {
    /// How many nodes there are: `node-0`, `node-1`, … in the zones `zone-a`, `zone-b`, `zone-c` by turns.
    pub nodes: usize,
    /// How long containers take to start after their pod is bound to a node.
    pub start: SignedDuration,
    /// Up to how much longer a start takes, by the seed and the pod.
    pub jitter: SignedDuration,
    /// How long containers take to stop after their pod is deleted; never longer than the pod's grace.
    pub stop: SignedDuration,
    /// Rules for some pods. Of the rules that match, each field is taken from the last one that sets it.
    pub pods: Vec<PodRule>,
    /// What autoscalers measure.
    pub metrics: Vec<Metric>,
    /// What Flux finds and how it behaves; where nothing is said there is no Flux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flux: Option<Flux>,
    /// How a gateway behaves; where nothing is said there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            nodes: 3,
            start: SignedDuration::from_secs(2),
            jitter: SignedDuration::from_secs(1),
            stop: SignedDuration::from_secs(1),
            pods: Vec::new(),
            metrics: Vec::new(),
            flux: None,
            gateway: None,
        }
    }
}

/// How the containers of some pods behave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct PodRule {
    /// Which containers.
    #[serde(rename = "match")]
    pub about: Match,
    /// The rule holds from so long after the start of the actors.
    pub from: Option<SignedDuration>,
    /// The rule holds until so long after the start of the actors.
    pub until: Option<SignedDuration>,
    /// How long containers take to start; without jitter.
    pub start: Option<SignedDuration>,
    /// When a running container is ready.
    pub ready: Option<Readiness>,
    /// Every run of the container ends in a failure. Until then it is not ready, unless a rule says when it is.
    pub crash: Option<Crash>,
    /// No node takes the pod.
    pub unschedulable: Option<bool>,
    /// What its HTTP endpoints answer.
    pub http: Option<u16>,
}

/// Which containers a rule is about. What is not given matches all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Match {
    /// The namespace of the pod.
    pub namespace: Option<String>,
    /// How the name of the pod starts.
    pub name_prefix: Option<String>,
    /// Labels that the pod has to have.
    pub labels: BTreeMap<String, String>,
    /// The image of the container; a `*` at the end stands for any rest.
    pub image: Option<String>,
}

/// When a running container is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Readiness {
    /// So long after its start.
    After(SignedDuration),
    /// Not at all.
    #[serde(serialize_with = "never")]
    Never,
}

fn never<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("never")
}

impl<'de> Deserialize<'de> for Readiness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "never" {
            return Ok(Self::Never);
        }
        text.parse().map(Self::After).map_err(|error| {
            serde::de::Error::custom(format!("neither a time nor `never`: {error}"))
        })
    }
}

/// A container that fails again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Crash {
    /// How long each run lasts.
    pub after: SignedDuration,
    /// The restarts that are counted; after them the container waits for the rule to end.
    pub restarts: i32,
    /// What it exits with.
    pub exit_code: i32,
}

impl Default for Crash {
    fn default() -> Self {
        Self {
            after: SignedDuration::from_secs(1),
            restarts: 12,
            exit_code: 1,
        }
    }
}

/// What one autoscaler measures, as a step function of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Metric {
    /// The namespace of the autoscaler.
    pub namespace: String,
    /// The name of the autoscaler.
    pub autoscaler: String,
    /// The name of the metric, where the autoscaler has several (for a resource its name, as `cpu`).
    #[serde(default)]
    pub name: Option<String>,
    /// The value is the load of all pods together, which share it evenly, instead of the average of each.
    #[serde(default)]
    pub shared: bool,
    /// The values, by time.
    pub steps: Vec<MetricStep>,
}

/// A value from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct MetricStep {
    /// Since the start of the actors.
    pub at: SignedDuration,
    /// In the unit of the target: percent for a utilisation, the plain number for a value.
    pub value: f64,
}

/// What the script says about one container now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Behaviour {
    /// How long it takes to start, and whether jitter is added.
    pub(crate) start: (SignedDuration, bool),
    pub(crate) ready: Readiness,
    pub(crate) crash: Option<Crash>,
    pub(crate) unschedulable: bool,
}

/// A script that is being played.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) script: &'a Script,
    pub(crate) seed: u64,
    pub(crate) started: Timestamp,
}

impl Scene<'_> {
    /// How long after the start a moment is.
    pub(crate) fn since(&self, at: Timestamp) -> SignedDuration {
        at.duration_since(self.started)
    }

    /// How long the containers of a pod take to start.
    pub(crate) fn delay(&self, pod: &Pod, behaviour: Behaviour) -> SignedDuration {
        let (start, jittered) = behaviour.start;
        let millis = u64::try_from(self.script.jitter.as_millis()).unwrap_or(0);
        if !jittered || millis == 0 {
            return start;
        }
        let mut bytes = self.seed.to_le_bytes().to_vec();
        bytes.extend(pod.metadata.uid.as_deref().unwrap_or_default().bytes());
        let extra = hash::number(&bytes) % millis;
        start + SignedDuration::from_millis(i64::try_from(extra).unwrap_or(0))
    }
}

impl Script {
    /// A script from YAML.
    pub fn from_yaml(yaml: &str) -> Result<Self, serde_saphyr::Error> {
        serde_saphyr::from_str(yaml)
    }

    /// How a container of a pod behaves, so long after the start of the actors.
    pub(crate) fn behaviour(
        &self,
        pod: &Pod,
        container: &Container,
        since_start: SignedDuration,
    ) -> Behaviour {
        let mut behaviour = Behaviour {
            start: (self.start, true),
            ready: Readiness::After(SignedDuration::ZERO),
            crash: None,
            unschedulable: false,
        };
        let mut ready = None;
        let rules = self.pods.iter().filter(|rule| rule.holds(since_start));
        for rule in rules.filter(|rule| rule.about.matches(pod, container)) {
            behaviour.start = rule.start.map_or(behaviour.start, |start| (start, false));
            ready = rule.ready.or(ready);
            behaviour.crash = rule.crash.or(behaviour.crash);
            behaviour.unschedulable = rule.unschedulable.unwrap_or(behaviour.unschedulable);
        }
        if behaviour.crash.is_some() {
            behaviour.ready = Readiness::Never;
        }
        behaviour.ready = ready.unwrap_or(behaviour.ready);
        behaviour
    }

    /// What the HTTP endpoints of a pod answer, so long after the start of the actors.
    pub(crate) fn answer(&self, pod: &Pod, since_start: SignedDuration) -> u16 {
        let containers = || pod.spec.iter().flat_map(|spec| &spec.containers);
        let rules = self.pods.iter().filter(|rule| rule.holds(since_start));
        rules
            .filter(|rule| containers().any(|container| rule.about.matches(pod, container)))
            .filter_map(|rule| rule.http)
            .next_back()
            .unwrap_or(200)
    }

    /// The next time at which a rule about this pod begins or ends to hold.
    pub(crate) fn next_turn(
        &self,
        pod: &Pod,
        since_start: SignedDuration,
    ) -> Option<SignedDuration> {
        let containers = || pod.spec.iter().flat_map(|spec| &spec.containers);
        let rules = self
            .pods
            .iter()
            .filter(|rule| containers().any(|container| rule.about.matches(pod, container)));
        let turns = rules.flat_map(|rule| [rule.from, rule.until]).flatten();
        turns.filter(|turn| *turn > since_start).min()
    }
}

impl PodRule {
    fn holds(&self, since_start: SignedDuration) -> bool {
        self.from.is_none_or(|from| from <= since_start)
            && self.until.is_none_or(|until| since_start < until)
    }
}

impl Match {
    fn matches(&self, pod: &Pod, container: &Container) -> bool {
        let meta = &pod.metadata;
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let labels = meta.labels.as_ref();
        let name = meta.name.as_deref().unwrap_or_default();
        let prefix = self.name_prefix.as_deref().unwrap_or_default();
        is(&self.namespace, &meta.namespace)
            && name.starts_with(prefix)
            && self
                .labels
                .iter()
                .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
            && self.image.as_deref().is_none_or(|wanted| {
                let image = container.image.as_deref().unwrap_or_default();
                is_like(image, wanted)
            })
    }
}

/// Whether an image is the one that is meant; a `*` at the end stands for any rest.
pub(crate) fn is_like(image: &str, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(start) => image.starts_with(start),
        None => image == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_and_what_it_does_not_know_is_refused_by_name() {
        let yaml = "start: 5s\npods:\n- match: {image: 'web:2*'}\n  from: 1m30s\n  ready: never\n  crash: {after: 2s}\n";
        let script = Script::from_yaml(yaml).unwrap();
        assert_eq!(script.start, SignedDuration::from_secs(5));
        let rule = &script.pods[0];
        assert_eq!(rule.from, Some(SignedDuration::from_secs(90)));
        assert_eq!(rule.ready, Some(Readiness::Never));
        assert_eq!(rule.crash.unwrap().exit_code, 1);
        let again = Script::from_yaml(&serde_saphyr::to_string(&script).unwrap()).unwrap();
        assert_eq!(again, script);
        let error = Script::from_yaml("strat: 5s").unwrap_err().to_string();
        assert!(error.contains("strat"), "{error}");
        let error = Script::from_yaml("pods: [{ready: soon}]").unwrap_err();
        assert!(error.to_string().contains("neither a time nor"), "{error}");
    }
}
