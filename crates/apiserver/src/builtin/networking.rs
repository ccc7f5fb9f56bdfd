//! The `networking.k8s.io` kinds: ingresses, their classes, network policies.

mod ingress;
mod ingressclass;
mod networkpolicy;

use std::sync::Arc;

use super::describe::{Description, resource};
use super::rules::Rules;
use crate::resource::Resource;

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let kind = |kind: &str, plural: &str, rules: Rules| -> Description {
        resource("networking.k8s.io", "v1", kind, plural, Arc::new(rules))
    };
    vec![
        kind("IngressClass", "ingressclasses", ingressclass::RULES)
            .cluster_scoped()
            .build(),
        kind("Ingress", "ingresses", ingress::RULES)
            .short(&["ing"])
            .status()
            .build(),
        kind("NetworkPolicy", "networkpolicies", networkpolicy::RULES)
            .short(&["netpol"])
            .build(),
    ]
}

#[cfg(test)]
mod tests;
