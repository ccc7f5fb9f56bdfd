//! How restarts are shown: Flippers, and the default criteria while they apply.

use serde_json::{Value, json};
use slipway_api::flipper::FlipperSpec;
use slipway_kernel::capability::show::{
    Objects, Row, State, condition, number, place, text, time, waits,
};

use crate::observe::STATUS_MAP;

const FLIPPERS: &str = "flipper.io.github.com/flippers";
/// What the default criteria are called.
const DEFAULT: &str = "default criteria";

/// The policies of a cluster.
pub fn show(objects: &dyn Objects) -> Vec<Row> {
    let flippers = objects.all(FLIPPERS).map(flipper);
    let maps = objects.all("/configmaps").filter_map(default_criteria);
    flippers
        .chain(maps.map(|object| by_default(&object)))
        .collect()
}

fn flipper(object: &Value) -> Row {
    // An object that cannot be read is shown by its conditions all the same.
    let spec: FlipperSpec = object
        .get("spec")
        .cloned()
        .and_then(|spec| serde_json::from_value(spec).ok())
        .unwrap_or_default();
    let name = format!("Flipper {}", place(object, "/metadata"));
    Row {
        title: format!("Flipper/{}", text(object, "/metadata/name")),
        waiting: waits(&name, object),
        name,
        ..policy(object, &spec, rhythm(&spec))
    }
}

/// The default criteria while they apply, in the shape of an object: a `ConfigMap` carries their status.
fn default_criteria(map: &Value) -> Option<Value> {
    let ours = text(map, "/metadata/name") == STATUS_MAP && text(map, "/data/active") == "true";
    let status: Value = serde_json::from_str(&text(map, "/data/status")).ok()?;
    let made = json!({"metadata": map.get("metadata"), "data": map.get("data"), "status": status});
    ours.then_some(made)
}

fn by_default(object: &Value) -> Row {
    let rhythm = text(object, "/data/criteria");
    Row {
        title: DEFAULT.to_owned(),
        name: DEFAULT.to_owned(),
        waiting: waits(DEFAULT, object),
        ..policy(object, &FlipperSpec::default(), rhythm)
    }
}

/// A policy with how often or when it restarts, but without its name.
fn policy(object: &Value, spec: &FlipperSpec, rhythm: String) -> Row {
    let (state, word, problem) = state(object, spec);
    let mut info = vec![rhythm];
    let mut next = None;
    if problem.is_empty() {
        info.push(match number(object, "/status/inProgress") {
            0 => format!("{} matched", number(object, "/status/matched")),
            rolling => format!("{rolling} rolling"),
        });
        let pending = number(object, "/status/pending");
        if pending > 0 {
            info.push(format!("{pending} due"));
        }
        if spec.dry_run == Some(true) {
            info.push("dry run".to_owned());
        }
        next = time(object, "/status/nextRestart");
    }
    Row {
        namespace: text(object, "/metadata/namespace"),
        icon: ("⟳", "@"),
        state,
        word,
        problem,
        info,
        next,
        ..Row::default()
    }
}

fn state(object: &Value, spec: &FlipperSpec) -> (State, String, String) {
    let is_true = |kind: &str| condition(object, kind).filter(|c| text(c, "/status") == "True");
    let told = |c: &Value| (text(c, "/reason"), text(c, "/message"));
    if spec.suspend == Some(true) {
        return (State::Paused, "Suspended".to_owned(), String::new());
    }
    if let Some(stalled) = is_true("Stalled") {
        let (reason, message) = told(stalled);
        return (State::Bad, reason, message);
    }
    if let Some(progressing) = is_true("Progressing") {
        return (State::Busy, text(progressing, "/reason"), String::new());
    }
    let ready = condition(object, "Ready");
    if let Some(ready) = ready.filter(|c| text(c, "/status") == "False") {
        let (reason, message) = told(ready);
        return (State::Warning, reason, message);
    }
    if number(object, "/status/pending") > 0 {
        return (State::Waiting, "Waiting".to_owned(), String::new());
    }
    match ready {
        Some(_) => (State::Good, "Ready".to_owned(), String::new()),
        None => (State::Idle, "New".to_owned(), String::new()),
    }
}

fn rhythm(spec: &FlipperSpec) -> String {
    match (&spec.schedule, &spec.interval) {
        (Some(schedule), _) => match &schedule.time_zone {
            Some(zone) => format!("at {} {zone}", schedule.cron),
            None => format!("at {}", schedule.cron),
        },
        (None, Some(interval)) => format!("every {interval}"),
        (None, None) => "every 10m".to_owned(),
    }
}
