//! The `ReplicaSet` controller: as many pods of one template as asked for.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::key::{Actor, Job, Key, Kind};
use super::owner;
use super::pod;
use super::world::{Failure, World};
use super::write::{self, Step, Write, as_json};

const FAILURE: &str = "ReplicaFailure";

/// What the controller does about one `ReplicaSet`.
pub(crate) fn reconcile(world: &World, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let Some(set) = world.replica_sets.get(key) else {
        return step;
    };
    let spec = set.spec.clone().unwrap_or_default();
    let reference = owner::reference("apps/v1", "ReplicaSet", &set.metadata);
    let selector = owner::selector(Some(&spec.selector));
    let claimed = owner::claim::<Pod>(world, &set.metadata, &reference, &selector, pod::is_active);
    if !claimed.writes.is_empty() {
        step.writes = claimed.writes;
        return step;
    }
    let active: Vec<&Pod> = claimed
        .objects
        .iter()
        .map(|pod| &**pod)
        .filter(|pod| pod::is_active(pod))
        .collect();
    let failure = world.failures.get(&Job {
        actor: Actor::ReplicaSet,
        key: key.clone(),
    });
    let failure = failure.filter(|failure| failure.about_pods);
    let waits = failure.is_some_and(|failure| failure.retry_at > now);
    if set.metadata.deletion_timestamp.is_none() && !waits {
        step.writes = resize(world, set, &active, now);
    }
    // After a change of pods the counts are taken again, so one write of them is enough.
    if step.writes.is_empty() || failure.is_some() {
        let next = status(set, &claimed.objects, &active, failure, now);
        let old = set.status.as_ref();
        if let Some(write) = write::status(Kind::ReplicaSet, &set.metadata, old, &next) {
            step.writes.insert(0, write);
        }
    }
    step.wake = pod::next_available(active, spec.min_ready_seconds.unwrap_or(0), now);
    if let Some(failure) = failure.filter(|_| waits) {
        step.wake_at(failure.retry_at);
    }
    step
}

/// The pods to create or to delete.
fn resize(world: &World, set: &ReplicaSet, active: &[&Pod], now: Timestamp) -> Vec<Write> {
    let spec = set.spec.as_ref();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if active.len() < wanted {
        let template = spec.and_then(|spec| spec.template.clone());
        let reference = owner::reference("apps/v1", "ReplicaSet", &set.metadata);
        let mut pod = pod::from_template(
            &template.unwrap_or_default(),
            set.metadata.namespace.clone(),
            reference,
        );
        let name = set.metadata.name.as_deref().unwrap_or_default();
        pod.metadata.generate_name = Some(pod::prefix(name));
        let create = Write::Create {
            kind: Kind::Pod,
            body: as_json(&pod),
        };
        return vec![create; wanted - active.len()];
    }
    let excess = active.len() - wanted;
    if excess == 0 {
        return Vec::new();
    }
    let crowd = neighbours(world, set);
    let mut order: Vec<&Pod> = active.to_vec();
    order.sort_by(|a, b| first_to_go(a, b, &crowd, now));
    let going = order.into_iter().take(excess);
    going.map(delete).collect()
}

pub(crate) fn delete(pod: &Pod) -> Write {
    Write::Delete {
        kind: Kind::Pod,
        key: Key::of(&pod.metadata),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        grace: None,
    }
}

/// How many ready pods of the same Deployment, or else of this set, there are on each node.
fn neighbours(world: &World, set: &ReplicaSet) -> BTreeMap<String, usize> {
    let sets = match owner::controller(&set.metadata) {
        Some(owner) => {
            let meta = kube::api::ObjectMeta {
                uid: Some(owner.uid.clone()),
                ..Default::default()
            };
            world.owned_by::<ReplicaSet>(&meta)
        }
        None => vec![Arc::new(set.clone())],
    };
    let mut crowd = BTreeMap::new();
    for set in sets {
        for pod in world.owned_by::<Pod>(&set.metadata) {
            if let Some(node) = pod::node(&pod).filter(|_| pod::is_active(&pod)) {
                *crowd.entry(node.to_owned()).or_default() += 1;
            }
        }
    }
    crowd
}

/// Which of two pods is deleted first: the one that serves least.
fn first_to_go(a: &Pod, b: &Pod, crowd: &BTreeMap<String, usize>, now: Timestamp) -> Ordering {
    let phase = |pod: &Pod| match pod::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let crowd = |pod: &Pod| pod::node(pod).and_then(|node| crowd.get(node)).copied();
    let ready = (pod::is_ready(a), pod::is_ready(b));
    pod::node(a)
        .is_some()
        .cmp(&pod::node(b).is_some())
        .then_with(|| phase(a).cmp(&phase(b)))
        .then_with(|| ready.0.cmp(&ready.1))
        .then_with(|| deletion_cost(a).cmp(&deletion_cost(b)))
        .then_with(|| crowd(b).cmp(&crowd(a)))
        .then_with(|| match ready {
            (true, true) => younger(pod::ready_since(a), pod::ready_since(b), a, b, now),
            _ => Ordering::Equal,
        })
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| younger(created(a), created(b), a, b, now))
        .then_with(|| a.metadata.name.cmp(&b.metadata.name))
}

fn created(pod: &Pod) -> Option<Timestamp> {
    let created = pod.metadata.creation_timestamp.as_ref();
    created.map(|time| time.0)
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    annotations
        .and_then(|a| a.get("controller.kubernetes.io/pod-deletion-cost"))
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0)
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref();
    let statuses = statuses.and_then(|status| status.container_statuses.as_ref());
    let counts = statuses.into_iter().flatten().map(|c| c.restart_count);
    counts.max().unwrap_or(0)
}

/// The younger one first, by powers of two of the age; within one power by uid, which is as good as at random.
fn younger(
    a: Option<Timestamp>,
    b: Option<Timestamp>,
    first: &Pod,
    second: &Pod,
    now: Timestamp,
) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_some().cmp(&b.is_some());
    };
    let rank = |at: Timestamp| now.duration_since(at).as_nanos().max(0).checked_ilog2();
    rank(a)
        .cmp(&rank(b))
        .then_with(|| first.metadata.uid.cmp(&second.metadata.uid))
}

fn status(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    active: &[&Pod],
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let min_ready = spec.min_ready_seconds.unwrap_or(0);
    let template = spec.template.and_then(|template| template.metadata);
    let labels = template.and_then(|meta| meta.labels).unwrap_or_default();
    let is_labelled = |pod: &&&Pod| labels.iter().all(|(k, v)| pod::label(pod, k) == v);
    let count = |test: &dyn Fn(&&&Pod) -> bool| active.iter().filter(test).count();
    let terminating = |pod: &&Arc<Pod>| pod::is_terminating(pod) && !pod::is_finished(pod);
    let terminating = pods.iter().filter(terminating).count();
    let old = set
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone());
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    ReplicaSetStatus {
        replicas: i32::try_from(active.len()).unwrap_or(i32::MAX),
        fully_labeled_replicas: pod::count(count(&is_labelled)),
        ready_replicas: pod::count(count(&|pod| pod::is_ready(pod))),
        available_replicas: pod::count(count(&|pod| pod::is_available(pod, min_ready, now))),
        terminating_replicas: i32::try_from(terminating).ok(),
        observed_generation: set.metadata.generation,
        conditions: conditions(old, failure, active.len() < wanted, now),
    }
}

fn conditions(
    old: Option<Vec<ReplicaSetCondition>>,
    failure: Option<&Failure>,
    creating: bool,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions = old.unwrap_or_default();
    let known = conditions.iter().any(|c| c.type_ == FAILURE);
    match failure {
        None => conditions.retain(|condition| condition.type_ != FAILURE),
        Some(_) if known => {}
        Some(failure) => conditions.push(ReplicaSetCondition {
            type_: FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(
                if creating {
                    "FailedCreate"
                } else {
                    "FailedDelete"
                }
                .to_owned(),
            ),
            message: Some(failure.message.clone()),
            last_transition_time: Some(pod::stamp(now)),
        }),
    }
    (!conditions.is_empty()).then_some(conditions)
}
