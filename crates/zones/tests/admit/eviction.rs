//! Evictions under zone-aware budgets.

#[path = "eviction/budgets.rs"]
mod budgets;
#[path = "eviction/late.rs"]
mod late;
#[path = "eviction/partitions.rs"]
mod partitions;
#[path = "eviction/reservations.rs"]
mod reservations;

use serde_json::{Value, json};
use slipway_kernel::admission::{Review, Verdict};
use slipway_kernel::identity::kinds;
use slipway_kernel::{ClusterId, Facts, Stores};
use slipway_zones::admit::pod_eviction::PodEviction;
use slipway_zones::observe::Pod;

use crate::harness::*;
use crate::world::*;

const PARTITION: &str = "[a-z\\-]+-zone-[a-z]-([0-9]+)";

fn review(letter: &str, ordinal: i64) -> Review {
    let name = format!("{}-{ordinal}", zone(letter));
    Review {
        operation: "CREATE".to_owned(),
        group: String::new(),
        ..update(
            "pods",
            "eviction",
            &name,
            Value::Null,
            json!({"kind": "Eviction"}),
        )
    }
}

fn pair(served: &Served) -> String {
    let count = served.remarks.count.as_ref().unwrap();
    assert_eq!(count.name, "rollout_operator_zpdb_eviction_requests_total");
    let labels: Vec<&str> = count
        .labels
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    labels.join("/")
}

fn ask(world: &World, review: &Review) -> Served {
    ask_at(world, review, &mut Api::default())
}

/// With an API that may know other things than what has been seen.
fn ask_at(world: &World, review: &Review, api: &mut Api) -> Served {
    serve(
        &PodEviction::default(),
        review,
        &world.stores(),
        &Facts::default(),
        api,
    )
}

/// Asserts a refusal with its code, text and metric pair.
fn refused(world: &World, letter: &str, ordinal: i64, code: u16, text: &str, reason: &str) {
    let served = ask(world, &review(letter, ordinal));
    assert_eq!(served.denial(), (Some(code), text));
    assert_eq!(pair(&served), format!("{reason}/{code}"));
    assert_eq!(served.remarks.hold, None);
}

fn denied(world: &World, letter: &str, ordinal: i64, text: &str) {
    refused(world, letter, ordinal, 429, text, "denied");
}

fn allowed(world: &World, letter: &str, ordinal: i64) {
    let served = ask(world, &review(letter, ordinal));
    assert_eq!(served.verdict, Verdict::allowed(), "{letter} {ordinal}");
    assert_eq!(pair(&served), "allowed/200");
    assert_eq!(
        served.remarks.hold.unwrap().uid,
        format!("pod-{letter}-{ordinal}")
    );
}

fn guarded(fields: &Value) -> World {
    let mut world = World::healthy(&["a", "b", "c"]);
    world.budget(fields);
    world
}

fn partitioned(fields: &Value) -> World {
    let mut all = json!({"podNamePartitionRegex": PARTITION, "maxUnavailable": 1});
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    guarded(&all)
}

#[test]
fn operation_delete() {
    let world = guarded(&json!({}));
    let review = Review {
        operation: "DELETE".to_owned(),
        ..review("a", 0)
    };
    let served = ask(&world, &review);
    assert_eq!(
        served.denial(),
        (Some(400), "request operation is not create, got: DELETE")
    );
    assert_eq!(pair(&served), "invalid-request/400");
}

#[test]
fn wrong_subresource() {
    let review = Review {
        subresource: "scale".to_owned(),
        ..review("a", 0)
    };
    let served = ask(&guarded(&json!({})), &review);
    assert_eq!(
        served.denial(),
        (Some(400), "request SubResource is not eviction, got: scale")
    );
}

#[test]
fn empty_name() {
    for review in [
        Review {
            name: String::new(),
            ..review("a", 0)
        },
        Review {
            namespace: String::new(),
            ..review("a", 0)
        },
    ] {
        let served = ask(&guarded(&json!({})), &review);
        assert_eq!(
            served.denial(),
            (
                Some(400),
                "request did not include both a namespace and a name"
            )
        );
    }
}

#[test]
fn pod_not_found() {
    refused(
        &guarded(&json!({})),
        "a",
        9,
        400,
        "pods \"ingester-zone-a-9\" not found",
        "pod-not-found",
    );
}

#[test]
fn pods_that_do_no_work_are_allowed_with_a_warning() {
    for phase in ["Failed", "Succeeded", "Pending"] {
        let mut world = guarded(&json!({"maxUnavailable": 0}));
        world.pod_mut("a", 0)["status"]["phase"] = json!(phase);
        let served = ask(&world, &review("a", 0));
        assert_eq!(served.verdict, Verdict::warned("pod is not ready"));
        assert_eq!(pair(&served), "pod-not-ready/200");
    }
    let mut world = guarded(&json!({}));
    world.pod_mut("a", 0)["metadata"]["deletionTimestamp"] = json!("2026-03-04T11:59:00Z");
    assert_eq!(
        ask(&world, &review("a", 0)).verdict,
        Verdict::warned("pod is not ready")
    );
}

#[test]
fn pod_without_owner() {
    let mut world = guarded(&json!({}));
    world.pod_mut("a", 0)["metadata"]["ownerReferences"] = json!([]);
    refused(
        &world,
        "a",
        0,
        500,
        "unable to find a StatefulSet pod owner",
        "sts-no-found",
    );
    world.pod_mut("a", 0)["metadata"]["ownerReferences"] =
        json!([{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}]);
    let text = "pod owner is not a StatefulSet - ingester-zone-a-0 has owner r (ReplicaSet)";
    refused(&world, "a", 0, 500, text, "sts-no-found");
    world.pod("a", 0);
    world.sets.remove(&zone("a"));
    let text = "unable to find StatefulSet ingester-zone-a by name: statefulsets.apps \"ingester-zone-a\" not found";
    refused(&world, "a", 0, 500, text, "sts-no-found");
}

#[test]
fn not_in_scope() {
    let mut world = World::healthy(&["a", "b"]);
    let served = ask(&world, &review("a", 0));
    assert_eq!(served.verdict, Verdict::allowed());
    assert_eq!(pair(&served), "pod-not-in-scope/200");
    world.budget(&json!({"selector": {"matchLabels": {"rollout-group": "other"}}}));
    assert_eq!(pair(&ask(&world, &review("a", 0))), "pod-not-in-scope/200");
}

#[test]
fn max_unavailable_zero() {
    for fields in [
        json!({"maxUnavailable": 0}),
        json!({"maxUnavailablePercentage": 0}),
    ] {
        refused(
            &guarded(&fields),
            "a",
            0,
            403,
            "max unavailable = 0",
            "max-unavailable-0",
        );
    }
}

#[test]
fn single_set() {
    let mut world = World::healthy(&["a"]);
    world.budget(&json!({}));
    refused(
        &world,
        "a",
        0,
        400,
        "minimum number of StatefulSets not found",
        "min-sts-not-found",
    );
}

#[test]
fn all_healthy_is_allowed_and_recorded() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    allowed(&world, "a", 0);
    let mut api = Api::default();
    serve(
        &PodEviction::default(),
        &review("a", 0),
        &world.stores(),
        &Facts::default(),
        &mut api,
    );
    assert_eq!(
        api.map("slipway-zpdb-budget-0")["data"],
        json!({"pod-a-0": "2026-03-04T12:01:00Z"})
    );
}

#[test]
fn same_zone_failed_pod() {
    let mut world = guarded(&json!({"maxUnavailable": 1}));
    world.fail("a", 1);
    denied(&world, "a", 0, "1 pod not ready in ingester-zone-a");
    // The log names each pod that counts.
    let served = ask(&world, &review("a", 0));
    let noted = (
        "Pod not considered ready",
        vec!["ingester-zone-a-1".to_owned()],
    );
    assert_eq!(served.remarks.notes, Some(noted));
    let mut world = guarded(&json!({"maxUnavailable": 2}));
    world.fail("a", 1);
    allowed(&world, "a", 0);
}

#[test]
fn other_zone_failed_pod() {
    for most in [1, 2] {
        let mut world = guarded(&json!({"maxUnavailable": most}));
        world.fail("b", 1);
        denied(&world, "a", 0, "1 pod not ready in ingester-zone-b");
    }
}

#[test]
fn a_missing_pod_is_unknown() {
    let mut world = guarded(&json!({"maxUnavailable": 1}));
    world.set_mut("b")["spec"]["replicas"] = json!(4);
    denied(&world, "a", 0, "1 pod unknown in ingester-zone-b");
    world.fail("b", 0);
    world.fail("b", 1);
    denied(
        &world,
        "a",
        0,
        "2 pods not ready, 1 pod unknown in ingester-zone-b",
    );
}

#[test]
fn terminating_pods_and_closed_gates_are_not_ready() {
    let mut world = guarded(&json!({}));
    world.pod_mut("b", 0)["metadata"]["deletionTimestamp"] = json!("2026-03-04T11:59:00Z");
    denied(&world, "a", 0, "1 pod not ready in ingester-zone-b");
    let mut world = guarded(&json!({}));
    world.pod_mut("b", 0)["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    denied(&world, "a", 0, "1 pod not ready in ingester-zone-b");
}

#[test]
fn pods_of_others_with_the_same_label_do_not_count() {
    let mut world = guarded(&json!({}));
    world.pod("b", 7);
    let owner = json!([{"kind": "Job", "name": "j", "uid": "job", "controller": true}]);
    world.pod_mut("b", 7)["metadata"]["ownerReferences"] = owner;
    world.fail("b", 7);
    allowed(&world, "a", 0);
    // But one that nobody controls is about to be adopted.
    world.pod_mut("b", 7)["metadata"]["ownerReferences"] = json!([]);
    denied(&world, "a", 0, "1 pod not ready in ingester-zone-b");
}

/// D4: the original dies of a selector that misses the pod's own zone.
#[test]
fn d4_a_selector_that_misses_the_owner_is_no_crash() {
    let mut world = guarded(&json!({"maxUnavailable": 1}));
    world.set_mut("a")["metadata"]["labels"] = json!({});
    allowed(&world, "a", 0);
    world.fail("a", 1);
    denied(&world, "a", 0, "1 pod not ready in ingester-zone-a");
    let mut world = partitioned(&json!({}));
    world.set_mut("a")["metadata"]["labels"] = json!({});
    allowed(&world, "a", 0);
}

#[test]
fn pods_that_are_not_listed_yet_stay() {
    let mut stores = guarded(&json!({})).stores();
    let name = std::any::type_name::<Pod>().into();
    let key = (ClusterId::local(), kinds::POD, name);
    stores.store_mut(&key).unwrap().set_synced(false);
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &stores,
        &Facts::default(),
        &mut Nobody,
    );
    assert_eq!(
        served.denial(),
        (Some(429), "pods have not been listed yet; try again")
    );
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &Stores::default(),
        &Facts::default(),
        &mut Nobody,
    );
    assert!(!served.is_allowed());
}
