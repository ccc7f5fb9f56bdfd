//! Leaders and followers: the original's `TestRolloutController_Reconcile` and `replicas_test`.

use serde_json::{Value, json};
use slipway_kernel::Plan;
use slipway_kernel::stage::Stage;
use slipway_zones::Zones;

use crate::objects::*;

const A: &str = "ingester-zone-a";
const B: &str = "ingester-zone-b";
const C: &str = "ingester-zone-c";

fn replicas(mut set: Value, number: i64) -> Value {
    set["spec"]["replicas"] = json!(number);
    set["status"]["replicas"] = json!(number);
    set["status"]["readyReplicas"] = json!(number);
    set
}

fn annotated(mut set: Value, name: &str, value: &str) -> Value {
    set["metadata"]["annotations"][name] = json!(value);
    set
}

fn labelled(mut set: Value, value: &str) -> Value {
    set["metadata"]["labels"]["grafana.com/min-time-between-zones-downscale"] = json!(value);
    set
}

fn follows(set: Value, leader: &str) -> Value {
    annotated(set, "grafana.com/rollout-downscale-leader", leader)
}

fn downscaled(set: Value, at: &str) -> Value {
    annotated(set, "grafana.com/last-downscale", at)
}

fn cautious(set: Value) -> Value {
    annotated(
        set,
        "grafana.com/rollout-upscale-only-when-leader-ready",
        "true",
    )
}

fn forced(set: Value, value: &str) -> Value {
    annotated(set, "grafana.com/rollout-force-replicas", value)
}

/// A leader with two replicas, and an outdated follower with three.
fn above(follower: impl Fn(Value) -> Value) -> Stage<Zones> {
    let a = replicas(zone(A), 2);
    stage(&[a, follower(follows(outdated(B), A))])
}

fn first(zones: &[Value]) -> Plan {
    stage(zones).plan()
}

#[test]
fn a_follower_within_min_time_is_not_scaled_and_the_rollout_goes_on() {
    let a = downscaled(replicas(zone(A), 2), "2026-03-04T11:00:00Z");
    let mut stage = stage(&[a, labelled(follows(outdated(B), A), "12h")]);
    let plan = pass(&mut stage);
    assert_eq!(scaled(&plan), []);
    assert_eq!(deleted(&plan), ["ingester-zone-b-0", "ingester-zone-b-1"]);
    let blocker = plan
        .blockers
        .iter()
        .find(|b| b.reason == "MinTimeBetweenDownscales")
        .unwrap();
    assert_eq!(blocker.until, Some(at("2026-03-04T23:00:00.001Z")));
}

#[test]
fn a_follower_above_its_leader_is_scaled_and_nothing_is_deleted_in_that_pass() {
    let plan = pass(&mut above(|b| b));
    assert_eq!(scaled(&plan), [(B.to_owned(), 2)]);
    assert_eq!(deleted(&plan).len(), 0);
}

#[test]
fn a_refused_downscale_does_not_stop_the_rollout() {
    let mut stage = above(|b| b);
    refuse(&mut stage, B);
    let plan = pass(&mut stage);
    assert_eq!(scaled(&plan), []);
    assert_eq!(deleted(&plan), ["ingester-zone-b-0", "ingester-zone-b-1"]);
    assert!(reasons(&plan).contains(&"RefusedByApi"));
}

#[test]
fn a_refused_upscale_does_not_stop_the_rollout() {
    let a = outdated(A);
    let mut stage = stage(&[a, follows(replicas(zone(B), 2), A)]);
    refuse(&mut stage, B);
    let plan = pass(&mut stage);
    assert_eq!(scaled(&plan), []);
    assert_eq!(deleted(&plan), ["ingester-zone-a-0", "ingester-zone-a-1"]);
}

#[test]
fn a_refused_scaling_and_a_denial_of_the_second_pod() {
    for (zones, refused, want) in [
        (
            [replicas(zone(A), 2), follows(outdated(B), A)],
            B,
            "ingester-zone-b-0",
        ),
        (
            [outdated(A), follows(replicas(zone(B), 2), A)],
            B,
            "ingester-zone-a-0",
        ),
    ] {
        let mut stage = stage(&zones);
        stage.put(json!({
            "apiVersion": "rollout-operator.grafana.com/v1", "kind": "ZoneAwarePodDisruptionBudget",
            "metadata": {"namespace": NS, "name": "ingester"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"rollout-group": "ingester"}}},
        }));
        refuse(&mut stage, refused);
        assert_eq!(deleted(&pass(&mut stage)), [want]);
    }
}

#[test]
fn no_leader_keep_unknown_leader_error_found_leader_followed() {
    assert_eq!(scaled(&first(&[replicas(zone(A), 2), zone(B)])), []);
    let plan = first(&[replicas(zone(A), 2), follows(zone(B), "nobody")]);
    assert_eq!(scaled(&plan), []);
    assert_eq!(
        plan.blockers[0].message,
        "could not find leader for ingester-zone-b using grafana.com/rollout-downscale-leader"
    );
    let plan = first(&[replicas(zone(A), 5), follows(zone(B), A)]);
    assert_eq!(scaled(&plan), [(B.to_owned(), 5)]);
}

#[test]
fn an_unknown_leader_stops_all_adjustment_of_the_group() {
    let plan = first(&[
        follows(zone(A), "nobody"),
        replicas(zone(B), 2),
        follows(zone(C), B),
    ]);
    assert_eq!(scaled(&plan), []);
}

#[test]
fn up_only_when_the_leader_is_ready_along_a_chain() {
    let chain = |a: i64, a_ready: i64, b: i64, c: i64| {
        let mut leader = replicas(zone(A), a);
        leader["status"]["readyReplicas"] = json!(a_ready);
        let b = cautious(follows(replicas(zone(B), b), A));
        let c = cautious(follows(replicas(zone(C), c), B));
        first(&[leader, b, c])
    };
    let plan = chain(4, 3, 2, 2);
    assert_eq!(scaled(&plan), []);
    assert!(reasons(&plan).contains(&"LeaderNotReady"));
    assert_eq!(scaled(&chain(4, 4, 2, 2)), [(B.to_owned(), 4)]);
    assert_eq!(scaled(&chain(4, 4, 4, 2)), [(C.to_owned(), 4)]);
    assert_eq!(scaled(&chain(4, 4, 4, 4)), []);
}

#[test]
fn up_ignores_readiness_unless_asked_and_down_ignores_it_always() {
    let mut leader = replicas(zone(A), 4);
    leader["status"]["readyReplicas"] = json!(1);
    assert_eq!(
        scaled(&first(&[leader, follows(zone(B), A)])),
        [(B.to_owned(), 4)]
    );
    let mut leader = replicas(zone(A), 2);
    leader["status"]["readyReplicas"] = json!(1);
    assert_eq!(
        scaled(&first(&[leader, cautious(follows(zone(B), A))])),
        [(B.to_owned(), 2)]
    );
}

#[test]
fn min_time_between_downscales() {
    let plan = |last: &str, label: Option<&str>| {
        let a = downscaled(replicas(zone(A), 2), last);
        let b = follows(zone(B), A);
        first(&[a, label.map_or(b.clone(), |label| labelled(b, label))])
    };
    let kept: [(String, i64); 0] = [];
    // The label is needed, and must be readable.
    for label in [None, Some("xyz"), Some("1d")] {
        let plan = plan("2026-03-01T00:00:00Z", label);
        assert_eq!(scaled(&plan), kept, "{label:?}");
        assert_eq!(plan.blockers[0].reason, "InvalidAnnotation");
    }
    // Ten of twelve hours; exactly twelve; a moment more; fourteen.
    let half = Some("12h");
    assert_eq!(scaled(&plan("2026-03-04T02:00:00Z", half)), kept);
    assert_eq!(scaled(&plan("2026-03-04T00:00:00Z", half)), kept);
    assert_eq!(
        scaled(&plan("2026-03-03T23:59:59Z", half)),
        [(B.to_owned(), 2)]
    );
    assert_eq!(
        scaled(&plan("2026-03-03T22:00:00Z", half)),
        [(B.to_owned(), 2)]
    );
    // A time that cannot be read, or that lies in the future.
    assert_eq!(
        plan("yesterday", half).blockers[0].reason,
        "InvalidAnnotation"
    );
    assert_eq!(scaled(&plan("2026-03-05T00:00:00Z", half)), kept);
}

#[test]
fn the_newest_downscale_of_the_others_counts_and_the_own_does_not() {
    let a = downscaled(replicas(zone(A), 2), "2026-03-01T00:00:00Z");
    let c = downscaled(replicas(zone(C), 2), "2026-03-04T11:00:00Z");
    let b = labelled(follows(zone(B), A), "12h");
    assert_eq!(scaled(&first(&[a.clone(), b.clone(), c])), []);
    let b = downscaled(b, "2026-03-04T11:00:00Z");
    assert_eq!(scaled(&first(&[a, b])), [(B.to_owned(), 2)]);
}

/// What a webhook wrote into the tracker counts like the annotation (Z8).
#[test]
fn the_tracker_counts_like_the_annotation() {
    let zones = [replicas(zone(A), 2), labelled(follows(zone(B), A), "12h")];
    for (entry, want) in [
        (r#"{"lastDownscaled":"2026-03-04T11:00:00Z"}"#, 0),
        (r#"{"LASTDOWNSCALED":"2026-03-04T11:00:00Z"}"#, 0),
        (r#"{"lastDownscaled":"2026-03-01T11:00:00Z"}"#, 1),
        ("no json", 0),
    ] {
        let mut stage = stage(&zones);
        stage.put(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": NS, "name": "rollout-operator-zone-tracker"},
            "data": {A: entry},
        }));
        assert_eq!(scaled(&stage.plan()).len(), want, "{entry}");
    }
}

#[test]
fn force_replicas_on_a_follower_takes_hold_at_once() {
    let recent = downscaled(zone(A), "2026-03-04T11:59:00Z");
    let b = forced(follows(zone(B), A), "0");
    let plan = first(&[recent, b]);
    assert_eq!(scaled(&plan), [(B.to_owned(), 0)]);
    assert_eq!(names(&plan, "prepare-downscale").len(), 0);
    // Not on a zone that follows nobody, and not if it is no number.
    assert_eq!(scaled(&first(&[forced(zone(A), "0")])), []);
    assert_eq!(
        scaled(&first(&[zone(A), forced(follows(zone(B), A), "-1")])),
        []
    );
}

#[test]
fn force_in_one_of_three_follow_leader_zones_only_that_one() {
    let zones = [
        zone(A),
        forced(follows(zone(B), A), "0"),
        follows(zone(C), A),
    ];
    let mut stage = stage(&zones);
    assert_eq!(scaled(&pass(&mut stage)), [(B.to_owned(), 0)]);
    change(
        &mut stage,
        "StatefulSet",
        B,
        &json!({"status": {"observedGeneration": 2}}),
    );
    assert_eq!(scaled(&pass(&mut stage)), []);
}
