//! The kubelets of all nodes: they start, run, restart and stop the containers of bound pods, as the script says.
//!
//! A pod is written when something about it changes, not in between: once when its containers start, again when they
//! become ready later than that, crash, or come back, and deleted at last. Init containers are over in no time. Pods
//! on a node that does not exist are removed, as the pod garbage collector does.

mod containers;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{HostIP, Pod, PodCondition, PodIP, PodStatus};

use super::hash;
use super::key::{Key, Kind};
use super::pod;
use super::scheduler::after;
use super::script::Scene;
use super::world::World;
use super::write::{self, Step, Write};

/// What a kubelet does about one pod.
pub(crate) fn reconcile(world: &World, scene: Scene<'_>, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let Some(pod) = world.pods.get(key) else {
        return step;
    };
    let Some(node) = pod::node(pod) else {
        return step;
    };
    let here = world.nodes.get(&Key::new("", node)).is_some();
    if !here || pod::is_terminating(pod) {
        stop(scene, pod, here, now, &mut step);
        return step;
    }
    if pod::is_finished(pod) {
        return step;
    }
    let (status, wake) = containers::status(scene, pod, now);
    step.wake = wake;
    if let Some(mut status) = status {
        settle(&mut status, pod, node, now);
        let old = pod.status.as_ref();
        let write = write::status(Kind::Pod, &pod.metadata, old, &status);
        step.writes.extend(write);
    }
    step
}

/// Removes a pod when its containers have stopped.
fn stop(scene: Scene<'_>, pod: &Pod, here: bool, now: Timestamp, step: &mut Step) {
    let meta = &pod.metadata;
    let remove = Write::Delete {
        kind: Kind::Pod,
        key: Key::of(meta),
        uid: meta.uid.clone().unwrap_or_default(),
        grace: Some(0),
    };
    let grace = meta.deletion_grace_period_seconds;
    let at = meta.deletion_timestamp.as_ref().map(|time| time.0);
    match (at, grace) {
        // Somebody's finalizer is all that holds it.
        (Some(_), Some(0)) => {}
        _ if !here => step.writes.push(remove),
        (Some(at), grace) => {
            let grace = grace.unwrap_or(0);
            let asked = pod::later(at, -grace);
            let due = after(asked, scene.script.stop).min(at);
            if due <= now {
                step.writes.push(remove);
            } else {
                step.wake_at(due);
            }
        }
        (None, _) => {}
    }
}

/// Fills in what follows from the states of the containers: addresses, phase and conditions.
fn settle(status: &mut PodStatus, pod: &Pod, node: &str, now: Timestamp) {
    let (host, address) = addresses(pod, node);
    status.host_ip = Some(host.clone());
    status.host_ips = Some(vec![HostIP { ip: host }]);
    status.pod_ip = Some(address.clone());
    status.pod_ips = Some(vec![PodIP { ip: address }]);
    status.phase = Some("Running".to_owned());
    status.start_time.get_or_insert_with(|| pod::stamp(now));
    let statuses = status.container_statuses.as_deref().unwrap_or_default();
    let unready: Vec<&str> = statuses
        .iter()
        .filter(|container| !container.ready)
        .map(|container| container.name.as_str())
        .collect();
    let containers = unready.is_empty();
    let why = (!containers).then(|| {
        let names = unready.join(" ");
        let message = format!("containers with unready status: [{names}]");
        ("ContainersNotReady", message)
    });
    let gates = pod
        .spec
        .iter()
        .flat_map(|spec| spec.readiness_gates.iter().flatten());
    let conditions = status.conditions.clone().unwrap_or_default();
    let closed = gates.map(|gate| gate.condition_type.clone()).find(|gate| {
        !conditions
            .iter()
            .any(|c| c.type_ == *gate && c.status == "True")
    });
    let gated = closed.as_ref().map(|gate| {
        let message =
            format!("the status of pod readiness gate \"{gate}\" is not \"True\", but False");
        ("ReadinessGatesNotReady", message)
    });
    set(status, "PodReadyToStartContainers", true, None, now);
    set(status, "Initialized", true, None, now);
    let ready = containers && closed.is_none();
    set(status, "Ready", ready, why.clone().or(gated), now);
    set(status, "ContainersReady", containers, why, now);
}

fn set(
    status: &mut PodStatus,
    kind: &str,
    holds: bool,
    why: Option<(&str, String)>,
    now: Timestamp,
) {
    let value = if holds { "True" } else { "False" };
    let conditions = status.conditions.get_or_insert_default();
    let (reason, message) = why.map(|(r, m)| (r.to_owned(), m)).unzip();
    match conditions.iter_mut().find(|c| c.type_ == kind) {
        Some(known) => {
            if known.status != value {
                known.last_transition_time = Some(pod::stamp(now));
            }
            value.clone_into(&mut known.status);
            known.reason = reason;
            known.message = message;
        }
        None => conditions.push(PodCondition {
            type_: kind.to_owned(),
            status: value.to_owned(),
            reason,
            message,
            last_transition_time: Some(pod::stamp(now)),
            ..PodCondition::default()
        }),
    }
}

/// The addresses of the node and of the pod on it.
fn addresses(pod: &Pod, node: &str) -> (String, String) {
    let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    let host = node_address(node);
    if on_host {
        return (host.clone(), host);
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let bits = hash::number(uid.as_bytes());
    let address = format!("10.244.{}.{}", (bits >> 8) & 0xff, 1 + (bits & 0xff) % 254);
    (host, address)
}

/// The address of a node.
pub(crate) fn node_address(node: &str) -> String {
    let number = node
        .rsplit_once('-')
        .and_then(|(_, n)| n.parse::<u8>().ok());
    format!("10.0.0.{}", number.unwrap_or(99).saturating_add(10))
}
