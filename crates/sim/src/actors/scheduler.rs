//! The scheduler: pending pods go to the node with the fewest pods that takes them.
//!
//! Honoured: node selectors, required node affinity, taints that forbid scheduling, cordons, scheduling gates, and the
//! script. Not played: resources, affinity between pods, topology spread, preemption.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodCondition, Taint, Toleration,
};

use super::key::{Key, Kind};
use super::pod;
use super::script::Scene;
use super::world::World;
use super::write::{self, Step, Write};

const TOPOLOGY: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// What the scheduler does about one pod.
pub(crate) fn reconcile(world: &World, scene: Scene<'_>, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let Some(pod) = world.pods.get(key) else {
        return step;
    };
    let gated = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.scheduling_gates.as_ref())
        .is_some_and(|gates| !gates.is_empty());
    if pod::node(pod).is_some() || pod::is_terminating(pod) || pod::is_finished(pod) || gated {
        return step;
    }
    let (script, since) = (scene.script, scene.since(now));
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let refused = containers.any(|c| script.behaviour(pod, c, since).unschedulable);
    let node = choose(world, pod).filter(|_| !refused);
    match node {
        Some(node) => step.writes.push(Write::Bind {
            key: key.clone(),
            labels: topology(world, &node),
            node,
        }),
        None => step.writes.extend(unschedulable(world, pod, now)),
    }
    if let Some(turn) = script.next_turn(pod, since) {
        step.wake = Some(after(scene.started, turn));
    }
    step
}

/// The labels of a node that its pods get. A real API server adds them to every binding by itself.
fn topology(world: &World, node: &str) -> BTreeMap<String, String> {
    let node = world.nodes.get(&Key::new("", node));
    let labels = node.and_then(|node| node.metadata.labels.clone());
    let mut labels = labels.unwrap_or_default();
    labels.retain(|name, _| TOPOLOGY.contains(&name.as_str()));
    labels
}

/// The fitting node with the fewest pods; of equal ones the first by name.
fn choose(world: &World, pod: &Pod) -> Option<String> {
    let mut fitting: BTreeMap<&str, usize> = world
        .nodes
        .iter()
        .filter(|(_, node)| fits(node, pod))
        .map(|(key, _)| (key.name.as_str(), 0))
        .collect();
    if fitting.len() > 1 {
        let pods = world.pods.iter().filter(|(_, pod)| !pod::is_finished(pod));
        for node in pods.filter_map(|(_, pod)| pod::node(pod)) {
            if let Some(count) = fitting.get_mut(node) {
                *count += 1;
            }
        }
    }
    let fewest = fitting
        .into_iter()
        .min_by_key(|(name, count)| (*count, *name));
    fewest.map(|(name, _)| name.to_owned())
}

/// Whether a node takes a pod.
pub(crate) fn fits(node: &Node, pod: &Pod) -> bool {
    is_wanted(node, pod) && is_tolerated(node, pod, &["NoSchedule", "NoExecute"])
}

/// Whether a pod tolerates all taints of a node with these effects. A cordon counts as a taint.
pub(crate) fn is_tolerated(node: &Node, pod: &Pod, effects: &[&str]) -> bool {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    let spec = node.spec.as_ref();
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    let cordoned = spec.and_then(|spec| spec.unschedulable) == Some(true);
    let taints = spec.and_then(|spec| spec.taints.as_ref());
    let mut taints = taints
        .into_iter()
        .flatten()
        .chain(cordoned.then_some(&cordon))
        .filter(|taint| effects.contains(&taint.effect.as_str()));
    taints.all(|taint| {
        let mut tolerations = tolerations.into_iter().flatten();
        tolerations.any(|toleration| tolerates(toleration, taint))
    })
}

/// Whether the pod's own rules allow the node.
pub(crate) fn is_wanted(node: &Node, pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else {
        return false;
    };
    let labels = node.metadata.labels.as_ref();
    let label = |key: &str| {
        labels
            .and_then(|labels| labels.get(key))
            .map(String::as_str)
    };
    let mut selected = spec.node_selector.iter().flatten();
    if !selected.all(|(key, value)| label(key) == Some(value)) {
        return false;
    }
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|a| {
            a.required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    required.is_none_or(|required| {
        let mut terms = required.node_selector_terms.iter();
        terms.any(|term| matches(term, node))
    })
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    (effect.is_empty() || effect == taint.effect)
        && ((key.is_empty() && exists) || key == taint.key)
        && (exists || toleration.value.as_deref() == taint.value.as_deref())
}

fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let name = node.metadata.name.as_deref();
    let by_label = |r: &NodeSelectorRequirement| {
        let value = labels.and_then(|labels| labels.get(&r.key));
        holds(r, value.map(String::as_str))
    };
    let by_field = |r: &NodeSelectorRequirement| r.key == "metadata.name" && holds(r, name);
    let mut expressions = term.match_expressions.iter().flatten();
    let mut fields = term.match_fields.iter().flatten();
    let says_something = term.match_expressions.is_some() || term.match_fields.is_some();
    says_something && expressions.all(by_label) && fields.all(by_field)
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_in = value.is_some_and(|value| values.iter().any(|v| v == value));
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = value
        .and_then(number)
        .zip(values.first().and_then(|v| number(v)));
    match requirement.operator.as_str() {
        "In" => is_in,
        "NotIn" => !is_in,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared.is_some_and(|(value, bound)| value > bound),
        "Lt" => compared.is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// Says once on the pod that no node takes it.
fn unschedulable(world: &World, pod: &Pod, now: Timestamp) -> Option<Write> {
    if pod::condition(pod, "PodScheduled").is_some_and(|known| known.status == "False") {
        return None;
    }
    let nodes = world.nodes.iter().count();
    let mut status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "PodScheduled");
    conditions.push(PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(format!("0/{nodes} nodes are available.")),
        last_transition_time: Some(pod::stamp(now)),
        ..PodCondition::default()
    });
    write::status(Kind::Pod, &pod.metadata, pod.status.as_ref(), &status)
}

/// So long after a moment.
pub(crate) fn after(at: Timestamp, duration: SignedDuration) -> Timestamp {
    at.checked_add(duration).unwrap_or(Timestamp::MAX)
}
