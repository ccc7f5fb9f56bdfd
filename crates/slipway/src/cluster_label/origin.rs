//! The other side of cluster validation: our own requests say by `X-Cluster` where they come from, and a pod that takes
//! none from there says so.

use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use slipway_kernel::admission::Count;
use slipway_runtime::gather::{Rejection, Sender};

use super::CLUSTER;

/// What requests say, if they say anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    label: Option<HeaderValue>,
}

impl Origin {
    /// Requests with this label; one that no header can carry is left out.
    pub(crate) fn new(label: Option<&str>) -> Self {
        let label = label.and_then(|label| HeaderValue::from_str(label).ok());
        Self { label }
    }
}

impl Sender for Origin {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        Some((CLUSTER, self.label.clone()?))
    }

    fn rejection(&self, code: u16, body: &str) -> Option<Rejection> {
        if code != StatusCode::NETWORK_AUTHENTICATION_REQUIRED.as_u16() {
            return None;
        }
        let body: Value = serde_json::from_str(body).ok()?;
        let text = |field: &str| body.get(field).and_then(Value::as_str);
        let message = text("cluster_validation_error_message")?.to_owned();
        let label = self.label.as_ref().and_then(|label| label.to_str().ok());
        let count = Count {
            name: "rollout_operator_client_invalid_cluster_validation_label_requests_total",
            help: "Requests that pods took for those of another cluster",
            labels: vec![
                ("method", text("route").unwrap_or_default().to_owned()),
                ("protocol", "http".to_owned()),
                ("request_cluster", label.unwrap_or_default().to_owned()),
            ],
        };
        Some(Rejection { count, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_say_where_they_come_from_if_a_header_can() {
        let said = |label| Origin::new(label).header().map(|(_, value)| value);
        assert_eq!(said(Some("mimir")), Some(HeaderValue::from_static("mimir")));
        assert_eq!(said(None), None);
        assert_eq!(said(Some("a\nb")), None);
    }

    #[test]
    fn a_pod_of_another_cluster_is_counted_with_its_route_and_our_label() {
        let body = r#"{"cluster_validation_error_message":"wrong cluster","route":"prepare"}"#;
        let origin = Origin::new(Some("mimir"));
        let rejection = origin.rejection(511, body).unwrap();
        assert_eq!(rejection.message, "wrong cluster");
        let name = "rollout_operator_client_invalid_cluster_validation_label_requests_total";
        assert_eq!(rejection.count.name, name);
        let values = rejection.count.labels.into_iter();
        let values: Vec<String> = values
            .map(|(label, value)| format!("{label}={value}"))
            .collect();
        assert_eq!(
            values,
            ["method=prepare", "protocol=http", "request_cluster=mimir"]
        );
        for (code, body) in [(500, body), (511, "{}"), (511, "proxy")] {
            assert_eq!(origin.rejection(code, body), None, "{code} {body}");
        }
    }
}
