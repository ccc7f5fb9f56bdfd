//! How large the values of a schema can be at the most, and how small their JSON text at the least.

use std::collections::BTreeMap;

use crate::crd::rules::values::escape;
use crate::crd::structural::Structural;

/// The largest request, in bytes: it bounds what a schema leaves open.
const REQUEST: u64 = 3 * 1024 * 1024;
/// `""`, `[]`, `{}`.
const EMPTY: u64 = 2;
/// The longest date and time in JSON.
const LONGEST_TIME: u64 = 32;
/// `"2006-01-02"`.
const DATE: u64 = 12;

/// What a schema says of the sizes of its values.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    /// The most elements, properties or characters; nothing for numbers and objects.
    pub(super) max: u64,
    /// The fewest bytes that it takes in JSON.
    min_text: u64,
    /// Fields by the names that rules give them.
    pub(super) fields: BTreeMap<String, Declared>,
    pub(super) key: Option<Box<Declared>>,
    pub(super) element: Option<Box<Declared>>,
}

impl Declared {
    /// Reads a schema; none if rules cannot see its values. `root` says that it describes a whole object.
    pub(crate) fn read(schema: &Structural, root: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::leaf(longest(schema, 4), 1));
        }
        Some(match (&*schema.kind, &*schema.format) {
            ("array", _) => {
                let items = schema.items.as_deref()?;
                let element = Self::read(items, items.embedded)?;
                let most = (REQUEST - EMPTY) / (element.min_text + 1);
                Self {
                    max: bound(schema.limits().max_items).unwrap_or(most),
                    min_text: EMPTY,
                    element: Some(Box::new(element)),
                    ..Self::default()
                }
            }
            ("object", _) => match schema.values() {
                Some(values) => {
                    let element = Self::read(values, values.embedded)?;
                    // A key has two characters, its quotes, a colon and a comma.
                    let most = (REQUEST - EMPTY) / (element.min_text + 6);
                    Self {
                        max: bound(schema.limits().max_properties).unwrap_or(most),
                        min_text: EMPTY,
                        key: Some(Box::new(Self::leaf(0, EMPTY))),
                        element: Some(Box::new(element)),
                        ..Self::default()
                    }
                }
                None => Self::object(schema, root),
            },
            ("string", "byte") => Self::leaf(longest(schema, 1), EMPTY),
            ("string", "duration") => Self::leaf(LONGEST_TIME, 3),
            ("string", "date") => Self::leaf(DATE, DATE),
            ("string", "date-time") => Self::leaf(LONGEST_TIME, 21),
            ("string", _) => Self::leaf(longest_text(schema), EMPTY),
            ("boolean", _) => Self::leaf(0, 4),
            ("number" | "integer", _) => Self::leaf(0, 1),
            _ => return None,
        })
    }

    fn leaf(max: u64, min_text: u64) -> Self {
        Self {
            max,
            min_text,
            ..Self::default()
        }
    }

    fn object(schema: &Structural, root: bool) -> Self {
        let mut fields: BTreeMap<&str, Self> = schema
            .properties
            .iter()
            .filter_map(|(name, s)| Some((name.as_str(), Self::read(s, s.embedded)?)))
            .collect();
        if root && !has_type_and_name(schema) {
            let text = || Self::leaf(REQUEST - EMPTY, EMPTY);
            let names = ["name", "generateName"].map(|name| (name.to_owned(), text()));
            let metadata = Self {
                min_text: EMPTY,
                fields: BTreeMap::from(names),
                ..Self::default()
            };
            fields.extend([("kind", text()), ("apiVersion", text())]);
            fields.insert("metadata", metadata);
        }
        let given = |name: &str| {
            let defaulted = |s: &Structural| s.default.is_some();
            schema.required.iter().any(|r| r == name)
                && !schema.property(name).is_some_and(defaulted)
        };
        let least = |(name, field): (&&str, &Self)| {
            let length = u64::try_from(name.len()).unwrap_or(REQUEST);
            given(name).then_some(length + field.min_text + 4)
        };
        Self {
            min_text: EMPTY + fields.iter().filter_map(least).sum::<u64>(),
            fields: fields
                .into_iter()
                .filter_map(|(name, field)| Some((escape(name)?, field)))
                .collect(),
            ..Self::default()
        }
    }

    /// How often such a value can stand in one request, one comma between each two.
    pub(crate) fn most_in_a_request(&self) -> u64 {
        REQUEST / (self.min_text + 1)
    }
}

/// A limit that a schema sets; below zero counts as zero.
fn bound(limit: Option<i64>) -> Option<u64> {
    limit.map(|n| u64::try_from(n).unwrap_or(0))
}

/// `maxLength` in bytes, or what a request can hold.
fn longest(schema: &Structural, bytes_per_character: u64) -> u64 {
    bound(schema.limits().max_length)
        .map_or(REQUEST - EMPTY, |n| n.saturating_mul(bytes_per_character))
}

fn longest_text(schema: &Structural) -> u64 {
    let values = schema.allowed.iter().filter_map(|v| v.as_str());
    match values.map(str::len).max() {
        Some(length) if schema.limits().max_length.is_none() => {
            u64::try_from(length).unwrap_or(REQUEST)
        }
        _ => longest(schema, 4),
    }
}

/// Whether a schema itself declares what every object has.
fn has_type_and_name(schema: &Structural) -> bool {
    let is = |s: &Structural, name: &str, kind: &str| {
        s.properties.get(name).is_some_and(|p| &*p.kind == kind)
    };
    is(schema, "kind", "string")
        && is(schema, "apiVersion", "string")
        && is(schema, "metadata", "object")
        && schema.property("metadata").is_some_and(|metadata| {
            is(metadata, "name", "string") && is(metadata, "generateName", "string")
        })
}
