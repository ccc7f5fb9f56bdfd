//! How messages show parts of a definition: as JSON of Go's internal types, whose field names differ from the API's.

use serde_json::Value;

use crate::field;
use crate::value;

/// A text as Go's JSON writes it.
fn text(text: &str) -> String {
    field::show_json(&Value::from(text))
}

fn or_null(value: Option<&Value>) -> String {
    value
        .filter(|v| !v.is_null())
        .map_or_else(|| "null".to_owned(), field::show_json)
}

/// An entry of `x-kubernetes-validations`.
pub(super) fn rule(rule: &Value) -> String {
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        text(value::text(rule, "rule")),
        text(value::text(rule, "message")),
        text(value::text(rule, "messageExpression")),
        or_null(rule.get("reason")),
        text(value::text(rule, "fieldPath")),
        or_null(rule.get("optionalOldSelf")),
    )
}

/// How a field of `JSONSchemaProps` is written.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    Optional,
    Schema,
    Schemas,
    SchemaMap,
    OrArray,
    OrBool,
    Rules,
}

/// The fields of Go's internal `JSONSchemaProps`, in their order.
const FIELDS: [(&str, &str, Form); 44] = [
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Optional),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Optional),
    ("Maximum", "maximum", Form::Optional),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Optional),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Optional),
    ("MinLength", "minLength", Form::Optional),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Optional),
    ("MinItems", "minItems", Form::Optional),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Optional),
    ("Enum", "enum", Form::Optional),
    ("MaxProperties", "maxProperties", Form::Optional),
    ("MinProperties", "minProperties", Form::Optional),
    ("Required", "required", Form::Optional),
    ("Items", "items", Form::OrArray),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Form::OrBool),
    ("PatternProperties", "patternProperties", Form::SchemaMap),
    ("Dependencies", "dependencies", Form::Optional),
    ("AdditionalItems", "additionalItems", Form::OrBool),
    ("Definitions", "definitions", Form::SchemaMap),
    ("ExternalDocs", "externalDocs", Form::Optional),
    ("Example", "example", Form::Optional),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Form::Optional,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        Form::Flag,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Optional),
    ("XListType", "x-kubernetes-list-type", Form::Optional),
    ("XMapType", "x-kubernetes-map-type", Form::Optional),
    ("XValidations", "x-kubernetes-validations", Form::Rules),
];

/// A schema.
pub(super) fn schema(value: &Value) -> String {
    let fields = FIELDS.iter().map(|(go, key, form)| {
        let found = value.get(key).filter(|v| !v.is_null());
        format!("\"{go}\":{}", one(found, *form))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// The Go names of the fields that a schema sets, in Go's order.
pub(super) fn fields_set(value: &Value) -> Vec<&'static str> {
    let zero = |v: &Value| matches!(v, Value::Null | Value::Bool(false)) || v == "";
    FIELDS
        .iter()
        .filter(|(_, key, _)| value.get(key).is_some_and(|v| !zero(v)))
        .map(|(go, _, _)| *go)
        .collect()
}

fn one(found: Option<&Value>, form: Form) -> String {
    let list = |items: &[Value], each: fn(&Value) -> String| {
        format!("[{}]", items.iter().map(each).collect::<Vec<_>>().join(","))
    };
    match (form, found) {
        (Form::Text, found) => text(found.and_then(Value::as_str).unwrap_or_default()),
        (Form::Flag, found) => found.is_some_and(|v| v == &Value::Bool(true)).to_string(),
        (_, None) => "null".to_owned(),
        (Form::Optional, Some(value)) => field::show_json(value),
        (Form::Schema, Some(value)) => schema(value),
        (Form::Schemas, Some(value)) => list(value.as_array().map_or(&[], Vec::as_slice), schema),
        (Form::Rules, Some(value)) => list(value.as_array().map_or(&[], Vec::as_slice), rule),
        (Form::SchemaMap, Some(value)) => {
            let entries = value.as_object().into_iter().flatten();
            let entries = entries.map(|(key, sub)| format!("{}:{}", text(key), schema(sub)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        (Form::OrArray, Some(Value::Array(items))) => {
            format!(r#"{{"Schema":null,"JSONSchemas":{}}}"#, list(items, schema))
        }
        (Form::OrArray, Some(value)) => {
            format!(r#"{{"Schema":{},"JSONSchemas":null}}"#, schema(value))
        }
        (Form::OrBool, Some(Value::Bool(allows))) => {
            format!(r#"{{"Allows":{allows},"Schema":null}}"#)
        }
        (Form::OrBool, Some(value)) => format!(r#"{{"Allows":true,"Schema":{}}}"#, schema(value)),
    }
}

/// Which parts of the versions are the same in all of them, and so stand above them in Go's internal type.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "one answer a part")]
pub(super) struct Hoisted {
    pub(super) schema: bool,
    pub(super) subresources: bool,
    pub(super) columns: bool,
    pub(super) selectable: bool,
}

/// `spec.versions`, which is none if the definition has no such field.
pub(super) fn versions(versions: Option<&[Value]>, hoisted: Hoisted) -> String {
    let Some(versions) = versions else {
        return "null".to_owned();
    };
    let each = versions.iter().map(|v| version(v, hoisted));
    format!("[{}]", each.collect::<Vec<_>>().join(","))
}

fn version(version: &Value, hoisted: Hoisted) -> String {
    let shown = |key: &str, up: bool| version.get(key).filter(|v| !up && !v.is_null());
    let schema_of = shown("schema", hoisted.schema).map_or_else(
        || "null".to_owned(),
        |v| match v.get("openAPIV3Schema") {
            Some(inner) => format!(r#"{{"OpenAPIV3Schema":{}}}"#, schema(inner)),
            None => r#"{"OpenAPIV3Schema":null}"#.to_owned(),
        },
    );
    format!(
        r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},"Schema":{schema_of},"Subresources":{},"AdditionalPrinterColumns":{},"SelectableFields":{}}}"#,
        text(value::text(version, "name")),
        value::flag(version, "served"),
        value::flag(version, "storage"),
        value::flag(version, "deprecated"),
        or_null(version.get("deprecationWarning")),
        shown("subresources", hoisted.subresources).map_or_else(|| "null".to_owned(), subresources),
        shown("additionalPrinterColumns", hoisted.columns)
            .map_or_else(|| "null".to_owned(), columns),
        shown("selectableFields", hoisted.selectable).map_or_else(|| "null".to_owned(), selectable),
    )
}

fn subresources(value: &Value) -> String {
    let status = if value::has(value, "status") {
        "{}"
    } else {
        "null"
    };
    let scale = match value.get("scale").filter(|v| !v.is_null()) {
        None => "null".to_owned(),
        Some(scale) => format!(
            r#"{{"SpecReplicasPath":{},"StatusReplicasPath":{},"LabelSelectorPath":{}}}"#,
            text(value::text(scale, "specReplicasPath")),
            text(value::text(scale, "statusReplicasPath")),
            or_null(scale.get("labelSelectorPath")),
        ),
    };
    format!(r#"{{"Status":{status},"Scale":{scale}}}"#)
}

fn columns(value: &Value) -> String {
    let each = value.as_array().into_iter().flatten().map(|c| {
        format!(
            r#"{{"Name":{},"Type":{},"Format":{},"Description":{},"Priority":{},"JSONPath":{}}}"#,
            text(value::text(c, "name")),
            text(value::text(c, "type")),
            text(value::text(c, "format")),
            text(value::text(c, "description")),
            value::integer(c, "priority").unwrap_or_default(),
            text(value::text(c, "jsonPath")),
        )
    });
    format!("[{}]", each.collect::<Vec<_>>().join(","))
}

fn selectable(value: &Value) -> String {
    let each = value.as_array().into_iter().flatten();
    let each = each.map(|f| format!(r#"{{"JSONPath":{}}}"#, text(value::text(f, "jsonPath"))));
    format!("[{}]", each.collect::<Vec<_>>().join(","))
}
