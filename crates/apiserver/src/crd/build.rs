//! From the `openAPIV3Schema` of one version to an arena of nodes, which decoding, pruning, merging and publishing
//! read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::schema::{
    Field, ListKind, Node, NodeId, PatchStrategy, Presence, Schema, Shape, Types, View, table,
};
use crate::value;

/// Schemas nested deeper than this accept anything.
const MAX_DEPTH: usize = 200;

/// The schema of one version. Without `openapi` the version keeps whatever it is given.
pub fn schema(openapi: Option<&Value>) -> Schema {
    match openapi {
        Some(openapi) => written(openapi.to_string().into()),
        None => anything(),
    }
}

/// The schema of one version from its JSON.
pub(super) fn written(openapi: Arc<str>) -> Schema {
    Schema::written(openapi, |openapi| {
        let mut types = Types::default();
        let root = node(&mut types, openapi, 0);
        let root = with_type_and_metadata(&mut types, root);
        types.finish();
        (types, root)
    })
}

/// The schema of a version that keeps whatever it is given.
pub(super) fn anything() -> Schema {
    let mut types = Types::default();
    let root = types.push(Node {
        shape: Shape::Object,
        preserve_unknown: true,
        ..Node::default()
    });
    Schema::new(Arc::new(types), root)
}

/// Builds the schema of a part of an object.
pub fn part(openapi: &Value) -> Schema {
    let mut types = Types::default();
    let root = node(&mut types, openapi, 0);
    Schema::new(Arc::new(types), root)
}

/// Adds what every object has, whether or not the schema says so.
fn with_type_and_metadata(types: &mut Types, root: NodeId) -> NodeId {
    let mut node = types.view(root).node.clone();
    for name in ["apiVersion", "kind"] {
        let text = types.push(Node {
            shape: Shape::String,
            ..Node::default()
        });
        node.fields.insert(name.into(), field(text, false, None));
    }
    let metadata = graft(types, table::object_meta().view(), &mut BTreeMap::new());
    node.fields
        .insert("metadata".into(), field(metadata, false, None));
    types.set(root, node);
    root
}

/// Copies a node and all that it reaches from another arena.
fn graft(types: &mut Types, from: View<'_>, done: &mut BTreeMap<NodeId, NodeId>) -> NodeId {
    if let Some(id) = done.get(&from.id) {
        return *id;
    }
    let id = types.push(Node::default());
    done.insert(from.id, id);
    let mut node = from.node.clone();
    for (name, _, child) in from.fields() {
        let below = graft(types, child, done);
        if let Some(field) = node.fields.get_mut(name) {
            field.node = below;
        }
    }
    node.values = from.values().map(|v| graft(types, v, done));
    node.items = from.items().map(|v| graft(types, v, done));
    types.set(id, node);
    id
}

fn field(node: NodeId, required: bool, default: Option<Value>) -> Field {
    Field {
        node,
        required,
        presence: Presence::Optional,
        patch: PatchStrategy::default(),
        default,
    }
}

fn node(types: &mut Types, schema: &Value, depth: usize) -> NodeId {
    if depth > MAX_DEPTH {
        return types.push(Node {
            preserve_unknown: true,
            nullable: true,
            ..Node::default()
        });
    }
    let required = value::items(schema, "required");
    let mut node_fields = BTreeMap::new();
    for (name, sub) in value::map(schema, "properties").into_iter().flatten() {
        let id = node(types, sub, depth + 1);
        let needed = required.iter().any(|r| r.as_str() == Some(name));
        node_fields.insert(name.as_str().into(), field(id, needed, default(sub)));
    }
    let below = |types: &mut Types, key: &str| {
        schema
            .get(key)
            .filter(|v| v.is_object())
            .map(|sub| node(types, sub, depth + 1))
    };
    let items = below(types, "items");
    let values = match schema.get("additionalProperties") {
        // Whatever a map of anything holds is pruned below its keys, which only an empty object does.
        Some(Value::Bool(true)) => Some(types.push(Node::default())),
        _ => below(types, "additionalProperties"),
    };
    types.push(Node {
        shape: shape(schema),
        format: value::text(schema, "format").into(),
        fields: node_fields,
        values,
        items,
        list: list_kind(schema),
        atomic: value::text(schema, "x-kubernetes-map-type") == "atomic",
        preserve_unknown: value::flag(schema, "x-kubernetes-preserve-unknown-fields"),
        embedded: value::flag(schema, "x-kubernetes-embedded-resource"),
        nullable: value::flag(schema, "nullable"),
        described: true,
        default: default(schema).map(Box::new),
        ..Node::default()
    })
}

fn default(schema: &Value) -> Option<Value> {
    schema.get("default").filter(|d| !d.is_null()).cloned()
}

fn shape(schema: &Value) -> Shape {
    if value::flag(schema, "x-kubernetes-int-or-string") {
        return Shape::IntOrString;
    }
    match value::text(schema, "type") {
        "object" => Shape::Object,
        "array" => Shape::List,
        "string" => Shape::String,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "boolean" => Shape::Boolean,
        _ => Shape::Any,
    }
}

fn list_kind(schema: &Value) -> ListKind {
    match value::text(schema, "x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => ListKind::Map(
            value::items(schema, "x-kubernetes-list-map-keys")
                .iter()
                .filter_map(Value::as_str)
                .map(Box::from)
                .collect(),
        ),
        _ => ListKind::Atomic,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_maps_and_defaults_arrive_in_the_arena() {
        let schema = schema(Some(
            &json!({"type":"object","properties":{"spec":{"type":"object","required":["l"],"properties":{
            "l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"default":[],
                 "items":{"type":"object","properties":{"name":{"type":"string"}}}},
            "m":{"type":"object","additionalProperties":{"type":"integer","format":"int64"}}}}}}),
        ));
        let root = schema.view();
        assert!(root.field("metadata").is_some());
        let (_, spec) = root.field("spec").unwrap();
        let (field, list) = spec.field("l").unwrap();
        assert!(field.required);
        assert_eq!(field.default, Some(json!([])));
        assert_eq!(list.node.list, ListKind::Map(Box::from(["name".into()])));
        assert_eq!(list.items().unwrap().node.shape, Shape::Object);
        let (_, map) = spec.field("m").unwrap();
        assert_eq!(map.values().unwrap().node.shape, Shape::Integer);
    }
}
