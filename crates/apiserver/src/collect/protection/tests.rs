#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::authenticate::User;
use crate::cluster::{Cluster, Config};
use crate::environment::InProcess;

const NAMESPACES: &str = "/api/v1/namespaces";
const CLAIMS: &str = "/api/v1/namespaces/n/persistentvolumeclaims";
const PODS: &str = "/api/v1/namespaces/n/pods";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn cluster() -> Arc<Cluster> {
    let cluster = Config::seeded("test", 1, Arc::new(InProcess::default()))
        .with_token("t", User::new("admin", &["system:masters"]))
        .build();
    tokio::spawn(crate::collect::run(cluster.clone()));
    cluster
}

async fn ask(cluster: &Arc<Cluster>, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", "Bearer t")
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    let response = cluster.handle(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Whether the object is gone once the collector has had its turn.
async fn goes(cluster: &Arc<Cluster>, path: &str) -> bool {
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if ask(cluster, "GET", path, Value::Null).await.0 == 404 {
            return true;
        }
    }
    false
}

async fn create(cluster: &Arc<Cluster>, path: &str, body: Value) -> Value {
    let (code, answer) = ask(cluster, "POST", path, body).await;
    assert_eq!(code, 201, "{answer}");
    answer
}

async fn with_claim() -> (Arc<Cluster>, String) {
    let cluster = cluster();
    create(&cluster, NAMESPACES, json!({"metadata": {"name": "n"}})).await;
    let spec =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"metadata": {"name": "c"}, "spec": spec});
    let made = create(&cluster, CLAIMS, claim).await;
    assert_eq!(
        made["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"])
    );
    (cluster, format!("{CLAIMS}/c"))
}

fn pod(on_node: bool) -> Value {
    let mut spec = json!({
        "containers": [{"name": "a", "image": "a"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    });
    if on_node {
        spec["nodeName"] = "n1".into();
    }
    json!({"metadata": {"name": "p"}, "spec": spec})
}

#[tokio::test]
async fn a_claim_goes_that_no_pod_on_a_node_uses() {
    let (cluster, claim) = with_claim().await;
    create(&cluster, PODS, pod(false)).await;
    ask(&cluster, "DELETE", &claim, Value::Null).await;
    assert!(goes(&cluster, &claim).await);
}

#[tokio::test]
async fn a_claim_stays_as_long_as_its_pod() {
    let (cluster, claim) = with_claim().await;
    create(&cluster, PODS, pod(true)).await;
    ask(&cluster, "DELETE", &claim, Value::Null).await;
    assert!(!goes(&cluster, &claim).await);
    ask(
        &cluster,
        "DELETE",
        &format!("{PODS}/p?gracePeriodSeconds=0"),
        Value::Null,
    )
    .await;
    assert!(goes(&cluster, &claim).await);
}

#[tokio::test]
async fn a_namespace_with_a_claim_goes() {
    let (cluster, _) = with_claim().await;
    let namespace = format!("{NAMESPACES}/n");
    ask(&cluster, "DELETE", &namespace, Value::Null).await;
    assert!(goes(&cluster, &namespace).await);
}

#[tokio::test]
async fn a_volume_goes_that_is_not_bound() {
    let cluster = cluster();
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}});
    create(
        &cluster,
        VOLUMES,
        json!({"metadata": {"name": "v"}, "spec": spec}),
    )
    .await;
    let volume = format!("{VOLUMES}/v");
    let patch = |phase: &str| json!([{"op": "add", "path": "/status", "value": {"phase": phase}}]);
    let set = |phase: &'static str| {
        let (cluster, status) = (cluster.clone(), format!("{volume}/status"));
        async move {
            let request = Request::builder()
                .method("PATCH")
                .uri(status)
                .header("authorization", "Bearer t")
                .header("content-type", "application/json-patch+json")
                .body(Bytes::from(patch(phase).to_string()))
                .unwrap();
            assert_eq!(cluster.handle(request).await.unwrap().status(), 200);
        }
    };
    set("Bound").await;
    ask(&cluster, "DELETE", &volume, Value::Null).await;
    assert!(!goes(&cluster, &volume).await);
    set("Released").await;
    assert!(goes(&cluster, &volume).await);
}
