//! Budgets of partitions.

use super::*;

#[test]
fn partition_healthy() {
    allowed(&partitioned(&json!({})), "a", 0);
}

#[test]
fn partition_others_failed() {
    let mut world = partitioned(&json!({}));
    world.fail("a", 1);
    world.fail("b", 2);
    allowed(&world, "a", 0);
    // Own zone is ignored altogether.
    denied(&world, "c", 1, "1 pod not ready in partition 1");
}

#[test]
fn partition_same_in_other_zone() {
    let mut world = partitioned(&json!({}));
    world.fail("b", 0);
    denied(&world, "a", 0, "1 pod not ready in partition 0");
}

#[test]
fn partition_unknown_replica() {
    for fields in [
        json!({}),
        json!({"podNamePartitionRegex": "([a-z\\-]+)-zone-[a-z]-([0-9]+)", "podNameRegexGroup": 2}),
    ] {
        let mut world = partitioned(&fields);
        world.set_mut("b")["spec"]["replicas"] = json!(4);
        denied(&world, "a", 0, "1 pod unknown in partition 0");
    }
}

#[test]
fn partition_max_two() {
    let mut world = partitioned(&json!({"maxUnavailable": 2}));
    world.fail("b", 0);
    allowed(&world, "a", 0);
    world.fail("c", 0);
    denied(&world, "a", 0, "2 pods not ready in partition 0");
}

#[test]
fn partition_not_identified() {
    let world = partitioned(&json!({"podNamePartitionRegex": "store-([0-9]+)"}));
    let text = "failed to extract partition from pod Name regular expression";
    refused(&world, "a", 0, 400, text, "partition-not-identified");
}

#[test]
fn partition_lost_by_a_downscale() {
    let mut world = partitioned(&json!({}));
    world.set("a", 2);
    world.pods.remove("ingester-zone-a-2");
    denied(&world, "b", 2, "1 pod unknown in partition 2");
    let mut world = partitioned(&json!({"maxUnavailable": 2}));
    world.set("a", 1);
    world.pods.remove("ingester-zone-a-1");
    world.pods.remove("ingester-zone-a-2");
    world.fail("b", 2);
    denied(
        &world,
        "c",
        2,
        "1 pod not ready, 1 pod unknown in partition 2",
    );
}

/// As the original's `isReady`: delay zero, no time, bad time, inside and outside of the window, and that pending comes first.
#[test]
fn cross_zone_eviction_delay() {
    let world = |delay: &str, since: Option<&str>, annotation: Option<&str>| {
        let mut world = partitioned(&json!({"crossZoneEvictionDelay": delay}));
        for letter in ["b", "c"] {
            let pod = world.pod_mut(letter, 0);
            if let Some(since) = since {
                pod["status"]["conditions"] =
                    json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]);
            }
            if let Some(time) = annotation {
                pod["metadata"]["annotations"] = json!({"grafana.com/ready-time": time});
            }
        }
        world
    };
    let text = "2 pods not ready in partition 0";
    allowed(&world("0s", None, None), "a", 0);
    denied(&world("15m", None, None), "a", 0, text);
    denied(&world("15m", None, Some("yesterday")), "a", 0, text);
    allowed(&world("15m", Some("2026-03-04T11:00:00Z"), None), "a", 0);
    allowed(&world("15m", None, Some("2026-03-04T11:00:00Z")), "a", 0);
    denied(
        &world("15m", Some("2026-03-04T11:50:00Z"), None),
        "a",
        0,
        text,
    );
    // It must have passed, not only come; and what the original wrote may be older than the last fall.
    denied(
        &world("15m", Some("2026-03-04T11:45:00Z"), None),
        "a",
        0,
        text,
    );
    allowed(&world("15m", Some("2026-03-04T11:44:59Z"), None), "a", 0);
    denied(
        &world(
            "15m",
            Some("2026-03-04T11:50:00Z"),
            Some("2026-03-04T09:00:00Z"),
        ),
        "a",
        0,
        text,
    );
}

/// As the original's `isReady`: a pod that was let go is not ready, for however long it has been.
#[test]
fn a_pod_that_was_let_go_counts_however_long_it_was_ready() {
    let mut world = partitioned(&json!({"crossZoneEvictionDelay": "15m"}));
    for letter in ["b", "c"] {
        world.pod_mut(letter, 0)["metadata"]["annotations"] =
            json!({"grafana.com/ready-time": "2026-03-01T00:00:00Z"});
    }
    allowed(&world, "a", 0);
    let mut facts = Facts::default();
    let until = "2026-03-04T12:00:30Z".parse().unwrap();
    facts
        .evictions_allowed_here
        .insert("pod-b-0".to_owned(), until);
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &world.stores(),
        &facts,
        &mut Api::default(),
    );
    let text = "1 pod not ready in partition 0";
    assert_eq!(served.denial(), (Some(429), text));
}
