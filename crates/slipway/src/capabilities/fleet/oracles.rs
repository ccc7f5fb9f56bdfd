//! The oracles' own reading of a fleet: which clusters a Rollout is for, what each is assigned, and what Flux says there.
//!
//! What the operator tells of itself is not believed: whether a cluster is ready is read from the Kustomization in it, and
//! whether it is selected from its labels.

mod assignments;
mod excuses;
mod progress;
mod secrecy;
mod sight;
mod switches;

pub(super) use assignments::{atomic, others};
pub(super) use progress::{budget, explained, first};
pub(super) use secrecy::{no_secrets, no_writes};
pub(super) use sight::sighted;
pub(super) use switches::{apart, fetched, immutable, kept};

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::fleet::names::{APPLIED, CLUSTER};
use slipway_kernel::identity::ClusterId;
use slipway_sim::history::{Change, History, Image, Object, Request};

pub(super) const ROLLOUTS: &str = "fleet.squaremo.dev/rollouts";
pub(super) const REMOTES: &str = "fleet.squaremo.dev/remoteassemblages";
pub(super) const ASSEMBLAGES: &str = "fleet.squaremo.dev/assemblages";
pub(super) const SOURCES: &str = "source.toolkit.fluxcd.io/gitrepositories";
pub(super) const KUSTOMIZATIONS: &str = "kustomize.toolkit.fluxcd.io/kustomizations";
pub(super) const SECRETS: &str = "/secrets";

/// Home and all others, by their ids.
pub(super) fn clusters(history: &History) -> impl Iterator<Item = ClusterId> {
    let members = history.members.keys().cloned();
    std::iter::once(ClusterId::local()).chain(members)
}

/// All changes of operators in a cluster to objects of a resource.
pub(super) fn deeds<'a>(
    history: &'a History,
    cluster: &'a ClusterId,
    resource: &'a str,
) -> impl Iterator<Item = (&'a Change, &'a Request)> {
    let deeds = history.deeds_in(cluster);
    deeds.filter(move |(change, _)| &*change.object.0 == resource)
}

/// The entries of an assemblage of either kind, by name.
pub(super) fn entries(assemblage: Option<&Image>) -> BTreeMap<&str, &Value> {
    let syncs = assemblage.and_then(|image| {
        let remote = image.at("/spec/assemblage/syncs");
        remote.or_else(|| image.at("/spec/syncs"))?.as_array()
    });
    let syncs = syncs.into_iter().flatten();
    syncs
        .filter_map(|sync| Some((sync.get("name")?.as_str()?, sync)))
        .collect()
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// An object of a cluster at a moment.
pub(super) fn at<'a>(
    changes: &'a [Change],
    object: &Object,
    moment: Timestamp,
) -> Option<&'a Image> {
    let until = changes.iter().take_while(|change| change.at <= moment);
    let last = until.filter(|change| change.object == *object).last()?;
    last.after.as_deref()
}

/// All objects of a resource of a cluster at a moment, by object.
pub(super) fn all_at<'a>(
    changes: &'a [Change],
    resource: &str,
    moment: Timestamp,
) -> BTreeMap<&'a Object, &'a Image> {
    let mut all = BTreeMap::new();
    let until = changes.iter().take_while(|change| change.at <= moment);
    for change in until.filter(|change| &*change.object.0 == resource) {
        match change.after.as_deref() {
            Some(after) => all.insert(&change.object, after),
            None => all.remove(&change.object),
        };
    }
    all
}

/// Whether the runs of Rollouts can be told from what is there: neither home nor another cluster was put back or replaced.
pub(super) fn is_told(history: &History) -> bool {
    !history.is_restored() && !history.has_other_clusters() && !history.is_redefined()
}

/// The labels of the clusters of a namespace at a moment, by name.
pub(super) fn labels(
    history: &History,
    namespace: &str,
    moment: Timestamp,
) -> BTreeMap<String, Value> {
    let secrets = all_at(&history.changes, SECRETS, moment).into_iter();
    let clusters = secrets.filter(|(object, secret)| {
        let going = secret.at("/metadata/deletionTimestamp").is_some();
        &*object.1 == namespace && secret.label(CLUSTER).is_some() && !going
    });
    clusters
        .map(|(object, secret)| {
            let labels = secret.at("/metadata/labels").cloned().unwrap_or_default();
            (object.2.to_string(), labels)
        })
        .collect()
}

/// Whether a Rollout selects these labels. Scenarios select by `matchLabels` only.
pub(super) fn selects(rollout: &Image, labels: &Value) -> bool {
    let Some(selector) = rollout.at("/spec/selector") else {
        return false;
    };
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    wanted
        .into_iter()
        .flatten()
        .all(|(name, value)| labels.get(name) == Some(value))
}

/// The assignment of a cluster by a Rollout: where it is, and which entry.
pub(super) struct Place {
    pub(super) object: Object,
    /// The cluster that what is assigned is expanded in.
    pub(super) expanded_in: ClusterId,
}

/// Where a Rollout's assignment for a cluster is.
pub(super) fn place(rollout: &Object, image: &Image, cluster: &str) -> Place {
    let is_bootstrap = image.text("/spec/targetKind") == Some("BootstrapModule");
    let namespace = rollout.1.clone();
    if is_bootstrap {
        return Place {
            object: (
                ASSEMBLAGES.into(),
                namespace,
                format!("{cluster}-bootstrap").into(),
            ),
            expanded_in: ClusterId::local(),
        };
    }
    Place {
        object: (REMOTES.into(), namespace, cluster.into()),
        expanded_in: ClusterId::remote(cluster),
    }
}

/// The revision of a template in that of an assignment.
pub(super) fn template(revision: &str) -> &str {
    revision
        .split_once('-')
        .map_or(revision, |(template, _)| template)
}

/// The Kustomization of an assignment.
pub(super) fn kustomization(place: &Place, sync: &str) -> Object {
    let (_, namespace, name) = &place.object;
    (
        KUSTOMIZATIONS.into(),
        namespace.clone(),
        format!("{name}-{sync}").into(),
    )
}

/// Whether what Flux says of a Kustomization is that it failed.
pub(super) fn has_failed(kustomization: &Image) -> bool {
    let conditions = kustomization
        .at("/status/conditions")
        .and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text(condition, "/type") == Some("Ready") && text(condition, "/status") == Some("False")
    })
}

/// Whether what Flux says of a Kustomization is that this revision of its sync is applied and healthy.
pub(super) fn is_ready(kustomization: &Image, revision: &str) -> bool {
    let conditions = kustomization
        .at("/status/conditions")
        .and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|condition| {
        text(condition, "/type") == Some("Ready") && text(condition, "/status") == Some("True")
    });
    ready
        && kustomization.annotation(APPLIED) == Some(revision)
        && kustomization.number("/status/observedGeneration")
            >= kustomization.number("/metadata/generation")
}

/// Whether an assignment of this revision was ever ready until then, and not before it was assigned.
pub(super) fn was_ready(
    history: &History,
    place: &Place,
    sync: &str,
    revision: &str,
    (from, until): (Timestamp, Timestamp),
) -> bool {
    let object = kustomization(place, sync);
    let changes = history.changes_in(&place.expanded_in).iter();
    let mut seen =
        changes.filter(|change| change.object == object && change.at >= from && change.at <= until);
    seen.any(|change| {
        let after = change.after.as_deref();
        after.is_some_and(|after| is_ready(after, revision))
    })
}
