//! How a schema says that a value merges: as a scalar, a list (atomic, set or map) or a map (granular or atomic).

use std::sync::LazyLock;

use serde_json::Value;

use crate::field::quote;
use crate::schema::{ListKind, Schema, Shape, View, table};

use super::step::{Item, Step};

/// What the metadata of an object within an object is.
static OBJECT_META: LazyLock<Schema> = LazyLock::new(table::object_meta);

/// The fields that every object within an object has, whether its schema names them or not.
const EMBEDDED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A place in a schema.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// A node; `open` says that unknown fields are allowed because a node above keeps them.
    Typed { view: View<'a>, open: bool },
    /// Anything: maps granular, lists atomic.
    Deduced,
    /// Anything, as one value.
    Opaque,
    /// A field that the schema does not declare.
    Undeclared,
}

/// What a scalar must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

/// How a value at a place is treated.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    Scalar(Scalar),
    List {
        kind: &'a ListKind,
        items: Place<'a>,
    },
    Map {
        atomic: bool,
        place: Place<'a>,
    },
}

impl<'a> Place<'a> {
    /// The root of a schema.
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self::of(schema.view(), false)
    }

    fn of(view: View<'a>, open: bool) -> Self {
        if &*view.node.name == "io.k8s.apimachinery.pkg.runtime.RawExtension" {
            return Self::Opaque;
        }
        // Named types are shared: what stands above one of their uses does not open them.
        let open = view.node.preserve_unknown || (open && view.node.name.is_empty());
        Self::Typed { view, open }
    }

    /// How the value is treated; absent and `null` in a place for anything count as maps.
    pub(super) fn form(self, value: Option<&Value>) -> Form<'a> {
        let view = match self {
            Self::Typed { view, .. } => view,
            Self::Deduced | Self::Opaque | Self::Undeclared => return self.deduce(value),
        };
        match view.node.shape {
            Shape::Any => self.deduce(value),
            Shape::Object => Form::Map {
                atomic: view.node.atomic,
                place: self,
            },
            Shape::List => Form::List {
                kind: &view.node.list,
                items: self.items(),
            },
            Shape::String if matches!(&*view.node.format, "" | "byte") => {
                Form::Scalar(Scalar::String)
            }
            Shape::Integer | Shape::Number => Form::Scalar(Scalar::Numeric),
            Shape::Boolean => Form::Scalar(Scalar::Boolean),
            Shape::String | Shape::IntOrString | Shape::Quantity => Form::Scalar(Scalar::Untyped),
        }
    }

    fn deduce(self, value: Option<&Value>) -> Form<'a> {
        match value {
            None | Some(Value::Null | Value::Object(_)) => {
                let atomic = match self {
                    Self::Typed { view, .. } => view.node.atomic,
                    Self::Opaque => true,
                    Self::Deduced | Self::Undeclared => false,
                };
                Form::Map {
                    atomic,
                    place: self,
                }
            }
            Some(Value::Array(_)) => {
                let kind = match self {
                    Self::Typed { view, .. } => &view.node.list,
                    _ => &ListKind::Atomic,
                };
                Form::List {
                    kind,
                    items: self.items(),
                }
            }
            Some(_) => Form::Scalar(Scalar::Untyped),
        }
    }

    fn items(self) -> Self {
        match self {
            Self::Typed { view, open } => view
                .items()
                .map_or(Self::Opaque, |items| Self::of(items, open)),
            _ => Self::Opaque,
        }
    }

    /// Whether the schema names this field, as opposed to a key of a map.
    pub(super) fn declares(self, name: &str) -> bool {
        matches!(self, Self::Typed { view, .. } if view.node.fields.contains_key(name)
            || (view.node.embedded && EMBEDDED.contains(&name)))
    }

    /// The place below a field or map key.
    pub(super) fn child(self, name: &str) -> Self {
        match self {
            Self::Typed { view, open } => match view.child(name) {
                Some(child) => Self::of(child, open),
                None if view.node.embedded && name == "metadata" => {
                    Self::of(OBJECT_META.view(), false)
                }
                None if view.node.embedded && EMBEDDED.contains(&name) => Self::Deduced,
                None if open || view.node.fields.is_empty() => Self::Deduced,
                None => Self::Undeclared,
            },
            Self::Opaque => Self::Opaque,
            Self::Deduced | Self::Undeclared => Self::Deduced,
        }
    }

    /// The place below a step of a field path.
    pub(super) fn below(self, step: &Step) -> Self {
        match step {
            Step::Field(name) => self.child(name),
            Step::Key(_) | Step::Value(_) | Step::Index(_) => self.items(),
        }
    }

    /// The schema's default of a field.
    fn default_of(self, name: &str) -> Option<&'a Value> {
        match self {
            Self::Typed { view, .. } => {
                let (field, _) = view.field(name)?;
                field.default.as_ref().filter(|value| !value.is_null())
            }
            _ => None,
        }
    }
}

impl Form<'_> {
    /// Whether both are the same kind of thing.
    pub(super) fn matches(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The forms under which two values at one place are to be visited, the decisive one last: one form, unless the
/// place takes anything and the values are of different kinds.
pub(super) fn forms<'a>(
    place: Place<'a>,
    left: Option<&Value>,
    right: Option<&Value>,
) -> (Option<Form<'a>>, Form<'a>) {
    if right.is_none() {
        return (None, place.form(left));
    }
    let form = place.form(right);
    let other = left.map(|_| place.form(left));
    (other.filter(|other| !other.matches(&form)), form)
}

/// The step that identifies an item of an associative list.
pub(super) fn item_step(keys: Keys<'_>, items: Place<'_>, item: &Value) -> Result<Step, String> {
    has_step(keys, items, item)?;
    let Keys::Fields(keys) = keys else {
        return Ok(Step::Value(Item(item.clone())));
    };
    let found = keys.iter().filter_map(|key| {
        let value = key_of(key, items, item)?;
        Some((key.to_string(), Item(value.clone())))
    });
    let mut found: Vec<(String, Item)> = found.collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Step::Key(found))
}

/// Whether there is a step that identifies an item; the error says why there is none.
pub(super) fn has_step(keys: Keys<'_>, items: Place<'_>, item: &Value) -> Result<(), String> {
    match (keys, item) {
        (Keys::None, Value::Object(_)) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        (Keys::None, Value::Array(_)) => {
            Err("not supported: associative list with lists as elements".to_owned())
        }
        (Keys::None, Value::Null) => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        (Keys::None, _) => Ok(()),
        (Keys::Fields(_), Value::Null) => {
            Err("associative list with keys may not have a null element".to_owned())
        }
        (Keys::Fields(keys), Value::Object(_)) => {
            if keys.is_empty() || keys.iter().any(|key| key_of(key, items, item).is_some()) {
                return Ok(());
            }
            let keys: Vec<String> = keys.iter().map(|key| quote(key)).collect();
            Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                keys.join(" ")
            ))
        }
        (Keys::Fields(_), _) => {
            Err("associative list with keys may not have non-map elements".to_owned())
        }
    }
}

/// What stands in the key field of an item, or is its default.
fn key_of<'v>(key: &str, items: Place<'v>, item: &'v Value) -> Option<&'v Value> {
    item.get(key).or_else(|| items.default_of(key))
}

/// What tells the items of an associative list apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keys<'a> {
    /// Themselves: the list is a set.
    None,
    /// These fields.
    Fields(&'a [Box<str>]),
}

/// What tells the items of a list apart; nothing if it is atomic.
pub(super) fn associative(kind: &ListKind) -> Option<Keys<'_>> {
    match kind {
        ListKind::Atomic => None,
        ListKind::Set => Some(Keys::None),
        ListKind::Map(keys) => Some(Keys::Fields(keys)),
    }
}
