//! `OpenAPI` documents, made from the schemas and resources of one cluster.
//!
//! They carry what clients use: the schemas with their types, list kinds, merge keys and defaults; the paths with
//! their kinds and query parameters. Descriptions are there for custom resources, whose authors wrote them, and for
//! the three fields that every object has.

mod paths;
mod schemas;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::discovery;
use crate::resource::Resource;

/// `/openapi/v3`: where the documents of the group versions are. The addresses change with the documents.
pub fn index(resources: &[&Resource]) -> Value {
    let mut paths = Map::new();
    for (group, version) in group_versions(resources) {
        let key = if group.is_empty() {
            format!("api/{version}")
        } else {
            format!("apis/{group}/{version}")
        };
        let hash = fingerprint(resources, group, version);
        let url = format!("/openapi/v3/{key}?hash={hash}");
        paths.insert(key, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn group_versions<'a>(resources: &[&'a Resource]) -> Vec<(&'a str, &'a str)> {
    let mut all = Vec::new();
    for group in std::iter::once("").chain(discovery::group_names(resources)) {
        for version in discovery::versions(resources, group) {
            all.push((group, version));
        }
    }
    all
}

/// A text that differs whenever the document does; also its `ETag`.
pub fn fingerprint(resources: &[&Resource], group: &str, version: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(env!("CARGO_PKG_VERSION"));
    hash.update(group);
    hash.update(version);
    for resource in discovery::members(resources, group, version) {
        let names = &resource.names;
        hash.update(format!("{names:?}{:?}", resource.verbs));
        for sub in discovery::subresources(resource) {
            hash.update(sub.name);
        }
        let written = resource.version(version).and_then(|v| v.schema.source());
        hash.update(written.unwrap_or_default());
    }
    hash.finalize()
        .iter()
        .fold(String::new(), |mut text, byte| {
            use std::fmt::Write as _;
            let _ = write!(text, "{byte:02X}");
            text
        })
}

/// `/openapi/v3/api/v1` (the group is empty) and `/openapi/v3/apis/GROUP/VERSION`.
pub fn document(resources: &[&Resource], group: &str, version: &str) -> Option<Value> {
    let members = discovery::members(resources, group, version);
    if members.is_empty() {
        return None;
    }
    let custom = members.iter().all(|resource| resource.custom);
    let mut paths = Map::new();
    let mut schemas = schemas::Schemas::default();
    schemas.add_named(schemas::DELETE_OPTIONS);
    schemas.add_named(schemas::STATUS);
    schemas.add_patch();
    for resource in members {
        schemas.add_resource(resource, version);
        paths::add(&mut paths, resource, version);
    }
    let title = if custom {
        json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    } else {
        json!({"title": "Kubernetes", "version": "1.36"})
    };
    Some(json!({
        "openapi": "3.0.0",
        "info": title,
        "paths": paths,
        "components": {"schemas": schemas.finish()},
    }))
}

/// The media type of [`VERSION_2_PROTOBUF`].
pub const PROTOBUF_MEDIA: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What [`version_2`] says, in protobuf, which kubectl asks for when it finds no other schema of a kind.
pub const VERSION_2_PROTOBUF: &[u8] = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.36";

/// `/openapi/v2`, for clients that ask whether there is one: they find no definitions and do without.
pub fn version_2() -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": {},
        "definitions": {},
    })
}

#[cfg(test)]
mod tests;
