//! Schemas as the original's definition has them: plain types, without `nullable` and `format`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A text.
pub(crate) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string"})
}

/// A whole number.
pub(crate) fn number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// A number that may have a fraction.
pub(crate) fn fraction(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number"})
}

/// Yes or no.
pub(crate) fn boolean(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "boolean"})
}

/// A time span, as the original's definition lets it through: it begins with a number and a unit.
pub(crate) fn interval(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64, "pattern": "^[0-9]+(h|m|s)"})
}

/// Time spans.
pub(crate) fn intervals(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 101,
        "items": {"type": "string", "maxLength": 64, "pattern": "^[0-9]+(h|m|s)"}})
}

/// Weights: no more of them than there are.
pub(crate) fn weights(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 101, "items": {"type": "integer"}})
}

/// Texts by name.
pub(crate) fn texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": "string"}})
}

/// A moment.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// Codes of HTTP answers.
pub(crate) fn codes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 32,
        "items": {"type": "integer", "minimum": 100, "maximum": 599}})
}

/// Whatever somebody else understands.
pub(crate) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of what somebody else understands.
pub(crate) fn open_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})
}

/// Gateways that are parents of a route. What the original's definition fills in is filled in: Gateway API does as well, and the
/// original, to whom everybody may go back, takes a route that differs from its Canary for one to be written anew, without weights.
pub(crate) fn parents(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array",
    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "group": {"type": "string", "default": "gateway.networking.k8s.io", "description": "Its group"},
            "kind": {"type": "string", "default": "Gateway", "description": "Its kind"},
        }}})
}

/// Where requests are copied to, filled in as [`parents`] are.
pub(crate) fn mirrors(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array",
    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"backendRef": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "description": "A Service",
            "properties": {
                "group": {"type": "string", "default": "", "description": "Its group"},
                "kind": {"type": "string", "default": "Service", "description": "Its kind"},
            },
        }}}})
}

/// A number or a name.
pub(crate) fn number_or_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true})
}

/// What may be absent, and is never null.
pub(crate) fn plain<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
