//! What a client notices, against recordings of a real kube-apiserver (`testdata/`).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::schema::{Field, ListKind, Node, NodeId, PatchStrategy, Presence, Shape, Types};

/// A schema from an `OpenAPI` v3 document with the extensions that matter here.
pub(super) fn schema_of(document: &Value) -> Schema {
    let mut types = Types::default();
    let root = node_of(&mut types, document);
    Schema::new(Arc::new(types), root)
}

fn node_of(types: &mut Types, document: &Value) -> NodeId {
    let extension = |name: &str| document.get(format!("x-kubernetes-{name}"));
    let set = |name: &str| extension(name) == Some(&Value::Bool(true));
    let mut fields = BTreeMap::new();
    for (name, document) in value::map(document, "properties").into_iter().flatten() {
        let field = Field {
            node: node_of(types, document),
            required: false,
            presence: Presence::Optional,
            patch: PatchStrategy::default(),
            default: document.get("default").cloned(),
        };
        fields.insert(name.as_str().into(), field);
    }
    let shape = match value::text(document, "type") {
        "object" => Shape::Object,
        "array" => Shape::List,
        "string" => Shape::String,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "boolean" => Shape::Boolean,
        _ if set("int-or-string") => Shape::IntOrString,
        _ => Shape::Any,
    };
    let keys = extension("list-map-keys").and_then(Value::as_array);
    let list = match extension("list-type").and_then(Value::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(
            keys.into_iter()
                .flatten()
                .map(|key| key.as_str().unwrap().into())
                .collect(),
        ),
        _ => ListKind::Atomic,
    };
    let node = Node {
        shape,
        fields,
        values: document
            .get("additionalProperties")
            .map(|values| node_of(types, values)),
        items: document.get("items").map(|items| node_of(types, items)),
        list,
        atomic: extension("map-type") == Some(&json!("atomic")),
        preserve_unknown: set("preserve-unknown-fields"),
        embedded: set("embedded-resource"),
        ..Node::default()
    };
    types.push(node)
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn object(properties: impl Into<Value>) -> Value {
    let properties = properties.into();
    json!({ "type": "object", "properties": properties })
}

fn metadata() -> Value {
    let texts = json!({ "type": "object", "additionalProperties": text() });
    object(json!({
        "name": text(), "namespace": text(), "uid": text(), "resourceVersion": text(),
        "creationTimestamp": { "type": "string", "format": "date-time" },
        "generation": { "type": "integer" },
        "labels": texts, "annotations": texts,
        "finalizers": { "type": "array", "x-kubernetes-list-type": "set", "items": text() },
        "managedFields": { "type": "array", "items": { "type": "object" } },
    }))
}

fn whole(spec: &Value, status: &Value) -> Schema {
    schema_of(&object(json!({
        "apiVersion": text(), "kind": text(), "metadata": metadata(),
        "spec": spec, "status": status,
    })))
}

/// The custom resource of the recordings: one field for each way in which things merge. Who records defines it by the same file.
pub(super) fn widget() -> Schema {
    let document: Value = serde_json::from_str(include_str!("testdata/widget.json")).unwrap();
    let part = |name: &str| &document["properties"][name];
    whole(part("spec"), part("status"))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// The latest time in an object's entries: when the recorded server wrote it.
fn latest(object: &Value) -> Timestamp {
    value::items(object, "metadata.managedFields")
        .iter()
        .filter_map(|entry| value::text(entry, "time").parse().ok())
        .max()
        .unwrap_or(at(0))
}

/// What the server does to a widget after the merge: default the protocol of ports.
fn defaulted(object: &Value) -> Value {
    let mut object = object.clone();
    for item in value::items_mut(&mut object, "spec.items") {
        for port in value::items_mut(item, "ports") {
            value::put_default(port, "protocol", "TCP");
        }
    }
    object
}

fn entries(object: &Value) -> Value {
    value::at(object, "metadata.managedFields")
        .cloned()
        .unwrap_or_default()
}

/// Whether `b` is `a`, but for what the server adds by default.
fn within(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, _) => true,
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .all(|(name, a)| within(a, b.get(name).unwrap_or(&Value::Null))),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| within(a, b))
        }
        (Value::Array(a), Value::Null) => a.is_empty(),
        (Value::Object(a), Value::Null) => a.is_empty(),
        (a, b) => step::same(a, b),
    }
}

const AFTER_TRACKING: [&str; 5] = [
    "spec.clusterIP",
    "spec.clusterIPs",
    "spec.ipFamilies",
    "spec.ipFamilyPolicy",
    "metadata.finalizers",
];

struct Recorded<'a> {
    step: &'a Value,
    before: Option<&'a Value>,
    reset: &'a [&'a str],
    part: &'a str,
}

impl Recorded<'_> {
    fn replay(&self, schema: &Schema) {
        let (step, after) = (self.step, &self.step["after"]);
        let owner = Owner {
            manager: value::text(step, "manager"),
            operation: match value::text(step, "op") {
                "apply" => Operation::Apply,
                _ => Operation::Update,
            },
            api_version: value::text(after, "apiVersion"),
            subresource: value::text(step, "subresource"),
            now: latest(after),
        };
        match owner.operation {
            Operation::Apply => self.replay_apply(schema, &owner),
            Operation::Update => {
                let mut new = after.clone();
                if self.before.is_none() {
                    // What comes after tracking: allocation and admission.
                    for path in AFTER_TRACKING {
                        value::take(&mut new, path);
                    }
                }
                let sent = match value::text(step, "op") {
                    "merge" => self.before.map(entries).unwrap_or_default(),
                    _ => entries(&step["body"]),
                };
                value::put(&mut new, "metadata.managedFields", sent);
                track_update(schema, self.before, &mut new, &owner, self.reset);
                assert_eq!(entries(&new), entries(after), "{step:#}");
            }
        }
    }

    fn replay_apply(&self, schema: &Schema, owner: &Owner<'_>) {
        let (step, after) = (self.step, &self.step["after"]);
        let owner = Owner {
            api_version: value::text(&step["body"], "apiVersion"),
            ..*owner
        };
        let force = value::flag(step, "force");
        let result = apply(
            schema,
            self.before,
            &step["body"],
            &owner,
            force,
            self.reset,
        );
        match (result, step["code"].as_u64()) {
            (Err(status), Some(409)) => {
                let mut expected: Status = serde_json::from_value(after.clone()).unwrap();
                // The server lists the causes manager by manager in no order.
                let details = expected.details.as_mut().unwrap();
                details.causes.sort_by_key(|cause| {
                    let place = status.details.as_ref().unwrap().causes.iter();
                    place.clone().position(|other| other == cause)
                });
                assert_eq!(*status, expected, "{step:#}");
            }
            (Err(status), _) => panic!("{status}: {step:#}"),
            (Ok(_), Some(409)) => panic!("no conflict: {step:#}"),
            (Ok(object), _) => {
                let object = defaulted(&object);
                let mut kept = object.clone();
                if let Some(before) = self.before {
                    keep_times(before, &mut kept);
                }
                let (got, expected) = (&kept[self.part], &after[self.part]);
                assert!(within(got, expected), "{got} is not {expected}: {step:#}");
                assert_eq!(entries(&kept), entries(after), "{step:#}");
            }
        }
    }
}

/// Replays a recording, each step on the object that the recorded server had.
fn replay(recording: &str, schema_of: impl Fn(&Value) -> Schema) {
    let steps: Vec<Value> = serde_json::from_str(recording).unwrap();
    let mut live: BTreeMap<String, &Value> = BTreeMap::new();
    for step in &steps {
        let name = value::text(step, "name");
        let before = step.get("before").or_else(|| live.get(name).copied());
        let status = value::text(step, "subresource") == "status";
        let recorded = Recorded {
            step,
            before,
            reset: if status {
                &["metadata", "spec"]
            } else {
                &["status"]
            },
            part: if status { "status" } else { "spec" },
        };
        let object = before.unwrap_or(&step["body"]);
        recorded.replay(&schema_of(object));
        if step["code"].as_u64() != Some(409) {
            live.insert(name.to_owned(), &step["after"]);
        }
    }
}

#[test]
fn widgets_are_tracked_like_by_the_real_server() {
    replay(include_str!("testdata/widgets.json"), |_| widget());
}

#[test]
fn built_in_kinds_are_tracked_like_by_the_real_server() {
    replay(include_str!("testdata/builtin.json"), |object| {
        let version = value::text(object, "apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        crate::schema::table::kind(group, version, value::text(object, "kind"))
    });
}
