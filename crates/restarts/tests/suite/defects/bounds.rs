//! B12–B21: what is written, who is spared, and what is told.

use serde_json::json;
use slipway_api::names;
use slipway_kernel::permission::Scope as Place;
use slipway_kernel::{Action, Controller, Plan};
use slipway_restarts::{DefaultCriteria, Scope, Settings};

use crate::objects::*;

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
        ..Settings::drop_in()
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
        ..Settings::drop_in()
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
fn a_flipper_that_names_what_it_does_not_reach_says_so() {
    for (named, accepted, restarts) in [
        (json!(["shop"]), "False", 0),
        (json!(["shop", "team"]), "True", 1),
    ] {
        let mut stage = stage_with(Settings::default());
        let spec = json!({"interval": "10m", "match": {"namespaces": named}});
        stage.put(flipper("team", "f", &spec));
        stage.put(deployment("team", "mine", MESH, Some(&ago(11))));
        stage.put(deployment("shop", "theirs", MESH, Some(&ago(11))));
        let plan = stage.step();
        assert_eq!(restarted(&plan).len(), restarts);
        let told = plan.events.iter().find(|e| e.reason == "OutOfScope");
        assert_eq!(told.unwrap().severity.as_str(), "Warning");
        let (status, reason) = condition(&stage, "team", "f", "Accepted").unwrap();
        assert_eq!((status.as_str(), reason.as_str()), (accepted, "OutOfScope"));
        stage.now += minutes(1);
        assert!(
            !news(&stage.step()).contains(&"OutOfScope"),
            "it is said once"
        );
    }
}

#[test]
fn b14_the_operator_does_not_restart_itself() {
    let mut stage = stage_with(Settings {
        own_deployment: Some(("rollout".to_owned(), "rollout-controller".to_owned())),
        ..Settings::drop_in()
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
        ..Settings::drop_in()
    });
    off.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert!(off.step().steps.is_empty());
    let mut other = stage_with(Settings {
        default_criteria: Some(DefaultCriteria {
            labels: [("x".to_owned(), "y".to_owned())].into(),
            namespaces: ["d".to_owned()].into(),
            interval: std::time::Duration::from_mins(1),
        }),
        ..Settings::drop_in()
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

/// What is told when the steps of a plan are done.
fn told_with(plan: &Plan) -> Vec<(&'static str, &'static str)> {
    let events = plan.steps.iter().flat_map(|step| &step.events);
    events
        .map(|event| (event.severity.as_str(), event.reason))
        .collect()
}

/// Before the first restart nothing remembers a stamp that is removed: it is written again at each look, once, and its time
/// begins again. Nothing is restarted early, and whoever stops removing it is restarted an interval later.
#[test]
fn b17_before_the_first_restart_a_removed_stamp_is_written_again_and_its_time_begins_again() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"interval": "3h"})));
    stage.put(deployment("d", "a", MESH, None));
    let plan = stage.step();
    assert_eq!(stamped(&plan), ["d/a"]);
    assert!(told_with(&plan).is_empty(), "the first time is no news");
    for _ in 0..8 {
        stage.now += minutes(60);
        assert!(
            stage.step().steps.is_empty(),
            "nothing is written meanwhile"
        );
        let removal = json!({"metadata": {"annotations": {names::LAST_RESTART: null}}});
        stage.patch("Deployment", "d", "a", &removal);
        let plan = stage.step();
        assert_eq!(stamped(&plan), ["d/a"], "one write for each removal");
        assert!(restarted(&plan).is_empty());
        let told = told_with(&plan);
        assert_eq!(told, [("Warning", "StampedAgain")], "and that is told");
    }
    stage.now += minutes(179);
    assert!(restarted(&stage.step()).is_empty());
    stage.now += minutes(1);
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

#[test]
fn b17_workloads_of_other_controllers_can_be_left_alone() {
    let mut stage = stage_with(Settings {
        skip_controlled: true,
        ..Settings::drop_in()
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
    let gauges = Controller::gauges(&stage.planner, &stage.stores(), stage.now);
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
    for permission in slipway_restarts::CAPABILITY.profile.permissions {
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
