//! What canary may do to the API, and what for.

use slipway_kernel::permission::{Permission, Scope};

const fn watched(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names: &[],
        scope: Scope::Watched,
        why,
    }
}

/// What is done to objects that are ours to make.
const MADE: &[&str] = &["get", "list", "watch", "create", "patch"];

/// Every permission that canary uses.
pub const PERMISSIONS: &[Permission] = &[
    watched(
        "flagger.app",
        "canaries",
        &["get", "list", "watch", "patch"],
        "to know how versions take over, and to keep a Canary until the workload was given back",
    ),
    watched(
        "flagger.app",
        "canaries/status",
        &["patch"],
        "to remember where a run is, and to report it",
    ),
    watched(
        "flagger.app",
        "metrictemplates",
        &["list", "watch"],
        "to know what is measured",
    ),
    watched(
        "flagger.app",
        "alertproviders",
        &["list", "watch"],
        "to know whom to tell",
    ),
    watched(
        "apps",
        "deployments",
        MADE,
        "to make the copy of a Deployment that serves, and to give both their replicas",
    ),
    watched(
        "apps",
        "daemonsets",
        MADE,
        "to make the copy of a DaemonSet that serves, and to put either away",
    ),
    watched("", "services", MADE, "to lead requests to each side"),
    watched(
        "",
        "configmaps",
        MADE,
        "to notice that a version is configured otherwise, and to copy what it is configured with",
    ),
    watched(
        "",
        "secrets",
        MADE,
        "to notice that a version is configured otherwise, to copy what it is configured with, and to ask those who want to know who we are",
    ),
    watched(
        "autoscaling",
        "horizontalpodautoscalers",
        MADE,
        "to scale the copy that serves as its workload is",
    ),
    watched(
        "gateway.networking.k8s.io",
        "httproutes",
        MADE,
        "to divide traffic, with the provider gatewayapi",
    ),
    watched(
        "networking.istio.io",
        "virtualservices",
        MADE,
        "to divide traffic, with the provider istio",
    ),
    watched(
        "networking.istio.io",
        "destinationrules",
        MADE,
        "to divide traffic, with the provider istio",
    ),
    watched(
        "networking.k8s.io",
        "ingresses",
        MADE,
        "to divide traffic, with the provider nginx",
    ),
    watched(
        "split.smi-spec.io",
        "trafficsplits",
        MADE,
        "to divide traffic, with the providers smi, linkerd and osm",
    ),
];
