//! What another clock wrote.

use serde_json::json;
use slipway_api::names::{LAST_RESTART, RESTARTED_AT};
use slipway_kernel::{Action, Plan};
use slipway_restarts::{DefaultCriteria, Settings};

use crate::objects::*;

fn writes_status(plan: &Plan) -> bool {
    let mut steps = plan.steps.iter();
    steps.any(|step| matches!(&step.action, Action::Apply { object, .. } if object.name == "slipway-restarts"))
}

/// The clock of a former leader was ahead, or somebody wrote it: that is no reason to say nothing for years.
#[test]
fn a_status_from_the_future_is_brought_up_to_date() {
    for (updated, is_written) in [
        ("2031-01-01T00:00:00Z", true),
        ("2026-03-04T12:00:09Z", true),
        ("2026-03-04T11:59:56Z", false),
        ("2026-03-04T11:59:40Z", true),
        ("soon", true),
    ] {
        let mut stage = stage_with(Settings {
            operator_namespace: Some("rollout".to_owned()),
            default_criteria: Some(DefaultCriteria::default()),
            ..Settings::default()
        });
        stage.put(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "rollout", "name": "slipway-restarts"},
            "data": {"active": "false", "updatedAt": updated},
        }));
        stage.put(deployment("d", "a", MESH, Some(&ago(5))));
        assert_eq!(writes_status(&stage.plan()), is_written, "{updated}");
    }
}

/// What a policy tells of a restart does not change when this clock comes to the time that another one wrote.
#[test]
fn a_restart_from_the_future_is_told_as_it_is_written() {
    let mut stage = stage();
    let spec = json!({"interval": "10m", "match": {"labels": {"mesh": "true"}}});
    stage.put(flipper("default", "f", &spec));
    stage.put(deployment("d", "a", MESH, Some("2026-03-04T12:00:02Z")));
    stage.step();
    stage.step();
    stage.now += jiff::SignedDuration::from_secs(5);
    let statuses = stage.plan().statuses;
    assert!(statuses.is_empty(), "{statuses:?}");
}

/// Somebody whose clock is a second ahead restarts a workload that is due: until then it waits for that rollout, and from then on
/// for its interval. Found by `a_second_pass_does_nothing`, in one of many runs.
#[test]
fn a_restart_by_a_clock_that_is_ahead_is_looked_at_when_its_time_comes() {
    let mut stage = stage();
    let spec = json!({"interval": "10m", "match": {"labels": {"mesh": "true"}}});
    stage.put(flipper("default", "f", &spec));
    let ahead = "2026-03-04T12:00:01Z";
    let mut rolling = deployment("d", "a", MESH, Some(&ago(11)));
    rolling["metadata"]["generation"] = json!(6);
    rolling["spec"]["template"]["metadata"]["annotations"] = json!({RESTARTED_AT: ahead});
    rolling["status"] = json!({"observedGeneration": 5});
    stage.put(rolling);
    stage.step();
    let plan = stage.step();
    assert_eq!(plan.wake_at, Some(ahead.parse().unwrap()));
    stage.now += jiff::SignedDuration::from_secs(1);
    assert_eq!(stage.step().statuses.len(), 1);
    assert!(stage.plan().statuses.is_empty());
}

/// The clock of a leader was a year ahead when it restarted everything, and is right again. Waiting is right; that nothing
/// is restarted for a year is told, once, with who can end it.
#[test]
fn a_stamp_far_in_the_future_is_waited_for_and_told() {
    let mut stage = stage();
    let spec = json!({"interval": "10m", "match": {"labels": {"mesh": "true"}}});
    stage.put(flipper("default", "f", &spec));
    stage.put(deployment("d", "a", MESH, Some("2027-03-04T12:00:00Z")));
    let plan = stage.step();
    assert!(plan.steps.is_empty());
    let told = plan
        .events
        .iter()
        .find(|e| e.note.contains("StampInFuture"));
    let told = told.unwrap();
    assert_eq!(
        (told.severity.as_str(), told.reason),
        ("Warning", "RestartDeferred")
    );
    assert!(told.note.contains("2027-03-04T12:00:00Z"), "{}", told.note);
    assert_eq!(waiting(&stage, "default", "f"), ["StampInFuture"]);
    let status = &stage.get("Flipper", "default", "f").unwrap()["status"];
    let waits = &status["waitingFor"][0];
    assert_eq!(waits["until"], "2027-03-04T12:10:00Z");
    assert!(waits["unblock"].as_str().unwrap().contains(LAST_RESTART));
    assert_eq!(status["pending"], 0, "it is not due");
    for _ in 0..5 {
        stage.now += minutes(7);
        let plan = stage.step();
        assert!(
            plan.statuses.is_empty() && plan.events.is_empty(),
            "{plan:?}"
        );
    }
    // As it says: whoever removes the annotation.
    let removal = json!({"metadata": {"annotations": {LAST_RESTART: null}}});
    stage.patch("Deployment", "d", "a", &removal);
    assert_eq!(stamped(&stage.step()), ["d/a"]);
    assert!(waiting(&stage, "default", "f").is_empty());
    stage.now += minutes(10);
    assert_eq!(restarted(&stage.step()), ["d/a"]);
}

/// Where no status can be kept the event is the same one each time, so that it is counted and not told anew.
#[test]
fn a_stamp_far_in_the_future_is_one_event_also_without_a_status() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some("2027-03-04T12:00:00Z")));
    let instance = |plan: &Plan| {
        let told = plan
            .events
            .iter()
            .find(|e| e.note.contains("StampInFuture"));
        told.map(|event| event.instance.clone())
    };
    let first = instance(&stage.plan());
    assert!(first.is_some());
    stage.now += minutes(7);
    assert_eq!(instance(&stage.plan()), first);
}

/// Clocks differ by seconds or minutes: that is no news.
#[test]
fn a_stamp_a_little_ahead_is_not_told() {
    for ahead in [1, 4] {
        let mut stage = stage();
        stage.put(flipper("default", "f", &json!({"interval": "10m"})));
        stage.put(deployment("d", "a", MESH, Some(&ago(-ahead))));
        assert!(!news(&stage.step()).contains(&"RestartDeferred"));
        assert!(waiting(&stage, "default", "f").is_empty(), "{ahead} min");
    }
}
