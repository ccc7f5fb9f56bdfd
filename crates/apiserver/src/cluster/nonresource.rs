//! Paths that name no resource: discovery, `OpenAPI`, version, health.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::Cluster;
use crate::discovery;
use crate::exchange::{Content, Reply};
use crate::negotiate;
use crate::openapi;
use crate::resource::Resource;
use crate::route::Route;
use crate::status::{Outcome, Status};

/// The version that the answers are held against.
pub(super) const KUBERNETES_VERSION: &str = "v1.36.3";

const PATHS: [&str; 9] = [
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
];

pub(super) fn page_not_found() -> Reply {
    text(404, "404 page not found\n")
}

fn text(code: u16, text: &str) -> Reply {
    Reply {
        code,
        content: Content::Text(text.to_owned()),
        warnings: Vec::new(),
        retry_after: None,
    }
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
    let header = |name| {
        headers
            .get(name)
            .and_then(|v: &http::HeaderValue| v.to_str().ok())
            .unwrap_or_default()
    };
    let address = header(http::header::HOST);
    let accept = header(http::header::ACCEPT);
    if path == "/openapi/v2" && accept.contains("proto-openapi.spec.v2") {
        return Ok(Reply::typed(
            openapi::PROTOBUF_MEDIA,
            Bytes::from_static(openapi::VERSION_2_PROTOBUF),
        ));
    }
    match route {
        Route::Legacy if negotiate::accepts_aggregated(accept) => {
            return Ok(typed(&discovery::aggregated_core(&resources)));
        }
        Route::Groups if negotiate::accepts_aggregated(accept) => {
            return Ok(typed(&discovery::aggregated_groups(&resources)));
        }
        // A router stands before these.
        Route::Legacy | Route::GroupVersion(..) => negotiate::plain(accept, true)?,
        Route::Groups | Route::Group(_) => negotiate::plain(accept, false)?,
        _ => {}
    }
    let found = match route {
        Route::Legacy => Some(discovery::core_versions(address)),
        Route::Groups => Some(discovery::groups(&resources)),
        Route::Group(group) => discovery::group(&resources, group),
        Route::GroupVersion(group, version) => discovery::resource_list(&resources, group, version),
        Route::Unserved(group, _) => return Ok(unserved(&resources, group)),
        Route::Resource(_) | Route::Other => return Ok(other(&resources, path)),
    };
    match (found, route) {
        (Some(value), _) => Ok(Reply::value(200, value)),
        (None, Route::GroupVersion(group, _)) => Ok(unserved(&resources, group)),
        (None, _) => Ok(page_not_found()),
    }
}

/// A path below a group: a `Status` where the group is the server's own, else the text of the last resort.
pub(super) fn unserved(resources: &[&Resource], group: &str) -> Reply {
    if resources
        .iter()
        .any(|r| r.names.group == group && !r.custom)
    {
        return Reply::status(&Status::no_such_resource());
    }
    page_not_found()
}

fn typed(value: &Value) -> Reply {
    Reply::typed(discovery::AGGREGATED, Bytes::from(value.to_string()))
}

fn other(resources: &[&Resource], path: &str) -> Reply {
    let document = match path.trim_end_matches('/') {
        "" => Some(json!({"paths": PATHS})),
        "/version" => Some(version()),
        "/healthz" | "/livez" | "/readyz" | "/healthz/ping" | "/livez/ping" | "/readyz/ping" => {
            return text(200, "ok");
        }
        "/openapi/v2" => Some(openapi::version_2()),
        "/openapi/v3" => return text(200, &openapi::index(resources).to_string()),
        path => openapi_document(resources, path),
    };
    document.map_or_else(page_not_found, |value| Reply::value(200, value))
}

fn openapi_document(resources: &[&Resource], path: &str) -> Option<Value> {
    let rest = path.strip_prefix("/openapi/v3/")?;
    let (group, version) = match rest.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    openapi::document(resources, group, version)
}

/// What the server says of itself: the version whose answers it gives, and no compiler, which tells it from a real one.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": KUBERNETES_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    })
}
