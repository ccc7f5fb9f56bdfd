//! Definitions of Flux's kinds, as far as anybody here cares: what is required, and what the API fills in.

use serde_json::{Value, json};

use super::super::custom::{self, Defined};

/// Both of them.
pub(crate) fn all() -> Vec<Value> {
    vec![sources(), kustomizations()]
}

fn duration() -> Value {
    json!({"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"})
}

fn definition(group: &str, kind: &str, plural: &str, spec: &Value) -> Value {
    let status = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "default": {"observedGeneration": -1},
        "properties": {"observedGeneration": {"type": "integer", "format": "int64"}},
    });
    custom::definition(&Defined {
        group,
        version: "v1",
        kind,
        plural,
        schema: json!({"type": "object", "properties": {"spec": spec, "status": status}}),
        has_status: true,
    })
}

fn sources() -> Value {
    let spec = json!({
        "type": "object", "required": ["interval", "url"], "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "interval": duration(),
            "timeout": {"type": "string", "default": "60s"},
            "url": {"type": "string", "pattern": "^(http|https|ssh)://.*$"},
        },
    });
    definition(
        "source.toolkit.fluxcd.io",
        "GitRepository",
        "gitrepositories",
        &spec,
    )
}

fn kustomizations() -> Value {
    let from = json!({
        "type": "object", "required": ["kind", "name"],
        "properties": {
            "kind": {"type": "string", "enum": ["Secret", "ConfigMap"]},
            "name": {"type": "string", "minLength": 1, "maxLength": 253},
            "optional": {"type": "boolean", "default": false},
        },
    });
    let spec = json!({
        "type": "object", "required": ["interval", "prune", "sourceRef"], "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "interval": duration(),
            "retryInterval": duration(),
            "timeout": duration(),
            "force": {"type": "boolean", "default": false},
            "prune": {"type": "boolean"},
            "sourceRef": {
                "type": "object", "required": ["kind", "name"],
                "properties": {
                    "apiVersion": {"type": "string"}, "kind": {"type": "string"},
                    "name": {"type": "string"}, "namespace": {"type": "string"},
                },
            },
            "postBuild": {
                "type": "object",
                "properties": {
                    "substitute": {"type": "object", "additionalProperties": {"type": "string"}},
                    "substituteFrom": {"type": "array", "items": from},
                },
            },
        },
    });
    definition(
        "kustomize.toolkit.fluxcd.io",
        "Kustomization",
        "kustomizations",
        &spec,
    )
}
