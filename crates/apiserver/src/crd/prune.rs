//! What happens to the body of a custom resource before anyone judges it: unknown fields go, `null`s that no schema
//! allows go, defaults come.

use serde_json::{Map, Value};

use super::embedded;
use crate::schema::{Schema, View};
use crate::value;

/// Fields that every whole object has, named in its schema or not.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes fields that the schema does not know, and says which, in the words and the order of the API:
/// `unknown field "spec.x"`.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut unknown = embedded::prune_metadata(object, "");
    let root = schema.view();
    let mut found = Vec::new();
    walk(Some(root), object, Mode::Root, "", &mut found);
    found.sort();
    unknown.extend(found);
    drop_nulls(root, object, true);
    let mut in_metadata = embedded::prune(root, object);
    in_metadata.sort();
    unknown.extend(in_metadata);
    unknown
        .into_iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect()
}

/// Removes unknown fields from a part of an object.
pub fn below(schema: View<'_>, value: &mut Value) {
    walk(Some(schema), value, Mode::Part, "", &mut Vec::new());
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// How a value is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It is the whole object.
    Root,
    /// It is a part of one.
    Part,
    /// It is an item of a list that keeps unknown fields, and so keeps them too.
    Keep,
}

/// `schema` is none below a map whose values have no schema: nothing is known there.
fn walk(
    schema: Option<View<'_>>,
    value: &mut Value,
    mode: Mode,
    path: &str,
    unknown: &mut Vec<String>,
) {
    match value {
        Value::Object(map) => walk_object(schema, map, mode, path, unknown),
        Value::Array(list) => {
            let items = schema.and_then(|s| s.items());
            let keep = mode == Mode::Keep || schema.is_some_and(|s| s.node.preserve_unknown);
            if keep && items.is_none() {
                return;
            }
            let mode = if keep { Mode::Keep } else { Mode::Part };
            for (i, item) in list.iter_mut().enumerate() {
                walk(items, item, mode, &format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

fn walk_object(
    schema: Option<View<'_>>,
    map: &mut Map<String, Value>,
    mode: Mode,
    path: &str,
    unknown: &mut Vec<String>,
) {
    let Some(schema) = schema else {
        unknown.extend(map.keys().map(|key| join(path, key)));
        map.clear();
        return;
    };
    let whole = mode == Mode::Root || schema.node.embedded;
    let keep = mode == Mode::Keep || schema.node.preserve_unknown;
    map.retain(|key, value| {
        if whole && META.contains(&key.as_str()) {
            return true;
        }
        if let Some((_, below)) = schema.field(key) {
            walk(Some(below), value, Mode::Part, &join(path, key), unknown);
            return true;
        }
        if let Some(values) = schema.values() {
            // Below the keys of a map of anything there is no schema.
            let below = Some(values).filter(|v| v.node.described);
            walk(below, value, Mode::Part, &join(path, key), unknown);
            return true;
        }
        if !keep {
            unknown.push(join(path, key));
        }
        keep
    });
}

/// Removes `null` where the schema neither allows it nor has a default for it.
fn drop_nulls(schema: View<'_>, value: &mut Value, root: bool) {
    match value {
        Value::Object(map) => map.retain(|key, below| {
            if root && META.contains(&key.as_str()) {
                return true;
            }
            let (default, child) = match schema.field(key) {
                Some((field, child)) => (field.default.is_some(), Some(child)),
                None => (false, schema.values().filter(|v| v.node.described)),
            };
            match child {
                Some(child) if below.is_null() => {
                    child.node.nullable || default || child.node.default.is_some()
                }
                Some(child) => {
                    drop_nulls(child, below, false);
                    true
                }
                None => true,
            }
        }),
        Value::Array(list) => {
            if let Some(items) = schema.items() {
                for item in list {
                    drop_nulls(items, item, false);
                }
            }
        }
        _ => {}
    }
}

/// What stands in for a `null` among items or values that no schema allows.
fn own_default(schema: View<'_>) -> Value {
    schema.node.default.as_deref().cloned().unwrap_or_default()
}

/// Fills in the schema's defaults, outermost first, so that defaults of defaults apply.
pub fn default(schema: View<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, field, child) in schema.fields() {
                let Some(default) = &field.default else {
                    continue;
                };
                let missing = map
                    .get(name)
                    .is_none_or(|v| v.is_null() && !child.node.nullable);
                if missing {
                    map.insert(name.to_owned(), default.clone());
                }
            }
            for (key, below) in map.iter_mut() {
                if let Some((_, child)) = schema.field(key) {
                    default(child, below);
                } else if let Some(values) = schema.values() {
                    if below.is_null() && !values.node.nullable {
                        *below = own_default(values);
                    }
                    default(values, below);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.items() else { return };
            for item in list {
                if item.is_null() && !items.node.nullable {
                    *item = own_default(items);
                }
                default(items, item);
            }
        }
        _ => {}
    }
}

/// Whether [`default`] would change nothing of an object whose metadata is left out.
pub fn is_complete(schema: View<'_>, object: &Value) -> bool {
    let fields = object.as_object();
    fields.is_some_and(|fields| has_all(schema, fields, "metadata"))
}

fn has_all(schema: View<'_>, map: &Map<String, Value>, left: &str) -> bool {
    let mut fields = schema.fields();
    let is_there = fields.all(|(name, field, child)| {
        let found = map.get(name);
        let is_filled = found.is_some_and(|v| !v.is_null() || child.node.nullable);
        field.default.is_none() || is_filled || name == left
    });
    let mut below = value::all_but(map, left);
    is_there
        && below.all(|(key, below)| match (schema.field(key), schema.values()) {
            (Some((_, child)), _) => is_whole(child, below),
            (None, Some(values)) => is_item_whole(values, below),
            (None, None) => true,
        })
}

fn is_whole(schema: View<'_>, value: &Value) -> bool {
    match value {
        Value::Object(map) => has_all(schema, map, ""),
        Value::Array(list) => schema
            .items()
            .is_none_or(|items| list.iter().all(|item| is_item_whole(items, item))),
        _ => true,
    }
}

/// The same of what something may stand in for where it is `null`.
fn is_item_whole(schema: View<'_>, value: &Value) -> bool {
    (!value.is_null() || schema.node.nullable) && is_whole(schema, value)
}

/// Writes floats that are whole numbers as whole numbers, as a round trip through Go's JSON does. To be called after
/// validation, which still tells `2.0` from `2`, and before anyone sees the object.
pub fn normalise_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *value = Value::from(whole);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(normalise_numbers),
        Value::Object(map) => map.values_mut().for_each(normalise_numbers),
        _ => {}
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "only exact whole numbers pass"
)]
fn whole(float: f64) -> Option<i64> {
    (float.abs() < 9.0e18 && float == float.trunc()).then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::build;
    use serde_json::json;

    fn schema() -> Schema {
        build::schema(Some(&json!({"type":"object","properties":{
            "spec":{"type":"object","properties":{
                "i":{"type":"integer"},
                "nul":{"type":"string","nullable":true},
                "nuld":{"type":"string","nullable":true,"default":"d"},
                "def":{"type":"string","default":"dd"},
                "lm":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"p":{"type":"integer","default":5}}}},
                "m":{"type":"object","additionalProperties":{"type":"string"}},
                "emb":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
                "emb2":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}},
                "any":{"x-kubernetes-preserve-unknown-fields":true},
                "o":{"type":"object","default":{},"properties":{"p":{"type":"string","default":"q"}}}}},
            "status":{"type":"object","properties":{"x":{"type":"string"}}}}})))
    }

    #[test]
    fn pruning_names_what_it_drops_in_the_order_of_the_server() {
        let mut object = json!({"apiVersion":"g/v1","kind":"K","metadata":{"name":"x","odd":1},
            "foo":{"x":1},
            "spec":{"zz":1,"i":null,"nul":null,"lm":[{"name":"a","q":1}],"m":{"a":"1"},
                "emb":{"apiVersion":"v1","kind":"A","metadata":{"name":"q","foo":"bar","creationTimestamp":null},"z":1},
                "emb2":{"apiVersion":"v1","kind":"A","metadata":{"name":"q","foo":1},"z":1,"spec":{"a":1}},
                "any":{"x":{"y":1}}},
            "status":{"x":"y","zz":1}});
        let unknown = prune(&schema(), &mut object);
        let expected = [
            "metadata.odd",
            "foo",
            "spec.emb2.spec.a",
            "spec.emb2.z",
            "spec.lm[0].q",
            "spec.zz",
            "status.zz",
            "spec.emb.metadata.foo",
            "spec.emb2.metadata.foo",
        ];
        assert_eq!(unknown, expected.map(|p| format!("unknown field \"{p}\"")));
        assert_eq!(
            object,
            json!({"apiVersion":"g/v1","kind":"K","metadata":{"name":"x"},
            "spec":{"nul":null,"lm":[{"name":"a"}],"m":{"a":"1"},
                "emb":{"apiVersion":"v1","kind":"A","metadata":{"name":"q"},"z":1},
                "emb2":{"apiVersion":"v1","kind":"A","metadata":{"name":"q"},"spec":{}},
                "any":{"x":{"y":1}}},
            "status":{"x":"y"}})
        );
    }

    #[test]
    fn defaults_reach_nested_values_and_respect_nullable() {
        let mut object = json!({"spec":{"nuld":null,"def":null,"lm":[{"name":"a"}]}});
        default(schema().view(), &mut object);
        assert_eq!(
            object,
            json!({"spec":{"nuld":null,"def":"dd","lm":[{"name":"a","p":5}],"o":{"p":"q"}}})
        );
        let mut object = json!({"spec":{}});
        default(schema().view(), &mut object);
        assert_eq!(
            object,
            json!({"spec":{"nuld":"d","def":"dd","o":{"p":"q"}}})
        );
    }

    #[test]
    fn an_object_is_complete_if_there_is_nothing_to_fill_in() {
        let whole = json!({"metadata":{},"spec":{"nuld":null,"def":"x","lm":[{"name":"a","p":1}],"o":{"p":""}}});
        let less = [
            json!({"spec":{"nuld":"d","def":null,"o":{"p":"q"}}}),
            json!({"spec":{"nuld":"d","def":"x","o":{}}}),
            json!({"spec":{"def":"x","o":{"p":"q"}}}),
            json!({"spec":{"nuld":"d","def":"x","lm":[{"name":"a"}],"o":{"p":"q"}}}),
            json!({"spec":{}}),
        ];
        let schema = schema();
        let all = less.into_iter().map(|one| (one, false));
        for (object, is_whole) in all.chain([(whole, true)]) {
            assert_eq!(is_complete(schema.view(), &object), is_whole, "{object}");
            let mut filled = object.clone();
            default(schema.view(), &mut filled);
            assert_eq!(filled == object, is_whole, "{object}");
            assert!(is_complete(schema.view(), &filled), "{filled}");
        }
        assert!(is_complete(schema.view(), &json!({"spec":7,"other":{}})));
        assert!(!is_complete(schema.view(), &json!("no object")));
    }

    #[test]
    fn whole_floats_become_integers() {
        let mut value = json!({"a":[2.0, 2.5, 1e300]});
        normalise_numbers(&mut value);
        assert_eq!(value, json!({"a":[2, 2.5, 1e300]}));
    }
}
