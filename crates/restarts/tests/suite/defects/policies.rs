//! B1–B8: which policies there are, and what they match.

use serde_json::{Value, json};
use slipway_restarts::Settings;

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
        floor: std::time::Duration::from_mins(1),
        ..Settings::drop_in()
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

#[test]
fn b18_what_no_longer_holds_leaves_the_status() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"suspend": true})));
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    stage.step();
    let status = |stage: &slipway_restarts::stage::Stage, field: &str| {
        stage.get("Flipper", "default", "f").unwrap()["status"]
            .get(field)
            .cloned()
    };
    assert!(status(&stage, "waitingFor").is_some());
    stage.patch(
        "Flipper",
        "default",
        "f",
        &json!({"spec": {"suspend": false}}),
    );
    stage.step();
    stage.step();
    assert_eq!(status(&stage, "waitingFor"), None);
    assert!(status(&stage, "nextRestart").is_some());
    stage.patch(
        "Flipper",
        "default",
        "f",
        &json!({"spec": {"interval": "soon"}}),
    );
    stage.step();
    assert_eq!(status(&stage, "pending"), None);
    assert_eq!(status(&stage, "nextRestart"), None);
}

#[test]
fn b18_a_status_names_what_the_policy_matches_but_no_more_than_twenty() {
    let mut stage = stage();
    stage.put(flipper("default", "f", &json!({"interval": "1h"})));
    for number in (0..25).rev() {
        let name = format!("w{number:02}");
        stage.put(deployment("d", &name, MESH, Some(&ago(1))));
    }
    let plan = stage.step();
    let status = stage.get("Flipper", "default", "f").unwrap()["status"].clone();
    assert_eq!(status["matched"], 25);
    let listed = status["workloads"].as_array().unwrap();
    assert_eq!(listed.len(), 20);
    assert_eq!(listed[0], "Deployment d/w00");
    assert_eq!(listed[19], "Deployment d/w19");
    let told = plan.events.iter().find(|e| e.reason == "Matched").unwrap();
    assert!(told.note.starts_with("Matches 25: Deployment d/w00, "));
    assert!(told.note.ends_with(" and 5 more"), "{}", told.note);
    let again = stage.step();
    assert!(again.statuses.is_empty() && again.events.is_empty());
}
