//! From objects to tables and partial objects.

use serde_json::{Map, Value, json};

use super::{default_columns, object_age, scale_columns};
use crate::field::FieldError;
use crate::negotiate::{MetaVersion, Shape, Transform};
use crate::resource::{Context, Resource};
use crate::status::{Outcome, Status};
use crate::value::{self, text};

/// The annotation on the bookmark that ends the initial events of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What stands beside the cells of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// From `?includeObject=`.
    pub fn parse(parameter: Option<&str>) -> Outcome<Self> {
        match parameter.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid_str("includeObject", other, why);
                let message = format!("Unable to convert to Table as requested: {error}");
                Err(Status::bad_request(message).into())
            }
        }
    }
}

/// Turns what is served of one resource into the form that one client asked for.
#[derive(Debug, Clone, Copy)]
pub struct Presenter<'a> {
    /// The form.
    pub transform: Transform,
    /// For tables.
    pub include: IncludeObject,
    /// Whose objects they are.
    pub resource: &'a Resource,
    /// Whether the resource comes from a `CustomResourceDefinition`.
    pub is_custom: bool,
    /// The version and moment of the request.
    pub cx: Context<'a>,
}

impl Presenter<'_> {
    /// One object, as get, create and update answer it.
    pub fn object(&self, object: &Value) -> Outcome<Value> {
        match self.transform.shape {
            Shape::Table => {
                Ok(self.table(std::slice::from_ref(object), &single_metadata(object), true))
            }
            Shape::Partial => Ok(partial(object, self.transform.version)),
            Shape::PartialList if self.is_custom => {
                Err(Status::failure(500, "", "content is not a list").into())
            }
            Shape::PartialList => Err(self.refuse("PartialObjectMetadataList", "not a list", "")),
        }
    }

    /// A list with its `metadata` and `items`.
    pub fn list(&self, list: &Value) -> Outcome<Value> {
        match self.transform.shape {
            Shape::Table => {
                let metadata = list.get("metadata").cloned().unwrap_or_else(|| json!({}));
                Ok(self.table(value::items(list, "items"), &list_metadata(&metadata), true))
            }
            Shape::PartialList => Ok(partial_list(list, self.transform.version)),
            Shape::Partial => Err(self.refuse("PartialObjectMetadata", "a list", "List")),
        }
    }

    /// The object of a watch event. Only the `first` event of a watch carries the columns of a table. What cannot be
    /// transformed is sent as it is, as the real server does.
    pub fn event(&self, object: &Value, first: bool) -> Value {
        match self.transform.shape {
            Shape::Table => {
                let objects = std::slice::from_ref(object);
                self.table(objects, &single_metadata(object), first)
            }
            Shape::Partial => partial(object, self.transform.version),
            Shape::PartialList => object.clone(),
        }
    }

    /// The `Scale` of an object, which has columns of its own.
    pub fn scale(&self, scale: &Value) -> Outcome<Value> {
        if self.transform.shape != Shape::Table {
            return self.object(scale);
        }
        let count = |path| value::integer(scale, path).unwrap_or(0);
        let cells = json!([
            text(scale, "metadata.name"),
            count("spec.replicas"),
            count("status.replicas"),
            object_age(scale, self.cx.now),
        ]);
        let row = match self.include {
            IncludeObject::Object => json!({"cells": cells, "object": scale}),
            _ => json!({"cells": cells, "object": self.row_object(scale)}),
        };
        let columns = scale_columns(self.is_custom);
        Ok(self.lay_out(&json!(columns), &[row], &single_metadata(scale)))
    }

    fn table(&self, objects: &[Value], metadata: &Value, with_columns: bool) -> Value {
        let mut columns = self.resource.strategy.columns(self.cx.version);
        let is_default = columns.is_empty();
        if is_default {
            columns = default_columns();
        }
        let rows: Vec<Value> = objects.iter().map(|o| self.row(o, is_default)).collect();
        let columns = if with_columns {
            json!(columns)
        } else {
            Value::Null
        };
        self.lay_out(&columns, &rows, metadata)
    }

    fn lay_out(&self, columns: &Value, rows: &[Value], metadata: &Value) -> Value {
        json!({
            "kind": "Table",
            "apiVersion": self.transform.version.api_version(),
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    fn row(&self, object: &Value, is_default: bool) -> Value {
        let cells = if is_default {
            ["name", "creationTimestamp"]
                .map(|field| Value::from(text(object, &format!("metadata.{field}"))))
                .to_vec()
        } else {
            self.resource.strategy.cells(object, &self.cx)
        };
        let mut row = Map::new();
        row.insert("cells".to_owned(), Value::from(cells));
        if let Some(condition) = self.resource.strategy.row_condition(object) {
            row.insert("conditions".to_owned(), json!([condition]));
        }
        row.insert("object".to_owned(), self.row_object(object));
        Value::Object(row)
    }

    fn row_object(&self, object: &Value) -> Value {
        let ends_initial_events = value::map(object, "metadata.annotations")
            .is_some_and(|annotations| annotations.contains_key(INITIAL_EVENTS_END));
        match self.include {
            IncludeObject::Object => {
                let mut whole = object.clone();
                let api_version = self.resource.api_version(self.cx.version);
                value::put_default(&mut whole, "apiVersion", api_version);
                value::put_default(&mut whole, "kind", self.resource.names.kind.clone());
                whole
            }
            IncludeObject::None if !ends_initial_events => Value::Null,
            IncludeObject::None | IncludeObject::Metadata => {
                let mut shown = partial(object, self.transform.version);
                self.resource.strategy.trim_row(&mut shown);
                shown
            }
        }
    }

    /// The 406 for a form that does not fit, which names the Go type of what was found.
    fn refuse(&self, asked: &str, found: &str, suffix: &str) -> Box<Status> {
        let names = &self.resource.names;
        let package = match names.group.as_str() {
            "" | "events.k8s.io" => "core",
            group => group.split('.').next().unwrap_or_default(),
        };
        let kind = &names.kind;
        let go_type = if self.is_custom {
            format!("*unstructured.Unstructured{suffix}")
        } else {
            format!("*{package}.{kind}{suffix}")
        };
        let message =
            format!("you requested {asked}, but the requested object is {found} ({go_type})");
        Box::new(Status::failure(406, "NotAcceptable", message))
    }
}

/// The metadata of an object as a `PartialObjectMetadata`.
pub fn partial(object: &Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// A list of metadata; without items it says `null`.
pub fn partial_list(list: &Value, version: MetaVersion) -> Value {
    let items: Vec<Value> = value::items(list, "items")
        .iter()
        .map(|object| partial(object, version))
        .collect();
    let metadata = list.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": version.api_version(),
        "metadata": list_metadata(&metadata),
        "items": if items.is_empty() { Value::Null } else { Value::from(items) },
    })
}

/// The metadata of a list as typed lists write it: custom resources write an empty `continue` too.
fn list_metadata(metadata: &Value) -> Value {
    let mut kept = Map::new();
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        let value = metadata.get(field);
        if let Some(value) = value.filter(|v| !v.is_null() && v.as_str() != Some("")) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(kept)
}

fn single_metadata(object: &Value) -> Value {
    list_metadata(&json!({"resourceVersion": text(object, "metadata.resourceVersion")}))
}
