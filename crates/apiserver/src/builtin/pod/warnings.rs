//! Warnings about pods and templates that are legal but probably not meant.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::amount;
use crate::builtin::names;
use crate::field::quote;
use crate::value::{has, integer, items, map, text};

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What a name that is no DNS label is told, where pods get their hostnames from it.
pub(crate) fn name(object: &Value, used_in: &str) -> Option<String> {
    let found = names::dns_label(text(object, "metadata.name"), false);
    (!found.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            found.join(" ")
        )
    })
}

/// Warnings for a pod (`path` is empty) or a template at `path`; `object` has `metadata` and `spec`.
pub(crate) fn about(object: &Value, path: &str) -> Vec<String> {
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("{path}.")
    };
    let nothing = Value::Null;
    let spec = object.get("spec").unwrap_or(&nothing);
    let spec_path = format!("{prefix}spec");
    let mut out = Vec::new();
    for (i, constraint) in items(spec, "topologySpreadConstraints").iter().enumerate() {
        if !has(constraint, "labelSelector") {
            out.push(format!(
                "{spec_path}.topologySpreadConstraints[{i}].labelSelector: a null labelSelector results in matching no pod"
            ));
        }
    }
    about_annotations(&mut out, object, &prefix);
    about_volumes(&mut out, spec, &spec_path);
    about_secrets(&mut out, spec, &spec_path);
    for list in LISTS {
        for (i, container) in items(spec, list).iter().enumerate() {
            about_container(&mut out, container, &format!("{spec_path}.{list}[{i}]"));
        }
    }
    about_ports(&mut out, spec, &spec_path);
    if integer(spec, "terminationGracePeriodSeconds").is_some_and(|g| g < 0) {
        out.push(format!(
            "{spec_path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    about_affinity(&mut out, spec, &spec_path);
    out
}

fn about_annotations(out: &mut Vec<String>, object: &Value, prefix: &str) {
    let deprecated = [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/unsafe-sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
    ];
    for (key, message) in deprecated {
        if map(object, "metadata.annotations").is_some_and(|a| a.contains_key(key)) {
            out.push(format!("{prefix}metadata.annotations[{key}]: {message}"));
        }
    }
}

fn about_volumes(out: &mut Vec<String>, spec: &Value, path: &str) {
    let gone = [
        (
            "photonPersistentDisk",
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        (
            "gitRepo",
            "deprecated in v1.11, and disabled by default in v1.33+",
        ),
        ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    for (i, volume) in items(spec, "volumes").iter().enumerate() {
        for (kind, message) in gone {
            if has(volume, kind) {
                out.push(format!("{path}.volumes[{i}].{kind}: {message}"));
            }
        }
    }
}

fn about_secrets(out: &mut Vec<String>, spec: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    for (list, field, what) in [
        ("hostAliases", "ip", "ip"),
        ("imagePullSecrets", "name", "name"),
    ] {
        seen.clear();
        for (i, item) in items(spec, list).iter().enumerate() {
            let value = text(item, field);
            if !seen.insert(value) {
                out.push(format!(
                    "{path}.{list}[{i}].{field}: duplicate {what} {}",
                    quote(value)
                ));
            }
        }
    }
    for (i, item) in items(spec, "imagePullSecrets").iter().enumerate() {
        if text(item, "name").is_empty() {
            out.push(format!(
                "{path}.imagePullSecrets[{i}].name: invalid empty name \"\""
            ));
        }
    }
}

fn about_container(out: &mut Vec<String>, container: &Value, path: &str) {
    for resource in ["memory", "ephemeral-storage"] {
        for kind in ["limits", "requests"] {
            let amounts = map(container, &format!("resources.{kind}"));
            if let Some(value) = amounts.and_then(|m| m.get(resource))
                && !amount::is_whole(value)
            {
                out.push(format!(
                    "{path}.resources.{kind}[{resource}]: fractional byte value {} is invalid, must be an integer",
                    quote(&amount::shown(value))
                ));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (i, variable) in items(container, "env").iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        let reference = format!("$({name})");
        let hides = has(variable, "valueFrom") || value == reference || !value.contains(&reference);
        if !seen.insert(name) && hides {
            out.push(format!(
                "{path}.env[{i}]: hides previous definition of {}, which may be dropped when using apply",
                quote(name)
            ));
        }
    }
}

/// Where a port is defined, and what it takes on the host.
type Place<'a> = (String, i64, &'a str);

fn about_ports(out: &mut Vec<String>, spec: &Value, path: &str) {
    let mut all: BTreeMap<(i64, &str), Vec<Place<'_>>> = BTreeMap::new();
    let mut names: Vec<(&str, String)> = Vec::new();
    let mut repeated = Vec::new();
    for list in LISTS {
        for (i, container) in items(spec, list).iter().enumerate() {
            for (j, port) in items(container, "ports").iter().enumerate() {
                let at = format!("{path}.{list}[{i}].ports[{j}]");
                let number = |field: &str| integer(port, field).unwrap_or(0);
                let (host, ip) = (number("hostPort"), text(port, "hostIP"));
                let key = (number("containerPort"), text(port, "protocol"));
                let others = all.entry(key).or_default();
                for (other, other_host, other_ip) in others.iter() {
                    let what = if (host, ip) == (*other_host, *other_ip) {
                        "duplicate"
                    } else if host == 0 || *other_host == 0 {
                        "overlapping"
                    } else if host == *other_host && ip.is_empty() != other_ip.is_empty() {
                        "dangerously ambiguous"
                    } else {
                        continue;
                    };
                    out.push(format!("{at}: {what} port definition with {other}"));
                }
                others.push((at.clone(), host, ip));
                let name = text(port, "name");
                if name.is_empty() {
                    continue;
                }
                match names.iter().find(|(n, _)| *n == name) {
                    Some((_, other)) => repeated.push(format!(
                        "{at}: duplicate port name {} with {other}, services and probes that select ports by name \
                         will use {other}",
                        quote(name)
                    )),
                    None => names.push((name, at)),
                }
            }
        }
    }
    out.extend(repeated);
}

fn about_affinity(out: &mut Vec<String>, spec: &Value, path: &str) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let required = format!("affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = format!("affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution");
        for (list, inner) in [(required, ""), (preferred, "podAffinityTerm.")] {
            for (i, term) in items(spec, &list).iter().enumerate() {
                if !has(term, &format!("{inner}labelSelector")) {
                    out.push(format!(
                        "{path}.{list}[{i}].{inner}labelSelector: a null labelSelector results in matching no pod"
                    ));
                }
            }
        }
    }
}
