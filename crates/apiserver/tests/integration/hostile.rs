//! Random bodies, paths and queries to all verbs: an answer of the API's kind, and no panic.

use bytes::Bytes;
use http::Request;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use super::bad_input::answer;
use super::stage::{cluster, panics, virtually};
use super::verdict::is_real;

fn case_count() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(debug_assertions) { 100 } else { 400 },
        failure_persistence: None,
        // The same cases each time: a test that fails now and then helps nobody. Look for more with other numbers.
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

/// Any JSON, with words in it that the server looks at.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("metadata"),
        Just("name"),
        Just("labels"),
        Just("ownerReferences"),
        Just("finalizers"),
        Just("spec"),
        Just("status"),
        Just("containers"),
        Just("template"),
        Just("selector"),
        Just("matchLabels"),
        Just("replicas"),
        Just("managedFields"),
        Just("$patch"),
        Just("op"),
        Just("path"),
        Just("value"),
        Just("rules"),
        Just("kind"),
        Just("ports"),
        Just("data"),
        Just("uid"),
        Just("generateName"),
        Just("deletionTimestamp"),
        Just("creationTimestamp"),
        Just("resourceVersion"),
        Just("versions"),
        Just("schema"),
        Just("openAPIV3Schema"),
        Just("properties"),
        Just("type"),
        Just("x-kubernetes-validations"),
        Just("rule"),
    ]
    .prop_map(str::to_owned);
    let key = prop_oneof![4 => word.clone(), 1 => "\\PC{0,8}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("2026-01-01T00:00:00Z")),
        Just(json!("10%")),
        Just(json!("1e99Gi")),
        Just(json!("remove")),
        Just(json!("/metadata")),
        Just(json!("self.x > 1")),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Kinds of resources: path up to the collection, `apiVersion` and kind.
const KINDS: [(&str, &str, &str); 16] = [
    ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap"),
    ("/api/v1/namespaces/default/pods", "v1", "Pod"),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
    ("/api/v1/namespaces/default/secrets", "v1", "Secret"),
    ("/api/v1/namespaces/default/events", "v1", "Event"),
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/api/v1/nodes", "v1", "Node"),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        "apps/v1",
        "Deployment",
    ),
    (
        "/apis/apps/v1/namespaces/default/statefulsets",
        "apps/v1",
        "StatefulSet",
    ),
    ("/apis/batch/v1/namespaces/default/jobs", "batch/v1", "Job"),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        "batch/v1",
        "CronJob",
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "policy/v1",
        "PodDisruptionBudget",
    ),
    (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
    ),
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    ),
];

/// Random fields in the frame of an object that gets past the first checks.
fn framed(kind: usize, mut object: Value) -> Value {
    if !object.is_object() {
        object = json!({"spec": object});
    }
    object["apiVersion"] = json!(KINDS[kind].1);
    object["kind"] = json!(KINDS[kind].2);
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = json!("a");
    object
}

const PATCHES: [&str; 4] = [
    "json-patch+json",
    "merge-patch+json",
    "strategic-merge-patch+json",
    "apply-patch+yaml",
];

fn check(requests: Vec<Request<Bytes>>) {
    virtually(async {
        let cluster = cluster();
        for request in requests {
            let told = format!("{request:?}");
            let (code, text) = answer(&cluster, request).await;
            assert!(code < 500 || is_real(&text), "{told}: {code} {text}");
        }
    });
    assert_eq!(panics(), 0);
}

fn request(method: &str, path: &str, kind: &str, body: String) -> Request<Bytes> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", format!("application/{kind}"));
    request.body(body.into()).unwrap()
}

proptest! {
    #![proptest_config(case_count())]

    #[test]
    fn any_object_is_answered(kind in 0..KINDS.len(), first in any_json(), second in any_json(), patch in any_json()) {
        let (path, ..) = KINDS[kind];
        let named = format!("{path}/a");
        let mut requests = vec![
            request("POST", path, "json", framed(kind, first).to_string()),
            request("PUT", &named, "json", framed(kind, second.clone()).to_string()),
            request("POST", path, "yaml", second.to_string()),
            request("PUT", &format!("{named}/status"), "json", framed(kind, second).to_string()),
        ];
        for content in PATCHES {
            let at = format!("{named}?fieldManager=m&force=true");
            let at = if content.starts_with("apply") { at } else { named.clone() };
            requests.push(request("PATCH", &at, content, patch.to_string()));
            requests.push(request("PATCH", &at, content, framed(kind, patch.clone()).to_string()));
        }
        requests.push(request("DELETE", &named, "json", patch.to_string()));
        requests.push(request("DELETE", path, "json", String::new()));
        check(requests);
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..KINDS.len()) {
        let (path, ..) = KINDS[kind];
        let contents = ["json", "yaml", "vnd.kubernetes.protobuf"];
        let mut requests = Vec::new();
        for content in contents {
            let mut prefixed = if content.ends_with("protobuf") { b"k8s\0".to_vec() } else { Vec::new() };
            prefixed.extend(&bytes);
            let mut post = request("POST", path, content, String::new());
            *post.body_mut() = prefixed.into();
            requests.push(post);
        }
        check(requests);
    }

    #[test]
    fn any_yaml_is_answered(text in "[-a-c:&*!|>{}\\[\\],?#'\"% \n\t0-9.~]{0,120}") {
        let path = KINDS[0].0;
        check(vec![
            request("POST", path, "yaml", text.clone()),
            request("PATCH", &format!("{path}/a?fieldManager=x"), "apply-patch+yaml", text),
        ]);
    }

    #[test]
    fn any_path_and_query_is_answered(
        parts in prop::collection::vec(prop_oneof![
            Just("api".to_owned()), Just("apis".to_owned()), Just("v1".to_owned()), Just("apps".to_owned()), Just("namespaces".to_owned()),
            Just("default".to_owned()), Just("configmaps".to_owned()), Just("deployments".to_owned()), Just("watch".to_owned()),
            Just("status".to_owned()), Just("scale".to_owned()), Just("openapi".to_owned()), Just("v3".to_owned()), "[!-~&&[^?#/\"<>`{}]]{0,6}",
        ], 0..8),
        query in prop::collection::vec((prop_oneof![
            Just("watch"), Just("limit"), Just("continue"), Just("labelSelector"), Just("fieldSelector"), Just("resourceVersion"),
            Just("resourceVersionMatch"), Just("sendInitialEvents"), Just("allowWatchBookmarks"), Just("timeoutSeconds"), Just("dryRun"),
            Just("fieldManager"), Just("force"), Just("fieldValidation"), Just("pretty"), Just("propagationPolicy"), Just("gracePeriodSeconds"),
        ], "[-!0-9a-z=,.()%]{0,8}"), 0..4),
        method in prop_oneof![Just("GET"), Just("POST"), Just("PUT"), Just("PATCH"), Just("DELETE"), Just("HEAD"), Just("OPTIONS")],
    ) {
        let query: Vec<String> = query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let uri = format!("/{}?{}", parts.join("/"), query.join("&"));
        prop_assume!(uri.parse::<http::Uri>().is_ok());
        check(vec![request(method, &uri, "json", "{}".to_owned())]);
    }
}
