//! What happened between two pictures, as lines of a log: for those who have no terminal to draw on.

use std::collections::{BTreeMap, BTreeSet};

use super::line::clean;
use super::model::{Cluster, Model, Policy, State, Told, Waiting, Workload};
use super::words::{ahead, length};

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
        let groups_before = known.map(groups).unwrap_or_default();
        for (name, word) in groups(cluster) {
            if groups_before.get(&name) != Some(&word) {
                tell(after.now, format!("{name} {word}"));
            }
        }
        let policies_before = known.map(policies).unwrap_or_default();
        for (name, policy) in policies(cluster) {
            let was = policies_before.get(&name).map(|p| (&p.word, &p.problem));
            if was != Some((&policy.word, &policy.problem)) && !matches!(policy.state, State::Idle)
            {
                let problem = if policy.problem.is_empty() {
                    String::new()
                } else {
                    format!(": {}", clean(&policy.problem))
                };
                tell(after.now, format!("{name} {}{problem}", policy.word));
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

/// The words of all rollout groups.
fn groups(cluster: &Cluster) -> BTreeMap<String, &str> {
    let namespaces = cluster.namespaces.iter();
    let groups = namespaces.flat_map(|n| n.groups.iter().map(move |g| (&n.name, g)));
    groups
        .map(|(place, g)| (format!("group {place}/{}", g.name), g.word.as_str()))
        .collect()
}

fn policies(cluster: &Cluster) -> BTreeMap<String, &Policy> {
    let all = cluster
        .namespaces
        .iter()
        .flat_map(|n| n.policies.iter().map(move |p| (n, p)));
    all.map(|(n, p)| match p.kind {
        "" => (p.name.clone(), p),
        kind => (format!("{kind} {}/{}", n.name, p.name), p),
    })
    .collect()
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
