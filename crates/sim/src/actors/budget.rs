//! The disruption controller: how many pods of a budget may be evicted now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::amount;
use super::key::{Key, Kind};
use super::owner;
use super::pod;
use super::world::World;
use super::write::{self, Step};

/// A pod that was to be evicted and is still there after so many seconds counts again.
const EVICTED_WITHIN: i64 = 120;
const ALLOWED: &str = "DisruptionAllowed";

/// What the controller does about one budget.
pub(crate) fn reconcile(world: &World, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let Some(budget) = world.budgets.get(key) else {
        return step;
    };
    let spec = budget.spec.clone().unwrap_or_default();
    let selector = owner::selector(spec.selector.as_ref());
    let pods: Vec<&Arc<Pod>> = world
        .pods
        .within(&key.namespace)
        .map(|(_, pod)| pod)
        .filter(|pod| owner::matches(&selector, &pod.metadata))
        .collect();
    let old = budget.status.clone().unwrap_or_default();
    let disrupted = disrupted(&old, &pods, now, &mut step);
    let healthy = pods
        .iter()
        .filter(|pod| !pod::is_terminating(pod) && pod::is_ready(pod))
        .filter(|pod| {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            !disrupted.contains_key(name)
        });
    let healthy = number(healthy.count());
    let mut next = PodDisruptionBudgetStatus {
        current_healthy: healthy,
        observed_generation: budget.metadata.generation,
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        conditions: old.conditions.clone(),
        ..old
    };
    match expected(
        world,
        spec.min_available.as_ref(),
        spec.max_unavailable.as_ref(),
        &pods,
    ) {
        Ok((expected, desired)) => {
            next.expected_pods = expected;
            next.desired_healthy = desired;
            let allowed = if expected > 0 { healthy - desired } else { 0 };
            next.disruptions_allowed = allowed.max(0);
            let (status, reason) = if allowed > 0 {
                ("True", "SufficientPods")
            } else {
                ("False", "InsufficientPods")
            };
            set(&mut next, budget, status, reason, String::new(), now);
        }
        Err(pod) => {
            next.disruptions_allowed = 0;
            let message = format!("found no controllers for pod \"{pod}\"");
            set(&mut next, budget, "False", "SyncFailed", message, now);
        }
    }
    let write = write::status(
        Kind::Budget,
        &budget.metadata,
        budget.status.as_ref(),
        &next,
    );
    step.writes.extend(write);
    step
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// How many pods there are to be, and how many of them have to be healthy; or a pod whose controller is not known.
fn expected(
    world: &World,
    min_available: Option<&IntOrString>,
    max_unavailable: Option<&IntOrString>,
    pods: &[&Arc<Pod>],
) -> Result<(i32, i32), String> {
    match (min_available, max_unavailable) {
        (_, Some(max)) => {
            let expected = scale(world, pods)?;
            let desired = expected - amount::of(max, expected, true);
            Ok((expected, desired.max(0)))
        }
        (Some(IntOrString::Int(min)), None) => Ok((number(pods.len()), *min)),
        (Some(min), None) => {
            let expected = scale(world, pods)?;
            Ok((expected, amount::of(min, expected, true)))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// The sizes of all controllers of these pods together. Pods without a controller do not count.
fn scale(world: &World, pods: &[&Arc<Pod>]) -> Result<i32, String> {
    let mut seen = BTreeSet::new();
    let mut total = 0;
    for pod in pods {
        let Some(controller) = owner::controller(&pod.metadata) else {
            continue;
        };
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let key = Key::new(namespace, &controller.name);
        let unknown = || pod.metadata.name.clone().unwrap_or_default();
        let (uid, replicas) = match controller.kind.as_str() {
            "ReplicaSet" => replica_set(world, &key),
            "StatefulSet" => {
                let set = world.stateful_sets.get(&key);
                let size = |spec: &k8s_openapi::api::apps::v1::StatefulSetSpec| spec.replicas;
                set.map(|set| {
                    let replicas = set.spec.as_ref().and_then(size).unwrap_or(1);
                    (set.metadata.uid.clone(), replicas)
                })
            }
            _ => None,
        }
        .ok_or_else(unknown)?;
        if seen.insert(uid) {
            total += replicas;
        }
    }
    Ok(total)
}

/// The uid and size of a `ReplicaSet`, or of the Deployment above it.
fn replica_set(world: &World, key: &Key) -> Option<(Option<String>, i32)> {
    let set = world.replica_sets.get(key)?;
    let above = owner::controller(&set.metadata).filter(|owner| owner.kind == "Deployment");
    if let Some(above) = above {
        let deployment = world
            .deployments
            .get(&Key::new(&key.namespace, &above.name))?;
        let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
        return Some((deployment.metadata.uid.clone(), replicas.unwrap_or(1)));
    }
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
    Some((set.metadata.uid.clone(), replicas.unwrap_or(1)))
}

/// The evictions that were granted and not carried out yet.
fn disrupted(
    old: &PodDisruptionBudgetStatus,
    pods: &[&Arc<Pod>],
    now: Timestamp,
    step: &mut Step,
) -> BTreeMap<String, Time> {
    let granted = old.disrupted_pods.iter().flatten();
    let mut left = BTreeMap::new();
    for (name, at) in granted {
        let waits = |pod: &&&Arc<Pod>| pod.metadata.name.as_ref() == Some(name);
        let pod = pods.iter().find(waits);
        let until = pod::later(at.0, EVICTED_WITHIN);
        if pod.is_some_and(|pod| !pod::is_terminating(pod)) && until >= now {
            step.wake_at(pod::later(until, 1));
            left.insert(name.clone(), at.clone());
        }
    }
    left
}

fn set(
    status: &mut PodDisruptionBudgetStatus,
    budget: &PodDisruptionBudget,
    value: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter().find(|c| c.type_ == ALLOWED);
    let same = known.filter(|known| known.status == value);
    let since = same.map_or_else(|| pod::stamp(now), |c| c.last_transition_time.clone());
    let condition = Condition {
        type_: ALLOWED.to_owned(),
        status: value.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: budget.metadata.generation,
        last_transition_time: since,
    };
    match conditions.iter_mut().find(|c| c.type_ == ALLOWED) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
