//! How zones are shown: rollout groups, by what the operator says of them in their `ConfigMap`s.

use serde_json::{Value, json};
use slipway_api::zones::{GroupStatus, STATUS_LABEL, ZoneStatus};
use slipway_kernel::capability::show::{Objects, Row, State, condition, count, text, waits};

/// The groups of a cluster.
pub fn show(objects: &dyn Objects) -> Vec<Row> {
    let maps = objects.all("/configmaps").filter_map(status);
    maps.map(|object| group(&object)).collect()
}

/// The status of a group in the shape of an object, if this is its map.
fn status(map: &Value) -> Option<Value> {
    let labels = map.pointer("/metadata/labels")?;
    labels.get(STATUS_LABEL)?;
    let status: Value = serde_json::from_str(&text(map, "/data/status")).ok()?;
    Some(json!({"metadata": map.get("metadata"), "status": status}))
}

fn group(object: &Value) -> Row {
    let status = object.get("status").cloned().unwrap_or_default();
    let status: GroupStatus = serde_json::from_value(status).unwrap_or_default();
    let sum = |of: fn(&ZoneStatus) -> i64| -> i64 { status.zones.iter().map(of).sum() };
    let (all, outdated) = (sum(|zone| zone.replicas), sum(|zone| zone.outdated));
    let unavailable = sum(|zone| zone.unavailable);
    let (state, word) = state(object);
    let mut info = vec![count(status.zones.len(), "zone")];
    let pods = |number: i64| count(usize::try_from(number).unwrap_or_default(), "pod");
    if outdated > 0 {
        info.push(format!("{} to be replaced", pods(outdated)));
    }
    if unavailable > 0 {
        info.push(format!("{unavailable} unavailable"));
    }
    let namespace = text(object, "/metadata/namespace");
    let name = format!("group {namespace}/{}", status.group);
    let zones = status.zones.into_iter();
    Row {
        namespace,
        icon: ("⧈", "&"),
        title: format!("group/{}", status.group),
        waiting: waits(&name, object),
        name,
        state,
        word,
        progress: (state != State::Good).then_some((all - outdated, all)),
        info,
        members: zones.map(|zone| ("StatefulSet", zone.name)).collect(),
        in_turn: true,
        ..Row::default()
    }
}

fn state(object: &Value) -> (State, String) {
    let is = |kind: &str, value: &str| {
        let found = condition(object, kind).filter(|c| text(c, "/status") == value);
        found.map(|c| text(c, "/reason"))
    };
    if let Some(reason) = is("Stalled", "True") {
        (State::Bad, reason)
    } else if let Some(reason) = is("Progressing", "True") {
        (State::Busy, reason)
    } else if is("Ready", "True").is_some() {
        (State::Good, "Ready".to_owned())
    } else {
        (State::Waiting, "Waiting".to_owned())
    }
}
