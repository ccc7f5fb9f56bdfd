//! Whether what was applied is healthy: workloads by what their controllers say of them, all else when it is there.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};

use super::super::key::Key;
use super::super::world::World;
use super::Entry;

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Current,
    InProgress,
    Failed,
    NotFound,
}

/// How all is.
pub(super) enum Health {
    Current,
    /// These are not there yet.
    Waiting(String),
    /// These will not come up.
    Stalled(String),
}

/// How all of these are.
pub(super) fn of(world: &World, entries: &[Entry]) -> Health {
    let states = entries.iter().filter_map(|entry| {
        let mut parts = entry.id.split('_');
        let (namespace, name) = (parts.next()?, parts.next()?);
        let kind = parts.nth(1)?;
        Some((
            kind,
            namespace,
            name,
            state(world, kind, &Key::new(namespace, name)),
        ))
    });
    let bad: Vec<_> = states
        .filter(|(.., state)| *state != State::Current)
        .collect();
    let told = |only: Option<State>| {
        let chosen = bad
            .iter()
            .filter(|(.., state)| only.is_none_or(|only| *state == only));
        let all: Vec<String> = chosen
            .map(|(kind, namespace, name, state)| {
                format!("{kind}/{namespace}/{name} status: '{state:?}'")
            })
            .collect();
        all.join(", ")
    };
    if bad.is_empty() {
        Health::Current
    } else if bad.iter().any(|(.., state)| *state == State::Failed) {
        Health::Stalled(told(Some(State::Failed)))
    } else {
        Health::Waiting(told(None))
    }
}

fn state(world: &World, kind: &str, key: &Key) -> State {
    match kind {
        "Deployment" => world
            .deployments
            .get(key)
            .map_or(State::NotFound, |one| deployment(one)),
        "StatefulSet" => world
            .stateful_sets
            .get(key)
            .map_or(State::NotFound, |one| stateful_set(one)),
        "DaemonSet" => world
            .daemon_sets
            .get(key)
            .map_or(State::NotFound, |one| daemon_set(one)),
        _ => State::Current,
    }
}

fn current(is: bool) -> State {
    if is {
        State::Current
    } else {
        State::InProgress
    }
}

fn deployment(object: &Deployment) -> State {
    let status = object.status.clone().unwrap_or_default();
    let condition = |kind: &str| {
        let mut all = status.conditions.iter().flatten();
        all.find(|one| one.type_ == kind)
    };
    if status.observed_generation < object.metadata.generation {
        return State::InProgress;
    }
    let late = condition("Progressing").and_then(|one| one.reason.as_deref());
    if late == Some("ProgressDeadlineExceeded") {
        return State::Failed;
    }
    let wanted = object
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let count = |count: Option<i32>| count.unwrap_or(0);
    let is_there = count(status.updated_replicas) >= wanted
        && count(status.replicas) <= count(status.updated_replicas)
        && count(status.available_replicas) >= wanted
        && count(status.ready_replicas) >= wanted;
    let is_available = condition("Available").is_some_and(|one| one.status == "True");
    current(is_there && (is_available || wanted == 0))
}

fn stateful_set(object: &StatefulSet) -> State {
    let status = object.status.clone().unwrap_or_default();
    let wanted = object
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let is_there = status.observed_generation >= object.metadata.generation
        && status.replicas == wanted
        && status.ready_replicas.unwrap_or(0) >= wanted
        && status.current_revision == status.update_revision;
    current(is_there)
}

fn daemon_set(object: &DaemonSet) -> State {
    let status = object.status.clone().unwrap_or_default();
    let wanted = status.desired_number_scheduled;
    let is_there = status.observed_generation >= object.metadata.generation
        && status.updated_number_scheduled.unwrap_or(0) >= wanted
        && status.number_available.unwrap_or(0) >= wanted
        && status.number_ready >= wanted;
    current(is_there)
}
