//! The `apps` kinds: deployments, replica sets, stateful sets, daemon sets and controller revisions.

mod controllerrevision;
mod daemonset;
mod deployment;
mod replicaset;
mod statefulset;
pub(crate) mod workload;

use std::sync::Arc;

use crate::builtin::describe;
use crate::resource::Resource;

const GROUP: &str = "apps";

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let revisions = Arc::new(controllerrevision::RULES);
    vec![
        describe::resource(
            GROUP,
            "v1",
            "ControllerRevision",
            "controllerrevisions",
            revisions,
        )
        .build(),
        describe::resource(
            GROUP,
            "v1",
            "DaemonSet",
            "daemonsets",
            Arc::new(daemonset::RULES),
        )
        .short(&["ds"])
        .category("all")
        .status()
        .build(),
        describe::resource(
            GROUP,
            "v1",
            "Deployment",
            "deployments",
            Arc::new(deployment::RULES),
        )
        .short(&["deploy"])
        .category("all")
        .status()
        .scale(".spec.selector")
        .build(),
        describe::resource(
            GROUP,
            "v1",
            "ReplicaSet",
            "replicasets",
            Arc::new(replicaset::RULES),
        )
        .short(&["rs"])
        .category("all")
        .status()
        .scale(".spec.selector")
        .build(),
        describe::resource(
            GROUP,
            "v1",
            "StatefulSet",
            "statefulsets",
            Arc::new(statefulset::RULES),
        )
        .short(&["sts"])
        .category("all")
        .status()
        .scale(".spec.selector")
        .build(),
    ]
}

#[cfg(test)]
mod tests;
