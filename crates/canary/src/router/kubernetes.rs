//! Plain Services: the target never has live traffic, and nothing is to be written.

use super::{Abilities, Builtin, Router};
use crate::engine::{Routing, Weights};
use crate::measures::{p99, rate};

pub(crate) static ROUTER: Router = Router {
    names: &[("kubernetes", "")],
    can: Abilities::NONE,
    divides: false,
    acknowledges: false,
    kinds: |_| Vec::new(),
    seen: |_, _| {
        Ok(Routing {
            weights: Some(Weights::SOURCE),
            pending: None,
        })
    },
    writes: |_, _, _, _| Ok(Vec::new()),
    retreat: |_, _, _| Vec::new(),
    check_match: |_| Err("plain Services lead all requests alike".to_owned()),
    borrows: |_, _| false,
    restore: |_, _, _| Vec::new(),
    measures: OF_PODS,
};

/// What names of a Deployment's pods have besides: the last part is the pod's own. Those of a `DaemonSet` have not, and those of
/// its copy would be found by it.
pub(crate) const OF_REPLICA_SET: &str = "(-[0-9a-zA-Z]+)";

/// The pods of a side, as Prometheus finds them; see [`OF_REPLICA_SET`].
const PODS: &str = r#"kubernetes_namespace="{{ namespace }}",kubernetes_pod_name=~"{{ target }}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)""#;

/// What pods say of themselves, where nobody in between does.
pub(super) const OF_PODS: Builtin = Builtin {
    success_rate: || {
        let series = "http_request_duration_seconds_count";
        rate(series, PODS, r#"status!~"5.*""#)
    },
    duration: || p99("http_request_duration_seconds_bucket", PODS, 1_000),
};
