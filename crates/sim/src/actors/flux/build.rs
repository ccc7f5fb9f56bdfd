//! What a folder of manifests comes to for one Kustomization: with values, in its namespace, and marked as its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::key::Key;
use super::super::world::World;
use super::script::Folder;
use super::{APPLIED_BY, APPLIED_FROM, Entry, Kustomization, PostBuild, substitute};
use crate::scenario::Named;

/// Something to apply.
pub(super) struct Built {
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) entry: Entry,
}

/// Why nothing is applied.
pub(super) enum Unbuilt {
    /// It cannot be built.
    Build(String),
    /// The API would refuse it.
    Refused(String),
}

/// What is applied, what others need first.
pub(super) fn all(
    world: &World,
    kustomization: &Kustomization,
    folder: Folder,
) -> Result<Vec<Built>, Unbuilt> {
    let values = values(world, kustomization).map_err(|problem| match folder.first() {
        Some(first) => Unbuilt::Build(format!("post build failed for {}: {problem}", named(first))),
        None => Unbuilt::Build(problem),
    })?;
    let mut built = Vec::new();
    for mut manifest in folder {
        substitute::into(&mut manifest, &values).map_err(|name| {
            let named = named(&manifest);
            Unbuilt::Build(format!(
                "post build failed for {named}: envsubst error: variable substitution failed: variable not set (strict mode): \"{name}\""
            ))
        })?;
        built.push(one(kustomization, manifest)?);
    }
    let is_first = |kind: &str| matches!(kind, "Namespace" | "CustomResourceDefinition");
    built.sort_by_key(|one| {
        !is_first(
            one.body
                .get("kind")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        )
    });
    Ok(built)
}

fn text<'a>(manifest: &'a Value, pointer: &str) -> &'a str {
    manifest
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Group and version of a manifest.
fn version(manifest: &Value) -> (&str, &str) {
    let api = text(manifest, "/apiVersion");
    api.split_once('/').unwrap_or(("", api))
}

/// A manifest, as Flux names it when it cannot be built.
fn named(manifest: &Value) -> String {
    let (group, version) = version(manifest);
    let group = if group.is_empty() { "[noGrp]" } else { group };
    let (kind, name) = (text(manifest, "/kind"), text(manifest, "/metadata/name"));
    format!("'{kind}.{version}.{group}/{name}'")
}

fn one(kustomization: &Kustomization, mut manifest: Value) -> Result<Built, Unbuilt> {
    let meta = &kustomization.metadata;
    let labels = [
        (APPLIED_BY, meta.name.clone().unwrap_or_default()),
        (APPLIED_FROM, meta.namespace.clone().unwrap_or_default()),
    ];
    let refused = |problem: String| Unbuilt::Refused(problem);
    let target = kustomization.spec.target_namespace.as_deref();
    let namespace = target.or(meta.namespace.as_deref()).unwrap_or_default();
    let is_placed = Named::of(&manifest).is_ok();
    let place = manifest.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(place) = place else {
        return Err(Unbuilt::Build("missing metadata.name in object".to_owned()));
    };
    if target.is_some() || !place.contains_key("namespace") {
        // What has no namespace says so when it is asked to have one.
        let before = place.insert("namespace".to_owned(), json!(namespace));
        if Named::of(&manifest).is_err() && is_placed {
            restore(&mut manifest, before);
        }
    }
    for (label, value) in labels {
        manifest["metadata"]["labels"][label] = json!(value);
    }
    let named = Named::of(&manifest).map_err(|error| refused(error.to_string()))?;
    let (group, version) = version(&manifest);
    let object = &named.0;
    let id = format!(
        "{}_{}_{group}_{}",
        object.namespace, object.name, object.kind.kind
    );
    let entry = Entry {
        id,
        v: version.to_owned(),
    };
    Ok(Built {
        path: named.path(),
        body: manifest,
        entry,
    })
}

fn restore(manifest: &mut Value, before: Option<Value>) {
    if let Some(place) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        match before {
            Some(before) => place.insert("namespace".to_owned(), before),
            None => place.remove("namespace"),
        };
    }
}

/// The values that are given: those in place go before others.
fn values(
    world: &World,
    kustomization: &Kustomization,
) -> Result<BTreeMap<String, String>, String> {
    let PostBuild {
        substitute,
        substitute_from,
    } = kustomization.spec.post_build.clone().unwrap_or_default();
    let namespace = kustomization
        .metadata
        .namespace
        .as_deref()
        .unwrap_or_default();
    let mut all = BTreeMap::new();
    for from in substitute_from {
        let key = Key::new(namespace, &from.name);
        let (found, plural) = if from.kind == "Secret" {
            (
                world.secrets.get(&key).map(|secret| decoded(secret)),
                "secrets",
            )
        } else {
            let map = world.config_maps.get(&key);
            (
                map.map(|map| map.data.clone().unwrap_or_default()),
                "configmaps",
            )
        };
        match found {
            Some(data) => all.extend(data),
            None if from.optional => {}
            None => {
                let (kind, name) = (&from.kind, &from.name);
                return Err(format!(
                    "substitute from '{kind}/{name}' error: {plural} \"{name}\" not found"
                ));
            }
        }
    }
    all.extend(substitute);
    Ok(all)
}

/// The texts of a Secret.
pub(super) fn decoded(secret: &k8s_openapi::api::core::v1::Secret) -> BTreeMap<String, String> {
    let data = secret.data.iter().flatten();
    data.filter_map(|(name, bytes)| Some((name.clone(), String::from_utf8(bytes.0.clone()).ok()?)))
        .collect()
}

/// The path of something that was applied, and its kind; none if nobody knows it.
pub(super) fn path(entry: &Entry) -> Option<String> {
    let mut parts = entry.id.split('_');
    let (namespace, name, group, kind) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let api = if group.is_empty() {
        entry.v.clone()
    } else {
        format!("{group}/{}", entry.v)
    };
    let mut manifest = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        manifest["metadata"]["namespace"] = json!(namespace);
    }
    Some(Named::of(&manifest).ok()?.path())
}
