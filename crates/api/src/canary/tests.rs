#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use serde_json::{Value, json};

use super::{Canary, HookType, Phase, definition};

fn version() -> Value {
    let definition = serde_json::to_value(definition()).unwrap();
    definition["spec"]["versions"][0].clone()
}

fn schema() -> Value {
    version()["schema"]["openAPIV3Schema"].clone()
}

/// What a user of Flagger applies, with every field of its guide.
fn manifest() -> Value {
    json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": "podinfo", "namespace": "test"},
        "spec": {
            "provider": "istio",
            "metricsServer": "http://prometheus:9090",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"},
            "autoscalerRef": {
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "podinfo",
                "primaryScalerReplicas": {"minReplicas": 2, "maxReplicas": 5},
            },
            "progressDeadlineSeconds": 60,
            "service": {
                "port": 9898, "portName": "http", "targetPort": "http", "portDiscovery": true,
                "gateways": ["mesh"], "gatewayRefs": [{"name": "gw", "namespace": "infra"}],
                "hosts": ["app.example.com"], "trafficPolicy": {"tls": {"mode": "DISABLE"}},
                "match": [{"uri": {"prefix": "/"}}], "rewrite": {"uri": "/"},
                "retries": {"attempts": 3}, "headers": {"request": {"add": {"a": "b"}}},
                "corsPolicy": {"allowOrigin": ["example.com"]},
                "apex": {"annotations": {"a": "b"}}, "unmanagedMetadata": {"labels": ["x"]},
            },
            "analysis": {
                "interval": "1m", "threshold": 10, "maxWeight": 50, "stepWeight": 5,
                "metrics": [
                    {"name": "request-success-rate", "interval": "1m", "thresholdRange": {"min": 99.0}},
                    {"name": "latency", "templateRef": {"name": "latency", "namespace": "infra"},
                     "templateVariables": {"direction": "inbound"}, "threshold": 500.0},
                ],
                "webhooks": [{
                    "type": "pre-rollout", "name": "smoke", "url": "http://tester/", "timeout": "30s",
                    "retries": 2, "disableTLS": true, "muteAlert": true, "metadata": {"cmd": "curl"},
                }],
                "alerts": [{"name": "us", "severity": "error", "providerRef": {"name": "slack"}}],
                "sessionAffinity": {"cookieName": "flagger-cookie", "maxAge": 3600, "httpOnly": true},
            },
            "skipAnalysis": false, "revertOnDeletion": true, "suspend": false,
        },
    })
}

#[test]
fn a_manifest_of_the_original_is_read_and_written_alike() {
    let read: Canary = serde_json::from_value(manifest()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), manifest());
}

#[test]
fn names_columns_and_subresource_are_the_originals() {
    let crd = serde_json::to_value(definition()).unwrap();
    assert_eq!(crd["metadata"]["name"], "canaries.flagger.app");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    assert_eq!(crd["spec"]["names"]["categories"], json!(["all"]));
    let version = version();
    assert_eq!(version["name"], "v1beta1");
    assert_eq!(version["subresources"], json!({"status": {}}));
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let usual = columns.iter().filter(|column| column["priority"].is_null());
    let usual: Vec<&Value> = usual.map(|column| &column["name"]).collect();
    assert_eq!(usual, ["Status", "Weight", "LastTransitionTime"]);
}

#[test]
fn exactly_one_way_to_go_on_has_to_be_there() {
    let spec = &schema()["properties"]["spec"];
    assert_eq!(spec["required"], json!(["targetRef", "analysis"]));
    let target = &spec["properties"]["targetRef"];
    assert_eq!(target["required"], json!(["apiVersion", "kind", "name"]));
    let ways: Vec<&Value> = spec["properties"]["analysis"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| &way["required"][2])
        .collect();
    assert_eq!(ways, ["iterations", "stepWeight", "stepWeights"]);
}

#[test]
fn what_only_routers_understand_is_kept() {
    let service = &schema()["properties"]["spec"]["properties"]["service"];
    assert_eq!(service["required"], json!(["port"]));
    for open in ["trafficPolicy", "corsPolicy", "headers", "retries"] {
        let field = &service["properties"][open];
        assert_eq!(
            field["x-kubernetes-preserve-unknown-fields"], true,
            "{open}"
        );
    }
    let port = &service["properties"]["targetPort"];
    assert_eq!(port["x-kubernetes-int-or-string"], true);
}

/// A route has what its definition fills in. Where a Canary had not, Flagger would take the route for changed at each of its ticks, and
/// write it anew with all weight on what serves.
#[test]
fn what_gateway_api_fills_in_of_a_route_is_filled_in_of_a_canary() {
    let service = &schema()["properties"]["spec"]["properties"]["service"]["properties"];
    let parent = &service["gatewayRefs"]["items"]["properties"];
    assert_eq!(parent["group"]["default"], "gateway.networking.k8s.io");
    assert_eq!(parent["kind"]["default"], "Gateway");
    let mirror = &service["mirror"]["items"]["properties"]["backendRef"]["properties"];
    assert_eq!(mirror["group"]["default"], "");
    assert_eq!(mirror["kind"]["default"], "Service");
}

#[test]
fn every_field_tells_what_it_is() {
    fn check(path: &str, schema: &Value) {
        let fields = schema["properties"].as_object();
        for (name, field) in fields.into_iter().flatten() {
            let path = format!("{path}.{name}");
            assert!(
                field["description"].is_string(),
                "{path} has no description"
            );
            check(&path, field);
            check(&path, &field["items"]);
        }
    }
    check("spec", &schema()["properties"]["spec"]);
}

#[test]
fn the_former_name_of_the_analysis_is_followed_where_there_is_no_other() {
    let spec = |spec: Value| -> Canary {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap()
    };
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    let former = spec(json!({"targetRef": target, "canaryAnalysis": {"iterations": 3}}));
    assert_eq!(former.spec.analysis().unwrap().iterations, Some(3));
    let both = spec(json!({"targetRef": target, "analysis": {"iterations": 4},
        "canaryAnalysis": {"iterations": 3}}));
    assert_eq!(both.spec.analysis().unwrap().iterations, Some(4));
    assert_eq!(both.spec.apex(), "a");
}

#[test]
fn phases_and_types_of_webhooks_are_spelled_as_by_the_original() {
    for phase in Phase::ALL {
        assert_eq!(Phase::of(Some(phase.as_str())), phase);
    }
    assert_eq!(Phase::of(None), Phase::Initializing);
    assert_eq!(Phase::Finalising.as_str(), "Finalising");
    let promoted = Phase::ALL.map(Phase::promoted);
    assert_eq!(
        promoted.iter().filter(|status| **status == "True").count(),
        2
    );
    assert_eq!(Phase::Failed.promoted(), "False");
    for kind in HookType::ALL {
        assert_eq!(HookType::of(Some(kind.as_str())), Some(kind));
    }
    assert_eq!(HookType::of(None), Some(HookType::Rollout));
    assert_eq!(HookType::of(Some("rollouts")), None);
}
