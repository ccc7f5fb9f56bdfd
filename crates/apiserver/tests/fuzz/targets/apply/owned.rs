//! Who owns what, as `metadata.managedFields` shows it: paths of the steps of `FieldsV1`, read without the server's code.

use std::collections::BTreeSet;

use serde_json::Value;

/// Paths, step by step as on the wire: `["f:spec", "k:{\"name\":\"a\"}"]`.
pub(super) type Paths = BTreeSet<Vec<String>>;

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// What a manager owns.
pub(super) fn owned_by(object: &Value, manager: &str) -> Paths {
    let mut paths = Paths::new();
    for entry in entries(object).filter(|entry| entry["manager"] == manager) {
        collect(&entry["fieldsV1"], &mut Vec::new(), &mut paths);
    }
    paths
}

/// What anybody owns.
pub(super) fn owned_by_all(object: &Value) -> Paths {
    let mut paths = Paths::new();
    for entry in entries(object) {
        collect(&entry["fieldsV1"], &mut Vec::new(), &mut paths);
    }
    paths
}

fn collect(fields: &Value, path: &mut Vec<String>, paths: &mut Paths) {
    for (step, below) in fields.as_object().into_iter().flatten() {
        if step == "." {
            paths.insert(path.clone());
            continue;
        }
        path.push(step.clone());
        if below.as_object().is_none_or(serde_json::Map::is_empty) {
            paths.insert(path.clone());
        } else {
            collect(below, path, paths);
        }
        path.pop();
    }
}

/// Whether a path is another one or leads below it.
pub(super) fn is_below(path: &[String], above: &[String]) -> bool {
    path.starts_with(above)
}

/// Whether there is something at a path.
pub(super) fn exists(object: &Value, path: &[String]) -> bool {
    let mut here = object;
    for step in path {
        let Some((kind, rest)) = step.split_at_checked(2) else {
            return false;
        };
        let parse = || serde_json::from_str::<Value>(rest).unwrap_or_default();
        let items = || here.as_array().into_iter().flatten();
        let below = match kind {
            "f:" => here.get(rest),
            "v:" => items().find(|item| **item == parse()),
            "i:" => here.get(rest.parse::<usize>().unwrap_or(usize::MAX)),
            _ => {
                let keys = parse();
                // A list that goes by protocol goes by port as well: an item without one is another.
                let by_port = ["port", "containerPort"].map(|name| (name, keys.get(name)));
                let fits = |item: &Value| {
                    let is_same = |(name, value): (&String, &Value)| match item.get(name) {
                        Some(found) => found == value,
                        // A key that is left out has its default.
                        None => name == "protocol" && value == "TCP",
                    };
                    let other = keys.get("protocol").is_some()
                        && by_port.iter().any(|(name, key)| *key != item.get(name));
                    !other && keys.as_object().into_iter().flatten().all(is_same)
                };
                items().find(|item| fits(item))
            }
        };
        match below {
            Some(below) => here = below,
            None => return false,
        }
    }
    true
}

/// A path as messages show it: `.spec.ports[port=80,protocol="TCP"].name`.
pub(super) fn text_of(path: &[String]) -> String {
    path.iter().map(|step| step_text(step)).collect()
}

fn step_text(step: &str) -> String {
    let (kind, rest) = step.split_at_checked(2).unwrap_or_default();
    let parsed = serde_json::from_str::<Value>(rest).unwrap_or_default();
    match kind {
        "f:" => format!(".{rest}"),
        "v:" => format!("[={parsed}]"),
        "i:" => format!("[{rest}]"),
        _ => {
            let keys: Vec<String> = parsed
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("[{}]", keys.join(","))
        }
    }
}
