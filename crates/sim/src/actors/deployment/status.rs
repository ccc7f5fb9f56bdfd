//! What a Deployment says of itself: counts, availability and progress.

use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus};

use super::super::pod::{later, stamp};
use super::set::Set;
use super::sets::Rollout;

const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";
const DONE: &str = "NewReplicaSetAvailable";
const LATE: &str = "ProgressDeadlineExceeded";

/// The deadline for progress, if there is one.
fn deadline(rollout: &Rollout) -> Option<i32> {
    let deadline = rollout.spec.progress_deadline_seconds;
    deadline.filter(|seconds| *seconds != i32::MAX)
}

fn find<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    let conditions = status.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn remove(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != kind);
    }
}

/// Sets a condition unless it says the same already.
fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(known) = find(status, &condition.type_) {
        if known.status == condition.status && known.reason == condition.reason {
            return;
        }
        if known.status == condition.status {
            condition
                .last_transition_time
                .clone_from(&known.last_transition_time);
        }
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

fn condition(
    rollout: &Rollout,
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
) -> DeploymentCondition {
    let now = stamp(rollout.now);
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now),
    }
}

fn note(rollout: &mut Rollout, status: &str, reason: &str, message: String) {
    let condition = condition(rollout, PROGRESSING, status, reason, message);
    set(&mut rollout.base, condition);
}

/// Says that the Deployment is paused or goes on, so that the pause does not count as lack of progress.
pub(super) fn note_pause(rollout: &mut Rollout) {
    if deadline(rollout).is_none() {
        return;
    }
    let reason = find(&rollout.base, PROGRESSING).and_then(|c| c.reason.clone());
    let noted = reason.as_deref() == Some("DeploymentPaused");
    if reason.as_deref() == Some(LATE) {
        return;
    }
    let paused = rollout.spec.paused == Some(true);
    if paused && !noted {
        let message = "Deployment is paused".to_owned();
        note(rollout, "Unknown", "DeploymentPaused", message);
    } else if !paused && noted {
        let message = "Deployment is resumed".to_owned();
        note(rollout, "Unknown", "DeploymentResumed", message);
    }
}

/// Says that there is a set for the template, if nothing was said about progress before.
pub(super) fn note_found(rollout: &mut Rollout, set: &str) {
    if deadline(rollout).is_some() && find(&rollout.base, PROGRESSING).is_none() {
        let message = format!("Found new replica set \"{set}\"");
        note(rollout, "True", "FoundNewReplicaSet", message);
    }
}

/// Says that there is a new set for the template.
pub(super) fn note_created(rollout: &mut Rollout, set: &str) {
    if deadline(rollout).is_some() {
        let message = format!("Created new replica set \"{set}\"");
        note(rollout, "True", "NewReplicaSetCreated", message);
    }
}

/// Whether the status as it was read shows the rollout done.
pub(super) fn is_complete(rollout: &Rollout) -> bool {
    complete(rollout, &rollout.base)
}

fn complete(rollout: &Rollout, status: &DeploymentStatus) -> bool {
    let desired = rollout.replicas();
    let all = |count: Option<i32>| count.unwrap_or(0) == desired;
    all(status.updated_replicas)
        && all(status.replicas)
        && all(status.available_replicas)
        && status.observed_generation >= rollout.deployment.metadata.generation
}

fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

/// The counts and the availability, without a word on progress.
pub(super) fn sync(rollout: &mut Rollout) {
    let sum = |count: fn(&Set) -> i32| rollout.sets.iter().map(count).sum::<i32>();
    let available = sum(Set::available);
    let terminating = rollout.sets.iter().map(|set| {
        let status = set.object.status.as_ref();
        status.and_then(|s| s.terminating_replicas).unwrap_or(0)
    });
    let mut next = DeploymentStatus {
        observed_generation: rollout.deployment.metadata.generation,
        replicas: some(sum(Set::actual)),
        updated_replicas: some(rollout.new_set().map_or(0, Set::actual)),
        ready_replicas: some(sum(Set::ready)),
        available_replicas: some(available),
        unavailable_replicas: some((rollout.total() - available).max(0)),
        terminating_replicas: Some(terminating.sum()),
        collision_count: rollout.base.collision_count,
        conditions: rollout.base.conditions.clone(),
    };
    let enough = available >= rollout.replicas() - rollout.max_unavailable();
    let (status, reason, message) = if enough {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    let available = condition(rollout, "Available", status, reason, message.to_owned());
    set(&mut next, available);
    rollout.next = next;
}

/// The counts, the availability, the progress and the failures.
pub(super) fn sync_rollout(rollout: &mut Rollout) {
    sync(rollout);
    let mut next = rollout.next.clone();
    if deadline(rollout).is_none() {
        remove(&mut next, PROGRESSING);
    }
    let current = find(&rollout.base, PROGRESSING).cloned();
    let said_done = current
        .as_ref()
        .is_some_and(|c| c.reason.as_deref() == Some(DONE));
    let finished = said_done && next.replicas == next.updated_replicas;
    if deadline(rollout).is_some() && !finished {
        judge(rollout, &mut next, current.as_ref());
    }
    match failure(rollout) {
        Some(failure) => set(&mut next, failure),
        None => remove(&mut next, FAILURE),
    }
    rollout.next = next;
    watch_deadline(rollout);
}

fn judge(rollout: &Rollout, next: &mut DeploymentStatus, current: Option<&DeploymentCondition>) {
    let name = rollout.deployment.metadata.name.as_deref();
    let subject = rollout.new_set().map_or_else(
        || format!("Deployment \"{}\"", name.unwrap_or_default()),
        |set| format!("ReplicaSet \"{}\"", set.name()),
    );
    let say = |status, reason, what: &str| {
        condition(
            rollout,
            PROGRESSING,
            status,
            reason,
            format!("{subject} {what}"),
        )
    };
    if complete(rollout, next) {
        set(next, say("True", DONE, "has successfully progressed."));
    } else if progressed(&rollout.base, next) {
        let mut condition = say("True", "ReplicaSetUpdated", "is progressing.");
        if let Some(current) = current.filter(|current| current.status == "True") {
            condition
                .last_transition_time
                .clone_from(&current.last_transition_time);
        }
        // Taken out first, so that the time of the update is noted although the reason may be the same.
        remove(next, PROGRESSING);
        set(next, condition);
    } else if is_late(rollout, next) {
        set(next, say("False", LATE, "has timed out progressing."));
    }
}

fn progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let count = |count: Option<i32>| count.unwrap_or(0);
    let outdated = |s: &DeploymentStatus| count(s.replicas) - count(s.updated_replicas);
    count(new.updated_replicas) > count(old.updated_replicas)
        || outdated(new) < outdated(old)
        || count(new.ready_replicas) > count(old.ready_replicas)
        || count(new.available_replicas) > count(old.available_replicas)
}

fn is_late(rollout: &Rollout, status: &DeploymentStatus) -> bool {
    let Some(condition) = find(status, PROGRESSING) else {
        return false;
    };
    match condition.reason.as_deref() {
        Some(DONE) => false,
        Some(LATE) => true,
        _ => due(rollout, condition).is_some_and(|due| due < rollout.now),
    }
}

/// When the time for progress is over.
fn due(rollout: &Rollout, condition: &DeploymentCondition) -> Option<jiff::Timestamp> {
    let from = condition.last_update_time.as_ref()?.0;
    Some(later(from, i64::from(deadline(rollout)?)))
}

/// Comes back when the time for progress is over.
fn watch_deadline(rollout: &mut Rollout) {
    let waits = |c: &&DeploymentCondition| c.reason.as_deref() != Some(LATE);
    let condition = find(&rollout.next, PROGRESSING).filter(waits);
    if let Some(condition) = condition
        && !complete(rollout, &rollout.next)
        && condition.reason.as_deref() != Some(DONE)
        && let Some(due) = due(rollout, condition)
    {
        rollout.wake = Some(later(due, 1).max(later(rollout.now, 1)));
    }
}

/// The first failure that a `ReplicaSet` reports, the new one's before the others'.
fn failure(rollout: &Rollout) -> Option<DeploymentCondition> {
    let sets = rollout.new_set().into_iter().chain(rollout.old());
    let mut conditions = sets
        .filter_map(|set| set.object.status.as_ref())
        .filter_map(|status| status.conditions.as_ref())
        .flatten();
    let failed = conditions.find(|condition| condition.type_ == FAILURE)?;
    Some(DeploymentCondition {
        type_: FAILURE.to_owned(),
        status: failed.status.clone(),
        reason: failed.reason.clone(),
        message: failed.message.clone(),
        last_update_time: failed.last_transition_time.clone(),
        last_transition_time: failed.last_transition_time.clone(),
    })
}
