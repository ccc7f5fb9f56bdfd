//! An `openAPIV3Schema` read once into a form that validation can walk: limits as numbers, patterns as machines,
//! formats that the server does not know dropped.
//!
//! Reading is total: what the API's own validation of a definition would have refused is read as if it were absent.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::pattern::Pattern;
use crate::value;

/// Schemas nested deeper than this are read as accepting anything; no request that passed decoding comes near it.
const MAX_DEPTH: usize = 200;

/// What a schema says of fields it does not name.
#[derive(Debug, Default)]
pub enum Additional {
    /// Nothing.
    #[default]
    Unset,
    /// `additionalProperties: false`.
    Forbidden,
    /// `additionalProperties: true`.
    Any,
    /// A schema for their values.
    Of(Box<Structural>),
}

/// Lower and upper bounds and such of one schema node.
#[derive(Debug, Default)]
pub struct Limits {
    /// `minimum`.
    pub minimum: Option<f64>,
    /// `maximum`.
    pub maximum: Option<f64>,
    /// `exclusiveMinimum`.
    pub exclusive_minimum: bool,
    /// `exclusiveMaximum`.
    pub exclusive_maximum: bool,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// `minLength`, in characters.
    pub min_length: Option<i64>,
    /// `maxLength`, in characters.
    pub max_length: Option<i64>,
    /// `minItems`.
    pub min_items: Option<i64>,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `minProperties`.
    pub min_properties: Option<i64>,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `pattern`.
    pub pattern: Option<Pattern>,
}

/// Most schema nodes have none.
static UNLIMITED: LazyLock<Limits> = LazyLock::new(Limits::default);

/// The keywords of [`Limits`].
const LIMITS: [&str; 13] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "pattern",
];

/// One schema node.
#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent keywords of a schema"
)]
pub struct Structural {
    /// `type`; empty for none.
    pub kind: Box<str>,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `nullable`.
    pub nullable: bool,
    /// `format`, if the server checks it.
    pub format: Box<str>,
    /// `enum`.
    pub allowed: Vec<Value>,
    limits: Option<Box<Limits>>,
    /// `required`.
    pub required: Vec<String>,
    /// `properties`.
    pub properties: BTreeMap<String, Box<Structural>>,
    /// `additionalProperties`.
    pub additional: Additional,
    /// `items`.
    pub items: Option<Box<Structural>>,
    /// `allOf`.
    pub all_of: Vec<Structural>,
    /// `anyOf`.
    pub any_of: Vec<Structural>,
    /// `oneOf`.
    pub one_of: Vec<Structural>,
    /// `not`.
    pub not: Option<Box<Structural>>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// `x-kubernetes-list-type`; empty for none.
    pub list_type: Box<str>,
    /// `x-kubernetes-list-map-keys`.
    pub map_keys: Vec<String>,
    /// `x-kubernetes-validations`, as written.
    pub rules: Vec<Value>,
    /// `default`.
    pub default: Option<Value>,
}

impl Structural {
    /// Reads a schema.
    pub fn read(schema: &Value) -> Self {
        Self::read_at(schema, 0)
    }

    fn read_at(schema: &Value, depth: usize) -> Self {
        if depth > MAX_DEPTH {
            return Self {
                preserve_unknown: true,
                nullable: true,
                ..Self::default()
            };
        }
        let below = |v: &Value| Self::read_at(v, depth + 1);
        let list = |key: &str| value::items(schema, key).iter().map(below).collect();
        let kind = value::text(schema, "type");
        Self {
            kind: kind.into(),
            int_or_string: value::flag(schema, "x-kubernetes-int-or-string"),
            nullable: value::flag(schema, "nullable"),
            format: known_format(kind, value::text(schema, "format")).into(),
            allowed: value::items(schema, "enum").to_vec(),
            limits: limits(schema),
            required: texts(schema, "required"),
            properties: value::map(schema, "properties")
                .into_iter()
                .flatten()
                .map(|(name, sub)| (name.clone(), Box::new(below(sub))))
                .collect(),
            additional: match schema.get("additionalProperties") {
                Some(Value::Bool(true)) => Additional::Any,
                Some(Value::Bool(false)) => Additional::Forbidden,
                Some(sub @ Value::Object(_)) => Additional::Of(Box::new(below(sub))),
                _ => Additional::Unset,
            },
            items: schema
                .get("items")
                .filter(|v| v.is_object())
                .map(|v| Box::new(below(v))),
            all_of: list("allOf"),
            any_of: list("anyOf"),
            one_of: list("oneOf"),
            not: schema
                .get("not")
                .filter(|v| v.is_object())
                .map(|v| Box::new(below(v))),
            preserve_unknown: value::flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: value::flag(schema, "x-kubernetes-embedded-resource"),
            list_type: value::text(schema, "x-kubernetes-list-type").into(),
            map_keys: texts(schema, "x-kubernetes-list-map-keys"),
            rules: value::items(schema, "x-kubernetes-validations").to_vec(),
            default: schema.get("default").filter(|v| !v.is_null()).cloned(),
        }
    }

    /// The schema of the values of unnamed fields, if there is one.
    pub fn values(&self) -> Option<&Structural> {
        match &self.additional {
            Additional::Of(values) => Some(values),
            _ => None,
        }
    }

    /// The property of this name.
    pub fn property(&self, name: &str) -> Option<&Structural> {
        self.properties.get(name).map(AsRef::as_ref)
    }

    /// What stands below `name`: a property, else the schema of unnamed fields.
    pub fn child(&self, name: &str) -> Option<&Structural> {
        self.property(name).or_else(|| self.values())
    }

    /// Bounds.
    pub fn limits(&self) -> &Limits {
        self.limits.as_deref().unwrap_or(&UNLIMITED)
    }

    /// The types a value may have; none means any.
    pub fn types(&self) -> Vec<&str> {
        if self.int_or_string {
            vec!["integer", "string"]
        } else if self.kind.is_empty() {
            Vec::new()
        } else {
            vec![&self.kind]
        }
    }

    /// Whether this schema or one below it has CEL rules.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.items.as_deref().is_some_and(Self::has_rules)
            || self.values().is_some_and(Self::has_rules)
            || self.properties.values().any(|s| s.has_rules())
    }

    /// Whether this schema or one below it has a default.
    pub fn has_defaults(&self) -> bool {
        self.default.is_some()
            || self.items.as_deref().is_some_and(Self::has_defaults)
            || self.values().is_some_and(Self::has_defaults)
            || self.properties.values().any(|s| s.has_defaults())
    }

    /// The item of `old` that corresponds to `item` in a list that merges by keys.
    pub fn matching<'a>(&self, old: &'a [Value], item: &Value) -> Option<&'a Value> {
        if &*self.list_type != "map" || !item.is_object() {
            return None;
        }
        // With each write each item of a list is looked for among all of another one: nothing is copied for that.
        let has_keys = |other: &Value| {
            let mut keys = self.map_keys.iter();
            keys.all(|key| other.get(key) == item.get(key))
        };
        old.iter()
            .find(|candidate| candidate.is_object() && has_keys(candidate))
    }
}

/// The texts in the list at `key`.
fn texts(schema: &Value, key: &str) -> Vec<String> {
    value::items(schema, key)
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn limits(schema: &Value) -> Option<Box<Limits>> {
    if !LIMITS.iter().any(|key| schema.get(key).is_some()) {
        return None;
    }
    let float = |key: &str| schema.get(key).and_then(Value::as_f64);
    let whole = |key: &str| schema.get(key).and_then(Value::as_i64);
    let pattern = value::text(schema, "pattern");
    Some(Box::new(Limits {
        minimum: float("minimum"),
        maximum: float("maximum"),
        exclusive_minimum: value::flag(schema, "exclusiveMinimum"),
        exclusive_maximum: value::flag(schema, "exclusiveMaximum"),
        multiple_of: float("multipleOf"),
        min_length: whole("minLength"),
        max_length: whole("maxLength"),
        min_items: whole("minItems"),
        max_items: whole("maxItems"),
        min_properties: whole("minProperties"),
        max_properties: whole("maxProperties"),
        unique_items: value::flag(schema, "uniqueItems"),
        pattern: (!pattern.is_empty()).then(|| Pattern::new(pattern)),
    }))
}

/// `format` if the server checks it for values of this type, else nothing.
fn known_format<'a>(kind: &str, format: &'a str) -> &'a str {
    if is_known_format(kind, format) {
        format
    } else {
        ""
    }
}

/// Whether the server checks this format for values of this type.
pub fn is_known_format(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => STRING_FORMATS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Formats of strings, without their dashes.
const STRING_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn formats_the_server_does_not_know_are_dropped() {
        let read = |v: Value| Structural::read(&v).format;
        assert_eq!(
            &*read(json!({"type":"string","format":"date-time"})),
            "date-time"
        );
        assert_eq!(&*read(json!({"type":"string","format":"nonsense"})), "");
        assert_eq!(&*read(json!({"type":"integer","format":"date"})), "");
    }

    #[test]
    fn items_match_by_all_keys() {
        let schema = Structural::read(&json!({"type":"array","x-kubernetes-list-type":"map",
            "x-kubernetes-list-map-keys":["a","b"],"items":{"type":"object"}}));
        let old = [json!({"a":1,"b":1,"x":1}), json!({"a":1,"b":2,"x":2})];
        let found = schema.matching(&old, &json!({"a":1,"b":2})).unwrap();
        assert_eq!(found.get("x"), Some(&json!(2)));
        assert!(schema.matching(&old, &json!({"a":1})).is_none());
    }
}
