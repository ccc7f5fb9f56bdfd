//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::quota::quantity_value;
use crate::builtin::cells;
use crate::builtin::checks::{self, child, each, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{Fault, FieldError, FieldErrors, quote};
use crate::resource::{Context, Part};
use crate::value;

/// The taint that admission puts on new nodes, until somebody says that they are ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";

const FIXED_CIDR: &str = "node updates may not change podCIDR except from \"\" to valid";

/// The rules of nodes. Unlike most kinds, a new node keeps the status it comes with.
pub const RULES: Rules = Rules {
    status: false,
    default,
    prepare_create,
    prepare_update,
    validate: |object, _| validate(object),
    validate_update,
    warnings,
    selectable: &[("spec.unschedulable", |o| {
        value::flag(o, "spec.unschedulable").to_string()
    })],
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Roles", "string", 0),
        ("Age", "string", 0),
        ("Version", "string", 0),
        ("Internal-IP", "string", 1),
        ("External-IP", "string", 1),
        ("OS-Image", "string", 1),
        ("Kernel-Version", "string", 1),
        ("Container-Runtime", "string", 1),
    ],
    cells,
    reset: |part| match part {
        Part::Main => vec!["status"],
        Part::Status => vec!["spec"],
        Part::Scale => Vec::new(),
    },
    ..PLAIN
};

fn default(object: &mut Value) {
    if !value::has(object, "status.allocatable")
        && let Some(capacity) = value::at(object, "status.capacity").cloned()
    {
        value::put(object, "status.allocatable", capacity);
    }
    // `podCIDR` is the first of `podCIDRs`; clients may set either.
    let single = value::text(object, "spec.podCIDR").to_owned();
    let first = value::items(object, "spec.podCIDRs").first().cloned();
    match first {
        None if !single.is_empty() => value::put(object, "spec.podCIDRs", json!([single])),
        Some(first) => value::put(object, "spec.podCIDR", first),
        None => (),
    }
}

fn prepare_create(object: &mut Value, _cx: &Context<'_>) {
    value::take(object, "spec.configSource");
    value::take(object, "status.config");
    let mut taints = value::items(object, "spec.taints").to_vec();
    let marked =
        |t: &Value| value::text(t, "key") == NOT_READY && value::text(t, "effect") == "NoSchedule";
    if !taints.iter().any(marked) {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        value::put(object, "spec.taints", taints);
    }
}

fn prepare_update(part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
    let kept = if part == Part::Status {
        "spec"
    } else {
        "status"
    };
    value::copy(object, old, kept);
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = taints(object);
    errors.extend(resources(object));
    for (at, cidr) in each(object, "", "spec.podCIDRs") {
        errors.extend(checks::cidr(&at, cidr.as_str().unwrap_or_default()));
    }
    let cidrs = value::items(object, "spec.podCIDRs");
    let v6 = |c: &&Value| c.as_str().is_some_and(|t| t.contains(':'));
    if cidrs.len() > 1 && (cidrs.len() > 2 || cidrs.iter().filter(v6).count() != 1) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(
            "spec.podCIDRs",
            &cidrs.to_vec().into(),
            detail,
        ));
    }
    errors
}

/// Taints are complained about below `metadata`, as in the real server.
fn taints(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, taint) in value::items(object, "spec.taints").iter().enumerate() {
        let at = format!("metadata.taints[{i}]");
        let field = |name| value::text(taint, name);
        let (key, label, effect) = (field("key"), field("value"), field("effect"));
        errors.extend(invalid_texts(
            &child(&at, "key"),
            key,
            names::label_key(key),
        ));
        let wrong = names::label_value(label);
        if !wrong.is_empty() {
            let path = child(&at, "value");
            errors.push(FieldError::invalid_str(path, label, wrong.join(";")));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.extend(checks::one_of(&child(&at, "effect"), effect, &effects));
        if !seen.insert((effect, key)) {
            let added = value::at(taint, "timeAdded").unwrap_or(&Value::Null);
            errors.push(FieldError {
                fault: Fault::Duplicate,
                path: at,
                shown: format!(
                    "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{added}}}",
                    quote(key),
                    quote(label),
                    quote(effect)
                ),
                detail: "taints must be unique by key and effect pair".to_owned(),
            });
        }
    }
    errors
}

fn resources(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    for list in ["status.capacity", "status.allocatable"] {
        for (name, quantity) in value::map(object, list).into_iter().flatten() {
            errors.extend(quantity_value(&format!("{list}.{name}"), name, quantity));
        }
    }
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = if part == Part::Status {
        Vec::new()
    } else {
        validate(object)
    };
    errors.extend(resources(object));
    errors.extend(addresses(object));
    let (new, before) = (
        value::items(object, "spec.podCIDRs"),
        value::items(old, "spec.podCIDRs"),
    );
    let changes = if before.is_empty() {
        0
    } else if new.len() == before.len() {
        new.iter().zip(before).filter(|(n, o)| n != o).count()
    } else {
        1
    };
    errors.extend((0..changes).map(|_| FieldError::forbidden("spec.podCIDRs", FIXED_CIDR)));
    let provider = value::text(old, "spec.providerID");
    if !provider.is_empty() && provider != value::text(object, "spec.providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", detail));
    }
    errors.extend(taints(object));
    if value::text(object, "spec.externalID") != value::text(old, "spec.externalID") {
        errors.push(FieldError::forbidden(
            "spec.externalID",
            "may not be updated",
        ));
    }
    errors
}

fn addresses(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, address) in each(object, "", "status.addresses") {
        let key = (
            value::text(address, "type"),
            value::text(address, "address"),
        );
        if !seen.insert(key) {
            errors.push(FieldError {
                fault: Fault::Duplicate,
                path: at,
                shown: format!("{{\"Type\":{},\"Address\":{}}}", quote(key.0), quote(key.1)),
                detail: String::new(),
            });
        }
    }
    errors
}

fn warnings(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    if value::has(object, "spec.configSource") {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if !value::text(object, "spec.externalID").is_empty() {
        let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        out.push(text.to_owned());
    }
    for (at, cidr) in each(object, "", "spec.podCIDRs") {
        let cidr = cidr.as_str().unwrap_or_default();
        out.extend(names::cidr_warnings(&at, cidr));
    }
    out
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let ready = value::items(object, "status.conditions")
        .iter()
        .rev()
        .find(|c| value::text(c, "type") == "Ready");
    let mut status = match ready.map(|c| value::text(c, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if value::flag(object, "spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let fact = |name: &str| {
        let text = value::text(object, &format!("status.nodeInfo.{name}"));
        if text.is_empty() { "<unknown>" } else { text }
    };
    let mut kernel = fact("kernelVersion").to_owned();
    let arch = value::text(object, "status.nodeInfo.architecture");
    if !arch.is_empty() {
        kernel = format!("{kernel} ({arch})");
    }
    vec![
        cells::name(object),
        status.into(),
        roles(object).into(),
        cells::age(object, cx),
        value::text(object, "status.nodeInfo.kubeletVersion").into(),
        address(object, "InternalIP").into(),
        address(object, "ExternalIP").into(),
        fact("osImage").into(),
        kernel.into(),
        fact("containerRuntimeVersion").into(),
    ]
}

fn address<'a>(object: &'a Value, kind: &str) -> &'a str {
    value::items(object, "status.addresses")
        .iter()
        .find(|a| value::text(a, "type") == kind)
        .map_or("<none>", |a| value::text(a, "address"))
}

fn roles(object: &Value) -> String {
    let mut roles = BTreeSet::new();
    for (key, label) in value::map(object, "metadata.labels").into_iter().flatten() {
        let label = label.as_str().unwrap_or_default();
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => {
                roles.insert(role);
            }
            None if key == "kubernetes.io/role" && !label.is_empty() => {
                roles.insert(label);
            }
            _ => (),
        }
    }
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        Vec::from_iter(roles).join(",")
    }
}
