//! Kinds that canary speaks of. Those of a router are in its file.

use slipway_api::flagger::GROUP;
use slipway_kernel::Kind;
pub use slipway_kernel::identity::kinds::{CONFIG_MAP, DAEMON_SET, DEPLOYMENT, SECRET};

/// flagger.app/v1beta1 Canary.
pub const CANARY: Kind = Kind::namespaced(GROUP, "v1beta1", "Canary", "canaries");
/// flagger.app/v1beta1 `MetricTemplate`.
pub const METRIC_TEMPLATE: Kind =
    Kind::namespaced(GROUP, "v1beta1", "MetricTemplate", "metrictemplates");
/// flagger.app/v1beta1 `AlertProvider`.
pub const ALERT_PROVIDER: Kind =
    Kind::namespaced(GROUP, "v1beta1", "AlertProvider", "alertproviders");
/// v1 Service.
pub const SERVICE: Kind = Kind::namespaced("", "v1", "Service", "services");
/// autoscaling/v2 `HorizontalPodAutoscaler`.
pub const AUTOSCALER: Kind = Kind::namespaced(
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
);
