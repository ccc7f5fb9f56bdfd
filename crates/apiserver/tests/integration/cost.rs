//! Many clusters in one process: what each costs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::Clock;
use tower::ServiceExt;

use super::definitions::{self, DEFINITIONS};
use super::stage::{self, ALICE, config, send, whole};

const CLUSTERS: u32 = if cfg!(debug_assertions) { 200 } else { 1000 };
/// What one more cluster may cost, with a definition of 150 fields and an object of it: bytes of memory, and time, as a
/// multiple of what reading that definition's JSON and writing it again takes in the same process. In microseconds it was a
/// bound of the machine and of how the crates are optimised, and fell with either.
const BYTES: usize = 50_000;
const READINGS: usize = 20;

const TEST: &str =
    "integration::cost::a_cluster_costs_less_than_50_kilobytes_and_20_readings_of_its_definition";

/// Clusters with three large definitions, and bytes of memory that one more of them may cost.
const LARGE_CLUSTERS: u32 = 200;
const LARGE_BYTES: usize = 100_000;

const LARGE_TEST: &str = "integration::cost::one_more_cluster_with_three_large_definitions_costs_less_than_100_kilobytes";

/// Measurements, one after the other.
static ALONE: Mutex<()> = Mutex::new(());

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
/// memory each takes, and how long the fastest took beside the fastest reading of the definition. Work that is done for each
/// shows in the fastest too; what else the machine does at that time does not.
fn measure() {
    let definition = definition().to_string();
    let ship = json!({"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}});
    let ship = ship.to_string();
    stage::virtually(async {
        let mut all = Vec::new();
        let (mut before, mut fastest, mut reading) = (0, Duration::MAX, Duration::MAX);
        for n in 0..CLUSTERS + 10 {
            if n == 10 {
                before = resident();
            }
            reading = reading.min(read_and_write(&definition));
            let began = Instant::now();
            let name = format!("c{n}");
            let cluster = config(&name, u64::from(n), Arc::default()).build();
            post(&cluster, DEFINITIONS, &definition).await;
            let ships = "/apis/example.com/v1/namespaces/default/ships";
            post(&cluster, ships, &ship).await;
            fastest = fastest.min(began.elapsed());
            all.push(cluster);
        }
        let bytes = (resident() - before) * 1024 / CLUSTERS as usize;
        let (fastest, reading) = (fastest.as_micros(), reading.as_micros());
        stage::report(&format!("{bytes} {fastest} {reading}"));
    });
}

/// How long it takes to read a document and to write it again.
fn read_and_write(document: &str) -> Duration {
    let began = Instant::now();
    let value: Value = serde_json::from_str(document).unwrap();
    assert_eq!(value.to_string().len(), document.len());
    began.elapsed()
}

#[test]
fn a_cluster_costs_less_than_50_kilobytes_and_20_readings_of_its_definition() {
    if std::env::var_os("APISERVER_COST").is_some() {
        measure();
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Memory of a process is only told apart when nothing else runs in it.
    let result = stage::in_a_process(TEST, &[("APISERVER_COST", "1")]);
    let numbers: Vec<usize> = result.split(' ').map(|n| n.parse().unwrap()).collect();
    let [bytes, fastest, reading] = numbers[..] else {
        panic!("bytes, the fastest cluster and the fastest reading: {result}")
    };
    assert!(bytes < BYTES, "{result}");
    assert!(fastest < READINGS * reading, "{result}");
}

/// A clock that stands.
#[derive(Debug)]
struct Moment(Timestamp);

impl Clock for Moment {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// A cluster that began at a moment of its own, with three large definitions, an object of each, and a role of its own,
/// which somebody has made use of: nothing that it has is as in another by chance.
async fn large(number: u32) -> Arc<Cluster> {
    let began = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(i64::from(number));
    let cluster = config(&format!("c{number}"), u64::from(number), Arc::default())
        .with_clock(Arc::new(Moment(began)))
        .build();
    for definition in definitions::three() {
        post(&cluster, DEFINITIONS, &definition.to_string()).await;
    }
    for (path, object) in definitions::objects() {
        post(&cluster, &path, &object.to_string()).await;
    }
    let group = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "look"},
        "rules": [{"apiGroups": [definitions::GROUP], "resources": ["*"], "verbs": ["list"]}]});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "look"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "look"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}]});
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        post(
            &cluster,
            &format!("/apis/{group}/v1/{plural}"),
            &object.to_string(),
        )
        .await;
    }
    let (path, _) = definitions::objects().swap_remove(0);
    let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
    let seen = cluster.service(ALICE).oneshot(request).await.unwrap();
    assert_eq!(seen.status(), 200);
    whole(seen).await;
    cluster
}

fn measure_large() {
    stage::virtually(async {
        let mut all = vec![large(0).await, large(1).await, large(2).await];
        let before = resident();
        for number in 0..LARGE_CLUSTERS {
            all.push(large(3 + number).await);
        }
        let bytes = (resident() - before) * 1024 / LARGE_CLUSTERS as usize;
        stage::report(&bytes.to_string());
    });
}

#[test]
fn one_more_cluster_with_three_large_definitions_costs_less_than_100_kilobytes() {
    if std::env::var_os("APISERVER_COST").is_some() {
        measure_large();
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let result = stage::in_a_process(LARGE_TEST, &[("APISERVER_COST", "1")]);
    assert!(result.parse::<usize>().unwrap() < LARGE_BYTES, "{result}");
}
