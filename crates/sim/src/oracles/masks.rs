//! What G8 does not compare.

use std::fmt;

use slipway_api::names::{DISRUPTION_CLAIM, FENCE, RESTARTED_AT};
use slipway_kernel::identity::ClusterId;

use super::Case;
use crate::history::Object;

/// How something is kept out of the comparison.
#[derive(Debug, Clone, Copy)]
enum Hides {
    /// Fields, labels and annotations of these names, wherever they are.
    Fields(&'static [&'static str]),
    /// Fields of these names in objects of a resource in other clusters.
    Abroad(&'static str, &'static [&'static str]),
    /// What texts of these names say: that there is one is compared.
    Times(&'static [&'static str]),
    /// The order of lists of these names: what is in them is known by its name.
    Order(&'static [&'static str]),
    /// All objects of these resources.
    Resources(&'static [&'static str]),
    /// Names of objects of these resources: they are compared by owner and state.
    Names(&'static [&'static str]),
    /// What the capabilities say themselves ([`super::Specifics`]): annotations and `ConfigMap`s.
    Fleeting,
}

/// Something that is not compared, and why.
#[derive(Debug, Clone, Copy)]
pub struct Mask {
    hides: Hides,
    why: &'static str,
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hides {
            Hides::Fields(names) => write!(f, "fields {}", names.join(", ")),
            Hides::Abroad(of, names) => {
                write!(f, "in members fields {} of {of}", names.join(", "))
            }
            Hides::Times(names) => write!(f, "times {}", names.join(", ")),
            Hides::Order(names) => write!(f, "the order of {}", names.join(", ")),
            Hides::Resources(names) => write!(f, "all of {}", names.join(", ")),
            Hides::Names(names) => write!(f, "names of {}", names.join(", ")),
            Hides::Fleeting => write!(f, "what a capability calls fleeting"),
        }?;
        write!(f, ": {}", self.why)
    }
}

/// What is not compared, and why. There is no other mask: the comparison asks these, and these are printed.
pub const MASKED: &[Mask] = &[
    Mask {
        hides: Hides::Fields(&["resourceVersion", "managedFields"]),
        why: "count everybody's writes, also those that a fault made necessary",
    },
    Mask {
        hides: Hides::Fields(&[
            "uid",
            "pod-template-hash",
            "controller-revision-hash",
            "currentRevision",
            "updateRevision",
            "containerID",
            "podIP",
            "podIPs",
            "nodeName",
            "hostIP",
            "hostIPs",
        ]),
        why: "pods and replica sets are made when restarts are, and their hash covers restartedAt",
    },
    Mask {
        hides: Hides::Fields(&["clusterIP", "clusterIPs"]),
        why: "addresses of Services are drawn when they are made",
    },
    Mask {
        hides: Hides::Abroad("apps/deployments", &["generation", "observedGeneration"]),
        why: "a new leader's fence of a Deployment counts as a change of it; how often its spec was changed is compared",
    },
    Mask {
        hides: Hides::Fields(&["message"]),
        why: "has names, numbers and times in it that differ as above",
    },
    Mask {
        hides: Hides::Fields(&[RESTARTED_AT, DISRUPTION_CLAIM, FENCE]),
        why: "what a fault delayed has a later date, and who led when depends on the faults",
    },
    Mask {
        hides: Hides::Times(&[
            "lastTransitionTime",
            "lastUpdateTime",
            "lastRestart",
            "nextRestart",
            "since",
            "until",
            "startTime",
            "startedAt",
            "finishedAt",
            "started",
            "finished",
            "canaryPassed",
            "time",
            "creationTimestamp",
            "updatedAt",
            "at",
            "due",
            "stepSince",
            "heldSince",
            "unmeasuredSince",
            "freeSince",
            "stoppedSince",
        ]),
        why: "what a fault delayed has a later date",
    },
    Mask {
        hides: Hides::Order(&["syncs"]),
        why: "whoever came first is first in a list by names",
    },
    Mask {
        hides: Hides::Names(&["apps/replicasets", "apps/controllerrevisions", "/pods"]),
        why: "have a pod template's hash in them, or are drawn",
    },
    Mask {
        hides: Hides::Names(&["discovery.k8s.io/endpointslices"]),
        why: "are drawn; how many of a Service's pods are ready is compared, and not which",
    },
    Mask {
        hides: Hides::Resources(&["/endpoints"]),
        why: "say what slices say, with names and addresses of pods",
    },
    Mask {
        hides: Hides::Resources(&[
            "coordination.k8s.io/leases",
            "events.k8s.io/events",
            "/events",
            "/nodes",
        ]),
        why: "who leads, how often something was said, and when a node was last seen, depends on the faults",
    },
    Mask {
        hides: Hides::Resources(&["apiextensions.k8s.io/customresourcedefinitions"]),
        why: "what a fault takes away it puts back, as another object",
    },
    Mask {
        hides: Hides::Fleeting,
        why: "who was asked when, and when somebody was last restarted, depends on the faults",
    },
];

/// Names of fields that are left out of a resource's objects in a cluster, with those that the capabilities call fleeting.
pub(super) fn left_out(case: &Case<'_>, cluster: &ClusterId, resource: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for mask in MASKED {
        match mask.hides {
            Hides::Fields(all) => names.extend(all),
            Hides::Abroad(of, all) if !cluster.is_local() && of == resource => names.extend(all),
            Hides::Fleeting => {
                let fleeting = case.specifics.iter();
                names.extend(fleeting.flat_map(|one| one.fleeting_annotations));
            }
            _ => {}
        }
    }
    names
}

/// Whether a field says when something was.
pub(super) fn is_time(name: &str) -> bool {
    let mut masks = MASKED.iter();
    masks.any(|mask| matches!(mask.hides, Hides::Times(all) if all.contains(&name)))
}

/// Whether the order of a list of this name says nothing.
pub(super) fn is_unordered(name: &str) -> bool {
    let mut masks = MASKED.iter();
    masks.any(|mask| matches!(mask.hides, Hides::Order(all) if all.contains(&name)))
}

/// Whether objects of a resource are not compared at all.
pub(super) fn is_left_out(resource: &str) -> bool {
    let mut masks = MASKED.iter();
    masks.any(|mask| matches!(mask.hides, Hides::Resources(all) if all.contains(&resource)))
}

/// Whether objects of a resource are compared by owner and state.
pub(super) fn is_counted(resource: &str) -> bool {
    let mut masks = MASKED.iter();
    masks.any(|mask| matches!(mask.hides, Hides::Names(all) if all.contains(&resource)))
}

/// Whether it is a `ConfigMap` that a capability calls fleeting.
pub(super) fn is_fleeting(case: &Case<'_>, (resource, _, name): &Object) -> bool {
    let mut masks = MASKED.iter();
    let mut maps = case.specifics.iter().flat_map(|one| one.fleeting_maps);
    masks.any(|mask| matches!(mask.hides, Hides::Fleeting))
        && &**resource == "/configmaps"
        && maps.any(|own| name.starts_with(own))
}
