//! Definitions of the size that well-known operators bring, and objects of them.
//!
//! This file is a module of these tests and of the bench of `slipway-e2e`: what is promised is what is measured.

use serde_json::{Map, Value, json};

/// The group of all of them.
pub(crate) const GROUP: &str = "delivery.example.com";

/// Where definitions are created.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Plural, kind, and how many sections the specification has: about two kilobytes each, in each of three versions.
const THREE: [(&str, &str, usize); 3] = [
    ("releases", "Release", 40),
    ("overlays", "Overlay", 16),
    ("repositories", "Repository", 12),
];

/// One definition of a few hundred kilobytes and two of around a hundred, as a delivery tool brings them.
pub(crate) fn three() -> Vec<Value> {
    let all = THREE.iter();
    all.map(|(plural, kind, sections)| definition(plural, kind, *sections))
        .collect()
}

/// Where an object of each is created, and the object.
pub(crate) fn objects() -> Vec<(String, Value)> {
    let all = THREE.iter().map(|(plural, kind, _)| {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "metadata": {"name": "a"},
            "spec": {"section0": {"name": "a", "interval": "1m30s", "limits": {"min": 1, "max": 2}}},
        });
        let path = format!("/apis/{GROUP}/v1/namespaces/default/{plural}");
        (path, object)
    });
    all.collect()
}

fn definition(plural: &str, kind: &str, sections: usize) -> Value {
    let versions: Vec<Value> = ["v1", "v1beta2", "v1beta1"]
        .iter()
        .map(|name| version(name, sections))
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            "annotations": {"controller-gen.kubebuilder.io/version": "v0.19.0"},
            "labels": {"app.kubernetes.io/part-of": "delivery", "app.kubernetes.io/instance": "delivery-system"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": versions,
        },
    })
}

fn version(name: &str, sections: usize) -> Value {
    let sections: Map<String, Value> = (0..sections)
        .map(|n| (format!("section{n}"), section(name)))
        .collect();
    json!({
        "name": name,
        "served": true,
        "storage": name == "v1",
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
            {"name": "Status", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message"},
        ],
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "description": format!("What is to be delivered, in {name}."),
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": sections},
                "status": status(),
            },
        }},
    })
}

/// What authors write above a field, which is most of a definition.
fn said(what: &str, version: &str) -> String {
    format!(
        "{what} of this section, as {version} understands it. When it is not given, the controller takes what it was started \
         with. The value is looked at each time that the object is reconciled."
    )
}

fn section(version: &str) -> Value {
    let duration = |what: &str| {
        json!({
            "type": "string",
            "description": said(what, version),
            "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$",
        })
    };
    let name = |what: &str| json!({"type": "string", "description": said(what, version), "minLength": 1, "maxLength": 253});
    json!({
        "type": "object",
        "description": said("All", version),
        "required": ["name"],
        "properties": {
            "name": name("The name"),
            "interval": duration("The interval"),
            "timeout": duration("The timeout"),
            "retries": {"type": "integer", "description": said("The retries", version), "minimum": 0},
            "suspend": {"type": "boolean", "description": said("The pause", version)},
            "strategy": {
                "type": "string", "description": said("The strategy", version),
                "enum": ["Retry", "RollBack", "Uninstall"], "default": "Retry",
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "dependsOn": {
                "type": "array",
                "maxItems": 64,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "namespace"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": name("The name of what comes before"),
                        "namespace": {"type": "string", "maxLength": 63, "default": ""},
                    },
                },
            },
            "limits": {
                "type": "object",
                "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
                "x-kubernetes-validations": [{
                    "rule": "!has(self.min) || !has(self.max) || self.min <= self.max",
                    "message": "min may not be more than max",
                }],
            },
        },
    })
}

fn status() -> Value {
    json!({
        "type": "object",
        "default": {"observedGeneration": -1},
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
                    "properties": {
                        "type": {"type": "string", "maxLength": 316},
                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                        "lastTransitionTime": {"type": "string", "format": "date-time"},
                        "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                        "message": {"type": "string", "maxLength": 32768},
                        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                    },
                },
            },
        },
    })
}
