//! Labels and annotations that the webhooks read and write.

pub(crate) const NO_DOWNSCALE: &str = "grafana.com/no-downscale";
pub(crate) const NAME_LABEL: &str = "name";
pub(crate) const READY_TIME: &str = "grafana.com/ready-time";
pub(crate) const ROLLOUT_GROUP: &str = "rollout-group";
pub(crate) const MIN_TIME: &str = "grafana.com/min-time-between-zones-downscale";
pub(crate) const LAST_DOWNSCALE: &str = "grafana.com/last-downscale";
pub(crate) const PREPARE_DOWNSCALE: &str = "grafana.com/prepare-downscale";
pub(crate) const PREPARE_PATH: &str = "grafana.com/prepare-downscale-http-path";
pub(crate) const PREPARE_PORT: &str = "grafana.com/prepare-downscale-http-port";
/// Annotation of the `ConfigMap` that guards downscales: who is at it, by group.
pub(crate) const DOWNSCALE_LOCKS: &str = "slipway.dev/downscale-locks";
