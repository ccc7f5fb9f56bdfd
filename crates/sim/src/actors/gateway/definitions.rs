//! Definitions of what a gateway takes, and of what it writes down. What is in them nobody here checks.

use serde_json::{Value, json};

use super::super::custom::{Defined, definition};

/// Group, version, kind, plural, and whether the status is written apart.
const KINDS: [(&str, &str, &str, &str, bool); 5] = [
    (
        "gateway.networking.k8s.io",
        "v1",
        "HTTPRoute",
        "httproutes",
        true,
    ),
    (
        "networking.istio.io",
        "v1beta1",
        "VirtualService",
        "virtualservices",
        false,
    ),
    (
        "networking.istio.io",
        "v1beta1",
        "DestinationRule",
        "destinationrules",
        false,
    ),
    (
        "split.smi-spec.io",
        "v1alpha2",
        "TrafficSplit",
        "trafficsplits",
        false,
    ),
    ("dataplane.sim.slipway.dev", "v1", "Taken", "taken", false),
];

/// All of them.
pub(crate) fn all() -> Vec<Value> {
    let kinds = KINDS.into_iter();
    kinds
        .map(|(group, version, kind, plural, has_status)| {
            definition(&Defined {
                group,
                version,
                kind,
                plural,
                schema: json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                has_status,
            })
        })
        .collect()
}
