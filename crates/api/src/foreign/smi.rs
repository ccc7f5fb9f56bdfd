//! Service Mesh Interface: the `TrafficSplit`. Its specification is archived.

/// The API group.
pub const GROUP: &str = "split.smi-spec.io";

/// `TrafficSplit`.
pub const TRAFFIC_SPLIT: &str = "TrafficSplit";

/// Its resource.
pub const TRAFFIC_SPLITS: &str = "trafficsplits";

/// The versions that are written.
pub const VERSIONS: [&str; 3] = ["v1alpha1", "v1alpha2", "v1alpha3"];
