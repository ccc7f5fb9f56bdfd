//! Gateway API: the `HTTPRoute`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The API group.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// The route's kind.
pub const HTTP_ROUTE: &str = "HTTPRoute";

/// The route's resource.
pub const HTTP_ROUTES: &str = "httproutes";

/// A filter that copies requests.
pub const REQUEST_MIRROR: &str = "RequestMirror";

/// A filter that changes headers of responses.
pub const RESPONSE_HEADERS: &str = "ResponseHeaderModifier";

/// The condition of a parent that takes the route.
pub const ACCEPTED: &str = "Accepted";

/// Where a rule sends requests, and how many of them. What else there is stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendRef {
    /// Empty for the core.
    #[serde(default)]
    pub group: String,
    /// `Service`.
    #[serde(default = "service")]
    pub kind: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// Its share among the rule's backends.
    #[serde(default = "one")]
    pub weight: i64,
    /// What is done to what is sent there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Value>,
}

fn service() -> String {
    "Service".to_owned()
}

/// What a backend without a weight has.
const fn one() -> i64 {
    1
}
