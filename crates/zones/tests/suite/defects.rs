//! Defects of the original (D1 to D14 of `docs/conformance/zones.md`), which this one does not have.

use serde_json::json;

use crate::objects::*;

const A: &str = "ingester-zone-a";
const B: &str = "ingester-zone-b";

fn one_at_a_time(stage: &mut slipway_kernel::stage::Stage<slipway_zones::Zones>, zone: &str) {
    let patch = json!({"metadata": {"annotations": {"rollout-max-unavailable": "1"}}});
    change(stage, "StatefulSet", zone, &patch);
}

#[test]
fn defect_1_a_missing_pod_counts_although_the_status_does_not_know() {
    let mut stage = stage(&[outdated(A)]);
    one_at_a_time(&mut stage, A);
    stage.delete("Pod", NS, "ingester-zone-a-0");
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan).len(), 0);
    assert_eq!(reasons(&plan), ["MaxUnavailable"]);
}

#[test]
fn defect_2_a_terminating_pod_counts_wherever_it_is() {
    let mut stage = stage(&[outdated(A)]);
    one_at_a_time(&mut stage, A);
    terminate(&mut stage, "ingester-zone-a-2");
    assert_eq!(deleted(&pass(&mut stage)).len(), 0);
}

#[test]
fn defect_3_a_paused_zone_with_a_pod_down_protects_the_group() {
    let mut paused = zone(A);
    paused["metadata"]["annotations"]["grafana.com/rollout-paused"] = json!("true");
    let mut stage = stage(&[paused, outdated(B)]);
    unready(&mut stage, "ingester-zone-a-1");
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan).len(), 0);
    assert_eq!(reasons(&plan), ["ZonesNotReady"]);
    assert!(plan.blockers[0].message.contains("and is paused"));
}

#[test]
fn defect_4_a_budget_that_selects_other_zones_only_is_a_refusal_not_a_crash() {
    let mut own = outdated(A);
    own["metadata"]["labels"]["tier"] = json!("other");
    let mut stage = stage(&[own, zone(B), zone("ingester-zone-c")]);
    for other in [B, "ingester-zone-c"] {
        change(
            &mut stage,
            "StatefulSet",
            other,
            &json!({"metadata": {"labels": {"tier": "one"}}}),
        );
    }
    for ordinal in 0..3 {
        let patch = json!({"metadata": {"labels": {"tier": "one"}}});
        change(
            &mut stage,
            "Pod",
            &format!("ingester-zone-a-{ordinal}"),
            &patch,
        );
    }
    stage.put(json!({
        "apiVersion": "rollout-operator.grafana.com/v1", "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"namespace": NS, "name": "odd"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"tier": "one"}}},
    }));
    // Its own zone counts, whatever the selector says.
    assert_eq!(deleted(&pass(&mut stage)), ["ingester-zone-a-0"]);
}

#[test]
fn defect_5_an_outdated_pod_that_crashes_is_replaced_beyond_the_budget() {
    let mut stage = stage(&[zone(A), outdated(B)]);
    one_at_a_time(&mut stage, B);
    unready(&mut stage, "ingester-zone-b-2");
    change(
        &mut stage,
        "StatefulSet",
        B,
        &json!({"status": {"readyReplicas": 2}}),
    );
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan), ["ingester-zone-b-2"]);
    let note = &plan
        .steps
        .last()
        .unwrap()
        .events
        .last()
        .map(|e| e.note.clone());
    let all: Vec<String> = plan
        .steps
        .iter()
        .flat_map(|s| &s.events)
        .map(|e| e.note.clone())
        .collect();
    assert!(
        all.iter().any(|n| n.contains("CrashLoopBackOff")),
        "{note:?} {all:?}"
    );
}

#[test]
fn defect_5_also_when_an_init_container_or_a_sidecar_cannot_start() {
    for reason in ["ImagePullBackOff", "CreateContainerConfigError"] {
        let mut stage = stage(&[outdated(A)]);
        one_at_a_time(&mut stage, A);
        let patch = json!({"status": {
            "phase": "Pending", "containerStatuses": null,
            "conditions": [{"type": "Ready", "status": "False"}],
            "initContainerStatuses": [{"name": "i", "ready": false, "state": {"waiting": {"reason": reason}}}],
        }});
        change(&mut stage, "Pod", "ingester-zone-a-1", &patch);
        let plan = pass(&mut stage);
        assert_eq!(deleted(&plan), ["ingester-zone-a-1"]);
        assert!(
            plan.steps
                .iter()
                .flat_map(|s| &s.events)
                .any(|e| e.note.contains(reason))
        );
    }
}

#[test]
fn a_stuck_pod_goes_first_and_the_rest_by_ordinal_within_the_budget() {
    let mut stage = stage(&[outdated(A)]);
    unready(&mut stage, "ingester-zone-a-2");
    assert_eq!(
        deleted(&pass(&mut stage)),
        ["ingester-zone-a-2", "ingester-zone-a-0"]
    );
}

#[test]
fn an_updated_pod_that_crashes_is_left_alone() {
    let mut stage = stage(&[zone(A), outdated(B)]);
    unready(&mut stage, "ingester-zone-a-0");
    assert_eq!(deleted(&pass(&mut stage)).len(), 0);
}

#[test]
fn defect_6_no_budget_definition_does_not_stop_the_group() {
    let mut stage = stage(&[outdated(A)]);
    assert!(stage.lack("watch zoneawarepoddisruptionbudgets"));
    assert_eq!(deleted(&pass(&mut stage)).len(), 2);
}

/// D12: only what the zone controls is counted and deleted, whatever the label `name` says.
#[test]
fn defect_12_pods_of_others_with_the_same_label_are_neither_counted_nor_deleted() {
    let mut stage = stage(&[outdated(A)]);
    for (name, owner) in [
        (
            "stranger-0",
            json!([{"kind": "ReplicaSet", "controller": true, "name": "r", "uid": "r"}]),
        ),
        (
            "ingester-zone-a-3",
            json!([{"kind": "StatefulSet", "controller": true, "name": A, "uid": "former"}]),
        ),
        (
            "ingester-zone-a-4",
            json!([{"kind": "ReplicaSet", "controller": true, "name": "r", "uid": "r"}]),
        ),
        ("debug", json!([])),
    ] {
        let mut other = pod(A, 0, "old");
        other["metadata"]["name"] = json!(name);
        other["metadata"]["ownerReferences"] = owner;
        other["status"]["phase"] = json!("Failed");
        stage.put(other);
    }
    assert_eq!(
        deleted(&pass(&mut stage)),
        ["ingester-zone-a-0", "ingester-zone-a-1"]
    );
}

#[test]
fn defect_12_a_pod_that_waits_for_adoption_counts_and_is_not_deleted() {
    let mut stage = stage(&[outdated(A)]);
    let mut orphan = pod(A, 0, "old");
    orphan["metadata"]["ownerReferences"] = json!([]);
    stage.put(orphan);
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan), ["ingester-zone-a-1", "ingester-zone-a-2"]);
    assert!(reasons(&plan).contains(&"NotAdopted"));
}

#[test]
fn defect_12_no_label_name_is_told_and_does_not_stop_the_group() {
    let mut set = outdated(A);
    set["spec"]["template"]["metadata"]["labels"] = json!({});
    let mut stage = stage(&[set]);
    let first = stage.plan();
    assert!(first.events.iter().any(|e| e.reason == "NameLabelMissing"));
    assert_eq!(deleted(&pass(&mut stage)).len(), 2);
}

#[test]
fn defect_12_ordinals_may_start_elsewhere() {
    let mut set = outdated(A);
    set["spec"]["ordinals"] = json!({"start": 5});
    let mut stage = empty();
    for ordinal in 5..8 {
        stage.put(pod(A, ordinal, "old"));
    }
    stage.put(set);
    assert_eq!(
        deleted(&pass(&mut stage)),
        ["ingester-zone-a-5", "ingester-zone-a-6"]
    );
}

#[test]
fn defect_12_a_pod_must_have_been_ready_for_min_ready_seconds() {
    let mut first = zone(A);
    first["spec"]["minReadySeconds"] = json!(60);
    let mut stage = stage(&[first, outdated(B)]);
    let ready = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-04T11:59:30Z"},
    ]}});
    change(&mut stage, "Pod", "ingester-zone-a-1", &ready);
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan).len(), 0);
    // The exact moment, and not a moment before.
    assert_eq!(plan.wake_at, Some(at("2026-03-04T12:00:30Z")));
    stage.now = at("2026-03-04T12:00:29.999Z");
    assert_eq!(deleted(&pass(&mut stage)).len(), 0);
    stage.now = at("2026-03-04T12:00:30Z");
    assert_eq!(deleted(&pass(&mut stage)).len(), 2);
}

/// Z4.
#[test]
fn defect_12_a_status_that_lags_behind_or_a_deletion_stops_the_group() {
    for (patch, reason) in [
        (json!({"status": {"observedGeneration": 0}}), "StatusLags"),
        (
            json!({"metadata": {"deletionTimestamp": "2026-03-04T11:59:00Z"}}),
            "Deleting",
        ),
    ] {
        let mut stage = stage(&[zone(A), outdated(B)]);
        change(&mut stage, "StatefulSet", A, &patch);
        let plan = pass(&mut stage);
        assert_eq!(deleted(&plan).len(), 0);
        assert_eq!(reasons(&plan), [reason]);
    }
}

#[test]
fn a_refused_deletion_is_told_and_the_other_pods_go() {
    use slipway_kernel::ObjectRef;
    use slipway_kernel::identity::kinds;
    let mut stage = stage(&[outdated(A)]);
    refuse(&mut stage, "x");
    let refusal = stage.facts.refusals.pop_first().unwrap().1;
    let pod = ObjectRef::local(kinds::POD, NS, "ingester-zone-a-0");
    stage.facts.refusals.insert(pod, refusal);
    let plan = pass(&mut stage);
    assert_eq!(deleted(&plan), ["ingester-zone-a-1"]);
    assert!(reasons(&plan).contains(&"RefusedByApi"));
}
