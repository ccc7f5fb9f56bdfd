//! Rollout groups: what the operator says of them in their `ConfigMap`s.

use serde_json::{Value, json};
use slipway_api::zones::{GroupStatus, STATUS_LABEL};

use super::{condition, text};
use crate::demo::model::{Group, State, Workload};
use crate::demo::words::count;

/// The status of a group in the shape of an object, if this is its map.
pub(super) fn status(map: &Value) -> Option<Value> {
    let labels = map.pointer("/metadata/labels")?;
    labels.get(STATUS_LABEL)?;
    let status: Value = serde_json::from_str(&text(map, "/data/status")).ok()?;
    Some(json!({"metadata": map.get("metadata"), "status": status}))
}

/// A group, from what [`status`] found.
pub(super) fn group(object: &Value) -> Group {
    let status = object.get("status").cloned().unwrap_or_default();
    let status: GroupStatus = serde_json::from_value(status).unwrap_or_default();
    let sum = |of: fn(&slipway_api::zones::ZoneStatus) -> i64| -> i64 {
        status.zones.iter().map(of).sum()
    };
    let (all, outdated) = (sum(|zone| zone.replicas), sum(|zone| zone.outdated));
    let unavailable = sum(|zone| zone.unavailable);
    let is = |kind: &str, value: &str| {
        let found = condition(object, kind).filter(|c| text(c, "/status") == value);
        found.map(|c| text(c, "/reason"))
    };
    let (state, word) = if let Some(reason) = is("Stalled", "True") {
        (State::Bad, reason)
    } else if let Some(reason) = is("Progressing", "True") {
        (State::Busy, reason)
    } else if is("Ready", "True").is_some() {
        (State::Good, "Ready".to_owned())
    } else {
        (State::Waiting, "Waiting".to_owned())
    };
    let mut info = vec![count(status.zones.len(), "zone")];
    let pods = |number: i64| count(usize::try_from(number).unwrap_or_default(), "pod");
    if outdated > 0 {
        info.push(format!("{} to be replaced", pods(outdated)));
    }
    if unavailable > 0 {
        info.push(format!("{unavailable} unavailable"));
    }
    Group {
        name: status.group.clone(),
        state,
        word,
        progress: (all - outdated, all),
        info: info.join(" · "),
        zones: status.zones.into_iter().map(|zone| zone.name).collect(),
    }
}

/// Zones are rolled one after the other: those with outdated pods that are all up wait, for the zone that is on its way,
/// or for what the whole group waits for.
pub(super) fn queue(group: &Group, reason: Option<&str>, workloads: &mut [Workload]) {
    let moving: Vec<String> = workloads
        .iter()
        .filter(|workload| group.has(workload) && !is_whole(workload))
        .map(|workload| workload.name.clone())
        .collect();
    let queued = workloads
        .iter_mut()
        .filter(|w| group.has(w) && w.state == State::Busy && is_whole(w));
    for zone in queued {
        zone.info = match (moving.first(), reason) {
            (Some(other), _) => format!("for {other}"),
            (None, Some(reason)) => format!("for its turn ({reason})"),
            // Between two of its own pods.
            (None, None) if zone.progress.0 > 0 => continue,
            (None, None) => "for its turn".to_owned(),
        };
        zone.state = State::Waiting;
        "Waiting".clone_into(&mut zone.word);
    }
}

/// Whether all pods are there and up, of whatever revision.
fn is_whole(workload: &Workload) -> bool {
    let pods = || {
        workload
            .revisions
            .iter()
            .flat_map(|revision| &revision.pods)
    };
    let wanted = usize::try_from(workload.progress.1).unwrap_or_default();
    pods().count() == wanted && pods().all(|pod| pod.state == State::Good)
}
