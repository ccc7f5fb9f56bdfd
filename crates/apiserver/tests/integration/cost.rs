//! Many clusters in one process: what each costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;

use super::stage::{self, config, send, whole};

const CLUSTERS: u32 = if cfg!(debug_assertions) { 200 } else { 1000 };
/// Bytes of memory and microseconds of time that one more cluster may cost, with a definition of 150 fields and an
/// object of it.
const BYTES: usize = 50_000;
const MICROSECONDS: usize = 1000;

const TEST: &str = "integration::cost::a_cluster_costs_less_than_50_kilobytes_and_a_millisecond";

/// A definition of some size, as operators bring them.
fn definition() -> Value {
    let properties: serde_json::Map<String, Value> = (0..50)
        .map(|n| {
            let property = json!({
                "type": "object",
                "description": "What people read when they ask for an explanation of this field.",
                "properties": {
                    "size": {"type": "integer", "minimum": 0, "default": n},
                    "name": {"type": "string", "maxLength": 63},
                    "tags": {"type": "array", "items": {"type": "string"}}
                }
            });
            (format!("field{n}"), property)
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "ships", "singular": "ship", "kind": "Ship"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": properties}}
                }}
            }]
        }
    })
}

async fn post(cluster: &Arc<Cluster>, path: &str, body: &str) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(body.to_owned().into())
        .unwrap();
    let answer = send(cluster, request).await;
    let code = answer.status();
    let text = whole(answer).await;
    assert_eq!(code, 201, "{}", String::from_utf8_lossy(&text));
}

/// Kilobytes of memory that this process holds.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Makes clusters that know the definition and hold one object of it, and measures those behind the first few: how much
/// memory each takes, and how long the fastest took. Work that is done for each shows in the fastest too; what else the
/// machine does at that time does not.
fn measure() {
    let definition = definition().to_string();
    let ship = json!({"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}});
    let ship = ship.to_string();
    stage::virtually(async {
        let mut all = Vec::new();
        let (mut before, mut fastest) = (0, Duration::MAX);
        for n in 0..CLUSTERS + 10 {
            if n == 10 {
                before = resident();
            }
            let began = Instant::now();
            let name = format!("c{n}");
            let cluster = config(&name, u64::from(n), Arc::default()).build();
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            post(&cluster, definitions, &definition).await;
            let ships = "/apis/example.com/v1/namespaces/default/ships";
            post(&cluster, ships, &ship).await;
            fastest = fastest.min(began.elapsed());
            all.push(cluster);
        }
        let bytes = (resident() - before) * 1024 / CLUSTERS as usize;
        stage::report(&format!("{bytes} {}", fastest.as_micros()));
    });
}

#[test]
fn a_cluster_costs_less_than_50_kilobytes_and_a_millisecond() {
    if std::env::var_os("APISERVER_COST").is_some() {
        measure();
        return;
    }
    // Code that is not optimised is slower, and not larger.
    let slack = if cfg!(debug_assertions) { 20 } else { 1 };
    // Memory of a process is only told apart when nothing else runs in it.
    let result = stage::in_a_process(TEST, &[("APISERVER_COST", "1")]);
    let mut numbers = result.split(' ').map(|n| n.parse::<usize>().unwrap());
    assert!(numbers.next().unwrap() < BYTES, "{result}");
    assert!(numbers.next().unwrap() < MICROSECONDS * slack, "{result}");
}
