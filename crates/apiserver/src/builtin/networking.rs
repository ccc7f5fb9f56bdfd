//! The `networking.k8s.io` kinds: ingresses, their classes, network policies, ranges and addresses of services.

mod ingress;
mod ingressclass;
mod ipaddress;
mod networkpolicy;
mod servicecidr;

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
        kind("IPAddress", "ipaddresses", ipaddress::RULES)
            .cluster_scoped()
            .short(&["ip"])
            .build(),
        kind("NetworkPolicy", "networkpolicies", networkpolicy::RULES)
            .short(&["netpol"])
            .build(),
        kind("ServiceCIDR", "servicecidrs", servicecidr::RULES)
            .cluster_scoped()
            .status()
            .build(),
    ]
}

#[cfg(test)]
mod tests;
