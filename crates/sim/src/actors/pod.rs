//! What controllers ask about a pod.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::ObjectMeta;

/// The phase; empty if the pod is not created.
pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status.and_then(|s| s.phase.as_deref()).unwrap_or_default()
}

/// The node, once there is one.
pub(crate) fn node(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    (!node.is_empty()).then_some(node)
}

pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether it has ended for good.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Neither finished nor on its way out.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

/// Since when it is ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|condition| condition.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// When a ready pod counts as available.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    let since = ready_since(pod)?;
    Some(later(since, i64::from(min_ready_seconds)))
}

pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    is_ready(pod)
        && (min_ready_seconds == 0
            || available_at(pod, min_ready_seconds).is_some_and(|at| at <= now))
}

/// When the next of these pods becomes available, if one is ready and has to wait for it.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Timestamp> {
    let times = pods
        .into_iter()
        .filter_map(|pod| available_at(pod, min_ready_seconds));
    times.filter(|at| *at > now).min()
}

pub(crate) fn label<'a>(pod: &'a Pod, name: &str) -> &'a str {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(name))
        .map_or("", String::as_str)
}

/// So many seconds later.
pub(crate) fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}

/// A moment as it is written into objects: in whole seconds.
pub(crate) fn stamp(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// A count as the API shows it: zero is left out.
pub(crate) fn count(number: usize) -> Option<i32> {
    i32::try_from(number).ok().filter(|count| *count != 0)
}

/// A pod as its template says, without a name.
pub(crate) fn from_template(
    template: &PodTemplateSpec,
    namespace: Option<String>,
    owner: OwnerReference,
) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            namespace,
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// How the generated names of a controller's pods start.
pub(crate) fn prefix(owner: &str) -> String {
    format!("{owner}-")
}
