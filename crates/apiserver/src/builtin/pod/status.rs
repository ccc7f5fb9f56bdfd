//! Which changes of a pod's status are allowed.

use serde_json::Value;

use super::{check, update};
use crate::field::{FieldError, FieldErrors};
use crate::value::{has, integer, items, items_mut, put, text};

/// Keeps observed generations that a client left out.
pub(super) fn keep_generations(pod: &mut Value, old: &Value) {
    const FIELD: &str = "observedGeneration";
    let absent = |object: &Value, path: &str| integer(object, path).unwrap_or(0) == 0;
    if absent(pod, "status.observedGeneration")
        && let Some(before) = integer(old, "status.observedGeneration")
    {
        put(pod, "status.observedGeneration", before);
    }
    let mut before: Vec<&Value> = items(old, "status.conditions").iter().collect();
    for condition in items_mut(pod, "status.conditions") {
        let kind = text(condition, "type");
        let Some(place) = before.iter().position(|c| text(c, "type") == kind) else {
            continue;
        };
        let was = before.remove(place);
        if absent(condition, FIELD)
            && let Some(generation) = integer(was, FIELD)
        {
            put(condition, FIELD, generation);
        }
    }
}

/// Judges a change of the status.
pub(super) fn validate(errors: &mut FieldErrors, pod: &Value, old: &Value) {
    update::validate_annotation_changes(errors, pod, old);
    validate_conditions(errors, pod);
    validate_nomination(errors, pod, old);
    if let Some(generation) = integer(pod, "status.observedGeneration").filter(|g| *g < 0) {
        errors.push(check::number(
            "status.observedGeneration",
            generation,
            "must be a non-negative integer",
        ));
    }
    let class = |p: &Value| text(p, "status.qosClass").to_owned();
    if class(pod) != class(old) {
        errors.push(FieldError::invalid_str(
            "status.qosClass",
            &class(pod),
            "field is immutable",
        ));
    }
    for (list, containers) in [
        ("containerStatuses", Some("spec.containers")),
        ("initContainerStatuses", Some("spec.initContainers")),
        ("ephemeralContainerStatuses", None),
    ] {
        validate_transitions(errors, pod, old, list, containers);
    }
    validate_addresses(errors, pod, old, "podIPs");
    validate_addresses(errors, pod, old, "hostIPs");
}

fn validate_conditions(errors: &mut FieldErrors, pod: &Value) {
    for (i, condition) in items(pod, "status.conditions").iter().enumerate() {
        let path = format!("status.conditions[{i}]");
        if let Some(generation) = integer(condition, "observedGeneration").filter(|g| *g < 0) {
            errors.push(check::number(
                &format!("{path}.observedGeneration"),
                generation,
                "must be a non-negative integer",
            ));
        }
        let kind = text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            check::qualified_name(errors, &format!("{path}.Type"), kind);
        }
    }
}

fn validate_nomination(errors: &mut FieldErrors, pod: &Value, old: &Value) {
    const PATH: &str = "status.nominatedNodeName";
    let (new, before) = (text(pod, PATH), text(old, PATH));
    if new.is_empty() || new == before {
        return;
    }
    check::dns_subdomain(errors, PATH, new);
    if !text(old, "spec.nodeName").is_empty() {
        errors.push(FieldError::forbidden(
            PATH,
            "may not be set on pods that are already bound to a node",
        ));
    }
}

/// A container that ended and is not to be restarted stays ended.
fn validate_transitions(
    errors: &mut FieldErrors,
    pod: &Value,
    old: &Value,
    list: &str,
    containers: Option<&str>,
) {
    let path = format!("status.{list}");
    let every = ["spec.containers", "spec.initContainers"];
    let all_restart = containers.is_some()
        && every.iter().any(|l| {
            items(old, l).iter().any(|c| {
                items(c, "restartPolicyRules")
                    .iter()
                    .any(|r| text(r, "action") == "RestartAllContainers")
            })
        });
    if all_restart {
        return;
    }
    for (i, was) in items(old, &path).iter().enumerate() {
        if !has(was, "state.terminated") {
            continue;
        }
        let name = text(was, "name");
        let back = items(pod, &path)
            .iter()
            .any(|s| text(s, "name") == name && !has(s, "state.terminated"));
        let code = integer(was, "state.terminated.exitCode").unwrap_or(0);
        let container =
            containers.and_then(|l| items(old, l).iter().find(|c| text(c, "name") == name));
        if back && !container.is_some_and(|c| restarts(c, old, code)) {
            errors.push(FieldError::forbidden(
                format!("{path}[{i}].state"),
                "may not be transitioned to non-terminated state",
            ));
        }
    }
}

/// Whether a container that ended with this code is to be restarted.
fn restarts(container: &Value, pod: &Value, code: i64) -> bool {
    for rule in items(container, "restartPolicyRules") {
        let listed = items(rule, "exitCodes.values")
            .iter()
            .any(|v| v.as_i64() == Some(code));
        let applies = match text(rule, "exitCodes.operator") {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        };
        if applies && text(rule, "action") == "Restart" {
            return true;
        }
    }
    let own = text(container, "restartPolicy");
    let policy = if own.is_empty() {
        text(pod, "spec.restartPolicy")
    } else {
        own
    };
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn validate_addresses(errors: &mut FieldErrors, pod: &Value, old: &Value, field: &str) {
    let path = format!("status.{field}");
    let new = items(pod, &path);
    if field == "hostIPs"
        && let Some(first) = new.first()
        && text(pod, "status.hostIP") != text(first, "ip")
    {
        errors.push(FieldError::invalid_str(
            format!("{path}[0].ip"),
            text(first, "ip"),
            "must be equal to `hostIP`",
        ));
    }
    for (i, address) in new.iter().enumerate() {
        let ip = text(address, "ip");
        if !items(old, &path).iter().any(|a| text(a, "ip") == ip) {
            check::ip(errors, &format!("{path}[{i}]"), ip);
        }
    }
    let six = |a: &Value| text(a, "ip").contains(':');
    if let [first, rest @ ..] = new
        && !rest.is_empty()
        && (rest.len() > 1 || rest.iter().any(|a| six(a) == six(first)))
    {
        let shown: Vec<String> = new
            .iter()
            .map(|a| format!("{{\"IP\":{}}}", crate::field::quote(text(a, "ip"))))
            .collect();
        errors.push(check::shown(
            &path,
            format!("[{}]", shown.join(",")),
            "may specify no more than one IP for each IP family",
        ));
    }
}
