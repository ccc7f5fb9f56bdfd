//! The `components` of a document.

use serde_json::{Map, Value, json};

use crate::discovery;
use crate::resource::Resource;
use crate::schema::{Field, ListKind, Schema, Shape, View, table};

pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// A reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The name under which a kind's schema is published.
pub(super) fn name_of(resource: &Resource, version: &str) -> String {
    let published = resource
        .version(version)
        .map(|v| v.schema.name().to_owned())
        .unwrap_or_default();
    if !published.is_empty() {
        return published;
    }
    let mut parts: Vec<&str> = resource.names.group.split('.').rev().collect();
    parts.extend([version, resource.names.kind.as_str()]);
    parts.join(".")
}

/// Schemas by name.
#[derive(Default)]
pub(super) struct Schemas {
    all: Map<String, Value>,
}

impl Schemas {
    pub(super) fn finish(self) -> Value {
        Value::Object(self.all)
    }

    pub(super) fn add_patch(&mut self) {
        self.all.insert(PATCH.to_owned(), json!({"type": "object"}));
    }

    /// Adds a built-in type and all it is made of.
    pub(super) fn add_named(&mut self, name: &str) {
        if let Some(schema) = table::named(name) {
            self.add_type(schema.view());
        }
    }

    /// Adds the kind of a resource, its list, and the kinds of its subresources.
    pub(super) fn add_resource(&mut self, resource: &Resource, version: &str) {
        let Some(served) = resource.version(version) else {
            return;
        };
        let name = name_of(resource, version);
        if served.schema.name().is_empty() {
            self.add_named(OBJECT_META);
            let schema = custom(&served.schema, resource, version);
            self.all.insert(name.clone(), schema);
        } else {
            self.add_type(served.schema.view());
        }
        if resource.verbs.contains(&"list") {
            self.add_named(LIST_META);
            self.all
                .insert(list_name(resource, version), list(resource, version, &name));
        }
        for sub in discovery::subresources(resource) {
            let schema = match sub.group {
                "" if sub.kind == resource.names.kind => continue,
                "" => table::kind(&resource.names.group, version, sub.kind),
                group => table::kind(group, sub.version, sub.kind),
            };
            self.add_type(schema.view());
        }
    }

    fn add_type(&mut self, view: View<'_>) {
        let mut waiting = vec![view];
        while let Some(view) = waiting.pop() {
            let name = view.node.name.to_string();
            if name.is_empty() || self.all.contains_key(&name) {
                continue;
            }
            let schema = definition(view, &mut waiting);
            self.all.insert(name, schema);
        }
    }
}

pub(super) fn list_name(resource: &Resource, version: &str) -> String {
    let name = name_of(resource, version);
    match name.rsplit_once('.') {
        Some((package, _)) => format!("{package}.{}", resource.names.list_kind),
        None => resource.names.list_kind.clone(),
    }
}

fn kind_mark(group: &str, version: &str, kind: &str) -> Value {
    json!([{"group": group, "kind": kind, "version": version}])
}

fn list(resource: &Resource, version: &str, name: &str) -> Value {
    let names = &resource.names;
    let mut out = json!({
        "description": format!("{} is a list of {}", names.list_kind, names.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": api_version_field(),
            "kind": kind_field(),
            "metadata": {
                "description": format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"),
                "allOf": [reference(LIST_META)],
            },
            "items": {
                "description": format!("List of {}. More info: {CONVENTIONS}", names.plural),
                "type": "array",
                "items": reference(name),
            },
        },
        "x-kubernetes-group-version-kind": kind_mark(&names.group, version, &names.list_kind),
    });
    if !resource.custom {
        out["properties"]["metadata"]["default"] = json!({});
        out["properties"]["items"]["items"] = json!({"allOf": [reference(name)], "default": {}});
    }
    out
}

fn api_version_field() -> Value {
    json!({
        "description": format!("APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: {CONVENTIONS}#resources"),
        "type": "string",
    })
}

fn kind_field() -> Value {
    json!({
        "description": format!("Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {CONVENTIONS}#types-kinds"),
        "type": "string",
    })
}

/// The schema of a custom resource: what its author wrote, with the fields that every object has.
fn custom(schema: &Schema, resource: &Resource, version: &str) -> Value {
    let mut out = match schema.read_source() {
        Some(written @ Value::Object(_)) => written,
        _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if let Value::Object(map) = &mut out {
        let properties = map
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
        properties["apiVersion"] = api_version_field();
        properties["kind"] = kind_field();
        properties["metadata"] = json!({
            "description": format!("Standard object's metadata. More info: {CONVENTIONS}#metadata"),
            "allOf": [reference(OBJECT_META)],
        });
        map.insert(
            "x-kubernetes-group-version-kind".to_owned(),
            kind_mark(&resource.names.group, version, &resource.names.kind),
        );
    }
    out
}

/// A named built-in type. What it refers to is added to `waiting`.
fn definition<'a>(view: View<'a>, waiting: &mut Vec<View<'a>>) -> Value {
    let node = view.node;
    let mut out = match node.shape {
        Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Shape::IntOrString => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Shape::String => json!({"type": "string", "format": node.format}),
        Shape::Any => json!({}),
        _ => json!({"type": "object"}),
    };
    // A field may have a granular copy of an atomic type; the definition is that of the type.
    let named = table::named(&node.name);
    if named.map_or(node.atomic, |schema| schema.view().node.atomic) {
        out["x-kubernetes-map-type"] = "atomic".into();
    }
    if let Some((group, version, kind)) = table::kind_of(&node.name) {
        out["x-kubernetes-group-version-kind"] = kind_mark(group, version, kind);
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, field, inner) in view.fields() {
        if field.required {
            required.push(Value::from(name));
        }
        properties.insert(name.to_owned(), property(field, inner, waiting));
    }
    if table::kind_of(&node.name).is_some() {
        for (name, field) in [("apiVersion", api_version_field()), ("kind", kind_field())] {
            if properties.contains_key(name) {
                properties.insert(name.to_owned(), field);
            }
        }
    }
    if !properties.is_empty() {
        out["properties"] = Value::Object(properties);
    }
    if !required.is_empty() {
        out["required"] = Value::Array(required);
    }
    out
}

fn property<'a>(field: &Field, view: View<'a>, waiting: &mut Vec<View<'a>>) -> Value {
    let mut out = place(view, waiting);
    // Types with a JSON form of their own have no default in the documents.
    let plain = !matches!(view.node.shape, Shape::IntOrString | Shape::Quantity);
    if let Some(default) = field.default.as_ref().filter(|d| plain && !d.is_null()) {
        out["default"] = default.clone();
    }
    let patch = &field.patch;
    let words = [
        (patch.merge, "merge"),
        (patch.retain_keys, "retainKeys"),
        (patch.replace, "replace"),
    ];
    let strategy: Vec<&str> = words
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, w)| *w)
        .collect();
    if !strategy.is_empty() {
        out["x-kubernetes-patch-strategy"] = strategy.join(",").into();
    }
    if !patch.merge_key.is_empty() {
        out["x-kubernetes-patch-merge-key"] = (*patch.merge_key).into();
    }
    out
}

/// A type where it is used: a reference to a named one, or an anonymous one written out.
fn place<'a>(view: View<'a>, waiting: &mut Vec<View<'a>>) -> Value {
    let node = view.node;
    if !node.name.is_empty() {
        waiting.push(view);
        return json!({"allOf": [reference(&node.name)]});
    }
    let mut out = Map::new();
    let ty = match node.shape {
        Shape::Object => "object",
        Shape::List => "array",
        Shape::Integer => "integer",
        Shape::Number => "number",
        Shape::Boolean => "boolean",
        _ => "string",
    };
    out.insert("type".to_owned(), ty.into());
    if !node.format.is_empty() {
        out.insert("format".to_owned(), (*node.format).into());
    }
    if let Some(items) = view.items() {
        out.insert("items".to_owned(), element(items, waiting));
        let (kind, keys) = match &node.list {
            ListKind::Atomic => ("atomic", None),
            ListKind::Set => ("set", None),
            ListKind::Map(keys) => ("map", Some(keys)),
        };
        out.insert("x-kubernetes-list-type".to_owned(), kind.into());
        if let Some(keys) = keys {
            out.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
        }
    }
    if let Some(values) = view.values() {
        out.insert("additionalProperties".to_owned(), element(values, waiting));
        if node.atomic {
            out.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        }
    }
    Value::Object(out)
}

/// The type of list items and map values, with the default that Go's zero value is.
fn element<'a>(view: View<'a>, waiting: &mut Vec<View<'a>>) -> Value {
    let mut out = place(view, waiting);
    let default = match view.node.shape {
        Shape::String if view.node.format.is_empty() => json!(""),
        Shape::Integer | Shape::Number => json!(0),
        Shape::Object if !view.node.preserve_unknown && view.node.values.is_none() => json!({}),
        _ if view.node.name.is_empty() => return out,
        _ => return reference(&view.node.name),
    };
    out["default"] = default;
    out
}
