//! The types of CEL, as schemas declare them.

use std::fmt;

use crate::crd::rules::values::{RESERVED, escape};
use crate::crd::structural::Structural;

/// Names of types, which are values of their own.
pub(super) const NAMES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

/// A type.
#[derive(Debug, Clone)]
pub(in crate::crd::rules) enum Type<'a> {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Box<Type<'a>>),
    Map(Box<Type<'a>>, Box<Type<'a>>),
    /// An object with the properties of a schema; `true` for a whole object with type and metadata.
    Object(&'a Structural, bool),
    /// The metadata of a whole object, of which only the names are seen.
    Metadata,
    Optional(Box<Type<'a>>),
    /// The type of types.
    Kind,
    /// A type of the API's libraries, such as `kubernetes.Quantity`.
    Library(&'static str),
    /// An expression with an issue; it raises no further ones.
    Failed,
}

impl PartialEq for Type<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a == b,
            (Self::Map(a, b), Self::Map(c, d)) => a == c && b == d,
            (Self::Object(a, _), Self::Object(b, _)) => std::ptr::eq(*a, *b),
            (Self::Library(a), Self::Library(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            // The real server makes a new name for it each time.
            Self::Object(..) | Self::Metadata => f.write_str("selfType"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Kind => f.write_str("type"),
            Self::Library(name) => f.write_str(name),
            Self::Failed => f.write_str("!error!"),
        }
    }
}

/// The type that a schema declares; none if rules cannot see its values.
pub(super) fn declared(schema: &Structural, root: bool) -> Option<Type<'_>> {
    if schema.int_or_string {
        return Some(Type::Dyn);
    }
    Some(match (&*schema.kind, &*schema.format) {
        ("array", _) => {
            let items = schema.items.as_deref()?;
            Type::List(Box::new(declared(items, items.embedded)?))
        }
        ("object", _) => match schema.values() {
            Some(values) => {
                let value = declared(values, values.embedded)?;
                Type::Map(Box::new(Type::String), Box::new(value))
            }
            None => Type::Object(schema, root || schema.embedded),
        },
        ("string", "byte") => Type::Bytes,
        ("string", "duration") => Type::Duration,
        ("string", "date" | "date-time") => Type::Timestamp,
        ("string", _) => Type::String,
        ("boolean", _) => Type::Bool,
        ("number", _) => Type::Double,
        ("integer", _) => Type::Int,
        _ => return None,
    })
}

/// The type of a field of an object.
pub(super) fn field<'a>(object: &Type<'a>, name: &str) -> Option<Type<'a>> {
    match object {
        Type::Metadata => matches!(name, "name" | "generateName").then_some(Type::String),
        Type::Object(_, true) if matches!(name, "apiVersion" | "kind") => Some(Type::String),
        Type::Object(_, true) if name == "metadata" => Some(Type::Metadata),
        Type::Object(schema, _) => {
            let written = |key: &String| {
                escape(key).as_deref() == Some(name) || (key == name && RESERVED.contains(&name))
            };
            let (_, child) = schema.properties.iter().find(|(key, _)| written(key))?;
            declared(child, child.embedded)
        }
        _ => None,
    }
}

/// Whether a value of type `given` can stand where `wanted` is expected.
pub(super) fn assignable(wanted: &Type<'_>, given: &Type<'_>) -> bool {
    use Type::{Duration, Dyn, Failed, List, Map, Metadata, Null, Object, Optional, Timestamp};
    match (wanted, given) {
        (Dyn | Failed, _)
        | (_, Dyn | Failed)
        | (Object(..) | Metadata | Timestamp | Duration, Null)
        | (Null, Object(..) | Metadata | Timestamp | Duration) => true,
        (List(a), List(b)) | (Optional(a), Optional(b)) => assignable(a, b),
        (Map(a, b), Map(c, d)) => assignable(a, c) && assignable(b, d),
        (a, b) => a == b,
    }
}

/// The more telling of two types of the same thing.
pub(super) fn join<'a>(a: &Type<'a>, b: &Type<'a>) -> Type<'a> {
    match (a, b) {
        (Type::Dyn, other) | (other, Type::Dyn) => other.clone(),
        (Type::List(a), Type::List(b)) => Type::List(Box::new(join(a, b))),
        (a, _) => a.clone(),
    }
}
