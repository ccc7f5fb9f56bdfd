//! Workloads that are changed one after the other.

use super::{Row, State, Workload};

/// Where workloads of a row are changed one after the other: those with outdated pods that are all up wait, for the one
/// that is on its way, or for what the whole row waits for.
pub(super) fn queue(row: &Row, workloads: &mut [Workload]) {
    if !row.in_turn {
        return;
    }
    let reason = row.waiting.first().map(|one| one.reason.as_str());
    let has = |workload: &Workload| row.has(&workload.kind, &workload.name);
    let moving: Vec<String> = workloads
        .iter()
        .filter(|workload| has(workload) && !is_whole(workload))
        .map(|workload| workload.name.clone())
        .collect();
    let queued = workloads
        .iter_mut()
        .filter(|w| has(w) && w.state == State::Busy && is_whole(w));
    for one in queued {
        one.info = match (moving.first(), reason) {
            (Some(other), _) => format!("for {other}"),
            (None, Some(reason)) => format!("for its turn ({reason})"),
            // Between two of its own pods.
            (None, None) if one.progress.0 > 0 => continue,
            (None, None) => "for its turn".to_owned(),
        };
        one.state = State::Waiting;
        "Waiting".clone_into(&mut one.word);
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
