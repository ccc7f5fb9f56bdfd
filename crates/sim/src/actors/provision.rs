//! The nodes that a cluster starts with.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kubelet::node_address;
use super::pod::stamp;

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// So many ready nodes, in the zones by turns.
pub(super) fn nodes(count: usize, now: Timestamp) -> Vec<Value> {
    (0..count)
        .zip(ZONES.iter().cycle())
        .map(|(number, zone)| node(number, zone, now))
        .collect()
}

fn node(number: usize, zone: &str, now: Timestamp) -> Value {
    let name = format!("node-{number}");
    let room = json!({"cpu": "32", "memory": "256Gi", "pods": "1100"});
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason,
            "lastHeartbeatTime": stamp(now), "lastTransitionTime": stamp(now),
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": zone,
            },
        },
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": node_address(&name)},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            ],
        },
    })
}
