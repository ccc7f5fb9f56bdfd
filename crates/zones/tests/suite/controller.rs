//! `TestRolloutController_Reconcile` of the original: rollouts of pods.

use serde_json::{Value, json};
use slipway_kernel::{Controller, Plan};

use crate::objects::*;

pub(crate) const NOTHING: [String; 0] = [];

fn a_and(b: Value) -> [Value; 2] {
    [zone("ingester-zone-a"), b]
}

pub(crate) fn b_outdated() -> [Value; 2] {
    a_and(outdated("ingester-zone-b"))
}

pub(crate) fn both_outdated() -> [Value; 2] {
    [outdated("ingester-zone-a"), outdated("ingester-zone-b")]
}

pub(crate) fn of(
    zones: &[Value],
    alter: impl Fn(&mut slipway_kernel::stage::Stage<slipway_zones::Zones>),
) -> Plan {
    let mut stage = stage(zones);
    alter(&mut stage);
    pass(&mut stage)
}

#[test]
fn a_rolling_update_set_in_the_group_stops_it_with_an_error() {
    let plan = of(&both_outdated(), |stage| {
        let patch = json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}});
        change(stage, "StatefulSet", "ingester-zone-b", &patch);
        change(
            stage,
            "StatefulSet",
            "ingester-zone-b",
            &json!({"status": {"observedGeneration": 2}}),
        );
    });
    assert_eq!(deleted(&plan), NOTHING);
    assert_eq!(reasons(&plan), ["WrongStrategy"]);
    assert_eq!(
        plan.blockers[0].message,
        "StatefulSet ingester-zone-b has RollingUpdate update strategy while OnDelete is expected, skipping reconcile"
    );
    let failed = slipway_zones::reasons::Reason::of(plan.blockers[0].reason).unwrap();
    assert!(failed.is_a_failure());
}

fn gap(stage: &mut slipway_kernel::stage::Stage<slipway_zones::Zones>, zone: &str, ready: i64) {
    change(
        stage,
        "StatefulSet",
        zone,
        &json!({"status": {"readyReplicas": ready}}),
    );
}

#[test]
fn two_zones_not_ready_by_status_nothing() {
    let plan = of(&both_outdated(), |stage| {
        gap(stage, "ingester-zone-a", 2);
        gap(stage, "ingester-zone-b", 2);
    });
    assert_eq!(deleted(&plan), NOTHING);
    assert_eq!(reasons(&plan), ["ZonesNotReady", "ZonesNotReady"]);
    assert!(
        plan.blockers[0]
            .message
            .contains("StatefulSets have some not-Ready pods, skipping reconcile")
    );
}

#[test]
fn two_zones_with_terminating_pods_though_status_says_ready_nothing() {
    let plan = of(&both_outdated(), |stage| {
        terminate(stage, "ingester-zone-a-0");
        terminate(stage, "ingester-zone-b-0");
    });
    assert_eq!(deleted(&plan), NOTHING);
}

#[test]
fn one_by_status_and_one_by_terminating_pod_nothing() {
    let plan = of(&both_outdated(), |stage| {
        gap(stage, "ingester-zone-a", 2);
        terminate(stage, "ingester-zone-b-0");
    });
    assert_eq!(deleted(&plan), NOTHING);
}

#[test]
fn all_updated_nothing() {
    let plan = of(&a_and(zone("ingester-zone-b")), |_| {});
    assert!(plan.steps.is_empty() && plan.statuses.is_empty() && plan.blockers.is_empty());
}

#[test]
pub(crate) fn b_outdated_two_of_it_go() {
    let plan = of(&b_outdated(), |_| {});
    assert_eq!(deleted(&plan), ["ingester-zone-b-0", "ingester-zone-b-1"]);
    let note = &plan
        .steps
        .iter()
        .find(|s| s.action.purpose().as_str() == "replace")
        .unwrap()
        .events[0]
        .note;
    assert!(note.contains("terminating pod ingester-zone-b-0"), "{note}");
}

#[test]
fn max_unavailable_that_is_no_number_means_one_pod() {
    let plan = of(&b_outdated(), |stage| {
        let patch = json!({"metadata": {"annotations": {"rollout-max-unavailable": "xxx"}}});
        change(stage, "StatefulSet", "ingester-zone-b", &patch);
    });
    assert_eq!(deleted(&plan), ["ingester-zone-b-0"]);
}

#[test]
fn b_has_one_not_ready_by_status_so_it_goes_first_and_one_is_deleted() {
    let plan = of(&both_outdated(), |stage| gap(stage, "ingester-zone-b", 2));
    assert_eq!(deleted(&plan), ["ingester-zone-b-0"]);
}

#[test]
fn as_many_not_ready_as_may_be_nothing() {
    let plan = of(&both_outdated(), |stage| gap(stage, "ingester-zone-b", 1));
    assert_eq!(deleted(&plan), NOTHING);
    assert_eq!(reasons(&plan), ["MaxUnavailable"]);
}

#[test]
fn a_0_terminating_only_a_1_goes() {
    let plan = of(&both_outdated(), |stage| {
        terminate(stage, "ingester-zone-a-0");
    });
    assert_eq!(deleted(&plan), ["ingester-zone-a-1"]);
}

#[test]
fn all_updated_and_ready_the_status_says_so() {
    let mut stage = stage(&a_and(zone("ingester-zone-b")));
    change(
        &mut stage,
        "StatefulSet",
        "ingester-zone-b",
        &json!({"status": {"currentRevision": "old"}}),
    );
    let plan = stage.step();
    assert_eq!(
        statuses(&plan),
        [(
            "ingester-zone-b".to_owned(),
            json!({"currentRevision": "new"})
        )]
    );
    assert!(stage.step().statuses.is_empty());
}

#[test]
fn updated_but_not_ready_or_missing_no_status() {
    for alter in [
        (|stage| gap(stage, "ingester-zone-b", 2)) as fn(&mut _),
        |stage| stage.delete("Pod", NS, "ingester-zone-b-1"),
        |stage| unready(stage, "ingester-zone-b-1"),
    ] {
        let plan = of(&a_and(zone("ingester-zone-b")), |stage| {
            change(
                stage,
                "StatefulSet",
                "ingester-zone-b",
                &json!({"status": {"currentRevision": "old"}}),
            );
            alter(stage);
        });
        assert_eq!(statuses(&plan), []);
        assert_eq!(reasons(&plan), ["NotReady"]);
    }
}

#[test]
fn a_not_ready_in_any_way_b_is_not_touched() {
    for alter in [
        (|stage| gap(stage, "ingester-zone-a", 2)) as fn(&mut _),
        |stage| terminate(stage, "ingester-zone-a-1"),
        |stage| (0..3).for_each(|o| stage.delete("Pod", NS, &format!("ingester-zone-a-{o}"))),
    ] {
        let plan = of(&b_outdated(), alter);
        assert_eq!(deleted(&plan), NOTHING);
        assert_eq!(reasons(&plan), ["NotReady"]);
    }
}

#[test]
fn a_set_without_the_group_label_is_ignored() {
    let mut alone = outdated("store-gateway");
    alone["metadata"]["labels"] = json!({"name": "store-gateway"});
    let plan = of(&[zone("ingester-zone-a"), alone], |stage| {
        unready(stage, "store-gateway-1");
    });
    assert!(plan.steps.is_empty() && plan.blockers.is_empty());
}

fn paused(mut set: Value, value: &str) -> Value {
    set["metadata"]["annotations"]["grafana.com/rollout-paused"] = json!(value);
    set
}

#[test]
fn a_paused_single_zone_nothing() {
    let plan = of(&[paused(outdated("ingester-zone-a"), "true")], |_| {});
    assert_eq!(deleted(&plan), NOTHING);
    assert_eq!(reasons(&plan), ["Paused"]);
}

#[test]
fn a_paused_b_rolls() {
    let plan = of(
        &[
            paused(outdated("ingester-zone-a"), "true"),
            outdated("ingester-zone-b"),
        ],
        |_| {},
    );
    assert_eq!(deleted(&plan), ["ingester-zone-b-0", "ingester-zone-b-1"]);
}

#[test]
fn paused_false_rolls() {
    let plan = of(&[paused(outdated("ingester-zone-a"), "false")], |_| {});
    assert_eq!(deleted(&plan), ["ingester-zone-a-0", "ingester-zone-a-1"]);
}

/// `util_test`: pods go by number, not by letter; zones by letter.
#[test]
fn pods_go_in_natural_order() {
    let mut set = outdated("ingester-zone-a");
    set["spec"]["replicas"] = json!(21);
    set["status"]["replicas"] = json!(21);
    set["status"]["readyReplicas"] = json!(21);
    set["metadata"]["annotations"]["rollout-max-unavailable"] = json!("12");
    let plan = of(&[set], |_| {});
    let want: Vec<String> = (0..12).map(|o| format!("ingester-zone-a-{o}")).collect();
    assert_eq!(deleted(&plan), want);
}

/// `util_test`: zones go by letter, not by number, in whatever order they came.
#[test]
fn zones_go_in_the_order_of_their_names() {
    let plan = of(&[outdated("zone-2"), outdated("zone-10")], |_| {});
    assert_eq!(deleted(&plan), ["zone-10-0", "zone-10-1"]);
}

/// `util_test`: the empty label is a group too; two groups are two pieces of work.
#[test]
fn zones_are_grouped_by_label_and_namespace() {
    let mut empty = zone("x");
    empty["metadata"]["labels"]["rollout-group"] = json!("");
    let stage = stage(&[zone("ingester-zone-a"), zone("ingester-zone-b"), empty]);
    let keys = Controller::keys(&stage.planner, &stage.stores());
    let keys: Vec<(&str, &str)> = keys
        .iter()
        .map(|k| (k.namespace.as_str(), k.name.as_str()))
        .collect();
    assert_eq!(keys, [(NS, ""), (NS, "ingester")]);
}

/// `…ShouldDeleteMetricsForDecommissionedRolloutGroups`: nothing is left of a group without zones.
#[test]
fn a_group_that_vanished_is_no_work_any_more() {
    let mut stage = stage(&[zone("ingester-zone-a")]);
    let keys = Controller::keys(&stage.planner, &stage.stores());
    assert!(!Controller::gauges(&stage.planner, &stage.stores(), stage.now).is_empty());
    stage.delete("StatefulSet", NS, "ingester-zone-a");
    let stores = stage.stores();
    assert_eq!(
        Controller::plan(&stage.planner, &stores, &stage.facts, &keys[0], stage.now),
        None
    );
    assert!(Controller::keys(&stage.planner, &stores).is_empty());
    assert!(Controller::gauges(&stage.planner, &stores, stage.now).is_empty());
}

/// `util_test`: running and ready, six cases; and what the original does not look at.
#[test]
fn running_and_ready() {
    use slipway_kernel::store::Projection;
    use slipway_zones::observe::Pod;
    use slipway_zones::readiness::Health;
    let container = |ready: bool, state: &str| json!({"ready": ready, "state": {state: {}}});
    let mut gated = json!({"phase": "Running"});
    gated["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    for (status, deleting, want) in [
        (
            json!({"phase": "Running", "containerStatuses": [container(true, "running")]}),
            false,
            true,
        ),
        (
            json!({"phase": "Running", "containerStatuses": [container(true, "running"), container(true, "running")]}),
            false,
            true,
        ),
        (
            json!({"phase": "Running", "containerStatuses": [container(true, "running"), container(false, "running")]}),
            false,
            false,
        ),
        (
            json!({"phase": "Running", "containerStatuses": [container(true, "terminated")]}),
            false,
            false,
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [container(true, "running")]}),
            false,
            false,
        ),
        (
            json!({"phase": "Running", "containerStatuses": [container(true, "running")]}),
            true,
            false,
        ),
        (gated, false, false),
    ] {
        let mut object = json!({"metadata": {"name": "p-0"}, "status": status});
        if deleting {
            object["metadata"]["deletionTimestamp"] = json!("2026-03-04T11:00:00Z");
        }
        let pod = Pod::read(&object).unwrap();
        let health = Health::of(&pod, std::time::Duration::ZERO, noon());
        assert_eq!(health.is_ready(), want, "{object}");
    }
    let object = json!({"spec": {"readinessGates": [{"conditionType": "x"}]}, "status": {"phase": "Running"}});
    assert!(
        !Pod::read(&object).unwrap().is_ready,
        "a gate without a condition is not open"
    );
}
