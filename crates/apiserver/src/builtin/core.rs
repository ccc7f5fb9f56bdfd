//! The kinds of the core group, except pods, events and what hangs off them.

pub mod claim;
pub mod configmap;
pub mod endpoints;
pub mod limitrange;
pub mod namespace;
pub mod node;
pub mod podtemplate;
pub mod quota;
pub mod replicationcontroller;
pub mod secret;
pub mod service;
pub mod serviceaccount;
pub mod volume;

use std::sync::Arc;

use super::describe::{Description, resource};
use super::rules::Rules;
use crate::resource::Resource;

fn core(kind: &str, plural: &str, rules: Rules) -> Description {
    resource("", "v1", kind, plural, Arc::new(rules))
}

/// The resources of this group, in the order in which discovery lists them.
pub fn resources() -> Vec<Resource> {
    let mut all = first_half();
    all.extend(second_half());
    all
}

fn first_half() -> Vec<Resource> {
    vec![
        core("ConfigMap", "configmaps", configmap::RULES)
            .short(&["cm"])
            .build(),
        deprecated(
            core("Endpoints", "endpoints", endpoints::RULES)
                .short(&["ep"])
                .build(),
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        core("LimitRange", "limitranges", limitrange::RULES)
            .short(&["limits"])
            .build(),
        // A real server deletes no collection of namespaces.
        core("Namespace", "namespaces", namespace::RULES)
            .cluster_scoped()
            .short(&["ns"])
            .returns_deleted()
            .status()
            .subresource("finalize")
            .verbs(&[
                "create", "delete", "get", "list", "patch", "update", "watch",
            ])
            .build(),
        core("Node", "nodes", node::RULES)
            .cluster_scoped()
            .short(&["no"])
            .status()
            .build(),
        core(
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            claim::RULES,
        )
        .short(&["pvc"])
        .returns_deleted()
        .status()
        .build(),
        core("PersistentVolume", "persistentvolumes", volume::RULES)
            .cluster_scoped()
            .short(&["pv"])
            .returns_deleted()
            .status()
            .build(),
    ]
}

fn second_half() -> Vec<Resource> {
    vec![
        core("PodTemplate", "podtemplates", podtemplate::RULES)
            .returns_deleted()
            .build(),
        core(
            "ReplicationController",
            "replicationcontrollers",
            replicationcontroller::RULES,
        )
        .short(&["rc"])
        .category("all")
        .status()
        .scale(".spec.selector")
        .build(),
        core("ResourceQuota", "resourcequotas", quota::RULES)
            .short(&["quota"])
            .returns_deleted()
            .status()
            .build(),
        core("Secret", "secrets", secret::RULES).build(),
        core("ServiceAccount", "serviceaccounts", serviceaccount::RULES)
            .short(&["sa"])
            .returns_deleted()
            .subresource("token")
            .build(),
        core("Service", "services", service::RULES)
            .short(&["svc"])
            .returns_deleted()
            .category("all")
            .status()
            .build(),
    ]
}

/// The same resource, with a warning on every answer.
fn deprecated(mut resource: Resource, warning: &str) -> Resource {
    for version in &mut resource.versions {
        version.deprecation = Some(warning.to_owned());
    }
    resource
}

#[cfg(test)]
mod tests;
