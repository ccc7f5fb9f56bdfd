//! Making two clusters comparable, and saying where they differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What is masked, and why.
pub(crate) const MASKS: [(&str, &str); 12] = [
    (
        "uid, resourceVersion, creationTimestamp, managedFields, namespace",
        "no two clusters share them",
    ),
    ("times", "one clock is virtual"),
    (
        "hashes of templates in names, labels and messages: <hash N> by revision",
        "any stable hash will do",
    ),
    (
        "generated names of pods: <owner>-<place>",
        "they are drawn at random",
    ),
    (
        "nodeName and zone of pods that are no daemons",
        "the real scheduler scores nodes, the actors count pods",
    ),
    (
        "addresses, container ids and states, pod conditions but Ready",
        "KWOK writes fewer than a kubelet, the actors more",
    ),
    (
        "generation of ReplicaSets, and observedGeneration where it is the generation",
        "the number of steps depends on how fast pods start",
    ),
    ("the order of conditions", "it depends on which came last"),
    (
        "commits, digests, sizes, paths and addresses of what Flux fetched, and how long its checks took",
        "one of the repositories is made up, and one of the clocks",
    ),
    (
        "status.history, reconcile strategies and the words of git and kustomize in messages of failures",
        "the actors do not play them",
    ),
    (
        "the order of volumes and of tolerations",
        "the real controllers go through maps",
    ),
    (
        "of real clusters: whether a rollout that is under way says NewReplicaSetCreated or ReplicaSetUpdated",
        "it depends on whether the new ReplicaSet counts its pods before or after it is first looked at",
    ),
];

/// Everything of a story, comparable.
pub(crate) fn normalise(everything: &Value) -> Value {
    let hashes = hashes(everything);
    let mut all = Map::new();
    for (kind, objects) in everything.as_object().unwrap() {
        // Every real namespace has it.
        let is_root = |object: &&Value| object["metadata"]["name"] == "kube-root-ca.crt";
        let objects: Vec<&Value> = objects
            .as_array()
            .unwrap()
            .iter()
            .filter(|o| !is_root(o))
            .collect();
        let mut plain: Vec<Value> = objects.iter().map(|o| object(kind, o)).collect();
        for object in &mut plain {
            replace(object, &hashes);
        }
        plain.sort_by_key(Value::to_string);
        number(kind, &mut plain);
        all.insert(kind.clone(), Value::Array(plain));
    }
    Value::Object(all)
}

/// A name for each hash of a template, by the revision that carries it.
fn hashes(everything: &Value) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    let text = |object: &Value, path: &str| {
        let found = object.pointer(path).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    for set in everything["ReplicaSet"].as_array().unwrap() {
        let hash = text(set, "/metadata/labels/pod-template-hash");
        let revision = text(
            set,
            "/metadata/annotations/deployment.kubernetes.io~1revision",
        );
        if !hash.is_empty() {
            hashes.insert(hash, format!("<hash {revision}>"));
        }
    }
    for object in everything["ControllerRevision"].as_array().unwrap() {
        let by_set = text(object, "/metadata/labels/controller.kubernetes.io~1hash");
        let by_daemon = text(object, "/metadata/labels/controller-revision-hash");
        for hash in [by_set, by_daemon] {
            if !hash.is_empty() {
                hashes.insert(hash, format!("<hash {}>", object["revision"]));
            }
        }
    }
    hashes
}

fn object(kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    let generation = object["metadata"]["generation"].clone();
    let meta = object["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "namespace",
        "selfLink",
    ] {
        meta.remove(field);
    }
    if kind == "ReplicaSet" {
        meta.remove("generation");
    }
    for owner in meta
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        owner.as_object_mut().unwrap().remove("uid");
    }
    if kind == "Pod" {
        pod(&mut object);
    }
    if ["GitRepository", "Kustomization"].contains(&kind) {
        flux(&mut object);
    }
    mask(&mut object, &generation);
    object
}

/// Puts one text for another everywhere.
pub(crate) fn rename(value: &mut Value, from: &str, to: &str) {
    replace(value, &BTreeMap::from([(from.to_owned(), to.to_owned())]));
}

fn flux(object: &mut Value) {
    let status = object["status"].as_object_mut().unwrap();
    status.remove("history");
    if let Some(artifact) = status.get_mut("artifact").and_then(Value::as_object_mut) {
        artifact.retain(|field, _| field == "revision");
    }
    told(&mut object["status"]);
}

/// Masks commits and times in messages, and what follows the first words of a failure.
fn told(value: &mut Value) {
    const FAILURES: [&str; 4] = [
        "failed to checkout and determine revision: unable to clone",
        "kustomization path not found",
        "post build failed for",
        "health check failed after",
    ];
    match value {
        Value::String(text) => {
            for failure in FAILURES {
                if text.starts_with(failure) {
                    let rest = text
                        .split_once("waiting for: ")
                        .map(|(_, rest)| rest.to_owned());
                    *text = format!("{failure} <so on> {}", rest.unwrap_or_default());
                }
            }
            if text.starts_with("Health check passed in") {
                "Health check passed in <some time>".clone_into(text);
            }
            if let Some((before, commit)) = text.split_once("sha1:") {
                let rest: String = commit.chars().skip(40).collect();
                *text = format!("{before}sha1:<commit>{rest}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(told),
        Value::Object(fields) => fields.values_mut().for_each(told),
        _ => {}
    }
}

fn pod(object: &mut Value) {
    let conditions = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let ready = conditions
        .iter()
        .any(|c| c["type"] == "Ready" && c["status"] == "True");
    let restarts = object["status"]["containerStatuses"][0]["restartCount"].clone();
    object["status"] =
        json!({"phase": object["status"]["phase"], "ready": ready, "restarts": restarts});
    let is_daemon = object["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet";
    let spec = object["spec"].as_object_mut().unwrap();
    if let (false, Some(node)) = (is_daemon, spec.get_mut("nodeName")) {
        *node = json!("<some node>");
    }
    for list in ["volumes", "tolerations"] {
        if let Some(Value::Array(items)) = spec.get_mut(list) {
            items.sort_by_key(Value::to_string);
        }
    }
    if let (false, Some(zone)) = (
        is_daemon,
        object["metadata"]["labels"].get_mut("topology.kubernetes.io/zone"),
    ) {
        *zone = json!("<some zone>");
    }
    let meta = object["metadata"].as_object_mut().unwrap();
    meta.remove("generation");
    if meta.contains_key("generateName")
        && !meta["labels"]
            .as_object()
            .is_some_and(|l| l.contains_key("apps.kubernetes.io/pod-index"))
    {
        let start = meta["generateName"].clone();
        meta.insert("name".to_owned(), start);
    }
}

/// Masks times and generations, and puts conditions in order, all the way down.
fn mask(value: &mut Value, generation: &Value) {
    match value {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => {
            "<time>".clone_into(text);
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                mask(item, generation);
            }
            if items.iter().all(|item| item.get("type").is_some()) {
                items.sort_by_key(|item| item["type"].to_string());
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if key == "observedGeneration" && field == generation {
                    *field = json!("<generation>");
                } else {
                    mask(field, generation);
                }
            }
        }
        _ => {}
    }
}

/// Puts names for hashes everywhere, also into keys.
fn replace(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            for (hash, name) in names {
                if text.contains(hash.as_str()) {
                    *text = text.replace(hash.as_str(), name);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, names)),
        _ => {}
    }
}

/// Numbers pods with generated names by their place among their like.
fn number(kind: &str, objects: &mut [Value]) {
    if kind != "Pod" {
        return;
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for object in objects {
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if name.ends_with('-') {
            let place = counts.entry(name.clone()).or_default();
            object["metadata"]["name"] = json!(format!("{name}<{place}>"));
            *place += 1;
        }
    }
}

/// Where a real cluster's end differs from what was recorded, one line each: what a race of its controllers decides may have come
/// out the other way this time.
pub(crate) fn differences_of_real(truth: &Value, found: &Value) -> Vec<String> {
    let either = |everything: &Value| {
        let mut everything = everything.clone();
        let deployments = everything
            .get_mut("Deployment")
            .and_then(Value::as_array_mut);
        deployments.into_iter().flatten().for_each(under_way);
        everything
    };
    differences(&either(truth), &either(found))
}

/// One word for both that the controller has for a rollout that is under way. It tells of progress when more pods of the new
/// `ReplicaSet` are counted than at the look before; where they are there at the first look, what it told when it made that
/// `ReplicaSet` stays.
fn under_way(deployment: &mut Value) {
    let conditions = deployment.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let is_either = ["NewReplicaSetCreated", "ReplicaSetUpdated"]
            .iter()
            .any(|reason| condition["reason"] == *reason);
        if condition["type"] == "Progressing" && condition["status"] == "True" && is_either {
            condition["reason"] = json!("<under way>");
            condition["message"] = json!("<under way>");
        }
    }
}

/// What [`differences_of_real`] lets pass, and what not: a word of another rollout, or for what came of it, is a difference.
pub(crate) fn check_differences_of_real() {
    let said = |status: &str, reason: &str| {
        let condition =
            json!({"type": "Progressing", "status": status, "reason": reason, "message": reason});
        json!({"Deployment": [{"metadata": {"name": "web"}, "status": {"conditions": [condition]}}]})
    };
    let made = said("True", "NewReplicaSetCreated");
    assert!(differences_of_real(&made, &said("True", "ReplicaSetUpdated")).is_empty());
    assert!(!differences(&made, &said("True", "ReplicaSetUpdated")).is_empty());
    for (status, reason) in [
        ("True", "NewReplicaSetAvailable"),
        ("True", "FoundNewReplicaSet"),
        ("False", "ReplicaSetUpdated"),
        ("False", "ProgressDeadlineExceeded"),
    ] {
        let other = said(status, reason);
        assert!(!differences_of_real(&made, &other).is_empty(), "{other}");
    }
}

/// Where two values differ, one line each.
pub(crate) fn differences(truth: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", truth, found, &mut lines);
    lines
}

fn compare(path: &str, truth: &Value, found: &Value, lines: &mut Vec<String>) {
    match (truth, found) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (a.get(key), b.get(key));
                let null = Value::Null;
                compare(
                    &format!("{path}/{key}"),
                    a.unwrap_or(&null),
                    b.unwrap_or(&null),
                    lines,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}/{place}"), a, b, lines);
            }
        }
        _ if truth == found => {}
        _ => lines.push(format!("{path}: real {truth}, here {found}")),
    }
}
