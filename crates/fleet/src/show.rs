//! How the fleet is shown: a row for each Rollout, and below it one for each cluster that is not as it should be.

use serde_json::Value;
use slipway_kernel::capability::show::{
    Objects, Row, State, condition, count, list, number, place, text, waits,
};

use crate::reasons::state;

const ROLLOUTS: &str = "fleet.squaremo.dev/rollouts";

/// The Rollouts of a cluster, each with its clusters.
pub fn show(objects: &dyn Objects) -> Vec<Row> {
    let rollouts = objects.all(ROLLOUTS);
    rollouts
        .flat_map(|object| [rollout(object)].into_iter().chain(clusters(object)))
        .collect()
}

fn rollout(object: &Value) -> Row {
    let name = format!("Rollout {}", place(object, "/metadata"));
    let total = number(object, "/status/counts/total");
    let ready = number(object, "/status/counts/ready");
    let is_running = object.pointer("/status/run").is_some();
    let (state, word, problem) = how(object);
    let mut info = vec![text(object, "/spec/strategy"), count(total, "cluster")];
    if let Some(version) = version(object) {
        info.push(version);
    }
    let canary = text(object, "/status/run/canary");
    if is_running && !canary.is_empty() && object.pointer("/status/run/canaryPassed").is_none() {
        info.push(format!("{canary} first"));
    }
    Row {
        namespace: text(object, "/metadata/namespace"),
        icon: ("⛴", "&"),
        title: format!("Rollout/{}", text(object, "/metadata/name")),
        waiting: waits(&name, object),
        name,
        state,
        word,
        problem,
        progress: is_running.then_some((ready, total)),
        info,
        ..Row::default()
    }
}

/// The tag or commit of the template.
fn version(object: &Value) -> Option<String> {
    let version = object.pointer("/spec/template/spec/sync/source/git/version")?;
    let name = ["tag", "revision"]
        .iter()
        .find_map(|field| version.get(field)?.as_str());
    name.map(str::to_owned)
}

fn how(object: &Value) -> (State, String, String) {
    let is_true = |kind: &str| condition(object, kind).filter(|c| text(c, "/status") == "True");
    if object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        return (State::Paused, "Paused".to_owned(), String::new());
    }
    if let Some(stalled) = is_true("Stalled") {
        return (
            State::Bad,
            text(stalled, "/reason"),
            text(stalled, "/message"),
        );
    }
    if number(object, "/status/counts/failed") > 0 {
        let ready = condition(object, "Ready").map(|c| text(c, "/message"));
        return (State::Bad, "Failed".to_owned(), ready.unwrap_or_default());
    }
    if let Some(progressing) = is_true("Progressing") {
        return (State::Busy, text(progressing, "/reason"), String::new());
    }
    match condition(object, "Ready") {
        Some(ready) if text(ready, "/status") == "True" => {
            (State::Good, "Ready".to_owned(), String::new())
        }
        Some(ready) => (
            State::Waiting,
            text(ready, "/reason"),
            text(ready, "/message"),
        ),
        None => (State::Idle, "New".to_owned(), String::new()),
    }
}

/// The clusters of a Rollout that are not as they should be: of a thousand that are nobody wants to read.
fn clusters(object: &Value) -> impl Iterator<Item = Row> {
    let namespace = text(object, "/metadata/namespace");
    let rollout = text(object, "/metadata/name");
    let all = list(object, "/status/clusters").iter();
    let unsettled = all.filter(|cluster| text(cluster, "/state") != state::READY);
    unsettled.map(move |cluster| {
        let name = text(cluster, "/name");
        let word = text(cluster, "/state");
        let mut info = Vec::new();
        for field in ["/revision", "/reason"] {
            info.extend(Some(text(cluster, field)).filter(|text| !text.is_empty()));
        }
        let title = format!("Rollout/{rollout}/{name}");
        Row {
            name: format!("Cluster {namespace}/{name}"),
            state: match word.as_str() {
                state::FAILED => State::Bad,
                state::UPDATING | state::UNASSIGNING => State::Busy,
                state::PENDING => State::Waiting,
                _ => State::Warning,
            },
            problem: text(cluster, "/message"),
            word,
            info,
            ..below(&namespace, title)
        }
    })
}

const ASSEMBLAGES: &str = "fleet.squaremo.dev/assemblages";

/// The assemblages of a workload cluster, each with its syncs that are not as they should be.
pub fn show_agent(objects: &dyn Objects) -> Vec<Row> {
    let all = objects.all(ASSEMBLAGES);
    // One that names a cluster is the hub's, and is shown there.
    let ours = all.filter(|object| object.pointer("/spec/clusterName").is_none());
    ours.flat_map(|object| [assemblage(object)].into_iter().chain(syncs(object)))
        .collect()
}

fn assemblage(object: &Value) -> Row {
    let total = number(object, "/status/summary/total");
    let done = number(object, "/status/summary/succeeded");
    let name = format!("Assemblage {}", place(object, "/metadata"));
    let (state, word, problem) = how(object);
    Row {
        namespace: text(object, "/metadata/namespace"),
        icon: ("⚓", "&"),
        title: format!("Assemblage/{}", text(object, "/metadata/name")),
        waiting: waits(&name, object),
        name,
        state,
        word,
        problem,
        progress: (done < total).then_some((done, total)),
        info: vec![count(total, "sync")],
        ..Row::default()
    }
}

/// The beginning of a row below another one.
fn below(namespace: &str, title: String) -> Row {
    Row {
        namespace: namespace.to_owned(),
        icon: ("◦", "-"),
        title,
        ..Row::default()
    }
}

fn syncs(object: &Value) -> impl Iterator<Item = Row> {
    let namespace = text(object, "/metadata/namespace");
    let assemblage = text(object, "/metadata/name");
    let all = list(object, "/status/syncs").iter();
    let unsettled = all.filter(|sync| text(sync, "/state") != "succeeded");
    unsettled.map(move |sync| {
        let name = text(sync, "/name");
        let word = text(sync, "/state");
        let title = format!("Assemblage/{assemblage}/{name}");
        Row {
            name: format!("sync {namespace}/{assemblage}/{name}"),
            state: match word.as_str() {
                "failed" => State::Bad,
                "blocked" => State::Warning,
                _ => State::Busy,
            },
            problem: text(sync, "/message"),
            info: vec![text(sync, "/reason")],
            word,
            ..below(&namespace, title)
        }
    })
}
