//! What is made of assignments where they are expanded: sources that never change, and Kustomizations that stay.

use serde_json::Value;
use slipway_api::fleet::names::{ASSEMBLAGE, SYNC};
use slipway_kernel::identity::ClusterId;
use slipway_sim::history::{Change, History, Image};
use slipway_sim::oracles::{Case, Findings};

use super::{ASSEMBLAGES, KUSTOMIZATIONS, SOURCES, clusters, deeds, entries, text};

/// The entry that a Kustomization was made for, in the assemblage beside it as of a version.
fn entry<'a>(
    history: &'a History,
    cluster: &ClusterId,
    made: &Image,
    namespace: &str,
    version: u64,
) -> Option<&'a Value> {
    let (assemblage, sync) = (made.label(ASSEMBLAGE)?, made.label(SYNC)?);
    let object = (ASSEMBLAGES.into(), namespace.into(), assemblage.into());
    let changes = history.changes_in(cluster).iter();
    let until = changes.take_while(|change| change.version <= version);
    let last = until.filter(|change| change.object == object).last()?;
    let image = last.after.as_deref()?;
    if image.at("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    entries(Some(image)).get(sync).copied()
}

/// R2: a Kustomization goes only when what it was made for is not assigned any more.
pub(in super::super) fn kept(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for cluster in clusters(history) {
        for (change, request) in deeds(history, &cluster, KUSTOMIZATIONS) {
            let is_going = |image: Option<&Image>| {
                image.is_none_or(|image| image.at("/metadata/deletionTimestamp").is_some())
            };
            let goes = is_going(change.after.as_deref()) && !is_going(change.before.as_deref());
            // What was decided on an older look was right then.
            let versions = [request.versions.0, change.version];
            let Some(before) = change.before.as_deref() else {
                let is_assigned = change.after.as_deref().is_some_and(|after| {
                    let mut entries = versions
                        .iter()
                        .map(|version| entry(history, &cluster, after, &change.object.1, *version));
                    entries.any(|entry| entry.is_some())
                });
                findings.check(change.at, is_assigned, || {
                    format!("{} in {cluster} was made for no sync", change.object.2)
                });
                continue;
            };
            let mut wanted = versions
                .iter()
                .map(|version| entry(history, &cluster, before, &change.object.1, *version));
            findings.check(
                change.at,
                !goes || wanted.any(|entry| entry.is_none()),
                || {
                    format!(
                        "{} in {cluster} was deleted, and its sync is there",
                        change.object.2
                    )
                },
            );
            let uids = (
                before.text("/metadata/uid"),
                change
                    .after
                    .as_deref()
                    .and_then(|a| a.text("/metadata/uid")),
            );
            findings.check(change.at, uids.1.is_none() || uids.0 == uids.1, || {
                format!("{} in {cluster} became another object", change.object.2)
            });
        }
    }
    findings
}

/// R4: a Kustomization is changed only when its own assignment was, or may have been: one that reads objects there can change
/// with those.
pub(in super::super) fn apart(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for cluster in clusters(history) {
        for (change, request) in deeds(history, &cluster, KUSTOMIZATIONS) {
            let (Some(before), Some(after)) = (change.before.as_deref(), change.after.as_deref())
            else {
                continue;
            };
            if before.at("/spec") == after.at("/spec") {
                continue;
            }
            let now = entry(
                history,
                &cluster,
                after,
                &change.object.1,
                request.versions.1,
            );
            let then = made_at(history, &cluster, change)
                .and_then(|version| entry(history, &cluster, before, &change.object.1, version));
            findings.check(change.at, now != then || now.is_some_and(reads), || {
                format!(
                    "{} in {cluster} changed, and what is assigned did not",
                    change.object.2
                )
            });
        }
    }
    findings
}

/// The version at which an operator wrote the spec that this change replaces.
fn made_at(history: &History, cluster: &ClusterId, change: &Change) -> Option<u64> {
    let of = deeds(history, cluster, KUSTOMIZATIONS);
    let earlier = of.filter(|(one, _)| one.object == change.object && one.version < change.version);
    earlier.last().map(|(one, _)| one.version)
}

/// Whether bindings of an entry read objects where it is expanded.
fn reads(entry: &Value) -> bool {
    let bindings = entry.get("bindings").and_then(Value::as_array);
    bindings.into_iter().flatten().any(|binding| {
        binding.get("objectFieldRef").is_some() || binding.get("moduleFieldRef").is_some()
    })
}

/// R29: a source never changes, so what is applied is never new in part.
pub(in super::super) fn immutable(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for cluster in clusters(history) {
        for (change, _) in deeds(history, &cluster, SOURCES) {
            let (Some(before), Some(after)) = (change.before.as_deref(), change.after.as_deref())
            else {
                findings.check(change.at, true, String::new);
                continue;
            };
            findings.check(change.at, before.at("/spec") == after.at("/spec"), || {
                format!("the source {} in {cluster} was changed", change.object.2)
            });
        }
    }
    findings
}

/// R29: a Kustomization is switched only to a source that has been fetched.
pub(in super::super) fn fetched(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for cluster in clusters(history) {
        for (change, request) in deeds(history, &cluster, KUSTOMIZATIONS) {
            let after = change.after.as_deref();
            let source = after.and_then(|after| after.text("/spec/sourceRef/name"));
            let was = change
                .before
                .as_deref()
                .and_then(|before| before.text("/spec/sourceRef/name"));
            let Some(source) = source.filter(|source| was != Some(*source)) else {
                continue;
            };
            let object = (SOURCES.into(), change.object.1.clone(), source.into());
            let changes = history.changes_in(&cluster).iter();
            // It may have been collected, or looked at again, since the switch left.
            let mut seen =
                changes.filter(|one| one.object == object && one.version <= request.versions.1);
            let is_fetched = seen.any(|one| one.after.as_deref().is_some_and(has_artifact));
            findings.check(change.at, is_fetched, || {
                format!(
                    "{} in {cluster} was switched to {source}, which was never fetched",
                    change.object.2
                )
            });
        }
    }
    findings
}

fn has_artifact(source: &Image) -> bool {
    let conditions = source.at("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|condition| {
        text(condition, "/type") == Some("Ready") && text(condition, "/status") == Some("True")
    });
    ready && source.text("/status/artifact/revision").is_some()
}
