//! §5.4, eviction.

use serde_json::{Value, json};
use slipway_kernel::admission::{Admission, Admit, Review, Verdict};
use slipway_kernel::fact::Answer;
use slipway_kernel::identity::kinds;
use slipway_kernel::{Action, ClusterId, Facts, Stores};
use slipway_zones::admit::pod_eviction::PodEviction;
use slipway_zones::admit::zpdb::BudgetSeen;
use slipway_zones::observe::{Pod, ZONE_BUDGET};

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
    serve(
        &PodEviction,
        review,
        &world.stores(),
        &Facts::default(),
        &mut Api::default(),
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
        served.remarks.hold.unwrap().0,
        format!("pod-{letter}-{ordinal}")
    );
}

fn guarded(fields: &Value) -> World {
    let mut world = World::healthy(&["a", "b", "c"]);
    world.budget(fields);
    world
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
fn two_budgets() {
    let mut world = guarded(&json!({}));
    world.budget(&json!({"maxUnavailable": 2}));
    let text = "multiple zoned pod disruption budgets found for pod";
    refused(&world, "a", 0, 400, text, "cfg-not-found");
}

#[test]
fn a_budget_that_makes_no_sense_lets_nobody_go() {
    let world = guarded(&json!({"maxUnavailable": -1}));
    let text = "zoned pod disruption budget budget-0 makes no sense: invalid value: max unavailable must be 0 <= val, got -1";
    refused(&world, "a", 0, 400, text, "cfg-not-found");
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
        &PodEviction,
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

fn partitions(fields: &Value) -> World {
    let mut all = json!({"podNamePartitionRegex": PARTITION, "maxUnavailable": 1});
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    guarded(&all)
}

#[test]
fn partition_healthy() {
    allowed(&partitions(&json!({})), "a", 0);
}

#[test]
fn partition_others_failed() {
    let mut world = partitions(&json!({}));
    world.fail("a", 1);
    world.fail("b", 2);
    allowed(&world, "a", 0);
    // Own zone is ignored altogether.
    denied(&world, "c", 1, "1 pod not ready in partition 1");
}

#[test]
fn partition_same_in_other_zone() {
    let mut world = partitions(&json!({}));
    world.fail("b", 0);
    denied(&world, "a", 0, "1 pod not ready in partition 0");
}

#[test]
fn partition_unknown_replica() {
    for fields in [
        json!({}),
        json!({"podNamePartitionRegex": "([a-z\\-]+)-zone-[a-z]-([0-9]+)", "podNameRegexGroup": 2}),
    ] {
        let mut world = partitions(&fields);
        world.set_mut("b")["spec"]["replicas"] = json!(4);
        denied(&world, "a", 0, "1 pod unknown in partition 0");
    }
}

#[test]
fn partition_max_two() {
    let mut world = partitions(&json!({"maxUnavailable": 2}));
    world.fail("b", 0);
    allowed(&world, "a", 0);
    world.fail("c", 0);
    denied(&world, "a", 0, "2 pods not ready in partition 0");
}

#[test]
fn partition_not_identified() {
    let world = partitions(&json!({"podNamePartitionRegex": "store-([0-9]+)"}));
    let text = "failed to extract partition from pod Name regular expression";
    refused(&world, "a", 0, 400, text, "partition-not-identified");
}

#[test]
fn partition_lost_by_a_downscale() {
    let mut world = partitions(&json!({}));
    world.set("a", 2);
    world.pods.remove("ingester-zone-a-2");
    denied(&world, "b", 2, "1 pod unknown in partition 2");
    let mut world = partitions(&json!({"maxUnavailable": 2}));
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

/// §5.4 isReady: delay zero, no time, bad time, inside and outside of the window, and that pending comes first.
#[test]
fn cross_zone_eviction_delay() {
    let world = |delay: &str, since: Option<&str>, annotation: Option<&str>| {
        let mut world = partitions(&json!({"crossZoneEvictionDelay": delay}));
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

/// T5 and T6: what has been let go counts at once, in its own zone and in others.
#[test]
fn a_pod_that_was_let_go_counts_before_anybody_sees_it_go() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let mut api = Api::default();
    let stores = world.stores();
    let mut ask = |letter: &str, ordinal: i64| {
        serve(
            &PodEviction,
            &review(letter, ordinal),
            &stores,
            &Facts::default(),
            &mut api,
        )
    };
    assert!(ask("a", 0).is_allowed());
    assert_eq!(
        ask("a", 1).denial(),
        (Some(429), "1 pod not ready in ingester-zone-a")
    );
    assert_eq!(
        ask("b", 0).denial(),
        (Some(429), "1 pod not ready in ingester-zone-a")
    );
    // The same pod again is no second one.
    assert!(ask("a", 0).is_allowed());
}

/// §6.1 defect 4: the original dies of a selector that misses the pod's own zone.
#[test]
fn d4_a_selector_that_misses_the_owner_is_no_crash() {
    let mut world = guarded(&json!({"maxUnavailable": 1}));
    world.set_mut("a")["metadata"]["labels"] = json!({});
    allowed(&world, "a", 0);
    world.fail("a", 1);
    denied(&world, "a", 0, "1 pod not ready in ingester-zone-a");
    let mut world = partitions(&json!({}));
    world.set_mut("a")["metadata"]["labels"] = json!({});
    allowed(&world, "a", 0);
}

/// §6.1 defect 6: without the definition everything works, but while it is only not listed yet nobody goes.
#[test]
fn d6_budgets_may_be_undefined_but_not_unlisted() {
    let world = World::healthy(&["a", "b"]);
    let mut stores = world.stores();
    let key = (
        ClusterId::local(),
        ZONE_BUDGET,
        std::any::type_name::<BudgetSeen>(),
    );
    stores.store_mut(&key).unwrap().set_synced(false);
    let served = serve(
        &PodEviction,
        &review("a", 0),
        &stores,
        &Facts::default(),
        &mut Nobody,
    );
    assert_eq!(served.denial().0, Some(429));
    let mut facts = Facts::default();
    facts
        .missing
        .insert("watch zoneawarepoddisruptionbudgets".to_owned());
    let served = serve(&PodEviction, &review("a", 0), &stores, &facts, &mut Nobody);
    assert_eq!(pair(&served), "pod-not-in-scope/200");
}

#[test]
fn pods_that_are_not_listed_yet_stay() {
    let mut stores = guarded(&json!({})).stores();
    let key = (ClusterId::local(), kinds::POD, std::any::type_name::<Pod>());
    stores.store_mut(&key).unwrap().set_synced(false);
    let served = serve(
        &PodEviction,
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
        &PodEviction,
        &review("a", 0),
        &Stores::default(),
        &Facts::default(),
        &mut Nobody,
    );
    assert!(!served.is_allowed());
}

/// §6.2 item 10, and W5.
#[test]
fn d10_a_dry_run_asks_nothing_and_consumes_nothing() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let dry = Review {
        is_dry_run: true,
        ..review("a", 0)
    };
    let served = serve(
        &PodEviction,
        &dry,
        &world.stores(),
        &Facts::default(),
        &mut Nobody,
    );
    assert_eq!(served.verdict, Verdict::allowed());
    assert_eq!(served.remarks.hold, None);
    assert!(served.actions.is_empty());
    allowed(&world, "b", 0);
}

/// W7: of two replicas that look at the same moment, one finds the map changed and looks again.
#[test]
fn w7_two_replicas_let_one_pod_go() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let stores = world.stores();
    let mut api = Api::default();
    let (first, second) = (
        review("a", 0),
        Review {
            uid: "other".to_owned(),
            ..review("b", 0)
        },
    );
    let mut facts = [Facts::default(), Facts::default()];
    let mut verdicts = [None, None];
    while verdicts.contains(&None) {
        for (index, review) in [&first, &second].into_iter().enumerate() {
            if verdicts[index].is_some() {
                continue;
            }
            match PodEviction.admit(review, &stores, &facts[index], now()) {
                Admission::Decide(verdict, _) => verdicts[index] = Some(verdict),
                Admission::Need(needs) => {
                    for need in needs {
                        let Action::Ask(question) = need else {
                            panic!()
                        };
                        let answer = api.answer(&question);
                        facts[index].answers.insert(question.id, (now(), answer));
                    }
                }
            }
        }
    }
    let [one, two] = verdicts;
    assert_eq!(one, Some(Verdict::allowed()));
    assert_eq!(
        two,
        Some(Verdict::refused(429, "1 pod not ready in ingester-zone-a"))
    );
}

#[test]
fn where_maps_are_forbidden_one_replica_remembers_by_itself() {
    let world = guarded(&json!({"maxUnavailable": 1}));
    let mut api = Api::default();
    for method in ["GET", "POST", "PUT"] {
        api.fix(
            method,
            "configmaps",
            said(403, &json!({"message": "forbidden"})),
        );
    }
    let stores = world.stores();
    let served = serve(
        &PodEviction,
        &review("a", 0),
        &stores,
        &Facts::default(),
        &mut api,
    );
    let (uid, until) = served.remarks.hold.clone().unwrap();
    assert!(served.is_allowed());
    let mut facts = Facts::default();
    facts.holds.insert(uid, until);
    let served = serve(&PodEviction, &review("b", 0), &stores, &facts, &mut api);
    assert_eq!(
        served.denial(),
        (Some(429), "1 pod not ready in ingester-zone-a")
    );
}

#[test]
fn what_cannot_be_recorded_is_not_allowed() {
    let world = guarded(&json!({}));
    for (method, answer) in [
        ("GET", said(500, &json!({"message": "boom"}))),
        ("GET", Answer::Timeout),
        ("POST", Answer::Refused("no".to_owned())),
    ] {
        let mut api = Api::default();
        api.fix(method, "configmaps", answer);
        let served = serve(
            &PodEviction,
            &review("a", 0),
            &world.stores(),
            &Facts::default(),
            &mut api,
        );
        assert_eq!(served.denial().0, Some(500));
        assert_eq!(pair(&served), "sts-pod-status-not-determined/500");
    }
    let expiry = PodEviction.expire(&review("a", 0), &world.stores(), &Facts::default(), now());
    assert!(matches!(
        expiry.verdict,
        Verdict::Denied {
            code: Some(500),
            ..
        }
    ));
}

#[test]
fn entries_end_after_a_minute_or_with_their_pod() {
    let mut world = guarded(&json!({}));
    let mut api = Api::default();
    let data =
        json!({"pod-a-0": "2026-03-04T11:59:59Z", "gone": "2026-03-04T13:00:00Z", "bad": "never"});
    api.put(
        "slipway-zpdb-budget-0",
        json!({"metadata": {"name": "slipway-zpdb-budget-0"}, "data": data}),
    );
    let served = serve(
        &PodEviction,
        &review("b", 0),
        &world.stores(),
        &Facts::default(),
        &mut api,
    );
    assert!(served.is_allowed());
    // What is void is swept out with the next write.
    let data = &api.map("slipway-zpdb-budget-0")["data"];
    assert_eq!(
        *data,
        json!({"pod-b-0": "2026-03-04T12:01:00Z", "gone": "2026-03-04T13:00:00Z"})
    );
    // A new pod of the same name is another one.
    world.pod_mut("b", 0)["metadata"]["uid"] = json!("pod-b-0-anew");
    let served = serve(
        &PodEviction,
        &review("a", 0),
        &world.stores(),
        &Facts::default(),
        &mut api,
    );
    assert!(served.is_allowed());
}
