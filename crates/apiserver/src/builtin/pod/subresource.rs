//! The pure pieces of a pod's further subresources: `ephemeralcontainers`, `resize`, `binding`.
//!
//! Eviction is in [`crate::builtin::policy::eviction`].

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{check, condition, difference, internal, quality, update};
use crate::field::{FieldError, FieldErrors};
use crate::status::{Outcome, Status};
use crate::value::{copy, has, items, items_mut, map, put, slot, take, text};

/// Metadata that these subresources leave alone.
const KEPT: [&str; 5] = [
    "metadata.labels",
    "metadata.annotations",
    "metadata.finalizers",
    "metadata.ownerReferences",
    "metadata.deletionTimestamp",
];

/// Before an update of `ephemeralcontainers`: everything else stays as it was.
pub fn prepare_ephemeral(pod: &mut Value, old: &Value) {
    let containers = crate::value::at(pod, "spec.ephemeralContainers").cloned();
    for part in ["spec", "status"].iter().chain(&KEPT) {
        copy(pod, old, part);
    }
    match containers {
        Some(containers) => put(pod, "spec.ephemeralContainers", containers),
        None => {
            take(pod, "spec.ephemeralContainers");
        }
    }
}

/// Judges an update of `ephemeralcontainers`.
pub fn validate_ephemeral(pod: &Value, old: &Value) -> FieldErrors {
    const PATH: &str = "spec.ephemeralContainers";
    let mut errors = FieldErrors::new();
    update::validate_common(&mut errors, pod);
    if is_mirror(old) {
        let why = "static pods do not support ephemeral containers";
        return vec![FieldError::forbidden("", why)];
    }
    for before in items(old, PATH) {
        let name = text(before, "name");
        let shown = crate::field::quote(name);
        match items(pod, PATH).iter().find(|c| text(c, "name") == name) {
            None => errors.push(FieldError::forbidden(
                PATH,
                format!("existing ephemeral containers {shown} may not be removed\n"),
            )),
            Some(new) if new != before => {
                let lines = |c: &Value| internal::render_lines("EphemeralContainer", c);
                let difference = difference::unified(&lines(before), &lines(new));
                errors.push(FieldError::forbidden(
                    PATH,
                    format!(
                        "existing ephemeral containers {shown} may not be changed\n{difference}"
                    ),
                ));
            }
            Some(_) => {}
        }
    }
    errors
}

fn is_mirror(pod: &Value) -> bool {
    map(pod, "metadata.annotations").is_some_and(|a| a.contains_key("kubernetes.io/config.mirror"))
}

/// Before an update of `resize`: only resources and resize policies change.
pub fn prepare_resize(pod: &mut Value, old: &Value) {
    let lists = ["spec.containers", "spec.initContainers"];
    let same_names = lists.iter().all(|list| {
        let names = |p: &Value| -> Vec<String> {
            let all = items(p, list).iter();
            all.map(|c| text(c, "name").to_owned()).collect()
        };
        names(pod) == names(old)
    });
    if !same_names {
        return;
    }
    let mut next = old.get("spec").cloned().unwrap_or_default();
    for list in ["containers", "initContainers"] {
        let asked = items(pod, &format!("spec.{list}"));
        for (container, asked) in items_mut(&mut next, list).iter_mut().zip(asked) {
            for field in ["resources", "resizePolicy"] {
                copy(container, asked, field);
            }
        }
    }
    let asked = pod.get("spec").cloned().unwrap_or_default();
    copy(&mut next, &asked, "resources");
    for part in ["status"].iter().chain(&KEPT) {
        copy(pod, old, part);
    }
    put(pod, "spec", next);
}

/// Judges an update of `resize`.
pub fn validate_resize(pod: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    update::validate_common(&mut errors, pod);
    if is_mirror(old) {
        return vec![FieldError::forbidden("", "static pods cannot be resized")];
    }
    if text(old, "spec.os.name") == "windows" {
        return vec![FieldError::forbidden("", "windows pods cannot be resized")];
    }
    let nothing = Value::Null;
    if quality::class(pod.get("spec").unwrap_or(&nothing)) != text(old, "status.qosClass") {
        errors.push(FieldError::invalid_str(
            "spec",
            text(pod, "status.qosClass"),
            "Pod QOS Class may not change as a result of resizing",
        ));
    }
    let running = items(old, "status.containerStatuses")
        .iter()
        .find(|c| has(c, "state.running"));
    if running.is_some_and(|c| !has(c, "resources")) {
        errors.push(FieldError::forbidden(
            "spec",
            "Pod running on node without support for resize",
        ));
    }
    if same_order(&mut errors, pod, old) {
        for list in ["spec.initContainers", "spec.containers"] {
            validate_resized(&mut errors, pod, old, list);
        }
    }
    errors
}

fn same_order(errors: &mut FieldErrors, pod: &Value, old: &Value) -> bool {
    let before = errors.len();
    for list in ["containers", "initContainers"] {
        let path = format!("spec.{list}");
        let (new, was) = (items(pod, &path), items(old, &path));
        if new.len() != was.len() {
            let why = format!("{list} may not be added or removed on resize");
            errors.push(FieldError::forbidden(path, why));
            continue;
        }
        for (i, (new, was)) in new.iter().zip(was).enumerate() {
            if text(new, "name") != text(was, "name") {
                let why = format!("{list} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(format!("{path}[{i}].name"), why));
            }
        }
    }
    errors.len() == before
}

fn validate_resized(errors: &mut FieldErrors, pod: &Value, old: &Value, list: &str) {
    for (i, (new, was)) in items(pod, list).iter().zip(items(old, list)).enumerate() {
        if list == "spec.initContainers" && text(was, "restartPolicy") != "Always" {
            if new != was {
                errors.push(FieldError::forbidden(
                    "spec",
                    "resources for non-sidecar init containers are immutable",
                ));
            }
            continue;
        }
        let mut masked = new.clone();
        for kind in ["requests", "limits"] {
            let path = format!("resources.{kind}");
            let (now, before) = (map(new, &path), map(was, &path));
            let gone = before
                .into_iter()
                .flatten()
                .any(|(name, _)| now.is_none_or(|n| !n.contains_key(name)));
            if gone {
                errors.push(FieldError::forbidden(
                    format!("{list}[{i}].{path}"),
                    format!("resource {kind} cannot be removed"),
                ));
            }
            mask(&mut masked, was, &path);
        }
        copy(&mut masked, was, "resizePolicy");
        if masked != *was {
            let why = "only cpu and memory resources are mutable";
            errors.push(FieldError::forbidden("spec", why));
        }
    }
}

/// Puts back processor and memory, which may change.
fn mask(container: &mut Value, was: &Value, path: &str) {
    let before = map(was, path).cloned().unwrap_or_default();
    let mut amounts = map(container, path).cloned().unwrap_or_default();
    for name in ["cpu", "memory"] {
        amounts.remove(name);
        if let Some(value) = before.get(name) {
            amounts.insert(name.to_owned(), value.clone());
        }
    }
    if amounts.is_empty() {
        take(container, path);
    } else {
        put(container, path, Value::Object(amounts));
    }
}

/// Judges a `Binding` for the pod of this name. As in the real server, a bad target is a 500.
pub fn validate_binding(binding: &Value, name: &str) -> Outcome<()> {
    if text(binding, "metadata.name") != name {
        let why = "name in URL does not match name in Binding object";
        return Err(Box::new(Status::bad_request(why)));
    }
    let mut errors = FieldErrors::new();
    let kind = text(binding, "target.kind");
    if !kind.is_empty() && kind != "Node" {
        let kinds = ["Node", "<empty>"];
        errors.push(FieldError::not_supported_text(
            "target.kind",
            &kind.into(),
            &kinds,
        ));
    }
    let nothing = Value::Null;
    let target = binding.get("target").unwrap_or(&nothing);
    check::required(&mut errors, target, "target", "name");
    if errors.is_empty() {
        return Ok(());
    }
    let text = crate::field::aggregate(&errors);
    Err(Box::new(Status::failure(500, "", text)))
}

/// Gives the pod its node. Preconditions (uid, resourceVersion) are the caller's business.
pub fn bind(pod: &mut Value, binding: &Value, now: Timestamp) -> Outcome<()> {
    let name = text(pod, "metadata.name").to_owned();
    let node = text(pod, "spec.nodeName");
    let refused = if has(pod, "metadata.deletionTimestamp") {
        Some(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ))
    } else if !node.is_empty() {
        let node = crate::field::quote(node);
        Some(format!("pod {name} is already assigned to node {node}"))
    } else if items(pod, "spec.schedulingGates").is_empty() {
        None
    } else {
        Some(format!("pod {name} has non-empty .spec.schedulingGates"))
    };
    if let Some(why) = refused {
        return Err(Box::new(Status::conflict("", "pods/binding", &name, &why)));
    }
    put(pod, "spec.nodeName", text(binding, "target.name"));
    take(pod, "status.nominatedNodeName");
    for field in ["metadata.annotations", "metadata.labels"] {
        let Some(more) = map(binding, field).filter(|m| !m.is_empty()) else {
            continue;
        };
        if let Some(target) = slot(pod, field) {
            if target.is_null() {
                *target = Value::Object(Map::new());
            }
            if let Some(target) = target.as_object_mut() {
                target.extend(more.clone());
            }
        }
    }
    condition::set(pod, "PodScheduled", "True", "", "", now);
    Ok(())
}

/// What a successful binding or eviction answers.
pub fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}
