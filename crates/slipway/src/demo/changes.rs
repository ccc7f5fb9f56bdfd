//! What happened between two pictures, as lines of a log: for those who have no terminal to draw on.

use std::collections::{BTreeMap, BTreeSet};

use super::line::clean;
use super::model::Model;
use super::words::{ahead, length};
use crate::model::{Cluster, Row, State, Told, Waiting, Workload};

/// What is new in `after`, oldest first, each with the time in the simulated world.
pub(crate) fn changes(before: &Model, after: &Model) -> Vec<String> {
    let several = after.clusters.len() > 1;
    let mut told: Vec<(jiff::Timestamp, String)> = Vec::new();
    for (index, cluster) in after.clusters.iter().enumerate() {
        let place = if several {
            format!("{} ", cluster.name)
        } else {
            String::new()
        };
        let known = before.clusters.get(index);
        let mut tell = |at, text: String| told.push((at, format!("{place}{text}")));
        let old: BTreeSet<&Told> = known.iter().flat_map(|c| &c.events).collect();
        for event in cluster.events.iter().filter(|event| !old.contains(event)) {
            tell(
                event.at,
                format!("{} {}: {}", event.about, event.reason, clean(&event.note)),
            );
        }
        let earlier = known.map(workloads).unwrap_or_default();
        for (name, workload) in workloads(cluster) {
            if let Some(text) = turned(earlier.get(&name).copied(), workload) {
                tell(after.now, format!("{name} {text}"));
            }
        }
        let rows_before = known.map(rows).unwrap_or_default();
        for (name, row) in rows(cluster) {
            let was = rows_before.get(name).map(|row| (&row.word, &row.problem));
            if was != Some((&row.word, &row.problem)) && row.state != State::Idle {
                let problem = if row.problem.is_empty() {
                    String::new()
                } else {
                    format!(": {}", clean(&row.problem))
                };
                tell(after.now, format!("{name} {}{problem}", row.word));
            }
        }
        let waited: BTreeSet<(&str, &str)> = known
            .iter()
            .flat_map(|c| &c.waiting)
            .map(identity)
            .collect();
        for one in cluster
            .waiting
            .iter()
            .filter(|one| !waited.contains(&identity(one)))
        {
            tell(after.now, wait(one, after));
        }
        let waiting: BTreeSet<(&str, &str)> = cluster.waiting.iter().map(identity).collect();
        for one in known
            .iter()
            .flat_map(|c| &c.waiting)
            .filter(|one| !waiting.contains(&identity(one)))
        {
            tell(
                after.now,
                format!(
                    "{} is no longer waiting ({} for {})",
                    one.object,
                    one.reason,
                    length(one.since, after.now)
                ),
            );
        }
    }
    told.sort_by_key(|(at, _)| *at);
    told.into_iter()
        .map(|(at, text)| format!("{} {text}", at.strftime("%FT%TZ")))
        .collect()
}

fn identity(waiting: &Waiting) -> (&str, &str) {
    (&waiting.object, &waiting.reason)
}

fn wait(one: &Waiting, model: &Model) -> String {
    let until = one
        .until
        .map(|at| format!("; until {}", ahead(at, model.now)));
    let until = until.unwrap_or_default();
    format!(
        "{} WAITS: {}{until}; {} [{}]",
        one.object,
        clean(&one.message),
        clean(&one.unblock),
        one.reason
    )
}

fn workloads(cluster: &Cluster) -> BTreeMap<String, &Workload> {
    let all = cluster
        .namespaces
        .iter()
        .flat_map(|n| n.workloads.iter().map(move |w| (n, w)));
    all.map(|(n, w)| (format!("{} {}/{}", w.kind, n.name, w.name), w))
        .collect()
}

/// What capabilities show, by name.
fn rows(cluster: &Cluster) -> BTreeMap<&str, &Row> {
    let all = cluster.namespaces.iter().flat_map(|n| &n.rows);
    all.map(|row| (row.name.as_str(), row)).collect()
}

/// What a workload turned into, if that is worth a line.
fn turned(before: Option<&Workload>, after: &Workload) -> Option<String> {
    let was = before.map(|w| (w.state, &w.word, w.progress));
    let is_waiting = after.state == State::Waiting;
    if is_waiting && before.is_some_and(|w| w.state == State::Waiting && w.info == after.info) {
        return None;
    }
    if was == Some((after.state, &after.word, after.progress)) && !is_waiting {
        return None;
    }
    let (done, all) = after.progress;
    match after.state {
        State::Good => Some(format!("is healthy: {}", after.word)),
        State::Waiting => Some(format!("is waiting {}", after.info).trim_end().to_owned()),
        State::Busy => Some(format!(
            "is {}: {done} of {all} pods",
            after.word.to_lowercase()
        )),
        _ if was.map(|(state, word, _)| (state, word)) == Some((after.state, &after.word)) => None,
        _ => Some(format!("is {}", after.word)),
    }
}

#[cfg(test)]
mod tests;
