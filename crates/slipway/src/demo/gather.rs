//! Makes the model of a cluster out of its objects. Pure; objects that are not as expected show as little as they say.

mod group;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::flipper::FlipperSpec;
use slipway_apiserver::store::Stored;
use slipway_restarts::observe::STATUS_MAP;

use super::model::{Cluster, Namespace, Policy, State, Told, Waiting};

const FLIPPERS: &str = "flipper.io.github.com/flippers";
/// What the default criteria are called.
const DEFAULT: &str = "default criteria";
/// Events that are kept for the picture.
const MOST_EVENTS: usize = 50;

/// Objects by namespace and name, each with its version.
type Objects = BTreeMap<(String, String), (u64, Arc<Value>)>;

/// The objects of a cluster, decoded; what has not changed is not decoded again.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    objects: BTreeMap<String, Objects>,
}

impl Mirror {
    /// Takes in all objects of a moment.
    pub(crate) fn observe(&mut self, everything: &[(Box<str>, Arc<Stored>)]) {
        let mut before = std::mem::take(&mut self.objects);
        for (resource, stored) in everything {
            let key = (
                stored.header.namespace.to_string(),
                stored.header.name.to_string(),
            );
            let known = before
                .get_mut(resource.as_ref())
                .and_then(|all| all.remove(&key));
            let entry = match known {
                Some(known) if known.0 == stored.version => known,
                _ => (stored.version, Arc::new(stored.decode())),
            };
            self.objects
                .entry(resource.to_string())
                .or_default()
                .insert(key, entry);
        }
    }

    /// Takes in one object, as tests do.
    #[cfg(test)]
    pub(crate) fn add(&mut self, resource: &str, object: Value) {
        let text = |path: &str| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let key = (text("/metadata/namespace"), text("/metadata/name"));
        let all = self.objects.entry(resource.to_owned()).or_default();
        all.insert(key, (0, Arc::new(object)));
    }

    /// All objects of a resource, by namespace and name.
    pub(crate) fn all(&self, resource: &str) -> impl Iterator<Item = &Value> {
        let objects = self.objects.get(resource);
        objects
            .into_iter()
            .flat_map(BTreeMap::values)
            .map(|(_, object)| object.as_ref())
    }
}

/// The cluster `name` as it is now.
pub(crate) fn gather(name: &str, mirror: &Mirror, now: Timestamp) -> Cluster {
    let mut namespaces: BTreeMap<String, Namespace> = BTreeMap::new();
    let mut room = |object: &Value| -> String {
        let name = text(object, "/metadata/namespace");
        namespaces.entry(name.clone()).or_insert_with(|| Namespace {
            name: name.clone(),
            ..Namespace::default()
        });
        name
    };
    let mut policies = Vec::new();
    let mut waiting = Vec::new();
    for object in mirror.all(FLIPPERS) {
        let by = format!("Flipper {}", place(object, "/metadata"));
        policies.push((room(object), policy(object)));
        waiting.extend(waits(&by, object));
    }
    for object in mirror.all("/configmaps").filter_map(default_criteria) {
        policies.push((room(&object), default_policy(&object)));
        waiting.extend(waits(DEFAULT, &object));
    }
    let mut groups = Vec::new();
    for object in mirror.all("/configmaps").filter_map(group::status) {
        let group = group::group(&object);
        let namespace = room(&object);
        let why = waits(&format!("group {namespace}/{}", group.name), &object);
        let reason = why.first().map(|one| one.reason.clone());
        waiting.extend(why);
        groups.push((namespace, group, reason));
    }
    let mut workloads = Vec::new();
    for (kind, resource) in workload::KINDS {
        for object in mirror.all(resource) {
            workloads.push((room(object), workload::workload(kind, object, mirror)));
        }
    }
    for (name, policy) in policies {
        namespaces.entry(name).or_default().policies.push(policy);
    }
    for (name, workload) in workloads {
        namespaces.entry(name).or_default().workloads.push(workload);
    }
    for (name, group, reason) in groups {
        let namespace = namespaces.entry(name).or_default();
        group::queue(&group, reason.as_deref(), &mut namespace.workloads);
        namespace.groups.push(group);
    }
    waiting.sort();
    let nodes: Vec<&Value> = mirror.all("/nodes").collect();
    Cluster {
        name: name.to_owned(),
        nodes: (
            nodes.iter().filter(|node| is_ready(node)).count(),
            nodes.len(),
        ),
        namespaces: namespaces.into_values().collect(),
        waiting,
        events: events(mirror, now),
    }
}

fn text(object: &Value, path: &str) -> String {
    object
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn number(object: &Value, path: &str) -> i64 {
    object
        .pointer(path)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

fn time(object: &Value, path: &str) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The condition of this type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions")
        .iter()
        .find(|c| text(c, "/type") == kind)
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|c| text(c, "/status") == "True")
}

fn policy(object: &Value) -> Policy {
    let name = text(object, "/metadata/name");
    // An object that cannot be read is shown by its conditions all the same.
    let spec = object
        .get("spec")
        .cloned()
        .and_then(|spec| serde_json::from_value(spec).ok())
        .unwrap_or_default();
    let (state, word, problem) = policy_state(object, &spec);
    Policy {
        kind: "Flipper",
        name,
        state,
        word,
        rhythm: rhythm(&spec),
        matched: number(object, "/status/matched"),
        rolling: number(object, "/status/inProgress"),
        pending: number(object, "/status/pending"),
        next: time(object, "/status/nextRestart"),
        problem,
        dry_run: spec.dry_run == Some(true),
    }
}

/// The default criteria while they apply, in the shape of an object: a `ConfigMap` carries their status.
fn default_criteria(map: &Value) -> Option<Value> {
    let ours = text(map, "/metadata/name") == STATUS_MAP && text(map, "/data/active") == "true";
    let status: Value = serde_json::from_str(&text(map, "/data/status")).ok()?;
    let made = json!({"metadata": map.get("metadata"), "data": map.get("data"), "status": status});
    ours.then_some(made)
}

fn default_policy(object: &Value) -> Policy {
    Policy {
        kind: "",
        name: DEFAULT.to_owned(),
        rhythm: text(object, "/data/criteria"),
        ..policy(object)
    }
}

fn policy_state(object: &Value, spec: &FlipperSpec) -> (State, String, String) {
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

fn waits(by: &str, object: &Value) -> Vec<Waiting> {
    list(object, "/status/waitingFor")
        .iter()
        .filter_map(|one| {
            Some(Waiting {
                since: time(one, "/since")?,
                by: by.to_owned(),
                reason: text(one, "/reason"),
                object: format!("{} {}", text(one, "/object/kind"), place(one, "/object")),
                message: text(one, "/message"),
                until: time(one, "/until"),
                unblock: text(one, "/unblock"),
            })
        })
        .collect()
}

/// `namespace/name` of what is below `path`.
fn place(object: &Value, path: &str) -> String {
    let name = text(object, &format!("{path}/name"));
    match text(object, &format!("{path}/namespace")) {
        namespace if namespace.is_empty() => name,
        namespace => format!("{namespace}/{name}"),
    }
}

/// The newest events. They are stored as the core group has them, or as `events.k8s.io` has.
fn events(mirror: &Mirror, now: Timestamp) -> Vec<Told> {
    let mut all: Vec<Told> = mirror
        .all("/events")
        .chain(mirror.all("events.k8s.io/events"))
        .filter_map(told)
        .collect();
    all.retain(|event| event.at <= now);
    all.sort();
    let skipped = all.len().saturating_sub(MOST_EVENTS);
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

#[cfg(test)]
mod tests;
