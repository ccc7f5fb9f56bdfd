//! `TestRolloutController_Reconcile` of the original: rollouts under zone-aware budgets.

use serde_json::{Value, json};
use slipway_kernel::ClusterId;
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::identity::kinds;
use slipway_kernel::stage::Stage;
use slipway_zones::{Replicas, Settings, Zones};

use crate::controller::{NOTHING, b_outdated, both_outdated, of};
use crate::objects::*;

fn budget(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"rollout-group": "ingester"}});
    json!({
        "apiVersion": "rollout-operator.grafana.com/v1",
        "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"namespace": NS, "name": "ingester"},
        "spec": spec,
    })
}

/// A budget by partitions, with a delay that pods of the other zone have not passed.
fn resting(partition_of: &str, ordinals: &[i64]) -> impl Fn(&mut Stage<Zones>) {
    let pods: Vec<String> = ordinals
        .iter()
        .map(|o| format!("{partition_of}-{o}"))
        .collect();
    move |stage| {
        let spec = json!({
            "maxUnavailable": 1, "crossZoneEvictionDelay": "20m",
            "podNamePartitionRegex": "[a-z-]+-zone-[a-z]-([0-9]+)",
        });
        stage.put(budget(&spec));
        for pod in &pods {
            let ready = json!({"status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-04T11:50:00Z"},
            ]}});
            change(stage, "Pod", pod, &ready);
        }
    }
}

#[test]
fn zpdb_allows_the_first_and_denies_the_second() {
    let plan = of(&b_outdated(), |stage| {
        stage.put(budget(&json!({"maxUnavailable": 1})));
    });
    assert_eq!(deleted(&plan), ["ingester-zone-b-0"]);
    assert!(plan.blockers.iter().any(|b| b.message.contains(
        "pod eviction denied for ingester-zone-b-1: 1 pod not ready in ingester-zone-b"
    )));
}

#[test]
fn zpdb_denies_the_first_and_allows_the_second() {
    let plan = of(&b_outdated(), resting("ingester-zone-a", &[0]));
    assert_eq!(deleted(&plan), ["ingester-zone-b-1"]);
    // The exact end of the delay: 11:50 and 20 minutes, which must have passed.
    let until = plan.blockers.iter().find_map(|b| b.until).unwrap();
    assert_eq!(until, at("2026-03-04T12:10:00.001Z"));
    assert_eq!(
        plan.wake_at,
        Some(noon() + jiff::SignedDuration::from_mins(5))
    );
}

#[test]
fn zpdb_denies_all_in_a_and_b_is_not_touched() {
    let plan = of(&both_outdated(), resting("ingester-zone-b", &[0, 1, 2]));
    assert_eq!(deleted(&plan), NOTHING);
}

#[test]
fn zpdb_denies_only_the_first_of_a() {
    let plan = of(&both_outdated(), resting("ingester-zone-b", &[0]));
    assert_eq!(deleted(&plan), ["ingester-zone-a-1"]);
}

#[test]
fn no_denial_two_of_a_go() {
    let plan = of(&both_outdated(), |stage| {
        stage.put(budget(&json!({"maxUnavailable": 2})));
    });
    assert_eq!(deleted(&plan), ["ingester-zone-a-0", "ingester-zone-a-1"]);
}

#[test]
fn no_denial_in_partition_mode_two_of_a_go() {
    let plan = of(&both_outdated(), resting("ingester-zone-b", &[]));
    assert_eq!(deleted(&plan), ["ingester-zone-a-0", "ingester-zone-a-1"]);
}

/// Where a budget says 0, a rollout goes by the zone's own number, and by one in each partition.
#[test]
fn a_budget_of_zero_is_overridden_for_rollouts() {
    let regex = "[a-z-]+-zone-[a-z]-([0-9]+)";
    for spec in [
        json!({"maxUnavailable": 0}),
        json!({"maxUnavailable": 0, "podNamePartitionRegex": regex}),
    ] {
        let plan = of(&both_outdated(), |stage| stage.put(budget(&spec)));
        assert_eq!(
            deleted(&plan),
            ["ingester-zone-a-0", "ingester-zone-a-1"],
            "{spec}"
        );
    }
}

#[test]
fn an_invalid_budget_or_two_of_them_stop_what_they_are_about() {
    for spec in [
        json!({"maxUnavailable": -1}),
        json!({"podNamePartitionRegex": "x"}),
    ] {
        let plan = of(&b_outdated(), |stage| stage.put(budget(&spec)));
        assert_eq!(deleted(&plan), NOTHING, "{spec}");
        assert!(reasons(&plan).contains(&"DisruptionBudget"));
    }
    let plan = of(&b_outdated(), |stage| {
        let mut second = budget(&json!({"maxUnavailable": 2}));
        second["metadata"]["name"] = json!("second");
        stage.put(budget(&json!({"maxUnavailable": 2})));
        stage.put(second);
    });
    assert_eq!(deleted(&plan), NOTHING);
    assert!(
        plan.blockers[0]
            .message
            .contains("multiple zoned pod disruption budgets found for pod")
    );
}

/// Zones of which the eviction webhook has let b-2 go, a moment ago.
fn evicting(zones: &[Value]) -> Stage<Zones> {
    let mut stage = stage(zones);
    stage.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": NS, "name": "slipway-zpdb-ingester"},
        "data": {format!("uid-{NS}-ingester-zone-b-2"): "2026-03-04T12:00:40Z"},
    }));
    stage
}

/// A pod that the eviction webhook of another replica has let go counts as gone, although it is still seen as ready: until
/// it is, or until it is sure to have stayed.
#[test]
fn an_allowed_eviction_counts_before_it_is_seen() {
    let plan = pass(&mut evicting(&both_outdated()));
    assert_eq!(
        deleted(&plan),
        ["ingester-zone-b-0"],
        "b has the turn, and one place left"
    );
    let mut stage = evicting(&[outdated("ingester-zone-a"), zone("ingester-zone-b")]);
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan), NOTHING);
    // When the pod cannot go any more, a watch that was silent has been noticed a minute later: then it has stayed.
    stage.now = at("2026-03-04T12:00:40Z");
    assert_eq!(deleted(&pass(&mut stage)), NOTHING);
    assert_eq!(plan.wake_at, Some(at("2026-03-04T12:01:40Z")));
    stage.now = at("2026-03-04T12:01:40Z");
    assert_eq!(deleted(&pass(&mut stage)).len(), 2);
}

/// Whoever evicts may try for as long as somebody else refuses after us: it is said which pod a rollout waits for.
#[test]
fn a_pod_that_was_let_go_and_is_still_there_is_named_to_those_who_wait() {
    let zones = [outdated("ingester-zone-a"), zone("ingester-zone-b")];
    let text = "because it was let go, although it is still there: ingester-zone-b-2";
    let mut stage = evicting(&zones);
    let plan = pass(&mut stage);
    assert_eq!(reasons(&plan), ["NotReady"]);
    assert!(plan.blockers[0].message.contains(text), "{plan:?}");
    terminate(&mut stage, "ingester-zone-b-2");
    let plan = pass(&mut stage);
    assert_eq!(reasons(&plan), ["NotReady"]);
    assert!(!plan.blockers[0].message.contains("let go"), "{plan:?}");
}

/// Pods under a budget are noted where the webhooks of all replicas look, in one write, and go only after it.
#[test]
fn pods_that_go_are_noted_for_the_webhooks_first() {
    let mut stage = stage(&b_outdated());
    stage.put(budget(&json!({"maxUnavailable": 2})));
    let claim = stage.step();
    assert_eq!(names(&claim, "claim"), ["ingester-zone-b"]);
    let plan = stage.step();
    assert_eq!(names(&plan, "note"), ["slipway-zpdb-ingester"]);
    assert_eq!(deleted(&plan), NOTHING);
    let plan = stage.plan();
    assert_eq!(
        (names(&plan, "note").len(), deleted(&plan).len()),
        (0, 2),
        "one write for both"
    );
    // A note that ends soon is none: a deletion may take its time.
    stage.now += jiff::SignedDuration::from_secs(41);
    let plan = stage.plan();
    assert_eq!((names(&plan, "note").len(), deleted(&plan).len()), (1, 0));
    // Without a budget nothing is noted.
    stage.delete("ZoneAwarePodDisruptionBudget", NS, "ingester");
    let plan = stage.plan();
    assert_eq!((names(&plan, "note").len(), deleted(&plan).len()), (0, 2));
}

/// A planner that knows this of other replicas, before zones of which b is outdated under a budget; the claim is taken.
fn among(replicas: Replicas) -> Stage<Zones> {
    let mut stage = stage(&b_outdated());
    stage.planner = Zones::new(Settings {
        replicas,
        ..Settings::default()
    });
    stage.put(budget(&json!({"maxUnavailable": 2})));
    stage.step();
    stage
}

/// Where maps must not be kept pods go without a note if there is no other replica; where a note is not let through for
/// another reason, no pod goes.
#[test]
fn only_without_the_right_to_note_pods_go_without() {
    use slipway_kernel::fact::Cause;
    let mut stage = among(Replicas::One);
    let refusal = |cause: Cause, reason: &str| slipway_kernel::fact::Refusal {
        cause,
        reason: reason.to_owned(),
        message: "no".to_owned(),
        attempts: 1,
        since: noon(),
        retry_at: noon() + jiff::SignedDuration::from_mins(5),
    };
    let map = slipway_kernel::ObjectRef::local(kinds::CONFIG_MAP, NS, "slipway-zpdb-ingester");
    // What a quota forbids has the reason of a missing right.
    for (cause, reason) in [
        (Cause::Rejected, "Invalid"),
        (Cause::Rejected, "Forbidden"),
        (Cause::Busy, "TooManyRequests"),
    ] {
        let refused = refusal(cause, reason);
        stage.facts.refusals.insert(map.clone(), refused);
        let plan = stage.plan();
        assert_eq!(deleted(&plan), NOTHING, "{reason}");
        assert!(reasons(&plan).contains(&"RefusedByApi"));
    }
    let missing = refusal(Cause::NoRight, "Forbidden");
    stage.facts.refusals.insert(map.clone(), missing.clone());
    assert_eq!(deleted(&stage.plan()).len(), 2);
    // Another replica would not know.
    let mut stage = among(Replicas::Several);
    stage.facts.refusals.insert(map, missing);
    let plan = stage.plan();
    assert_eq!(deleted(&plan), NOTHING);
    assert!(reasons(&plan).contains(&"RefusedByApi"));
}

/// A pod that the API does not let go for now stays, so nobody is told that it goes: evictions elsewhere would be refused.
#[test]
fn a_pod_whose_deletion_is_refused_is_not_announced() {
    let mut stage = among(Replicas::Several);
    refuse(&mut stage, "x");
    let refusal = stage.facts.refusals.pop_first().unwrap().1;
    for ordinal in 0..3 {
        let name = format!("ingester-zone-b-{ordinal}");
        let pod = slipway_kernel::ObjectRef::local(kinds::POD, NS, name);
        stage.facts.refusals.insert(pod, refusal.clone());
    }
    for _ in 0..3 {
        let plan = stage.step();
        assert_eq!((names(&plan, "note").len(), deleted(&plan).len()), (0, 0));
    }
    assert!(reasons(&stage.plan()).contains(&"RefusedByApi"));
}

/// Without the right to see maps, what other replicas let go does not count, and what is noted cannot be read back: only
/// the one replica that there is goes on. That there is one is known by its start, or because it acts without a Lease.
#[test]
fn where_notes_cannot_be_seen_only_the_one_replica_goes_on() {
    let lease = Missing::new(
        &ClusterId::local(),
        &kinds::LEASE,
        Right::Lead("slipway-zones".to_owned()),
    );
    for (replicas, has_lease, goes) in [
        (Replicas::One, true, true),
        (Replicas::OneWithoutLease, false, true),
        (Replicas::OneWithoutLease, true, false),
        (Replicas::Several, false, false),
        (Replicas::Several, true, false),
    ] {
        let mut stage = among(replicas);
        assert!(stage.lack("watch configmaps"));
        if !has_lease {
            stage.facts.missing.insert(lease.clone());
        }
        let plan = stage.plan();
        assert_eq!(names(&plan, "note"), NOTHING, "{replicas:?}");
        assert_eq!(
            deleted(&plan).len(),
            if goes { 2 } else { 0 },
            "{replicas:?}"
        );
        assert_eq!(reasons(&plan).contains(&"NotesHidden"), !goes);
    }
    let mut stage = among(Replicas::Several);
    assert!(stage.lack("watch configmaps"));
    let plan = stage.plan();
    let text = "list and watch on configmaps in namespace mimir are not granted";
    assert!(plan.blockers[0].message.contains(text), "{plan:?}");
    assert!(plan.events.iter().any(|e| e.note.contains(text)));
    // A pod that is down already is no loss.
    unready(&mut stage, "ingester-zone-b-1");
    assert_eq!(deleted(&pass(&mut stage)), ["ingester-zone-b-1"]);
    // With the right it goes on, and without a budget nobody notes anything.
    let mut stage = among(Replicas::Several);
    assert!(stage.lack("watch configmaps"));
    stage.delete("ZoneAwarePodDisruptionBudget", NS, "ingester");
    assert_eq!(deleted(&stage.plan()).len(), 2);
    stage.put(budget(&json!({"maxUnavailable": 2})));
    assert_eq!(deleted(&stage.plan()), NOTHING);
    stage.facts.missing.clear();
    assert_eq!(names(&stage.plan(), "note"), ["slipway-zpdb-ingester"]);
}

/// 0013: a budget may be there that we have no right to see. Only pods that are down already go.
#[test]
fn budgets_that_may_not_be_seen_hold_back_all_pods_that_are_up() {
    let mut stage = stage(&[outdated("ingester-zone-a"), zone("ingester-zone-b")]);
    assert!(stage.lack("see zoneawarepoddisruptionbudgets"));
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan).len(), 0);
    assert_eq!(reasons(&plan), ["BudgetsHidden"]);
    let text = "get, list and watch on zoneawarepoddisruptionbudgets.rollout-operator.grafana.com in namespace mimir";
    assert!(plan.blockers[0].message.contains(text), "{plan:?}");
    unready(&mut stage, "ingester-zone-a-1");
    assert_eq!(deleted(&pass(&mut stage)), ["ingester-zone-a-1"]);
    stage.facts.missing.clear();
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan), ["ingester-zone-a-0"], "{plan:?}");
}

/// A definition that has just been applied, or budgets that cannot be read just now: nobody knows what they forbid.
#[test]
fn budgets_that_are_not_synced_hold_back_all_pods_that_are_up() {
    let mut stage = stage(&[outdated("ingester-zone-a"), zone("ingester-zone-b")]);
    assert!(stage.lack("sync zoneawarepoddisruptionbudgets"));
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan).len(), 0);
    assert_eq!(reasons(&plan), ["BudgetsHidden"]);
    assert!(plan.blockers[0].message.contains("try again"), "{plan:?}");
    unready(&mut stage, "ingester-zone-a-1");
    assert_eq!(deleted(&pass(&mut stage)), ["ingester-zone-a-1"]);
    stage.facts.missing.clear();
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan), ["ingester-zone-a-0"], "{plan:?}");
}
