//! What a round trip through a typed Go object does to a value: types checked, unknown fields dropped, defaults
//! of the language written out, quantities and times made canonical.
//!
//! Errors carry the text of Go's decoder, with its way of naming a place: the innermost struct, then the names of
//! the fields on the way, without list indices and map keys.

mod place;
mod scalar;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::schema::{Field, Presence, Schema, Shape, View};
pub(super) use place::{Place, Step};

/// A value that its type cannot hold.
#[derive(Debug, Clone)]
pub(super) struct Mismatch {
    /// Where, in the form of strict decoding: `spec.containers[0].name`.
    pub(super) path: String,
    /// Types that read themselves end the decoding at once; other mismatches are reported when it is through.
    pub(super) fatal: bool,
    /// Go's text.
    pub(super) text: String,
}

/// A place that strict decoding complains about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Complaint {
    pub(super) path: String,
    pub(super) duplicate: bool,
}

impl Complaint {
    pub(super) fn text(&self) -> String {
        let what = if self.duplicate {
            "duplicate"
        } else {
            "unknown"
        };
        format!("{what} field {}", crate::field::quote(&self.path))
    }
}

/// A round trip under way.
#[derive(Default)]
pub(super) struct Conformer<'a> {
    /// Numbers whose text the value does not show.
    pub(super) literals: Option<&'a BTreeMap<String, String>>,
    /// Paths of keys that stood twice; those that a typed object notices become complaints.
    pub(super) duplicates: BTreeSet<&'a str>,
    /// In the order of sorted keys.
    pub(super) complaints: Vec<Complaint>,
    /// In the order of sorted keys.
    pub(super) mismatches: Vec<Mismatch>,
    /// Inside a type that reads itself: nothing there is unknown or duplicate.
    pub(super) quiet: bool,
}

impl Conformer<'_> {
    /// Conforms a whole object.
    pub(super) fn run(&mut self, schema: &Schema, value: &mut Value, prefix: &str) {
        self.value(schema.view(), value, &Place::root(prefix));
    }

    fn value(&mut self, view: View<'_>, value: &mut Value, place: &Place<'_>) {
        let node = view.node;
        match node.shape {
            Shape::Any => self.either(view, value, place),
            Shape::Object if node.fields.is_empty() && node.preserve_unknown => {}
            Shape::Object => match value {
                Value::Object(map) if node.values.is_some() => self.map(view, map, place),
                Value::Object(map) => self.structure(view, map, place),
                other => self.mismatch(kind_of(other), &node.go_type, place),
            },
            Shape::List => match value {
                Value::Array(items) => self.list(view, items, place),
                other => self.mismatch(kind_of(other), &node.go_type, place),
            },
            Shape::String
            | Shape::Integer
            | Shape::Number
            | Shape::Boolean
            | Shape::IntOrString
            | Shape::Quantity => self.scalar(view, value, place),
        }
    }

    fn list(&mut self, view: View<'_>, items: &mut [Value], place: &Place<'_>) {
        let Some(inner) = view.items() else { return };
        for (index, item) in items.iter_mut().enumerate() {
            let place = place.step(Step::Index(index));
            self.element(inner, item, &place);
        }
    }

    fn map(&mut self, view: View<'_>, map: &mut Map<String, Value>, place: &Place<'_>) {
        let Some(inner) = view.values() else { return };
        let in_millis = &*view.node.go_type == "v1.ResourceList";
        for (key, item) in map.iter_mut() {
            let place = place.step(Step::Key(key));
            self.check_duplicate(&place);
            self.element(inner, item, &place);
            if in_millis {
                scalar::round_to_millis(item);
            }
        }
    }

    /// A list item or map value: `null` stands for the zero value.
    fn element(&mut self, view: View<'_>, item: &mut Value, place: &Place<'_>) {
        if item.is_null() {
            *item = zero(view);
            if item.is_null() {
                return;
            }
        }
        self.value(view, item, place);
    }

    fn structure(&mut self, view: View<'_>, map: &mut Map<String, Value>, place: &Place<'_>) {
        map.retain(|key, value| {
            let Some((field, inner)) = view.field(key) else {
                if !self.quiet && !view.node.preserve_unknown {
                    self.complaints.push(Complaint {
                        path: place.step(Step::Key(key)).strict(),
                        duplicate: false,
                    });
                }
                return view.node.preserve_unknown;
            };
            let place = place.step(Step::Field {
                owner: view.node.go_name(),
                through: view.node.embedded_in.get(key.as_str()).map(|t| &**t),
                name: key,
            });
            self.check_duplicate(&place);
            if !value.is_null() {
                self.value(inner, value, &place);
            }
            // Leaves a field out, as Go does.
            match field.presence {
                Presence::Optional => !is_empty(inner, value),
                Presence::OmitZero => !is_zero(value),
                Presence::Always => true,
            }
        });
        // Only these are missed when they are not there; types have many fields, and objects few.
        let always = |(_, field, _): &(&str, &Field, View<'_>)| field.presence == Presence::Always;
        for (name, field, inner) in view.fields().filter(always) {
            self.write_always(name, field, inner, map, place);
        }
    }

    /// Writes a field that is not there, as Go does.
    fn write_always(
        &mut self,
        name: &str,
        field: &Field,
        view: View<'_>,
        map: &mut Map<String, Value>,
        place: &Place<'_>,
    ) {
        // An empty list is told from none until the object is stored: see `forget_empty`.
        if map.get(name).is_some_and(|found| !found.is_null()) {
            return;
        }
        let mut value = field.default.clone().unwrap_or(Value::Null);
        if value.is_object() {
            self.value(view, &mut value, place);
        }
        map.insert(name.to_owned(), value);
    }

    /// A type that is a schema or something else, and reads itself.
    fn either(&mut self, view: View<'_>, value: &mut Value, place: &Place<'_>) {
        let Some(inner) = view.items() else { return };
        let quiet = std::mem::replace(&mut self.quiet, true);
        let before = self.mismatches.len();
        match value {
            Value::Object(_) => self.value(inner, value, place),
            Value::Array(items) if view.node.name.ends_with("OrArray") => {
                for item in items {
                    self.value(inner, item, place);
                }
            }
            Value::Bool(_) | Value::Array(_) => {}
            _ if view.node.name.ends_with("OrBool") => self.mismatches.push(Mismatch {
                path: place.strict(),
                fatal: true,
                text: "boolean or JSON schema expected".to_owned(),
            }),
            other => *other = Value::Null,
        }
        self.mismatches
            .iter_mut()
            .skip(before)
            .for_each(|mismatch| mismatch.fatal = true);
        self.quiet = quiet;
    }

    fn check_duplicate(&mut self, place: &Place<'_>) {
        if self.duplicates.is_empty() || self.quiet {
            return;
        }
        let path = place.strict();
        if self.duplicates.contains(path.as_str()) {
            self.complaints.push(Complaint {
                path,
                duplicate: true,
            });
        }
    }

    fn mismatch(&mut self, found: &str, go_type: &str, place: &Place<'_>) {
        self.mismatches.push(Mismatch {
            path: place.strict(),
            fatal: false,
            text: place.cannot_unmarshal(found, go_type),
        });
    }

    fn fatal(&mut self, text: String, place: &Place<'_>) {
        self.mismatches.push(Mismatch {
            path: place.strict(),
            fatal: true,
            text,
        });
    }
}

/// What Go calls a JSON value of this type.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What storing a typed object does to it: lists and maps that are always written become `null` when they are empty.
pub(super) fn forget_empty(view: View<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                let Some((field, below)) = view.field(name) else {
                    continue;
                };
                if field.presence == Presence::Always && is_empty(below, value) {
                    *value = field.default.clone().unwrap_or(Value::Null);
                } else {
                    forget_empty(below, value);
                }
            }
            if let Some(values) = view.values() {
                map.values_mut()
                    .for_each(|value| forget_empty(values, value));
            }
        }
        Value::Array(items) => {
            if let Some(item) = view.items() {
                for value in items {
                    forget_empty(item, value);
                }
            }
        }
        _ => {}
    }
}

/// Whether Go holds the value as nil, or an empty list or map, which storage makes nil.
fn is_empty(view: View<'_>, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty() && view.node.shape == Shape::List,
        Value::Object(map) => map.is_empty() && view.node.values.is_some(),
        Value::String(text) => text.is_empty() && &*view.node.format == "byte",
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// The value of a list item or map entry that is `null`.
fn zero(view: View<'_>) -> Value {
    match view.node.shape {
        Shape::String if &*view.node.format == "date-time" => Value::Null,
        Shape::String => Value::from(""),
        Shape::Integer | Shape::Number | Shape::IntOrString => Value::from(0),
        Shape::Boolean => Value::from(false),
        Shape::Quantity => Value::from("0"),
        Shape::Object if view.node.values.is_none() && !view.node.preserve_unknown => {
            Value::Object(Map::new())
        }
        Shape::Object | Shape::List | Shape::Any => Value::Null,
    }
}
