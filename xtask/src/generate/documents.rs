//! The schemas in Kubernetes' `OpenAPI` v3 documents.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::outline;

/// The documents that are read: the API groups and versions that the server knows.
const DOCUMENTS: &[&str] = &[
    "api__v1",
    "apis__admissionregistration.k8s.io__v1",
    "apis__apiextensions.k8s.io__v1",
    "apis__apps__v1",
    "apis__authentication.k8s.io__v1",
    "apis__authorization.k8s.io__v1",
    "apis__autoscaling__v1",
    "apis__autoscaling__v2",
    "apis__batch__v1",
    "apis__certificates.k8s.io__v1",
    "apis__coordination.k8s.io__v1",
    "apis__discovery.k8s.io__v1",
    "apis__events.k8s.io__v1",
    "apis__networking.k8s.io__v1",
    "apis__node.k8s.io__v1",
    "apis__policy__v1",
    "apis__rbac.authorization.k8s.io__v1",
    "apis__resource.k8s.io__v1",
    "apis__scheduling.k8s.io__v1",
    "apis__storage.k8s.io__v1",
];

/// Schemas by their `OpenAPI` name.
pub(super) type Schemas = BTreeMap<String, Value>;

fn parsed(folder: &Path, document: &str) -> Result<Value> {
    let path = folder.join(format!("{document}_openapi.json"));
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("cannot parse {}", path.display()))
}

/// What all documents have, for the test that compares the embedded server's with them.
pub(super) fn outlines(folder: &Path) -> Result<String> {
    let mut text = String::new();
    for document in DOCUMENTS {
        text.push_str(&outline::write(
            document,
            &outline::of(&parsed(folder, document)?),
        ));
    }
    Ok(text)
}

/// Reads all schemas. A name that stands in several documents stands for the same schema in each.
pub(super) fn read(folder: &Path) -> Result<Schemas> {
    let mut all = Schemas::new();
    for document in DOCUMENTS {
        let mut value = parsed(folder, document)?;
        if let Some(Value::Object(schemas)) = value.pointer_mut("/components/schemas") {
            all.extend(std::mem::take(schemas));
        }
    }
    Ok(all)
}

/// The name that a `$ref`, bare or in an `allOf`, points to.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    let place = schema
        .get("$ref")
        .or_else(|| schema.pointer("/allOf/0/$ref"))?;
    place.as_str()?.strip_prefix("#/components/schemas/")
}

/// The one group, version and kind of a schema that stands for a kind of its own.
pub(super) fn kind(schema: &Value) -> Option<(&str, &str, &str)> {
    let kinds = schema.get("x-kubernetes-group-version-kind")?.as_array()?;
    let [one] = kinds.as_slice() else { return None };
    let part = |name| one.get(name).and_then(Value::as_str);
    Some((part("group")?, part("version")?, part("kind")?))
}
