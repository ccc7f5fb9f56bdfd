//! The states of a pod's containers: starting, running, crashing, coming back.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, Pod, PodStatus,
};

use super::super::hash;
use super::super::pod;
use super::super::scheduler::after;
use super::super::script::{Behaviour, Crash, Readiness, Scene};

/// The wait before the first restart, and the longest.
const BACK_OFF: (i64, i64) = (10, 300);

/// The status with the containers as they are now, or none while they have not started; and when that changes.
pub(super) fn status(
    scene: Scene<'_>,
    pod: &Pod,
    now: Timestamp,
) -> (Option<PodStatus>, Option<Timestamp>) {
    let since = scene.since(now);
    let mut wake: Option<Timestamp> = None;
    let mut later = |at: Timestamp| wake = Some(wake.map_or(at, |wake| wake.min(at)));
    if let Some(turn) = scene.script.next_turn(pod, since) {
        later(after(scene.started, turn));
    }
    let bound = pod::condition(pod, "PodScheduled")
        .and_then(|condition| condition.last_transition_time.as_ref())
        .or(pod.metadata.creation_timestamp.as_ref())
        .map_or(now, |time| time.0);
    let mut status = pod.status.clone().unwrap_or_default();
    let known = status.container_statuses.take().unwrap_or_default();
    let mut containers = Vec::new();
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let behaviour = scene.script.behaviour(pod, container, since);
        let before = known.iter().find(|status| status.name == container.name);
        let Some(before) = before else {
            let due = after(bound, scene.delay(pod, behaviour));
            if due > now {
                later(due);
                return (None, wake);
            }
            let (status, next) = run(container, pod, behaviour, 0, None, now);
            containers.push(status);
            next.map(&mut later);
            continue;
        };
        let (status, next) = go_on(container, pod, behaviour, before, now);
        containers.push(status);
        next.map(&mut later);
    }
    status.container_statuses = Some(containers);
    status.init_container_statuses = initialised(pod, &status, now);
    (Some(status), wake)
}

/// A container that starts now.
fn run(
    container: &Container,
    pod: &Pod,
    behaviour: Behaviour,
    restarts: i32,
    last: Option<ContainerState>,
    now: Timestamp,
) -> (ContainerStatus, Option<Timestamp>) {
    let started = pod::stamp(now).0;
    let (ready, next) = readiness(behaviour, started, now);
    let crash = behaviour.crash.map(|crash| after(started, crash.after));
    let state = ContainerState {
        running: Some(ContainerStateRunning {
            started_at: Some(pod::stamp(now)),
        }),
        ..ContainerState::default()
    };
    let status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        image_id: String::new(),
        container_id: Some(identity(pod, container, restarts)),
        ready,
        started: Some(true),
        restart_count: restarts,
        state: Some(state),
        last_state: Some(last.unwrap_or_default()),
        ..ContainerStatus::default()
    };
    (status, earlier(next, crash))
}

/// A container that has started before.
fn go_on(
    container: &Container,
    pod: &Pod,
    behaviour: Behaviour,
    before: &ContainerStatus,
    now: Timestamp,
) -> (ContainerStatus, Option<Timestamp>) {
    let state = before.state.clone().unwrap_or_default();
    if let Some(running) = &state.running {
        let started = running.started_at.as_ref().map_or(now, |time| time.0);
        let ends = behaviour.crash.map(|crash| after(started, crash.after));
        if let (Some(crash), Some(true)) = (behaviour.crash, ends.map(|ends| ends <= now)) {
            return fail(before, crash, started, now);
        }
        let (ready, next) = readiness(behaviour, started, now);
        let mut status = before.clone();
        status.ready = ready;
        return (status, earlier(next, ends));
    }
    let ended = before
        .last_state
        .as_ref()
        .and_then(|last| last.terminated.as_ref())
        .and_then(|terminated| terminated.finished_at.as_ref())
        .map_or(now, |time| time.0);
    let due = pod::later(ended, back_off(before.restart_count));
    let counted = |crash: Crash| before.restart_count >= crash.restarts;
    if behaviour.crash.is_some_and(counted) {
        return (before.clone(), None);
    }
    if due > now {
        return (before.clone(), Some(due));
    }
    let restarts = before.restart_count + 1;
    let last = before.last_state.clone();
    match behaviour.crash {
        // The short run in between is left out: it begins and ends in one write.
        Some(crash) => {
            let mut again = before.clone();
            again.restart_count = restarts;
            again.container_id = Some(identity(pod, container, restarts));
            fail(&again, crash, now, now)
        }
        None => run(container, pod, behaviour, restarts, last, now),
    }
}

/// A container whose run has just ended.
fn fail(
    before: &ContainerStatus,
    crash: Crash,
    started: Timestamp,
    now: Timestamp,
) -> (ContainerStatus, Option<Timestamp>) {
    let wait = back_off(before.restart_count);
    let mut status = before.clone();
    status.ready = false;
    status.started = Some(false);
    status.state = Some(ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some("CrashLoopBackOff".to_owned()),
            message: Some(format!("back-off {wait}s restarting failed container")),
        }),
        ..ContainerState::default()
    });
    status.last_state = Some(ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: crash.exit_code,
            reason: Some("Error".to_owned()),
            started_at: Some(pod::stamp(started)),
            finished_at: Some(pod::stamp(now)),
            container_id: before.container_id.clone(),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    });
    let goes_on = before.restart_count < crash.restarts;
    let next = goes_on.then(|| pod::later(pod::stamp(now).0, wait));
    (status, next)
}

/// How long a container waits for its next run after so many restarts, in seconds.
fn back_off(restarts: i32) -> i64 {
    let doubled = u32::try_from(restarts).unwrap_or(0).min(10);
    (BACK_OFF.0 << doubled).min(BACK_OFF.1)
}

fn readiness(
    behaviour: Behaviour,
    started: Timestamp,
    now: Timestamp,
) -> (bool, Option<Timestamp>) {
    match behaviour.ready {
        Readiness::Never => (false, None),
        Readiness::After(SignedDuration::ZERO) => (true, None),
        Readiness::After(wait) => {
            let due = after(started, wait);
            (due <= now, (due > now).then_some(due))
        }
    }
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

fn identity(pod: &Pod, container: &Container, run: i32) -> String {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let bits = hash::number(format!("{uid}/{}/{run}", container.name).as_bytes());
    format!("simulated://{bits:016x}")
}

/// Init containers are done when the others have started.
fn initialised(pod: &Pod, status: &PodStatus, now: Timestamp) -> Option<Vec<ContainerStatus>> {
    if status.init_container_statuses.is_some() {
        return status.init_container_statuses.clone();
    }
    let containers = pod.spec.as_ref()?.init_containers.as_ref()?;
    let done = |container: &Container| ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        ready: true,
        state: Some(ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: 0,
                reason: Some("Completed".to_owned()),
                started_at: Some(pod::stamp(now)),
                finished_at: Some(pod::stamp(now)),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        }),
        ..ContainerStatus::default()
    };
    Some(containers.iter().map(done).collect())
}
