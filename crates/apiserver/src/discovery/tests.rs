//! The expected documents were given by kube-apiserver v1.36.3.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::Arc;

use super::*;
use crate::builtin::describe;
use crate::builtin::rules::PLAIN;
use crate::resource::{Names, Scale, Version};

/// Some built-in resources and a custom one.
pub(crate) fn resources() -> Vec<Resource> {
    let describe = |group, version, kind, plural| {
        describe::resource(group, version, kind, plural, Arc::new(PLAIN))
    };
    vec![
        describe("", "v1", "Pod", "pods")
            .short(&["po"])
            .category("all")
            .status()
            .subresource("eviction")
            .subresource("binding")
            .build(),
        describe("", "v1", "ConfigMap", "configmaps").build(),
        describe("", "v1", "Namespace", "namespaces")
            .cluster_scoped()
            .status()
            .subresource("finalize")
            .build(),
        describe(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
        )
        .build(),
        describe(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        )
        .also("v1")
        .build(),
        describe("apps", "v1", "Deployment", "deployments")
            .status()
            .scale("x")
            .build(),
        widget(),
    ]
}

/// A custom resource.
fn widget() -> Resource {
    let rules = json!({"type": "object", "description": "A widget.", "properties": {
        "spec": {"type": "object", "description": "The spec.", "properties": {
            "replicas": {"type": "integer", "description": "How many."}}}}});
    let schema = crate::crd::build::schema(Some(&rules));
    Resource {
        names: Names {
            group: "schema.example".into(),
            kind: "Widget".into(),
            list_kind: "WidgetList".into(),
            plural: "widgets".into(),
            singular: "widget".into(),
            short_names: Vec::new(),
            categories: Vec::new(),
        },
        namespaced: true,
        versions: vec![Version {
            name: "v1".into(),
            schema,
            deprecation: None,
        }],
        storage_version: "v1".into(),
        verbs: describe::ALL_VERBS.to_vec(),
        status: true,
        scale: Some(Scale {
            spec_replicas: ".spec.replicas".into(),
            status_replicas: ".status.replicas".into(),
            selector: String::new(),
        }),
        subresources: Vec::new(),
        strategy: Arc::new(PLAIN),
        custom: true,
        returns_deleted: false,
        hashed_as: None,
        stored_in: None,
    }
}

#[test]
fn groups_come_in_the_order_of_the_real_server() {
    let all = resources();
    let all: Vec<&Resource> = all.iter().collect();
    let groups = groups(&all);
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["apps", "autoscaling", "policy", "schema.example"]);
    let autoscaling = group(&all, "autoscaling").unwrap();
    assert_eq!(
        autoscaling,
        json!({"kind": "APIGroup", "apiVersion": "v1", "name": "autoscaling",
            "versions": [{"groupVersion": "autoscaling/v2", "version": "v2"}, {"groupVersion": "autoscaling/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"}})
    );
    assert!(group(&all, "nope").is_none());
}

#[test]
fn resource_lists_name_subresources_and_their_kinds() {
    let all = resources();
    let all: Vec<&Resource> = all.iter().collect();
    let list = resource_list(&all, "", "v1").unwrap();
    assert_eq!(list["groupVersion"], "v1");
    assert!(list.get("apiVersion").is_none());
    let entry = |list: &Value, name: &str| {
        list["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["name"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(
        entry(&list, "pods/eviction"),
        json!({"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1",
            "kind": "Eviction", "verbs": ["create"]})
    );
    assert_eq!(
        entry(&list, "pods"),
        json!({"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["po"], "categories": ["all"], "storageVersionHash": "xPOwRZ+Yhw8="})
    );
    let apps = resource_list(&all, "apps", "v1").unwrap();
    assert_eq!(entry(&apps, "deployments/scale")["kind"], "Scale");
    assert!(resource_list(&all, "apps", "v9").is_none());
}

#[test]
fn aggregated_documents_nest_subresources() {
    let all = resources();
    let all: Vec<&Resource> = all.iter().collect();
    let core = aggregated_core(&all);
    assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(core["items"][0]["metadata"], json!({}));
    let groups = aggregated_groups(&all);
    assert_eq!(groups["apiVersion"], "apidiscovery.k8s.io/v2");
    let custom = groups["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        custom["versions"][0],
        json!({"version": "v1", "freshness": "Current", "resources": [{
            "resource": "widgets", "responseKind": {"group": "schema.example", "version": "v1", "kind": "Widget"},
            "scope": "Namespaced", "singularResource": "widget",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "subresources": [
                {"subresource": "status", "responseKind": {"group": "schema.example", "version": "v1", "kind": "Widget"},
                    "verbs": ["get", "patch", "update"]},
                {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": ["get", "patch", "update"]}]}]})
    );
}

#[test]
fn versions_rank_as_kubernetes_ranks_them() {
    let mut names = vec!["v1alpha1", "v10", "v2", "foo", "v1beta2", "v1", "v1beta10"];
    names.sort_by_key(|name| std::cmp::Reverse(version_rank(name)));
    assert_eq!(
        names,
        ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]
    );
}
