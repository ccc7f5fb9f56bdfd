//! JSON values as CEL sees them: only what the schema knows, with field names escaped and formats understood.
#![allow(
    clippy::disallowed_types,
    reason = "the maps of the cel crate are HashMaps; nothing here iterates over one"
)]

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Value as Cel, functions};
use serde_json::Value;

use crate::crd::check::format::duration_nanos;
use crate::crd::structural::Structural;

thread_local! {
    /// All functions of the API's CEL environment. Registering them is what makes a context expensive.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// Calls `use_it` with a context that has all functions and no variables.
pub(super) fn with_functions<T>(use_it: impl FnOnce(&Context<'static>) -> T) -> T {
    FUNCTIONS.with(use_it)
}

/// Converts a value. `root` says that it is a whole object, whose type and name rules may always see.
pub(super) fn to_cel(value: &Value, schema: &Structural, root: bool) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(n) => match n.as_i64() {
            Some(whole) if &*schema.kind != "number" => Cel::Int(whole),
            _ => number(n.as_f64().unwrap_or(f64::NAN), &schema.kind),
        },
        Value::String(text) => string(text, schema),
        Value::Array(list) => {
            let items = schema.items.as_deref();
            let convert =
                |item: &Value| items.map_or_else(|| raw(item), |s| to_cel(item, s, s.embedded));
            Cel::List(Arc::new(list.iter().map(convert).collect()))
        }
        Value::Object(map) => object(map, schema, root || schema.embedded),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "only exact whole numbers become integers"
)]
fn number(float: f64, kind: &str) -> Cel {
    if kind == "integer" && float == float.trunc() && float.abs() < 9.0e18 {
        Cel::Int(float as i64)
    } else {
        Cel::Float(float)
    }
}

fn string(text: &str, schema: &Structural) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    if schema.int_or_string || &*schema.kind != "string" {
        return plain();
    }
    let parsed = match &*schema.format {
        "duration" => duration(text),
        "date" => functions::timestamp(Arc::new(format!("{text}T00:00:00Z"))).ok(),
        "date-time" => functions::timestamp(Arc::new(text.to_uppercase())).ok(),
        "byte" => base64::engine::general_purpose::STANDARD
            .decode(text)
            .ok()
            .map(|bytes| Cel::Bytes(Arc::new(bytes))),
        _ => None,
    };
    parsed.unwrap_or_else(plain)
}

fn duration(text: &str) -> Option<Cel> {
    let nanos = duration_nanos(text)?;
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    functions::duration(Arc::new(format!("{sign}{seconds}s{rest}ns"))).ok()
}

/// A value without a schema.
fn raw(value: &Value) -> Cel {
    to_cel(value, &Structural::default(), false)
}

#[allow(clippy::disallowed_types, reason = "the engine's maps are hash maps")]
fn object(map: &serde_json::Map<String, Value>, schema: &Structural, whole: bool) -> Cel {
    let mut fields: HashMap<Key, Cel> = HashMap::with_capacity(map.len());
    let mut put = |key: String, value: Cel| fields.insert(Key::String(Arc::new(key)), value);
    let known = whole || !schema.properties.is_empty();
    for (key, value) in map {
        if whole && key == "metadata" {
            put(key.clone(), metadata(value));
        } else if let Some(child) = schema.properties.get(key) {
            let converted = to_cel(value, child, child.embedded);
            // A reserved word may also be written as it is after a dot.
            if RESERVED.contains(&key.as_str()) {
                put(key.clone(), converted.clone());
            }
            if let Some(name) = escape(key) {
                put(name, converted);
            }
        } else if whole && matches!(key.as_str(), "apiVersion" | "kind") {
            put(key.clone(), raw(value));
        } else if let Some(values) = schema.values().filter(|_| !known) {
            put(key.clone(), to_cel(value, values, values.embedded));
        } else if schema.kind.is_empty() {
            put(key.clone(), raw(value));
        }
    }
    Cel::Map(Map {
        map: Arc::new(fields),
    })
}

/// Of an object's metadata rules see the name only.
#[allow(clippy::disallowed_types, reason = "the engine's maps are hash maps")]
fn metadata(value: &Value) -> Cel {
    let seen = ["name", "generateName"].into_iter().filter_map(|key| {
        let text = value.get(key)?.as_str()?;
        let name = Key::String(Arc::new(key.to_owned()));
        Some((name, Cel::String(Arc::new(text.to_owned()))))
    });
    Cel::Map(Map {
        map: Arc::new(seen.collect::<HashMap<Key, Cel>>()),
    })
}

/// Words that CEL keeps for itself.
pub(crate) const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A field name as rules write it; none if they cannot.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let taken = if rest.starts_with("__") {
            out.push_str("__underscores__");
            2
        } else {
            match c {
                '.' => out.push_str("__dot__"),
                '-' => out.push_str("__dash__"),
                '/' => out.push_str("__slash__"),
                c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
                _ => return None,
            }
            1
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped() {
        assert_eq!(
            escape("a-b.c/d").as_deref(),
            Some("a__dash__b__dot__c__slash__d")
        );
        assert_eq!(escape("namespace").as_deref(), Some("__namespace__"));
        assert_eq!(escape("a__b").as_deref(), Some("a__underscores__b"));
        assert_eq!(escape("ä"), None);
        assert_eq!(escape("0"), None);
    }
}
