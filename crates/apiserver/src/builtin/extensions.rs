//! `CustomResourceDefinition`, of `apiextensions.k8s.io/v1`: what a definition must look like.
//!
//! What comes of a definition is in [`crate::crd`].

pub(crate) mod approval;
mod default_values;
mod openapi;
mod regexp;
mod show;
pub(crate) mod structure;
#[cfg(test)]
mod tests;
mod validate;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::describe;
use crate::crd::{self, structural::is_known_format};
use crate::field::{FieldErrors, quote};
use crate::resource::{Context, Derived, Part, Resource, Strategy};
use crate::table::{self, Column};
use crate::value;

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    vec![
        describe::resource(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            Arc::new(Definition),
        )
        .cluster_scoped()
        .short(&["crd", "crds"])
        .category("api-extensions")
        .status()
        .hashed_as("v1beta1")
        .build(),
    ]
}

/// The rules of definitions.
#[derive(Debug)]
struct Definition;

impl Strategy for Definition {
    fn default(&self, object: &mut Value, _cx: &Context<'_>) {
        let kind = value::text(object, "spec.names.kind").to_owned();
        if value::text(object, "spec.names.singular").is_empty() && !kind.is_empty() {
            value::put(object, "spec.names.singular", kind.to_lowercase());
        }
        if value::text(object, "spec.names.listKind").is_empty() && !kind.is_empty() {
            value::put(object, "spec.names.listKind", format!("{kind}List"));
        }
        if value::has(object, "spec") {
            value::put_default(object, "spec.conversion", json!({"strategy": "None"}));
        }
        if value::has(object, "spec.conversion.webhook.clientConfig.service") {
            value::put_default(
                object,
                "spec.conversion.webhook.clientConfig.service.port",
                443,
            );
        }
        if value::items(object, "status.storedVersions").is_empty() {
            remember_storage(object);
        }
    }

    fn prepare_create(&self, object: &mut Value, _cx: &Context<'_>) {
        value::put(
            object,
            "status",
            json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}),
        );
        remember_storage(object);
        if value::items(object, "status.storedVersions").is_empty() {
            value::put(object, "status.storedVersions", Value::Null);
        }
    }

    fn validate(&self, object: &Value, _cx: &Context<'_>) -> FieldErrors {
        validate::create(object)
    }

    fn prepare_update(&self, part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
        match part {
            Part::Main | Part::Scale => {
                value::copy(object, old, "status");
                remember_storage(object);
            }
            Part::Status => value::copy(object, old, "spec"),
        }
    }

    fn validate_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        _cx: &Context<'_>,
    ) -> FieldErrors {
        match part {
            Part::Main | Part::Scale => validate::update(object, old),
            Part::Status => validate::status(object),
        }
    }

    fn warnings(&self, object: &Value, old: Option<&Value>, _cx: &Context<'_>) -> Vec<String> {
        let before = old.map(unknown_formats).unwrap_or_default();
        let now = unknown_formats(object).into_iter();
        now.filter(|format| !before.contains(format))
            .map(|format| format!("unrecognized format {}", quote(&format)))
            .collect()
    }

    fn generation_changed(&self, object: &Value, old: &Value) -> bool {
        object.get("spec") != old.get("spec")
    }

    fn reset_fields(&self, part: Part) -> Vec<&'static str> {
        match part {
            Part::Main | Part::Scale => vec!["status"],
            Part::Status => vec!["spec"],
        }
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn begin_delete(&self, object: &mut Value, now: Timestamp) -> bool {
        crd::begin_delete(object, now);
        true
    }

    fn settled_status(
        &self,
        object: &Value,
        others: &dyn Fn() -> Vec<Value>,
        now: Timestamp,
    ) -> Option<Value> {
        Some(crd::establish(object, others, now))
    }

    fn derived(&self) -> Derived {
        Derived::Registry
    }

    fn columns(&self, _version: &str) -> Vec<Column> {
        table::default_columns()
    }

    fn cells(&self, object: &Value, _cx: &Context<'_>) -> Vec<Value> {
        let text = |path: &str| Value::from(value::text(object, path));
        vec![text("metadata.name"), text("metadata.creationTimestamp")]
    }
}

/// Adds the storage version to those that were ever stored.
fn remember_storage(object: &mut Value) {
    let storage = value::items(object, "spec.versions")
        .iter()
        .find(|v| value::flag(v, "storage"))
        .and_then(|v| v.get("name"))
        .cloned();
    let mut stored = value::items(object, "status.storedVersions").to_vec();
    if let Some(name) = storage.filter(|name| !stored.contains(name)) {
        stored.push(name);
        value::put(object, "status.storedVersions", stored);
    }
}

/// The formats in a definition's schemas that the server does not know. A schema that is the same in all versions
/// counts once.
fn unknown_formats(crd: &Value) -> Vec<String> {
    let schemas: Vec<&Value> = value::items(crd, "spec.versions")
        .iter()
        .filter_map(|v| value::at(v, "schema.openAPIV3Schema"))
        .collect();
    let once = schemas.iter().all(|s| Some(s) == schemas.first());
    let mut found = Vec::new();
    for schema in schemas.iter().take(if once { 1 } else { schemas.len() }) {
        collect_formats(schema, &mut found);
    }
    found
}

fn collect_formats(schema: &Value, found: &mut Vec<String>) {
    let format = value::text(schema, "format");
    if !format.is_empty() && !is_known_format(value::text(schema, "type"), format) {
        found.push(format.to_owned());
    }
    for below in structure::children(schema) {
        collect_formats(below, found);
    }
}
