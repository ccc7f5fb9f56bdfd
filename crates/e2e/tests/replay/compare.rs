//! Two answers, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use slipway_e2e::record::Content;

use crate::drawn::Drawn;

/// What stands for a field that is not there: another thing than one that is null.
pub(crate) const ABSENT: &str = "(absent)";

/// A place at which answers could be compared.
pub(crate) enum Place<'a> {
    /// A field of the object at `path`.
    Field {
        path: &'a str,
        key: &'a str,
        /// The object that has the field.
        of: &'a Map<String, Value>,
        /// Whether it is an object from before the recording.
        is_old: bool,
    },
    /// The order of the list at this path.
    Order(&'a str),
    /// The whole answer to a request for this path.
    Body(&'a str),
}

/// Something whose value is not compared: that it is there is.
pub(crate) struct Mask {
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
    hides: fn(&Place<'_>) -> bool,
}

/// What is not compared, and why. There is no other mask: these are asked, and these are printed.
pub(crate) const MASKS: &[Mask] = &[
    Mask {
        what: "metadata.resourceVersion of lists",
        why: "each server counts its own writes, and makes some that nobody asked for",
        hides: |place| is_field(place, "resourceVersion", |of| !of.contains_key("uid")),
    },
    Mask {
        what: "metadata.creationTimestamp, metadata.deletionTimestamp",
        why: "the moment of the write",
        hides: |place| {
            is_field(place, "creationTimestamp", |_| true)
                || is_field(place, "deletionTimestamp", |_| true)
        },
    },
    Mask {
        what: "managedFields[].time",
        why: "the moment of the write",
        hides: |place| matches!(place, Place::Field { path, key: "time", .. } if path.contains(".managedFields[")),
    },
    Mask {
        what: "the order of managedFields",
        why: "by time first",
        hides: |place| matches!(place, Place::Order(path) if path.ends_with(".managedFields")),
    },
    Mask {
        what: "metadata.continue of pages",
        why: "a server's own token; used in later requests",
        hides: |place| is_field(place, "continue", |_| true),
    },
    Mask {
        what: "managedFields of objects from before the recording",
        why: "who wrote them is not in the recording",
        hides: |place| {
            matches!(
                place,
                Place::Field {
                    key: "managedFields",
                    is_old: true,
                    ..
                }
            )
        },
    },
    Mask {
        what: "lastTransitionTime of conditions that the server sets (definitions; PodScheduled by binding)",
        why: "the moment of the write",
        hides: |place| {
            matches!(place, Place::Field { path, key: "lastTransitionTime", .. }
                if path.contains(".status.conditions[") && is_set_by_server(path))
        },
    },
    Mask {
        what: "the documents below /openapi/",
        why: "the recorder keeps none; that there is one with paths is checked, and `conformance` compares them with a real server's",
        hides: |place| matches!(place, Place::Body(path) if path.starts_with("/openapi/")),
    },
];

/// What a server draws, which is exchanged and then compared.
pub(crate) const EXCHANGED: &[(&str, &str)] = &[
    (
        "metadata.uid, spec.clusterIP",
        "the first sight of one is taken; after it the same object has the same one everywhere, and no other has it",
    ),
    (
        "metadata.resourceVersion of objects",
        "likewise: the same write has the same version wherever it is seen",
    ),
    (
        "metadata.name after generateName",
        "the replay asks for the recorded name",
    ),
];

/// What no recording has, so that nobody compares it.
pub(crate) const UNRECORDED: &[(&str, &str)] = &[
    (
        "headers of answers",
        "`conformance` compares the type, warnings and when to try again",
    ),
    (
        "objects in events of watches",
        "which of each object come in which order, and that they were asked for, is compared",
    ),
];

fn is_field(place: &Place<'_>, name: &str, of: fn(&Map<String, Value>) -> bool) -> bool {
    match place {
        Place::Field {
            path,
            key,
            of: object,
            ..
        } => *key == name && path.ends_with(".metadata") && of(object),
        _ => false,
    }
}

/// Whether the value at a place is not compared.
pub(crate) fn is_masked(place: &Place<'_>) -> bool {
    MASKS.iter().any(|mask| (mask.hides)(place))
}

/// A place where answers differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) recorded: Value,
    pub(crate) found: Value,
}

impl Difference {
    pub(crate) fn new(path: &str, recorded: impl Into<Value>, found: impl Into<Value>) -> Self {
        Self {
            path: path.to_owned(),
            recorded: recorded.into(),
            found: found.into(),
        }
    }
}

/// All places where `found` differs from what was recorded.
pub(crate) fn differences(recorded: &Value, found: &Value, drawn: &Drawn) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("", recorded, found, drawn, &mut all);
    all
}

/// Where answers differ that are not both JSON.
pub(crate) fn bodies(asked: &str, recorded: &Content, found: &Content) -> Option<Difference> {
    let holds = if is_masked(&Place::Body(asked)) {
        // Nobody recorded the document, but there must be one.
        matches!(found, Content::Json(found) if found.get("paths").is_some_and(Value::is_object))
    } else {
        recorded == found
    };
    (!holds).then(|| Difference::new("body", shown(recorded), shown(found)))
}

fn shown(content: &Content) -> Value {
    match content {
        Content::Empty => "(nothing)".into(),
        Content::Json(value) => value.clone(),
        Content::Bytes(text) => text.as_str().into(),
    }
}

fn compare(path: &str, recorded: &Value, found: &Value, drawn: &Drawn, all: &mut Vec<Difference>) {
    match (recorded, found) {
        (Value::Object(a), Value::Object(b)) => fields(path, a, b, drawn, all),
        (Value::Array(a), Value::Array(b)) => items(path, a, b, drawn, all),
        (a, b) if a == b => {}
        (a, b) => all.push(Difference::new(path, a.clone(), b.clone())),
    }
}

fn fields(
    path: &str,
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    drawn: &Drawn,
    all: &mut Vec<Difference>,
) {
    let uid = b.get("uid").and_then(Value::as_str);
    let is_old = uid.is_some_and(|uid| drawn.is_old(uid));
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys {
        let at = format!("{path}.{key}");
        match (a.get(key), b.get(key)) {
            (Some(one), Some(other)) => {
                let of = a;
                if !is_masked(&Place::Field {
                    path,
                    key,
                    of,
                    is_old,
                }) {
                    compare(&at, one, other, drawn, all);
                }
            }
            (one, other) => {
                let told = |value: Option<&Value>| value.cloned().unwrap_or_else(|| ABSENT.into());
                all.push(Difference::new(&at, told(one), told(other)));
            }
        }
    }
}

fn items(path: &str, a: &[Value], b: &[Value], drawn: &Drawn, all: &mut Vec<Difference>) {
    let (a, b) = (named(a), named(b));
    let ours: BTreeMap<&String, &Value> = b.iter().map(|(key, item)| (key, *item)).collect();
    let theirs: BTreeSet<&String> = a.iter().map(|(key, _)| key).collect();
    for (key, item) in &a {
        let at = format!("{path}[{key}]");
        match ours.get(key) {
            Some(found) => compare(&at, item, found, drawn, all),
            None => all.push(Difference::new(&at, (*item).clone(), ABSENT)),
        }
    }
    for (key, item) in b.iter().filter(|(key, _)| !theirs.contains(key)) {
        let at = format!("{path}[{key}]");
        all.push(Difference::new(&at, ABSENT, (*item).clone()));
    }
    let one: Vec<&String> = a.iter().map(|(key, _)| key).collect();
    let one: Vec<&String> = one
        .into_iter()
        .filter(|key| ours.contains_key(key))
        .collect();
    let other = b.iter().map(|(key, _)| key);
    let other: Vec<&String> = other.filter(|key| theirs.contains(key)).collect();
    if one != other && !is_masked(&Place::Order(path)) {
        let told =
            |keys: &[&String]| Value::from(keys.iter().map(|key| key.as_str()).collect::<Vec<_>>());
        all.push(Difference::new(
            &format!("{path}[order]"),
            told(&one),
            told(&other),
        ));
    }
}

/// Conditions of definitions, and that of a pod that was bound.
fn is_set_by_server(path: &str) -> bool {
    [
        "PodScheduled",
        "Established",
        "NamesAccepted",
        "NonStructuralSchema",
        "KubernetesAPIApprovalPolicyConformant",
    ]
    .iter()
    .any(|kind| path.ends_with(&format!("[{kind}]")))
}

/// The items of a list by what tells them apart, or else by their place.
pub(crate) fn keyed(items: &[Value]) -> BTreeMap<String, &Value> {
    named(items).into_iter().collect()
}

/// The same, in their order.
fn named(items: &[Value]) -> Vec<(String, &Value)> {
    let by_name: Vec<(String, &Value)> = items
        .iter()
        .filter_map(|item| Some((key(item)?, item)))
        .collect();
    let names: BTreeSet<&String> = by_name.iter().map(|(name, _)| name).collect();
    if names.len() == items.len() {
        return by_name;
    }
    let by_place = items.iter().enumerate();
    by_place
        .map(|(index, item)| (format!("{index:03}"), item))
        .collect()
}

fn key(item: &Value) -> Option<String> {
    if let Some(name) = item.pointer("/metadata/name").and_then(Value::as_str) {
        let namespace = item.pointer("/metadata/namespace").and_then(Value::as_str);
        return Some(format!("{}/{name}", namespace.unwrap_or_default()));
    }
    if let (Some(manager), Some(operation)) = (item.get("manager"), item.get("operation")) {
        let part = item.get("subresource").unwrap_or(&Value::Null);
        return Some(format!("{manager}{operation}{part}").replace('"', " "));
    }
    let names = [
        "resource",
        "subresource",
        "version",
        "groupVersion",
        "type",
        "name",
    ];
    let found = names.iter().find_map(|name| item.get(name));
    found.and_then(Value::as_str).map(str::to_owned)
}

/// The message of a refusal.
pub(crate) fn message(answer: &Content) -> String {
    let Content::Json(answer) = answer else {
        return String::new();
    };
    let text = answer.get("message").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
