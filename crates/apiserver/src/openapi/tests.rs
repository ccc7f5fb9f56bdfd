#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use super::*;

fn with_resources<T>(check: impl Fn(&[&Resource]) -> T) -> T {
    let all = discovery::tests::resources();
    let all: Vec<&Resource> = all.iter().collect();
    check(&all)
}

fn parameters(operation: &Value) -> Vec<&str> {
    operation["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect()
}

#[test]
fn the_index_leads_to_the_documents() {
    with_resources(|all| {
        let index = index(all);
        let url = index["paths"]["apis/schema.example/v1"]["serverRelativeURL"]
            .as_str()
            .unwrap();
        assert!(url.starts_with("/openapi/v3/apis/schema.example/v1?hash="));
        assert!(index["paths"].get("api/v1").is_some());
        assert!(document(all, "nope", "v1").is_none());
    });
}

#[test]
fn patch_operations_name_field_validation() {
    with_resources(|all| {
        let core = document(all, "", "v1").unwrap();
        let patch = &core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "", "version": "v1", "kind": "Pod"})
        );
        assert!(parameters(patch).contains(&"fieldValidation"));
        assert_eq!(patch["operationId"], "patchCoreV1NamespacedPod");
        let namespace = &core["paths"]["/api/v1/namespaces/{name}"]["patch"];
        assert!(parameters(namespace).contains(&"fieldValidation"));
        let eviction =
            &core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"];
        assert_eq!(
            eviction["x-kubernetes-group-version-kind"]["kind"],
            "Eviction"
        );
    });
}

#[test]
fn builtin_schemas_carry_merge_keys_and_references_that_resolve() {
    with_resources(|all| {
        for (group, version) in group_versions(all) {
            let document = document(all, group, version).unwrap();
            let text = document.to_string();
            for found in text.split("#/components/schemas/").skip(1) {
                let name = found.split('"').next().unwrap();
                assert!(
                    document["components"]["schemas"].get(name).is_some(),
                    "{group}/{version}: {name}"
                );
            }
        }
        let core = document(all, "", "v1").unwrap();
        let schemas = &core["components"]["schemas"];
        let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(
            *containers,
            json!({"type": "array",
                "items": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}], "default": {}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"})
        );
        assert_eq!(
            schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"],
            json!([{"group": "", "kind": "Pod", "version": "v1"}])
        );
    });
}

#[test]
fn custom_schemas_are_those_of_their_author_and_the_common_fields() {
    with_resources(|all| {
        let document = document(all, "schema.example", "v1").unwrap();
        let widget = &document["components"]["schemas"]["example.schema.v1.Widget"];
        assert_eq!(widget["description"], "A widget.");
        assert_eq!(
            widget["properties"]["spec"]["properties"]["replicas"],
            json!({"type": "integer", "description": "How many."})
        );
        assert_eq!(
            widget["properties"]["metadata"]["allOf"][0]["$ref"],
            "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        );
        let scale = &document["paths"]["/apis/schema.example/v1/namespaces/{namespace}/widgets/{name}/scale"]
            ["get"];
        assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Widget");
    });
}

#[test]
fn the_fingerprint_follows_the_schema() {
    let all = discovery::tests::resources();
    let all: Vec<&Resource> = all.iter().collect();
    let here = fingerprint(&all, "schema.example", "v1");
    assert_eq!(here, fingerprint(&all, "schema.example", "v1"));
    assert_ne!(here, fingerprint(&all, "apps", "v1"));
}
