//! Makes the model of a cluster out of its objects. Pure; objects that are not as expected show as little as they say.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::capability::Profile;
use slipway_kernel::capability::show::{Objects, number, place, text, time};

use super::workload::{self, is_ready};
use super::{Cluster, Namespace, Told, turns};

/// Events that are kept.
const MAX_EVENTS: usize = 50;

/// The cluster `name` as it is now, as these capabilities show it.
pub(crate) fn gather(
    profiles: &[&Profile],
    name: &str,
    objects: &dyn Objects,
    now: Timestamp,
) -> Cluster {
    let mut namespaces: BTreeMap<String, Namespace> = BTreeMap::new();
    for (kind, resource) in workload::KINDS {
        for object in objects.all(resource) {
            let namespace = room(&mut namespaces, &text(object, "/metadata/namespace"));
            let made = workload::workload(kind, object, objects);
            namespace.workloads.push(made);
        }
    }
    let mut waiting = Vec::new();
    for row in profiles.iter().flat_map(|profile| (profile.show)(objects)) {
        let namespace = room(&mut namespaces, &row.namespace);
        turns::queue(&row, &mut namespace.workloads);
        waiting.extend(row.waiting.iter().cloned());
        namespace.rows.push(row);
    }
    waiting.sort();
    let nodes: Vec<&Value> = objects.all("/nodes").collect();
    Cluster {
        name: name.to_owned(),
        nodes: (
            nodes.iter().filter(|node| is_ready(node)).count(),
            nodes.len(),
        ),
        namespaces: namespaces.into_values().collect(),
        waiting,
        events: events(objects, now),
    }
}

fn room<'a>(all: &'a mut BTreeMap<String, Namespace>, name: &str) -> &'a mut Namespace {
    all.entry(name.to_owned()).or_insert_with(|| Namespace {
        name: name.to_owned(),
        ..Namespace::default()
    })
}

/// The newest events. They are stored as the core group has them, or as `events.k8s.io` has.
fn events(objects: &dyn Objects, now: Timestamp) -> Vec<Told> {
    let mut all: Vec<Told> = objects
        .all("/events")
        .chain(objects.all("events.k8s.io/events"))
        .filter_map(told)
        .collect();
    all.retain(|event| event.at <= now);
    all.sort();
    let skipped = all.len().saturating_sub(MAX_EVENTS);
    all.split_off(skipped)
}

fn told(event: &Value) -> Option<Told> {
    let either = |one: &str, other: &str| match text(event, one) {
        found if found.is_empty() => text(event, other),
        found => found,
    };
    let at = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ]
    .iter()
    .find_map(|path| time(event, path))?;
    let regarding = if event.get("involvedObject").is_some() {
        "/involvedObject"
    } else {
        "/regarding"
    };
    Some(Told {
        at,
        about: format!(
            "{} {}",
            text(event, &format!("{regarding}/kind")),
            place(event, regarding)
        ),
        reason: text(event, "/reason"),
        note: either("/message", "/note"),
        warning: text(event, "/type") == "Warning",
        count: number(event, "/series/count")
            .max(number(event, "/count"))
            .max(1),
    })
}
