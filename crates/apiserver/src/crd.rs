//! Custom resources: from a `CustomResourceDefinition` to a [`crate::resource::Resource`].
//!
//! ```text
//!   definition ──► establish (status) ──► resource ─┬─► Schema of each version   decode, prune, apply, OpenAPI
//!                                                   └─► rules                      default, validate, CEL, columns
//! ```
//!
//! Everything that can be compiled is compiled once for all clusters of the process: schemas with their patterns and CEL
//! rules by their text, when an object first needs them; paths and columns with the definition.
//! It does not promise the real server's limit on the cost of CEL rules at run time, nor conversion webhooks: a
//! definition that names one is accepted, and its versions differ in their `apiVersion` and pruning only.

pub mod build;
pub mod check;
pub mod columns;
mod compiled;
pub mod embedded;
pub mod fieldpath;
pub mod jsonpath;
mod lists;
pub mod pair;
pub mod pattern;
pub mod prune;
pub mod rules;
mod scale;
mod status;
mod strategy;
pub mod structural;
#[cfg(test)]
mod tests;
pub mod version;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::resource::{Names, Resource, Version};
use crate::value;

pub use prune::{normalise_numbers, prune};
pub use status::{
    CLEANUP, begin_delete, deleting_instances, establish, finish_delete, is_established,
    is_terminating,
};
pub use strategy::CustomStrategy;

/// The verbs of a custom resource, in the order in which discovery shows them.
const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];
/// Those that are left while its definition goes.
const TERMINATING_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];

/// The resource that a definition describes. The error says what makes the definition unusable, which validation
/// would have refused.
pub fn resource(crd: &Value) -> Result<Resource, String> {
    let entries = value::items(crd, "spec.versions");
    let storage = entries
        .iter()
        .find(|v| value::flag(v, "storage"))
        .ok_or("invalid apiextensionsv1.CustomResourceDefinition, no storage version")?;
    let names = names(crd);
    let mut rules = BTreeMap::new();
    let mut versions = Vec::new();
    for entry in entries {
        let name = value::text(entry, "name").to_owned();
        let compiled = strategy::VersionRules::compile(entry);
        let schema = compiled.schema().clone();
        rules.insert(name.clone(), compiled);
        if value::flag(entry, "served") {
            let deprecation = deprecation(entry, entries, &names);
            versions.push(Version {
                name,
                schema,
                deprecation,
            });
        }
    }
    versions.sort_by(|a, b| version::compare(&b.name, &a.name));
    Ok(Resource {
        names,
        namespaced: value::text(crd, "spec.scope") == "Namespaced",
        versions,
        storage_version: value::text(storage, "name").to_owned(),
        verbs: if is_terminating(crd) {
            TERMINATING_VERBS.to_vec()
        } else {
            VERBS.to_vec()
        },
        status: entries.iter().any(strategy::has_status),
        scale: scale::of(storage).or_else(|| entries.iter().find_map(scale::of)),
        subresources: Vec::new(),
        strategy: Arc::new(CustomStrategy {
            versions: rules,
            storage: value::text(storage, "name").to_owned(),
        }),
        custom: true,
        returns_deleted: false,
        hashed_as: None,
        stored_in: None,
    })
}

/// The names that the server accepted; before it did, those that the definition asks for.
fn names(crd: &Value) -> Names {
    let accepted =
        value::at(crd, "status.acceptedNames").filter(|n| !value::text(n, "kind").is_empty());
    let names = accepted
        .or_else(|| value::at(crd, "spec.names"))
        .unwrap_or(&Value::Null);
    let text = |key: &str| value::text(names, key).to_owned();
    let list = |key: &str| {
        let all = value::items(names, key).iter();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Names {
        group: value::text(crd, "spec.group").to_owned(),
        kind: text("kind"),
        list_kind: text("listKind"),
        plural: text("plural"),
        singular: text("singular"),
        short_names: list("shortNames"),
        categories: list("categories"),
    }
}

/// The warning that goes with every answer in a deprecated version.
fn deprecation(entry: &Value, entries: &[Value], names: &Names) -> Option<String> {
    if !value::flag(entry, "deprecated") {
        return None;
    }
    if let Some(given) = entry.get("deprecationWarning").and_then(Value::as_str) {
        return Some(given.to_owned());
    }
    let (group, kind, name) = (&names.group, &names.kind, value::text(entry, "name"));
    let better = entries
        .iter()
        .filter(|v| value::flag(v, "served") && !value::flag(v, "deprecated"))
        .map(|v| value::text(v, "name"))
        .filter(|other| version::compare(other, name).is_gt())
        .max_by(|a, b| version::compare(a, b));
    let instead = better
        .map(|v| format!("; use {group}/{v} {kind}"))
        .unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}
