//! Requests that must say by `X-Cluster` that they are meant for this cluster, as the original can be told to insist.

mod origin;

use anyhow::{Context, Result};
use http::{HeaderMap, HeaderName, StatusCode};
use regex::{Regex, RegexSet};
use serde_json::json;
use slipway_kernel::admission::Count;
use slipway_runtime::request_filter::{Rejection, RequestFilter};

use crate::args::ClusterValidation;
pub(crate) use origin::Origin;

const CLUSTER: HeaderName = HeaderName::from_static("x-cluster");

/// Paths that need no label if none are named: all webhooks, because an API server cannot send it. The original forgets
/// two of them.
const WEBHOOKS: [&str; 4] = [
    "admission/no-downscale",
    "admission/prepare-downscale",
    "admission/pod-eviction",
    "admission/zpdb-validation",
];

/// Looks at the labels of requests.
pub(crate) struct ClusterLabel {
    label: String,
    is_soft: bool,
    exempt_paths: Regex,
    exempt_agents: RegexSet,
}

impl ClusterLabel {
    /// One that insists on this label, if that is asked for.
    pub(crate) fn new(label: &str, asked: &ClusterValidation) -> Result<Option<Self>> {
        if !asked.is_enabled {
            return Ok(None);
        }
        let named: Vec<&str> = asked.excluded_paths.iter().map(String::as_str).collect();
        let named = if named.is_empty() {
            WEBHOOKS.to_vec()
        } else {
            named
        };
        let paths = format!(".*/(metrics|debug/pprof.*|ready|{})", named.join("|"));
        Ok(Some(Self {
            label: label.to_owned(),
            is_soft: asked.is_soft,
            exempt_paths: Regex::new(&paths)
                .context("reading -server.cluster-validation.http.excluded-paths")?,
            exempt_agents: RegexSet::new(&asked.excluded_agents)
                .context("reading -server.cluster-validation.http.excluded-user-agents")?,
        }))
    }

    fn is_exempt(&self, path: &str, headers: &HeaderMap) -> bool {
        let agent = headers.get(http::header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok());
        path == "/healthz"
            || self.exempt_paths.is_match(path)
            || agent.is_some_and(|agent| self.exempt_agents.is_match(agent))
    }
}

/// A path as dashboards spell it.
fn route(path: &str) -> &'static str {
    match path {
        "/admission/no-downscale" => "admission_no_downscale",
        "/admission/prepare-downscale" => "admission_prepare_downscale",
        "/admission/pod-eviction" => "admission_pod_eviction",
        "/admission/zpdb-validation" => "admission_zpdb_validation",
        _ => "other",
    }
}

impl RequestFilter for ClusterLabel {
    fn filter(&self, path: &str, headers: &HeaderMap) -> Option<Rejection> {
        if self.is_exempt(path, headers) {
            return None;
        }
        let named: Vec<&str> = headers
            .get_all(CLUSTER)
            .iter()
            .map(|label| label.to_str().unwrap_or_default())
            .collect();
        let (found, message) = match named.as_slice() {
            [one] if *one == self.label => return None,
            [one] => (
                *one,
                format!(
                    "rejected request with wrong cluster validation label {one:?} - it should be {:?}",
                    self.label
                ),
            ),
            [] => (
                "",
                format!(
                    "rejected request with empty cluster validation label - it should be {:?}",
                    self.label
                ),
            ),
            _ => (
                "",
                "rejected request with multiple cluster validation labels".to_owned(),
            ),
        };
        let route = route(path);
        let count = Count {
            name: "rollout_operator_server_invalid_cluster_validation_label_requests_total",
            help: "Requests that were not meant for this cluster",
            labels: vec![
                ("protocol", "http".to_owned()),
                ("method", route.to_owned()),
                ("cluster_validation_label", self.label.clone()),
                ("request_cluster_validation_label", found.to_owned()),
            ],
        };
        let body = json!({"cluster_validation_error_message": message, "route": route});
        let code = StatusCode::NETWORK_AUTHENTICATION_REQUIRED;
        Some(Rejection {
            count,
            message,
            refusal: (!self.is_soft).then_some((code, body)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(is_soft: bool) -> ClusterLabel {
        let asked = ClusterValidation {
            is_enabled: true,
            is_soft,
            excluded_paths: Vec::new(),
            excluded_agents: vec!["^kube-probe/".to_owned()],
        };
        ClusterLabel::new("mimir", &asked).unwrap().unwrap()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut all = HeaderMap::new();
        for (name, value) in pairs {
            all.append(*name, value.parse().unwrap());
        }
        all
    }

    #[test]
    fn only_requests_for_this_cluster_are_answered() {
        let filter = filter(false);
        let ask = |path: &str, pairs: &[(&'static str, &'static str)]| {
            let rejection = filter.filter(path, &headers(pairs));
            rejection.map(|rejection| rejection.refusal.unwrap().0.as_u16())
        };
        assert_eq!(ask("/any", &[("x-cluster", "mimir")]), None);
        assert_eq!(ask("/any", &[("x-cluster", "loki")]), Some(511));
        assert_eq!(ask("/any", &[]), Some(511));
        let twice = [("x-cluster", "mimir"), ("x-cluster", "mimir")];
        assert_eq!(ask("/any", &twice), Some(511));
        for exempt in ["/metrics", "/ready", "/healthz", "/debug/pprof/heap"] {
            assert_eq!(ask(exempt, &[]), None, "{exempt}");
        }
        assert_eq!(ask("/any", &[("user-agent", "kube-probe/1.33")]), None);
    }

    /// D11: the original's exclusions miss two webhooks.
    #[test]
    fn no_webhook_needs_a_label_unless_paths_are_named() {
        let filter = filter(false);
        for path in WEBHOOKS {
            assert_eq!(filter.filter(&format!("/{path}"), &HeaderMap::new()), None);
        }
        let asked = ClusterValidation {
            is_enabled: true,
            excluded_paths: vec!["admission/no-downscale".to_owned()],
            ..ClusterValidation::default()
        };
        let filter = ClusterLabel::new("mimir", &asked).unwrap().unwrap();
        let rejection = filter.filter("/admission/pod-eviction", &HeaderMap::new());
        assert!(rejection.is_some());
    }

    #[test]
    fn softly_it_is_only_counted_and_otherwise_not_at_all() {
        let rejection = filter(true).filter("/any", &HeaderMap::new()).unwrap();
        assert_eq!(rejection.refusal, None);
        let off = ClusterLabel::new("mimir", &ClusterValidation::default());
        assert!(off.unwrap().is_none());
        let wrong = ClusterValidation {
            is_enabled: true,
            excluded_agents: vec!["(".to_owned()],
            ..ClusterValidation::default()
        };
        assert!(ClusterLabel::new("mimir", &wrong).is_err());
    }
}
