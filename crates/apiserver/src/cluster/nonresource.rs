//! Paths that name no resource: discovery, OpenAPI, version, health.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::json;

use super::Cluster;
use crate::discovery;
use crate::exchange::{Content, Reply};
use crate::openapi;
use crate::resource::Resource;
use crate::route::Route;
use crate::status::{Outcome, Status};

/// The version that the answers are held against.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

pub(super) fn page_not_found() -> Reply {
    Reply { code: 404, content: Content::Text("404 page not found\n".to_owned()), warnings: Vec::new(), retry_after: None }
}

pub(super) fn respond(
    cluster: &Cluster,
    route: &Route,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Outcome<Reply> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Box::new(Status::method_not_allowed_here()));
    }
    let registry = cluster.registry();
    let resources: Vec<&Resource> = registry.iter().map(AsRef::as_ref).collect();
    let accept = headers.get(http::header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let found = match route {
        Route::Legacy | Route::Groups => {
            let legacy = *route == Route::Legacy;
            if let Some((kind, value)) = discovery::aggregated(&resources, legacy, accept) {
                return Ok(Reply::typed(kind, serde_json::to_vec(&value).unwrap_or_default().into()));
            }
            Some(if legacy { discovery::legacy() } else { discovery::groups(&resources) })
        }
        Route::Group(group) => discovery::group(&resources, group),
        Route::GroupVersion(group, version) => discovery::group_version(&resources, group, version),
        Route::Resource(_) | Route::Other => other(&resources, path, accept),
    };
    match found {
        Some(value) => Ok(Reply::value(200, value)),
        None if matches!(path, "/healthz" | "/livez" | "/readyz") => {
            Ok(Reply { code: 200, content: Content::Text("ok".to_owned()), warnings: Vec::new(), retry_after: None })
        }
        None if path == "/openapi/v2" => Ok(Reply::typed("application/json", Bytes::from(openapi::v2(&resources).to_string()))),
        None => Ok(page_not_found()),
    }
}

fn other(resources: &[&Resource], path: &str, _accept: &str) -> Option<serde_json::Value> {
    match path {
        "/version" | "/version/" => Some(json!({
            "major": "1", "minor": "36", "gitVersion": KUBERNETES_VERSION, "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "linux/amd64",
            "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        })),
        "/" => Some(json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]})),
        "/openapi/v3" => Some(openapi::index(resources)),
        path => {
            let group_version = path.strip_prefix("/openapi/v3/")?;
            openapi::document(resources, group_version)
        }
    }
}
