//! The defects B1–B22 of the controller that this replaces, each as a test that would show it again.
//!
//! B19 (rights), B20 (names in documents) and B22 (one slow call delays all) are the runtime's and the manifests'; what a
//! planner can show of them is here. B12 (conflicts) is the executor's: a plan's part is to name the version it saw.

use serde_json::{Value, json};
use slipway_api::names;
use slipway_kernel::Action;
use slipway_kernel::permission::Scope as Place;
use slipway_restarts::{DefaultCriteria, Scope, Settings};

use crate::objects::*;

#[test]
fn b1_a_poison_flipper_is_reported_on_itself_and_stops_no_other() {
    let mut stage = stage();
    for (name, interval) in [
        ("word", json!("soon")),
        ("number", json!(5)),
        ("negative", json!("-5m")),
        ("part", json!("1.5d")),
    ] {
        stage.put(flipper("default", name, &json!({"interval": interval})));
    }
    stage.put(flipper(
        "default",
        "good",
        &json!({"interval": "1d", "match": {"labels": {"a": "b"}}}),
    ));
    stage.put(deployment("d", "young", ("a", "b"), Some(&ago(23 * 60))));
    stage.put(deployment("d", "old", ("a", "b"), Some(&ago(24 * 60))));
    stage.put(deployment("d", "other", MESH, Some(&ago(11))));
    let plan = stage.step();
    assert_eq!(restarted(&plan), ["d/old"]);
    for name in ["word", "number", "negative", "part"] {
        assert_eq!(
            condition(&stage, "default", name, "Accepted").unwrap().0,
            "False"
        );
        assert_eq!(
            condition(&stage, "default", name, "Stalled").unwrap().0,
            "True"
        );
        assert_eq!(
            condition(&stage, "default", name, "Ready").unwrap().0,
            "False"
        );
    }
    assert_eq!(news(&plan).iter().filter(|n| **n == "Invalid").count(), 4);
    assert_eq!(
        condition(&stage, "default", "good", "Ready").unwrap().0,
        "True"
    );
}

#[test]
fn b1_only_invalid_flippers_count_as_none_and_the_default_applies() {
    let mut stage = stage();
    stage.put(flipper("default", "bad", &json!({"interval": "soon"})));
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

#[test]
fn b2_a_label_without_value_is_no_match_for_everything() {
    let mut stage = stage();
    let mut object = deployment("d", "a", ("app", "a"), Some(&ago(11)));
    object["metadata"]["labels"]["note"] = json!("");
    stage.put(object);
    assert!(stage.step().steps.is_empty());
    let wanted = json!({"match": {"labels": {"note": ""}}});
    stage.put(flipper("default", "f", &wanted));
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

#[test]
fn b3_no_interval_or_zero_means_ten_minutes_and_is_told() {
    for spec in [
        json!({}),
        json!({"interval": "0s"}),
        json!({"interval": "0"}),
        Value::Null,
    ] {
        let mut stage = stage();
        stage.put(flipper("default", "f", &spec));
        stage.put(deployment("d", "a", MESH, Some(&ago(9))));
        stage.put(deployment("d", "b", MESH, Some(&ago(10))));
        let plan = stage.step();
        assert_eq!(restarted(&plan), ["d/b"], "{spec}");
        assert!(news(&plan).contains(&"IntervalDefaulted"), "{spec}");
        let accepted = condition(&stage, "default", "f", "Accepted").unwrap();
        assert_eq!(
            accepted,
            ("True".to_owned(), "IntervalDefaulted".to_owned())
        );
    }
}

#[test]
fn b3_an_interval_below_the_floor_is_raised_and_told() {
    let mut stage = stage_with(Settings {
        floor: std::time::Duration::from_secs(60),
        ..Settings::default()
    });
    stage.put(flipper("default", "f", &json!({"interval": "5s"})));
    stage.put(deployment("d", "a", MESH, Some(&ago(1))));
    let plan = stage.step();
    assert_eq!(restarted(&plan), ["d/a"]);
    assert_eq!(wait(&plan, noon()), Some(minutes(1)));
    assert!(news(&plan).contains(&"IntervalRaised"));
}

#[test]
fn b4_two_flippers_of_one_name_in_two_namespaces_are_two() {
    let mut stage = stage();
    stage.put(flipper(
        "one",
        "same",
        &json!({"match": {"labels": {"a": "1"}}}),
    ));
    stage.put(flipper(
        "two",
        "same",
        &json!({"match": {"labels": {"a": "2"}}}),
    ));
    stage.put(deployment("d", "first", ("a", "1"), Some(&ago(11))));
    stage.put(deployment("d", "second", ("a", "2"), Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["d/first", "d/second"]);
    stage.delete("Flipper", "one", "same");
    stage.now += minutes(11);
    assert_eq!(restarted(&stage.step()), ["d/second"]);
}

#[test]
fn b5_overlap_has_one_winner_and_is_reported_on_the_loser() {
    let mut stage = stage();
    stage.put(flipper("default", "all", &json!({"interval": "1m"})));
    stage.put(flipper(
        "default",
        "exact",
        &json!({"interval": "1h", "match": {"labels": {"a": "b"}, "namespaces": ["d"]}}),
    ));
    stage.put(deployment("d", "a", ("a", "b"), Some(&ago(30))));
    let plan = stage.step();
    // The more specific one decides, and by it the workload is not due: the other's shorter interval does not count.
    assert!(restarted(&plan).is_empty());
    assert_eq!(
        condition(&stage, "default", "all", "Overlaps").unwrap().0,
        "True"
    );
    assert_eq!(condition(&stage, "default", "exact", "Overlaps"), None);
    assert!(news(&plan).contains(&"Overlap"));
    assert!(!news(&stage.step()).contains(&"Overlap"), "told once");
    stage.delete("Flipper", "default", "exact");
    assert_eq!(restarted(&stage.step()), ["d/a"]);
    assert_eq!(condition(&stage, "default", "all", "Overlaps"), None);
}

#[test]
fn b5_a_tie_goes_to_the_shorter_interval_then_the_older_then_the_name() {
    let mut stage = stage();
    let spec = |interval: &str| json!({"interval": interval, "match": {"labels": {"a": "b"}}});
    let aged = |name: &str, interval: &str, created: &str| {
        let mut object = flipper("default", name, &spec(interval));
        object["metadata"]["creationTimestamp"] = json!(created);
        object
    };
    stage.put(aged("z-short", "10m", "2026-03-03T00:00:00Z"));
    stage.put(aged("a-long", "1h", "2026-03-01T00:00:00Z"));
    stage.put(aged("b-young", "10m", "2026-03-04T00:00:00Z"));
    stage.put(deployment("d", "a", ("a", "b"), Some(&ago(11))));
    stage.step();
    let matched =
        |name: &str| stage.get("Flipper", "default", name).unwrap()["status"]["matched"].clone();
    assert_eq!(matched("z-short"), 1);
    assert_eq!(matched("a-long"), 0);
    assert_eq!(matched("b-young"), 0);
}

#[test]
fn b5_a_dry_run_takes_no_workload_away_and_a_suspended_winner_keeps_it() {
    let mut stage = stage();
    stage.put(flipper("default", "all", &json!({})));
    stage.put(flipper(
        "default",
        "trial",
        &json!({"dryRun": true, "match": {"labels": {"a": "b"}}}),
    ));
    stage.put(deployment("d", "a", ("a", "b"), Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["d/a"]);
    stage.patch(
        "Flipper",
        "default",
        "trial",
        &json!({"spec": {"dryRun": false, "suspend": true}}),
    );
    stage.now += minutes(60);
    assert!(restarted(&stage.step()).is_empty());
    assert_eq!(waiting(&stage, "default", "trial"), ["Suspended"]);
}

#[test]
fn b6_b7_criteria_are_those_of_the_flippers_that_are_there() {
    let mut stage = stage();
    stage.put(flipper(
        "default",
        "f",
        &json!({"match": {"labels": {"a": "b"}}}),
    ));
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert!(restarted(&stage.step()).is_empty());
    // Gone without anybody having seen it go: the next list does not have it.
    stage.delete("Flipper", "default", "f");
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

#[test]
fn b8_a_label_alone_is_seen() {
    let mut stage = stage();
    stage.put(deployment("d", "a", ("app", "a"), Some(&ago(11))));
    assert!(stage.step().steps.is_empty());
    stage.patch(
        "Deployment",
        "d",
        "a",
        &json!({"metadata": {"labels": {"mesh": "true"}}}),
    );
    assert_eq!(restarted(&stage.step()), ["d/a"]);
    stage.now += minutes(11);
    stage.patch(
        "Deployment",
        "d",
        "a",
        &json!({"metadata": {"labels": {"mesh": null}}}),
    );
    assert!(stage.step().steps.is_empty());
}

/// A Deployment whose controller says that all is well.
pub(crate) fn healthy(name: &str, stamp: Option<&str>) -> Value {
    let mut object = deployment("d", name, MESH, stamp);
    object["spec"]["replicas"] = json!(2);
    object["status"] = json!({
        "observedGeneration": 1_000_000, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    });
    object
}

#[test]
fn b9_b16_a_backlog_is_drained_within_the_limit_the_oldest_first() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"maxConcurrent": 2})));
    for (name, age) in [("a", 11), ("b", 500), ("c", 30), ("d", 70), ("e", 12)] {
        stage.put(healthy(name, Some(&ago(age))));
    }
    let mut order = Vec::new();
    for _ in 0..10 {
        let begun = restarted(&stage.step());
        assert!(begun.len() <= 2);
        for name in &begun {
            let name = name.trim_start_matches("d/");
            stage.patch(
                "Deployment",
                "d",
                name,
                &json!({"status": {"updatedReplicas": 1}}),
            );
        }
        // Nothing more begins while these roll.
        assert!(restarted(&stage.step()).is_empty());
        for name in &begun {
            let name = name.trim_start_matches("d/");
            stage.patch(
                "Deployment",
                "d",
                name,
                &json!({"status": {"updatedReplicas": 2}}),
            );
        }
        order.extend(begun);
        stage.now += jiff::SignedDuration::from_secs(5);
    }
    assert_eq!(order, ["d/b", "d/d", "d/c", "d/e", "d/a"]);
}

#[test]
fn b9_jitter_spreads_workloads_that_were_stamped_together() {
    let mut stage = stage();
    stage.put(flipper(
        "default",
        "f",
        &json!({"interval": "10m", "jitter": "10m"}),
    ));
    for number in 0..40 {
        stage.put(deployment("d", &format!("w{number}"), MESH, Some(&ago(10))));
    }
    let mut most = 0;
    let mut all = 0;
    for _ in 0..=60 {
        let begun = restarted(&stage.step()).len();
        most = most.max(begun);
        all += begun;
        stage.now += jiff::SignedDuration::from_secs(10);
    }
    assert_eq!(all, 40, "each once within the jitter");
    assert!(most <= 6, "{most} at once");
}

#[test]
fn b10_a_rollout_is_waited_for_and_a_failed_one_is_not_hidden() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({})));
    let mut rolling = healthy("rolling", Some(&ago(11)));
    rolling["status"]["updatedReplicas"] = json!(1);
    let mut failed = healthy("failed", Some(&ago(11)));
    failed["status"]["updatedReplicas"] = json!(1);
    failed["status"]["conditions"] =
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    let mut lagging = healthy("lagging", Some(&ago(11)));
    lagging["metadata"]["generation"] = json!(7);
    lagging["status"]["observedGeneration"] = json!(6);
    let mut paused = healthy("paused", Some(&ago(11)));
    paused["spec"]["paused"] = json!(true);
    let mut empty = healthy("empty", Some(&ago(11)));
    empty["spec"]["replicas"] = json!(0);
    for object in [rolling, failed, lagging, paused, empty] {
        stage.put(object);
    }
    for _ in 0..60 {
        assert!(stage.step().steps.is_empty());
        stage.now += minutes(1);
    }
    assert_eq!(
        condition(&stage, "default", "f", "Ready").unwrap(),
        ("False".to_owned(), "RolloutFailed".to_owned())
    );
    let mut reasons = waiting(&stage, "default", "f");
    reasons.sort();
    assert_eq!(
        reasons,
        [
            "Paused",
            "RolloutFailed",
            "RolloutInProgress",
            "RolloutInProgress"
        ]
    );
    stage.patch(
        "Flipper",
        "default",
        "f",
        &json!({"spec": {"whenRolloutInProgress": "Ignore"}}),
    );
    assert_eq!(
        restarted(&stage.step()),
        ["d/failed", "d/lagging", "d/rolling"]
    );
}

#[test]
fn b11_a_restart_by_a_person_counts() {
    let mut stage = stage();
    let mut object = deployment("d", "a", MESH, Some(&ago(11)));
    object["spec"]["template"]["metadata"]["annotations"][names::RESTARTED_AT] = json!(ago(2));
    stage.put(object);
    let plan = stage.step();
    assert!(restarted(&plan).is_empty());
    assert_eq!(plan.wake_at, Some(at(&ago(2)) + minutes(10)));
    // One in the future, or one that is no time, counts as none.
    for other in [ago(-5), "yesterday".to_owned()] {
        let change = json!({"spec": {"template": {"metadata": {"annotations": {names::RESTARTED_AT: other}}}}});
        stage.patch("Deployment", "d", "a", &change);
        assert_eq!(restarted(&stage.plan()), ["d/a"], "{other}");
    }
}

#[test]
fn b11_going_back_to_an_earlier_revision_brings_no_restart_at_once() {
    let mut stage = stage();
    let mut object = deployment("d", "a", MESH, Some(&ago(300)));
    let stamp = format!("f:{}", names::LAST_RESTART);
    object["metadata"]["managedFields"] = json!([
        {"manager": "slipway", "operation": "Update", "time": ago(20), "fieldsV1": {"f:metadata": {"f:annotations": {"f:other": {}}}}},
        {"manager": "kubectl", "operation": "Update", "time": ago(4), "fieldsV1": {"f:metadata": {"f:annotations": {stamp: {}}}}},
    ]);
    stage.put(object.clone());
    let plan = stage.step();
    assert!(plan.steps.is_empty());
    assert_eq!(plan.wake_at, Some(at(&ago(4)) + minutes(10)));
    // A person who writes an old stamp by hand wants a restart.
    object["metadata"]["managedFields"][1]["manager"] = json!("kubectl-annotate");
    stage.put(object);
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

#[test]
fn b12_every_patch_names_the_version_it_was_decided_on() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    stage.put(deployment("d", "b", MESH, None));
    let plan = stage.plan();
    assert_eq!(plan.steps.len(), 2);
    for step in &plan.steps {
        let Action::Patch { target, .. } = &step.action else {
            panic!("{step:?}");
        };
        let object = stage.get("Deployment", "d", &target.object().name).unwrap();
        assert_eq!(target.version(), object["metadata"]["resourceVersion"]);
        assert_eq!(target.uid(), object["metadata"]["uid"]);
    }
}

#[test]
fn b13_own_namespace_only_and_protected_namespaces() {
    let mut stage = stage_with(Settings {
        scope: Scope::OwnNamespace,
        ..Settings::default()
    });
    stage.put(flipper("team", "f", &json!({})));
    stage.put(flipper(
        "team",
        "reaching",
        &json!({"match": {"namespaces": ["kube-system"]}}),
    ));
    stage.put(deployment("team", "mine", MESH, Some(&ago(11))));
    stage.put(deployment("kube-system", "dns", MESH, Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["team/mine"]);
    assert_eq!(
        condition(&stage, "team", "reaching", "Accepted").unwrap().1,
        "OutOfScope"
    );

    let mut stage = stage_with(Settings {
        protected_namespaces: ["kube-system".to_owned()].into(),
        ..Settings::default()
    });
    stage.put(flipper("team", "f", &json!({})));
    stage.put(deployment("team", "mine", MESH, Some(&ago(11))));
    stage.put(deployment("kube-system", "dns", MESH, Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["team/mine"]);
    stage.put(flipper(
        "team",
        "named",
        &json!({"match": {"namespaces": ["kube-system"]}}),
    ));
    assert_eq!(restarted(&stage.step()), ["kube-system/dns"]);
}

#[test]
fn b14_the_operator_does_not_restart_itself() {
    let mut stage = stage_with(Settings {
        own_deployment: Some(("rollout".to_owned(), "rollout-controller".to_owned())),
        ..Settings::default()
    });
    stage.put(flipper("default", "f", &json!({})));
    stage.put(deployment(
        "rollout",
        "rollout-controller",
        MESH,
        Some(&ago(11)),
    ));
    stage.put(deployment("rollout", "other", MESH, Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["rollout/other"]);
}

#[test]
fn b15_the_default_criteria_can_be_changed_and_switched_off() {
    let mut off = stage_with(Settings {
        default_criteria: None,
        ..Settings::default()
    });
    off.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert!(off.step().steps.is_empty());
    let mut other = stage_with(Settings {
        default_criteria: Some(DefaultCriteria {
            labels: [("x".to_owned(), "y".to_owned())].into(),
            namespaces: ["d".to_owned()].into(),
            interval: std::time::Duration::from_secs(60),
        }),
        ..Settings::default()
    });
    other.put(deployment("d", "a", MESH, Some(&ago(11))));
    other.put(deployment("d", "b", ("x", "y"), Some(&ago(2))));
    other.put(deployment("e", "c", ("x", "y"), Some(&ago(2))));
    assert_eq!(restarted(&other.step()), ["d/b"]);
}

#[test]
fn b16_a_stale_stamp_restarts_now_and_once() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"interval": "3m"})));
    stage.put(deployment("d", "a", MESH, Some(&ago(10_000))));
    assert_eq!(restarted(&stage.step()), ["d/a"]);
    for _ in 0..17 {
        stage.now += jiff::SignedDuration::from_secs(10);
        assert!(restarted(&stage.step()).is_empty());
    }
}

#[test]
fn b17_a_removed_stamp_is_neither_fought_over_nor_the_end_of_restarts() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({})));
    let mut object = deployment("d", "a", MESH, Some(&ago(4)));
    object["metadata"]["annotations"] = json!({});
    let template = format!("f:{}", names::RESTARTED_AT);
    let fields =
        json!({"f:spec": {"f:template": {"f:metadata": {"f:annotations": {template: {}}}}}});
    object["metadata"]["managedFields"] =
        json!([{"manager": "slipway", "operation": "Update", "fieldsV1": fields}]);
    stage.put(object);
    assert!(
        stage.step().steps.is_empty(),
        "no stamp for somebody else to remove"
    );
    assert_eq!(waiting(&stage, "default", "f"), ["StampRemoved"]);
    stage.now += minutes(6);
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

#[test]
fn b17_workloads_of_other_controllers_can_be_left_alone() {
    let mut stage = stage_with(Settings {
        skip_controlled: true,
        ..Settings::default()
    });
    let mut owned = deployment("d", "owned", MESH, Some(&ago(11)));
    owned["metadata"]["ownerReferences"] =
        json!([{"kind": "Thing", "name": "t", "controller": true}]);
    stage.put(owned);
    stage.put(deployment("d", "free", MESH, Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["d/free"]);
}

#[test]
fn b18_status_events_and_numbers_tell_what_happens() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"interval": "10m"})));
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    stage.put(deployment("d", "b", MESH, Some(&ago(4))));
    let plan = stage.step();
    assert!(news(&plan).contains(&"RestartTriggered"));
    stage.step();
    let status = &stage.get("Flipper", "default", "f").unwrap()["status"];
    assert_eq!(status["matched"], 2);
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(status["lastRestart"], "2026-03-04T12:00:00Z");
    assert_eq!(status["nextRestart"], "2026-03-04T12:06:00Z");
    use slipway_kernel::Capability;
    let gauges = Capability::gauges(&stage.restarts, &stage.stores(), stage.now);
    let value = |name: &str| gauges.iter().find(|g| g.name == name).map(|g| g.value);
    assert_eq!(value("slipway_restarts_matched"), Some(2.0));
    assert!(
        gauges
            .iter()
            .all(|g| g.labels.keys().all(|label| *label == "reason"))
    );
}

#[test]
fn b19_nothing_is_asked_for_that_is_not_needed() {
    use slipway_kernel::Capability;
    let all = Capability::permissions(&stage().restarts);
    for permission in &all {
        assert!(!permission.verbs.contains(&"delete") && !permission.verbs.contains(&"update"));
        assert!(!permission.why.is_empty());
        let creates = permission.verbs.contains(&"create");
        assert!(!creates || permission.scope == Place::Own, "{permission:?}");
    }
}

#[test]
fn b21_a_restart_changes_nothing_but_one_annotation_of_the_template() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    let before = stage.get("Deployment", "d", "a").unwrap()["spec"].clone();
    stage.step();
    let mut after = stage.get("Deployment", "d", "a").unwrap()["spec"].clone();
    after["template"]["metadata"]["annotations"][names::RESTARTED_AT] = json!(ago(11));
    assert_eq!(after, before);
}
