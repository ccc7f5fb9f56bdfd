//! Measures the requests that go to the API, by what they are about.

use std::sync::Arc;

use http::{Method, Request, StatusCode, Uri};
use tokio::time::Instant;

use crate::state::Shared;

/// A request that has begun.
pub(crate) struct Began {
    uri: Uri,
    method: Method,
    at: Instant,
}

impl Began {
    /// Now.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self {
            uri: request.uri().clone(),
            method: request.method().clone(),
            at: Instant::now(),
        }
    }

    /// The head of its answer is there, or there is none.
    pub(crate) fn ended(self, shared: &Shared, code: Option<StatusCode>) {
        let path = self.uri.path();
        let (about, code) = (describe(path), code.map(|code| code.as_u16()));
        let traffic = &shared.metrics.traffic;
        traffic.asked_api(&about, self.method.as_str(), code, self.at.elapsed());
        if code == Some(StatusCode::TOO_MANY_REQUESTS.as_u16()) {
            traffic.limited(&group(path));
        }
    }
}

/// The same client, measured until the head of each answer.
pub(crate) fn measured(client: kube::Client, shared: &Arc<Shared>) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let shared = shared.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (client, shared) = (client.clone(), shared.clone());
        async move {
            let began = Began::of(&request);
            let answer = client.send(request).await;
            began.ended(&shared, answer.as_ref().ok().map(http::Response::status));
            answer.map_err(tower::BoxError::from)
        }
    });
    kube::Client::new(service, namespace)
}

/// The API group of a path: `core`, `apps`, `apis` for the list of them, or the first part of any other path.
fn group(path: &str) -> String {
    let mut parts = path.trim_matches('/').split('/');
    match (parts.next().unwrap_or_default(), parts.next()) {
        ("api", _) => "core".to_owned(),
        ("apis", Some(group)) => group.to_owned(),
        ("apis", None) => "apis".to_owned(),
        (other, _) => format!("/{other}"),
    }
}

/// What a path of the API is about: `apps/v1/statefulsets object scale subresource`. Neither namespaces nor names are in
/// it; a path of another form is given as it is.
fn describe(path: &str) -> String {
    about(path).unwrap_or_else(|| path.to_owned())
}

fn about(path: &str) -> Option<String> {
    let mut parts = path.trim_matches('/').split('/');
    let group = match parts.next()? {
        "api" => "core",
        "apis" => parts.next()?,
        _ => return None,
    };
    let version = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    let (plural, rest) = match rest.as_slice() {
        // A namespace's own subresources come where kinds do otherwise.
        ["namespaces", _, sub @ ("status" | "finalize")] => {
            return Some(format!(
                "{group}/{version}/namespaces object {sub} subresource"
            ));
        }
        ["namespaces", _, plural, rest @ ..] | [plural, rest @ ..] => (*plural, rest),
        [] => return None,
    };
    let what = match rest {
        [] => "collection".to_owned(),
        [_] => "object".to_owned(),
        [_, sub @ ..] => format!("object {} subresource", sub.join("/")),
    };
    Some(format!("{group}/{version}/{plural} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of the original's own tests: every kind of path that a client of ours, or another one, may send.
    #[test]
    fn the_groups_of_paths() {
        for (path, expected) in [
            ("/api", "core"),
            ("/api/v1", "core"),
            ("/api/v1/pods", "core"),
            ("/api/v1/namespaces", "core"),
            ("/api/v1/namespaces/a", "core"),
            ("/api/v1/namespaces/a/pods", "core"),
            ("/api/v1/namespaces/a/pods/b", "core"),
            ("/api/v1/namespaces/a/pods/b/eviction", "core"),
            ("/api/v1/nodes/n/status", "core"),
            ("/apis", "apis"),
            ("/apis/", "apis"),
            ("/apis/apps", "apps"),
            ("/apis/apps/v1", "apps"),
            ("/apis/apps/v1/statefulsets", "apps"),
            ("/apis/apps/v1/namespaces/a/statefulsets", "apps"),
            ("/apis/apps/v1/namespaces/a/statefulsets/b", "apps"),
            ("/apis/apps/v1/namespaces/a/statefulsets/b/scale", "apps"),
            (
                "/apis/rollout-operator.grafana.com/v1/namespaces/a/zoneawarepoddisruptionbudgets",
                "rollout-operator.grafana.com",
            ),
            (
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/x",
                "admissionregistration.k8s.io",
            ),
            ("/version", "/version"),
            ("/healthz/etcd", "/healthz"),
            ("/", "/"),
        ] {
            assert_eq!(group(path), expected, "{path}");
        }
    }

    #[test]
    fn paths_are_told_by_kind_without_names() {
        for (path, expected) in [
            ("/api/v1/pods", "core/v1/pods collection"),
            ("/api/v1/namespaces/a/pods", "core/v1/pods collection"),
            ("/api/v1/namespaces/a/pods/b", "core/v1/pods object"),
            (
                "/api/v1/namespaces/a/pods/b/eviction",
                "core/v1/pods object eviction subresource",
            ),
            (
                "/api/v1/namespaces/a/pods/b/log",
                "core/v1/pods object log subresource",
            ),
            ("/api/v1/namespaces", "core/v1/namespaces collection"),
            ("/api/v1/namespaces/a", "core/v1/namespaces object"),
            (
                "/api/v1/namespaces/a/status",
                "core/v1/namespaces object status subresource",
            ),
            ("/api/v1/nodes", "core/v1/nodes collection"),
            ("/api/v1/nodes/n", "core/v1/nodes object"),
            (
                "/api/v1/nodes/n/status",
                "core/v1/nodes object status subresource",
            ),
            (
                "/apis/apps/v1/statefulsets",
                "apps/v1/statefulsets collection",
            ),
            (
                "/apis/apps/v1/namespaces/a/statefulsets",
                "apps/v1/statefulsets collection",
            ),
            (
                "/apis/apps/v1/namespaces/a/statefulsets/b",
                "apps/v1/statefulsets object",
            ),
            (
                "/apis/apps/v1/namespaces/a/statefulsets/b/status",
                "apps/v1/statefulsets object status subresource",
            ),
            (
                "/apis/rollout-operator.grafana.com/v1/namespaces/a/replicatemplates/r/scale",
                "rollout-operator.grafana.com/v1/replicatemplates object scale subresource",
            ),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/x",
                "rbac.authorization.k8s.io/v1/clusterroles object",
            ),
            ("/api", "/api"),
            ("/api/v1", "/api/v1"),
            ("/apis/apps", "/apis/apps"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/version", "/version"),
        ] {
            assert_eq!(describe(path), expected, "{path}");
        }
    }
}
