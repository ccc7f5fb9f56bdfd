//! What the API server's watches showed of a rollout, and whether it kept its promises.
//!
//! Each collection is judged in its own order, which is the API server's; the two are not compared with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::place::Place;
use crate::watch::{Event, Watch};

/// Watches of the pods and zones of a place.
pub struct Trace {
    pods: Watch,
    zones: Watch,
    replicas: BTreeMap<String, usize>,
}

/// What a rollout was, by the watches.
#[derive(Debug, Default)]
pub struct Seen {
    /// The most pods of one zone that were away at once.
    pub most: usize,
    /// How often each pod went.
    pub gone: BTreeMap<String, usize>,
    /// The zones in the order in which their first pod went; one that comes again is here again.
    pub order: Vec<String>,
    /// When the first pod began to go.
    pub first: Option<SystemTime>,
    /// When the last pod came up.
    pub last: Option<SystemTime>,
}

impl Seen {
    /// From the first pod that went to the last that came.
    pub fn took(&self) -> Duration {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.duration_since(first).unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

impl Trace {
    /// Starts to watch; every pod of every zone must be ready.
    pub fn start(place: &Place<'_>) -> Result<Self> {
        let base =
            |group: &str, plural: &str| format!("{group}/namespaces/{}/{plural}", place.name);
        let watch = |path: String, keep| Watch::start(place.cluster, &path, keep);
        let pods = watch(base("/api/v1", "pods"), |pod| of_pod(&pod))?;
        let zones = watch(base("/apis/apps/v1", "statefulsets"), |zone| of_zone(&zone))?;
        let mut replicas = BTreeMap::new();
        for zone in place.list("/apis/apps/v1/statefulsets")? {
            let name = zone.pointer("/metadata/name").and_then(Value::as_str);
            let count = zone.pointer("/spec/replicas").and_then(Value::as_u64);
            let count = usize::try_from(count.unwrap_or(1))?;
            replicas.insert(name.context("a zone without a name")?.to_owned(), count);
        }
        Ok(Self {
            pods,
            zones,
            replicas,
        })
    }

    /// The whole of it. An error names the first time that two zones were disrupted, or one more than `budget` allows.
    pub fn judge(&self, budget: usize) -> Result<Seen> {
        let seen = self.judge_pods(budget)?;
        self.judge_zones(budget)?;
        Ok(seen)
    }

    fn judge_pods(&self, budget: usize) -> Result<Seen> {
        let mut up: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (zone, count) in &self.replicas {
            let names = (0..*count).map(|ordinal| format!("{zone}-{ordinal}"));
            up.insert(zone, names.collect());
        }
        let mut seen = Seen::default();
        for event in self.pods.events() {
            let pod = Pod::of(&event)?;
            let Some(here) = up.get_mut(pod.zone.as_str()) else {
                continue;
            };
            if pod.is_up {
                if here.insert(pod.name.clone()) {
                    seen.last = Some(event.at);
                }
            } else if here.remove(&pod.name) {
                seen.first.get_or_insert(event.at);
                *seen.gone.entry(pod.name.clone()).or_default() += 1;
                if seen.order.last() != Some(&pod.zone) {
                    seen.order.push(pod.zone.clone());
                }
            }
            let mut down = Vec::new();
            for (zone, count) in &self.replicas {
                let away = count.saturating_sub(up.get(zone.as_str()).map_or(0, BTreeSet::len));
                seen.most = seen.most.max(away);
                ensure!(
                    away <= budget,
                    "{away} pods of {zone} were away at once; {budget} may be: {}",
                    self.before(&event)
                );
                if away > 0 {
                    down.push(zone);
                }
            }
            ensure!(
                down.len() < 2,
                "pods of {down:?} were away at once: {}",
                self.before(&event)
            );
        }
        Ok(seen)
    }

    /// What came right before an event, for people.
    fn before(&self, last: &Event) -> String {
        let all = self.pods.events();
        let lines = all
            .iter()
            .filter(|event| event.at <= last.at)
            .rev()
            .take(40)
            .map(|event| {
                let time = last.at.duration_since(event.at).unwrap_or_default();
                let state = if event.object["up"] == true {
                    "up"
                } else {
                    "down"
                };
                let (pod, version) = (&event.object["name"], &event.object["version"]);
                format!(
                    "\n-{:.3} s {version} {} {pod} {state} {}",
                    time.as_secs_f32(),
                    event.kind,
                    event.object["gone"]
                )
            });
        lines.collect()
    }

    fn judge_zones(&self, budget: usize) -> Result<()> {
        let mut away: BTreeMap<String, usize> = BTreeMap::new();
        for event in self.zones.events() {
            let zone = event.object["name"].as_str().unwrap_or_default();
            let number = |key: &str| {
                let number = event.object[key].as_u64().unwrap_or_default();
                usize::try_from(number).unwrap_or_default()
            };
            let here = number("replicas").saturating_sub(number("ready"));
            ensure!(
                here <= budget,
                "the status of {zone} said that {here} pods were away; {budget} may be"
            );
            away.insert(zone.to_owned(), here);
            let down: Vec<&String> = away
                .iter()
                .filter(|(_, n)| **n > 0)
                .map(|(zone, _)| zone)
                .collect();
            ensure!(
                down.len() < 2,
                "the statuses of {down:?} said that pods were away at once"
            );
        }
        Ok(())
    }
}

/// A pod, as one event showed it.
struct Pod {
    name: String,
    zone: String,
    is_up: bool,
}

impl Pod {
    fn of(event: &Event) -> Result<Self> {
        let text = |key: &str| event.object[key].as_str().map(str::to_owned);
        Ok(Self {
            name: text("name").context("a pod without a name")?,
            zone: text("zone").unwrap_or_default(),
            is_up: event.kind != "DELETED" && event.object["up"] == true,
        })
    }
}

/// Whether a pod is ready and stays.
pub(super) fn is_up(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let is_ready =
        |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    pod.pointer("/metadata/deletionTimestamp").is_none()
        && conditions.into_iter().flatten().any(is_ready)
}

fn of_pod(pod: &Value) -> Value {
    json!({
        "name": pod.pointer("/metadata/name"),
        "zone": pod.pointer("/metadata/labels/name"),
        "up": is_up(pod),
        "version": pod.pointer("/metadata/resourceVersion"),
        "gone": pod.pointer("/metadata/deletionTimestamp"),
        "uid": pod.pointer("/metadata/uid"),
    })
}

fn of_zone(zone: &Value) -> Value {
    json!({
        "name": zone.pointer("/metadata/name"),
        "replicas": zone.pointer("/spec/replicas"),
        "ready": zone.pointer("/status/readyReplicas"),
    })
}
