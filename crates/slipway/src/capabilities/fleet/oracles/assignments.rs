//! What is assigned, and by whom.

use slipway_api::purpose::fleet::UNASSIGN;
use slipway_kernel::identity::ClusterId;
use slipway_sim::history::{Change, History, Image, Request};
use slipway_sim::oracles::{Case, Findings};

use super::{ASSEMBLAGES, REMOTES, ROLLOUTS, clusters, deeds, entries, labels, selects, text};

/// R1: whoever looks at an assemblage sees exactly one entry of each assignment, from its beginning to its end: what is there
/// is replaced in one write, and taken away only when it is not assigned any more.
pub(in super::super) fn atomic(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for cluster in clusters(history) {
        for resource in [REMOTES, ASSEMBLAGES] {
            for (change, request) in deeds(history, &cluster, resource) {
                let (before, after) = (
                    entries(change.before.as_deref()),
                    entries(change.after.as_deref()),
                );
                let gone = before.keys().filter(|name| !after.contains_key(*name));
                for name in gone {
                    let is_meant = is_unassigned(history, &cluster, change, request, name);
                    findings.check(change.at, is_meant, || {
                        let (_, namespace, assemblage) = &change.object;
                        format!("{namespace}/{assemblage} lost {name}, which is assigned to it")
                    });
                }
                findings.check(change.at, is_unique(change.after.as_deref()), || {
                    format!("{} has an entry twice", change.object.2)
                });
            }
        }
    }
    findings
}

/// Whether no name is there twice.
fn is_unique(assemblage: Option<&Image>) -> bool {
    let syncs = assemblage.and_then(|image| {
        let remote = image.at("/spec/assemblage/syncs");
        remote.or_else(|| image.at("/spec/syncs"))?.as_array()
    });
    syncs.is_none_or(|syncs| syncs.len() == entries(assemblage).len())
}

/// Whether an entry may go: of an assemblage in a cluster when home has it no more, at home when nobody assigns it any more.
fn is_unassigned(
    history: &History,
    cluster: &ClusterId,
    change: &Change,
    request: &Request,
    name: &str,
) -> bool {
    let (resource, namespace, assemblage) = &change.object;
    if !cluster.is_local() {
        // What was on its way when home was written again was right when it left.
        let remote = (REMOTES.into(), namespace.clone(), assemblage.clone());
        let moments = [request.at, change.at];
        return moments.iter().any(|moment| {
            let remote = super::at(&history.changes, &remote, *moment);
            let going =
                remote.is_none_or(|remote| remote.at("/metadata/deletionTimestamp").is_some());
            going || !entries(remote).contains_key(name)
        });
    }
    let before = change.before.as_deref();
    let by = entries(before)
        .get(name)
        .and_then(|entry| text(entry, "/assignedBy"))
        .map(str::to_owned);
    let Some(rollout) = by.as_deref().and_then(|by| by.strip_prefix("Rollout/")) else {
        return true;
    };
    let cluster = match &**resource {
        ASSEMBLAGES => assemblage.strip_suffix("-bootstrap").unwrap_or(assemblage),
        _ => assemblage,
    };
    let rollout = (ROLLOUTS.into(), namespace.clone(), rollout.into());
    [request.at, change.at].iter().any(|moment| {
        let rollout = super::at(&history.changes, &rollout, *moment);
        let all = labels(history, namespace, *moment);
        match (rollout, all.get(cluster)) {
            (Some(rollout), Some(labels)) => {
                rollout.at("/metadata/deletionTimestamp").is_some() || !selects(rollout, labels)
            }
            _ => true,
        }
    })
}

/// R5: nobody's entry is changed but by who assigned it, and nobody's of an external rollout but by people.
pub(in super::super) fn others(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let home = ClusterId::local();
    for resource in [REMOTES, ASSEMBLAGES] {
        for (change, request) in deeds(history, &home, resource) {
            // An assemblage goes with its cluster, whoever has something in it.
            if change.after.is_none() {
                continue;
            }
            let owner = owner(request);
            let (before, after) = (
                entries(change.before.as_deref()),
                entries(change.after.as_deref()),
            );
            for (name, was) in &before {
                if after.get(name) == Some(was) {
                    continue;
                }
                let by = text(was, "/assignedBy");
                let stays = after.contains_key(name);
                // What is taken away is taken out of the whole list: that it is not assigned any more is for F1.
                let is_taken = request.is_for(UNASSIGN) && !stays;
                let is_own = by.is_some() && (is_taken || by == owner.as_deref());
                findings.check(change.at, is_own, || {
                    format!(
                        "{}: {name}, which is {by:?}'s, was changed by {owner:?}",
                        change.object.2
                    )
                });
                let is_external =
                    by.is_some_and(|by| strategy(history, change, by) == Some("External"));
                findings.check(change.at, !(is_external && stays), || {
                    format!(
                        "{}: {name} was moved, and that is for others to do",
                        change.object.2
                    )
                });
            }
            for (name, is) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                findings.check(
                    change.at,
                    text(is, "/assignedBy") == owner.as_deref(),
                    || {
                        format!(
                            "{}: {name} was made in somebody else's name",
                            change.object.2
                        )
                    },
                );
            }
        }
    }
    findings
}

/// In whose name a request is made, by its field manager: `Rollout/web`.
fn owner(request: &Request) -> Option<String> {
    let (_, query) = request.uri.split_once('?')?;
    let mut parts = query.split('&');
    let manager = parts.find_map(|part| part.strip_prefix("fieldManager="))?;
    let manager = decoded(manager);
    manager.strip_prefix("slipway-fleet/").map(str::to_owned)
}

/// A part of a query, as it was meant.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        match u8::from_str_radix(code, 16) {
            Ok(byte) => made.push(char::from(byte)),
            Err(_) => made.push_str(code),
        }
        made.push_str(rest);
    }
    made
}

/// The strategy of a Rollout, as it was before a change.
fn strategy<'a>(history: &'a History, change: &Change, by: &str) -> Option<&'a str> {
    let name = by.strip_prefix("Rollout/")?;
    let rollout = (ROLLOUTS.into(), change.object.1.clone(), name.into());
    super::at(&history.changes, &rollout, change.at)?.text("/spec/strategy")
}
