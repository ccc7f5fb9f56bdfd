//! What a `StatefulSet` says of itself.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSetStatus;
use k8s_openapi::api::core::v1::Pod;

use super::super::pod;
use super::{REVISION, Row};

/// The counts over all pods of the set.
pub(super) fn of(row: &Row<'_>, pods: &[Arc<Pod>]) -> StatefulSetStatus {
    let count = |test: &dyn Fn(&Pod) -> bool| pods.iter().filter(|pod| test(pod)).count();
    let is_ready = |pod: &Pod| pod::phase(pod) == "Running" && pod::is_ready(pod);
    let (current, update) = (&row.current.metadata.name, &row.update.metadata.name);
    let carries = |pod: &Pod, name: &Option<String>| {
        !pod::is_terminating(pod) && name.as_deref() == Some(pod::label(pod, REVISION))
    };
    let available = |pod: &Pod| is_ready(pod) && pod::is_available(pod, row.min_ready(), row.now);
    let old = row.set.status.clone().unwrap_or_default();
    StatefulSetStatus {
        observed_generation: row.set.metadata.generation,
        replicas: i32::try_from(pods.len()).unwrap_or(i32::MAX),
        ready_replicas: pod::count(count(&is_ready)),
        // Unlike the others, this one is always shown.
        available_replicas: i32::try_from(count(&available)).ok(),
        current_replicas: pod::count(count(&|pod| carries(pod, current))),
        updated_replicas: pod::count(count(&|pod| carries(pod, update))),
        current_revision: current.clone(),
        update_revision: update.clone(),
        collision_count: Some(old.collision_count.unwrap_or(0)),
        conditions: old.conditions,
    }
}

/// Makes the update revision the current one when the rolling update has reached every pod.
pub(super) fn complete(row: &Row<'_>, status: &mut StatefulSetStatus) {
    let replicas = row.spec.replicas.unwrap_or(1);
    let all = |count: Option<i32>| count.unwrap_or(0) == replicas;
    if row.strategy() == "RollingUpdate"
        && all(status.updated_replicas)
        && all(status.ready_replicas)
        && status.replicas == replicas
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
}
