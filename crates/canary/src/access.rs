//! What canary may do to the API, and what for.

use slipway_kernel::permission::Permission;

/// What is done to objects that are ours to make.
const MADE: &[&str] = &["get", "list", "watch", "create", "patch"];

/// Every permission that canary uses.
pub const PERMISSIONS: &[Permission] = &[
    Permission::watched(
        "flagger.app",
        "canaries",
        &["get", "list", "watch", "patch"],
        "to know how versions take over, and to keep a Canary until the workload was given back",
    ),
    Permission::watched(
        "flagger.app",
        "canaries/status",
        &["patch"],
        "to remember where a run is, and to report it",
    ),
    Permission::watched(
        "flagger.app",
        "metrictemplates",
        &["list", "watch"],
        "to know what is measured",
    ),
    Permission::watched(
        "flagger.app",
        "alertproviders",
        &["list", "watch"],
        "to know whom to tell",
    ),
    Permission::watched(
        "apps",
        "deployments",
        MADE,
        "to make the copy of a Deployment that serves, and to give both their replicas",
    ),
    Permission::watched(
        "apps",
        "daemonsets",
        MADE,
        "to make the copy of a DaemonSet that serves, and to put either away",
    ),
    Permission::watched("", "services", MADE, "to lead requests to each side"),
    Permission::watched(
        "",
        "configmaps",
        MADE,
        "to notice that a version is configured otherwise, and to copy what it is configured with",
    ),
    Permission::watched(
        "",
        "secrets",
        MADE,
        "to notice that a version is configured otherwise, to copy what it is configured with, and to ask those who want to know who we are",
    ),
    Permission::watched(
        "autoscaling",
        "horizontalpodautoscalers",
        MADE,
        "to scale the copy that serves as its workload is",
    ),
    Permission::watched(
        "gateway.networking.k8s.io",
        "httproutes",
        MADE,
        "to divide traffic, with the provider gatewayapi",
    ),
    Permission::watched(
        "networking.istio.io",
        "virtualservices",
        MADE,
        "to divide traffic, with the provider istio",
    ),
    Permission::watched(
        "networking.istio.io",
        "destinationrules",
        MADE,
        "to divide traffic, with the provider istio",
    ),
    Permission::watched(
        "networking.k8s.io",
        "ingresses",
        MADE,
        "to divide traffic, with the provider nginx",
    ),
    Permission::watched(
        "split.smi-spec.io",
        "trafficsplits",
        MADE,
        "to divide traffic, with the providers smi, linkerd and osm",
    ),
];
