//! What is defined in each cluster, with as little of Flux and Cluster API as is needed.

use serde_json::{Value, json};

/// The definition of a kind of others: anything goes, and it has a status.
fn of_others(group: &str, kind: &str, plural: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(place, name)| {
            json!({
                "name": name, "served": true, "storage": place == 0, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
        },
    })
}

/// Flux.
pub(crate) fn flux() -> Vec<Value> {
    vec![
        of_others(
            "source.toolkit.fluxcd.io",
            "GitRepository",
            "gitrepositories",
            &["v1"],
        ),
        of_others(
            "kustomize.toolkit.fluxcd.io",
            "Kustomization",
            "kustomizations",
            &["v1"],
        ),
    ]
}

/// Cluster API.
pub(crate) fn cluster_api() -> Value {
    of_others(
        "cluster.x-k8s.io",
        "Cluster",
        "clusters",
        &["v1beta2", "v1beta1"],
    )
}

/// Some kind that nobody knows.
pub(crate) fn gadgets() -> Value {
    of_others("toys.example.com", "Gadget", "gadgetry", &["v1"])
}

/// Ours.
pub(crate) fn fleet() -> Vec<Value> {
    let all = slipway_api::fleet::definitions();
    all.iter()
        .map(|definition| serde_json::to_value(definition).unwrap())
        .collect()
}
