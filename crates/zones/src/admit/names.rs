//! Labels and annotations that the webhooks read and write.

pub(crate) const NO_DOWNSCALE: &str = "grafana.com/no-downscale";
