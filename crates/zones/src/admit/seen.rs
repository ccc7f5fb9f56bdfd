//! What the webhooks keep of pods and `StatefulSets`, and the scene of a namespace made of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::identity::kinds;
use slipway_kernel::store::{Projection, Seen, Undecodable};
use slipway_kernel::{ClusterId, Facts, Kind, Stores};

use super::disruption::{self, Owner, Scene, Zone};
use super::names;
use super::zpdb::{Budget, BudgetSeen};

/// rollout-operator.grafana.com/v1 `ZoneAwarePodDisruptionBudget`.
pub const ZONE_BUDGET: Kind = Kind::namespaced(
    slipway_api::zpdb::GROUP,
    "v1",
    slipway_api::zpdb::KIND,
    "zoneawarepoddisruptionbudgets",
);

/// Pods by the uid of their controller, or by namespace and label `name` where they have none.
pub const BY_OWNER: &str = "owner";

/// A controller of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Controller {
    kind: String,
    name: String,
    uid: String,
}

/// What is kept of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSeen {
    labels: BTreeMap<String, String>,
    controller: Option<Controller>,
    is_idle: bool,
    is_ready: bool,
    ready_since: Option<Timestamp>,
}

/// What is kept of a `StatefulSet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSeen {
    labels: BTreeMap<String, String>,
    pod_name_label: Option<String>,
    asked: i64,
    are: i64,
}

fn strings(object: &Value, path: &str) -> BTreeMap<String, String> {
    let map = object.pointer(path).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn list<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = object.pointer(path).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    object.pointer(path).and_then(Value::as_str)
}

impl Projection for PodSeen {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        let phase = text(object, "/status/phase").unwrap_or_default();
        let is_deleting = text(object, "/metadata/deletionTimestamp").is_some();
        let condition = list(object, "/status/conditions")
            .find(|condition| text(condition, "/type") == Some("Ready"));
        let is_open = condition.map(|condition| text(condition, "/status") == Some("True"));
        let has_gates = list(object, "/spec/readinessGates").next().is_some();
        let runs = list(object, "/status/containerStatuses").all(|container| {
            container.get("ready") == Some(&Value::Bool(true))
                && container.pointer("/state/running").is_some()
        });
        let annotated = object
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(names::READY_TIME)?.as_str());
        let turned = condition.and_then(|condition| text(condition, "/lastTransitionTime"));
        let times = [annotated, turned].into_iter().flatten();
        let controller = list(object, "/metadata/ownerReferences")
            .find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        let owned = |owner: &Value, path: &str| text(owner, path).unwrap_or_default().to_owned();
        Ok(Self {
            labels: strings(object, "/metadata/labels"),
            controller: controller.map(|owner| Controller {
                kind: owned(owner, "/kind"),
                name: owned(owner, "/name"),
                uid: owned(owner, "/uid"),
            }),
            is_idle: is_deleting || matches!(phase, "Pending" | "Succeeded" | "Failed"),
            is_ready: phase == "Running" && !is_deleting && runs && is_open.unwrap_or(!has_gates),
            // The later of the two: what the original wrote may be older than the last fall.
            ready_since: times.filter_map(|time| time.parse().ok()).max(),
        })
    }
}

impl Projection for SetSeen {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
        let labels = object.pointer("/spec/template/metadata/labels");
        Ok(Self {
            labels: strings(object, "/metadata/labels"),
            pod_name_label: labels
                .and_then(|all| Some(all.get(names::NAME_LABEL)?.as_str()?.to_owned())),
            asked: number("/spec/replicas").unwrap_or(1),
            are: number("/status/replicas").unwrap_or_default(),
        })
    }
}

fn orphanage(namespace: &str, label: &str) -> String {
    format!("{namespace}/{label}")
}

/// The values of [`BY_OWNER`].
pub fn owners(seen: &Seen) -> Vec<String> {
    let body = seen.body.as_ref().ok();
    let Some(pod) = body.and_then(|body| body.downcast_ref::<PodSeen>()) else {
        return Vec::new();
    };
    if let Some(controller) = &pod.controller {
        return vec![controller.uid.clone()];
    }
    let label = pod.labels.get(names::NAME_LABEL);
    let of = label.map(|label| orphanage(&seen.meta.namespace, label));
    of.into_iter().collect()
}

fn pod<'a>(name: &'a str, uid: &'a str, seen: &'a PodSeen) -> disruption::Pod<'a> {
    let owner = match &seen.controller {
        None => Owner::Nobody,
        Some(Controller { kind, name, uid }) if kind == "StatefulSet" => Owner::Set { name, uid },
        Some(Controller { kind, name, .. }) => Owner::Other { name, kind },
    };
    disruption::Pod {
        name,
        uid,
        labels: &seen.labels,
        owner,
        is_idle: seen.is_idle,
        is_ready: seen.is_ready,
        ready_since: seen.ready_since,
    }
}

/// What cannot be said yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} have not been listed yet; try again")]
pub struct Unlisted(&'static str);

/// The budgets of a namespace. None where the kind is not defined or must not be seen.
pub fn budgets<'a>(
    stores: &'a Stores,
    facts: &Facts,
    namespace: &str,
) -> Result<Vec<(&'a str, &'a BudgetSeen)>, Unlisted> {
    let missing = format!("watch {}", ZONE_BUDGET.plural);
    if facts.missing.contains(&missing) {
        return Ok(Vec::new());
    }
    let cluster = ClusterId::local();
    if !stores.is_synced::<BudgetSeen>(&cluster, &ZONE_BUDGET) {
        return Err(Unlisted("zone-aware pod disruption budgets"));
    }
    let all = stores.list::<BudgetSeen>(&cluster, &ZONE_BUDGET);
    let all = all.filter(|entry| entry.meta.namespace == namespace);
    Ok(all
        .map(|entry| (entry.meta.name.as_str(), entry.body))
        .collect())
}

/// A pod of a namespace.
pub fn pod_of<'a>(
    stores: &'a Stores,
    namespace: &str,
    name: &str,
) -> Result<Option<disruption::Pod<'a>>, Unlisted> {
    let cluster = ClusterId::local();
    if !stores.is_synced::<PodSeen>(&cluster, &kinds::POD) {
        return Err(Unlisted("pods"));
    }
    let found = stores.get::<PodSeen>(&cluster, &kinds::POD, namespace, name);
    Ok(found.map(|entry| pod(&entry.meta.name, &entry.meta.uid, entry.body)))
}

/// How many pods of a `StatefulSet` are running and ready.
pub(super) fn ready_pods(
    stores: &Stores,
    namespace: &str,
    uid: &str,
    label: Option<&str>,
) -> Result<i64, Unlisted> {
    if !stores.is_synced::<PodSeen>(&ClusterId::local(), &kinds::POD) {
        return Err(Unlisted("pods"));
    }
    let pods = members(stores, namespace, uid, label);
    let ready = pods.iter().filter(|pod| pod.is_ready).count();
    Ok(i64::try_from(ready).unwrap_or(i64::MAX))
}

/// The pods that a `StatefulSet` controls, and those that it is about to adopt.
fn members<'a>(
    stores: &'a Stores,
    namespace: &str,
    uid: &str,
    label: Option<&str>,
) -> Vec<disruption::Pod<'a>> {
    let cluster = ClusterId::local();
    let found = |value: &str| {
        let pods = stores.indexed::<PodSeen>(&cluster, &kinds::POD, BY_OWNER, value);
        pods.map(|entry| pod(&entry.meta.name, &entry.meta.uid, entry.body))
    };
    let mut pods: Vec<disruption::Pod<'a>> = found(uid).collect();
    if let Some(label) = label {
        pods.extend(found(&orphanage(namespace, label)));
    }
    pods
}

/// The zones of a budget, and the one that a pod is of.
fn zones<'a>(
    stores: &'a Stores,
    namespace: &str,
    budget: &Budget,
    of: &disruption::Pod<'_>,
) -> Result<Vec<Zone<'a>>, Unlisted> {
    let cluster = ClusterId::local();
    if !stores.is_synced::<SetSeen>(&cluster, &kinds::STATEFUL_SET) {
        return Err(Unlisted("StatefulSets"));
    }
    let is_own = |uid: &str| matches!(of.owner, Owner::Set { uid: own, .. } if own == uid);
    let sets = stores
        .list::<SetSeen>(&cluster, &kinds::STATEFUL_SET)
        .filter(|set| set.meta.namespace == namespace)
        .filter(|set| budget.selects(&set.body.labels) || is_own(&set.meta.uid));
    let zones = sets.map(|set| Zone {
        name: &set.meta.name,
        uid: &set.meta.uid,
        labels: &set.body.labels,
        asked: set.body.asked,
        are: set.body.are,
        pods: members(
            stores,
            namespace,
            &set.meta.uid,
            set.body.pod_name_label.as_deref(),
        ),
    });
    Ok(zones.collect())
}

/// The scene that the eviction of a pod is judged on.
pub(super) fn scene<'a>(
    stores: &'a Stores,
    namespace: &str,
    budget: (&'a str, &'a BudgetSeen, &Budget),
    of: &disruption::Pod<'_>,
    held: &'a BTreeMap<String, Timestamp>,
    now: Timestamp,
) -> Result<Scene<'a>, Unlisted> {
    let (name, seen, budget) = budget;
    Ok(Scene {
        budgets: vec![(name, seen)],
        zones: zones(stores, namespace, budget, of)?,
        held,
        now,
    })
}
