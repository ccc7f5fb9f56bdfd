//! A Flipper that cannot be followed holds what it matches; one that reaches too far does not.

use serde_json::{Value, json};
use slipway_kernel::fact::{Missing, Unseen};
use slipway_kernel::identity::kinds;
use slipway_kernel::{ClusterId, Plan};
use slipway_restarts::stage::Stage;
use slipway_restarts::{Scope, Settings};

use crate::objects::*;

/// Nothing is written and nothing told.
fn is_quiet(plan: &Plan) -> bool {
    plan.steps.is_empty() && plan.statuses.is_empty() && plan.events.is_empty()
}

fn mistyped(matching: &Value) -> Value {
    json!({"interval": "24h", "match": matching, "windows": [{"cron": "61 2 * * *", "duration": "2h"}]})
}

#[test]
fn a_typo_in_the_only_flipper_restarts_nothing() {
    let mut stage = stage();
    let spec = mistyped(&json!({"labels": {"mesh": "true"}, "namespaces": ["shop"]}));
    stage.put(flipper("shop", "nightly", &spec));
    stage.put(deployment("shop", "a", MESH, Some(&ago(11))));
    stage.put(deployment("elsewhere", "b", MESH, Some(&ago(11))));
    let plan = stage.step();
    // Neither what it matches nor, by the default criteria, what it does not.
    assert!(restarted(&plan).is_empty());
    let told = plan.events.iter().find(|e| e.reason == "Invalid").unwrap();
    assert_eq!(told.severity.as_str(), "Warning");
    assert!(told.note.contains("spec.windows[0].cron"), "{}", told.note);
    assert!(
        told.note
            .ends_with("what it matches is not restarted until this is fixed"),
        "{}",
        told.note
    );
    assert_eq!(waiting(&stage, "shop", "nightly"), ["PolicyInvalid"]);
    let status = &stage.get("Flipper", "shop", "nightly").unwrap()["status"];
    assert_eq!(status["matched"], 1);
    assert_eq!(status["workloads"], json!(["Deployment shop/a"]));
    stage.now += minutes(1);
    assert!(is_quiet(&stage.step()), "it is said once");
    stage.now += minutes(60);
    assert!(restarted(&stage.step()).is_empty());
    stage.patch(
        "Flipper",
        "shop",
        "nightly",
        &json!({"spec": {"interval": "1h", "windows": null}}),
    );
    assert_eq!(restarted(&stage.step()), ["shop/a"]);
    assert!(waiting(&stage, "shop", "nightly").is_empty());
}

#[test]
fn what_matches_cannot_be_read_holds_all_that_it_could_be() {
    for spec in [
        json!({"match": {"labels": ["mesh"]}}),
        json!({"match": {"namespaces": "shop"}}),
        json!({"match": 5}),
        json!(5),
    ] {
        let mut stage = stage();
        stage.put(flipper("shop", "bad", &spec));
        stage.put(deployment("shop", "a", MESH, Some(&ago(11))));
        stage.put(deployment("elsewhere", "b", MESH, Some(&ago(11))));
        assert!(restarted(&stage.step()).is_empty(), "{spec}");
        // Somebody else's policy is known, and goes on.
        stage.put(flipper("shop", "good", &json!({"interval": "10m"})));
        let restarts = restarted(&stage.step());
        assert_eq!(restarts, ["elsewhere/b", "shop/a"], "{spec}");
    }
}

#[test]
fn where_a_flipper_reaches_its_own_namespace_a_bad_one_still_keeps_the_default_criteria_away() {
    let mut stage = stage_with(Settings {
        scope: Scope::OwnNamespace,
        ..Settings::drop_in()
    });
    stage.put(flipper("shop", "bad", &json!(5)));
    stage.put(deployment("shop", "a", MESH, Some(&ago(11))));
    stage.put(deployment("elsewhere", "b", MESH, Some(&ago(11))));
    assert!(restarted(&stage.step()).is_empty());
    stage.delete("Flipper", "shop", "bad");
    assert_eq!(restarted(&stage.step()), ["elsewhere/b", "shop/a"]);
}

#[test]
fn a_typo_hands_no_workload_to_a_policy_that_restarts_it_more_often() {
    let mut stage = stage();
    stage.put(flipper("shop", "often", &json!({"interval": "10m"})));
    let narrow = json!({"labels": {"mesh": "true"}, "namespaces": ["shop"]});
    stage.put(flipper("shop", "nightly", &mistyped(&narrow)));
    stage.put(deployment("shop", "a", MESH, Some(&ago(11))));
    stage.put(deployment("shop", "b", ("app", "b"), Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["shop/b"]);
    assert_eq!(
        condition(&stage, "shop", "often", "Overlaps").unwrap().0,
        "True"
    );
}

/// It holds from those behind it, and from nobody else: who comes before it decides as if it were not there.
#[test]
fn a_typo_takes_no_workload_from_a_policy_that_comes_before_it() {
    let mut stage = stage();
    let narrow = json!({"labels": {"mesh": "true"}, "namespaces": ["shop"]});
    let often = json!({"interval": "10m", "match": narrow});
    stage.put(flipper("shop", "often", &often));
    stage.put(flipper("shop", "nightly", &mistyped(&json!({}))));
    stage.put(deployment("shop", "a", MESH, Some(&ago(11))));
    stage.put(deployment("shop", "b", ("app", "b"), Some(&ago(11))));
    assert_eq!(restarted(&stage.step()), ["shop/a"]);
    assert_eq!(waiting(&stage, "shop", "nightly"), ["PolicyInvalid"]);
}

#[test]
fn the_default_criteria_begin_and_cease_with_an_event_each() {
    let mut stage = stage_with(Settings {
        operator_namespace: Some("rollout".to_owned()),
        ..Settings::drop_in()
    });
    stage.put(deployment("shop", "a", MESH, Some(&ago(1))));
    assert!(news(&stage.step()).contains(&"DefaultCriteriaActive"));
    stage.now += minutes(1);
    assert!(is_quiet(&stage.step()));
    stage.put(flipper("shop", "f", &json!({"interval": "1h"})));
    assert!(news(&stage.step()).contains(&"DefaultCriteriaInactive"));
    stage.now += minutes(1);
    assert!(is_quiet(&stage.step()));
    stage.delete("Flipper", "shop", "f");
    assert!(news(&stage.step()).contains(&"DefaultCriteriaActive"));
}

fn at_first(settings: Settings, policy: Value) -> Stage {
    let mut stage = stage_with(settings);
    stage.put(policy);
    for namespace in ["kube-system", "shop", "elsewhere"] {
        stage.put(deployment(namespace, "a", MESH, Some(&ago(11))));
    }
    stage
}

#[test]
fn an_empty_flipper_reaches_its_own_namespace_and_never_the_system_s() {
    let empty = |namespace: &str| flipper(namespace, "f", &json!({"interval": "10m"}));
    let mut stage = at_first(Settings::default(), empty("shop"));
    assert_eq!(restarted(&stage.step()), ["shop/a"]);
    let mut stage = at_first(Settings::default(), empty("kube-system"));
    assert!(restarted(&stage.step()).is_empty());
    let wide = Settings {
        scope: Scope::Cluster,
        ..Settings::default()
    };
    let mut stage = at_first(wide, empty("shop"));
    assert_eq!(restarted(&stage.step()), ["elsewhere/a", "shop/a"]);
    let named = json!({"interval": "10m", "match": {"namespaces": ["kube-system"]}});
    let mut stage = at_first(Settings::default(), flipper("kube-system", "f", &named));
    assert_eq!(restarted(&stage.step()), ["kube-system/a"]);
    // In place of the original all is as designed.
    let mut stage = at_first(Settings::drop_in(), empty("shop"));
    let all = ["elsewhere/a", "kube-system/a", "shop/a"];
    assert_eq!(restarted(&stage.step()), all);
}

#[test]
fn nothing_is_restarted_that_no_flipper_asks_for() {
    let mut stage = stage_with(Settings::default());
    stage.put(deployment("shop", "a", MESH, Some(&ago(11))));
    assert!(is_quiet(&stage.step()));
    stage.put(flipper("elsewhere", "f", &json!({"interval": "10m"})));
    assert!(restarted(&stage.step()).is_empty());
}

#[test]
fn a_dry_run_tells_of_workloads_that_were_never_restarted() {
    let mut stage = stage();
    let spec = json!({"interval": "10m", "dryRun": true});
    stage.put(flipper("shop", "trial", &spec));
    stage.put(deployment("shop", "never", MESH, None));
    stage.put(deployment("shop", "due", MESH, Some(&ago(11))));
    stage.put(deployment("shop", "young", MESH, Some(&ago(1))));
    let plan = stage.step();
    assert!(plan.steps.is_empty(), "neither restarted nor stamped");
    let status = stage.get("Flipper", "shop", "trial").unwrap()["status"].clone();
    let would = json!(["Deployment shop/due", "Deployment shop/never"]);
    assert_eq!(status["wouldRestart"], would);
    assert_eq!(status["matched"], 3);
    assert_eq!(status["pending"], 1);
    assert_eq!(
        waiting(&stage, "shop", "trial"),
        ["DryRun", "NeverRestarted"]
    );
    let told = plan.events.iter().filter(|e| e.reason == "DryRun");
    assert_eq!(told.count(), 2);
    stage.now += minutes(1);
    assert!(is_quiet(&stage.step()));
    stage.patch(
        "Flipper",
        "shop",
        "trial",
        &json!({"spec": {"dryRun": false}}),
    );
    stage.step();
    let status = &stage.get("Flipper", "shop", "trial").unwrap()["status"];
    assert_eq!(status["wouldRestart"], Value::Null);
}

#[test]
fn a_dry_run_does_not_list_what_would_never_be_restarted() {
    let mut stage = stage();
    let spec = json!({"interval": "10m", "dryRun": true});
    stage.put(flipper("shop", "trial", &spec));
    for (name, field, value) in [
        ("empty", "replicas", json!(0)),
        ("never", "replicas", json!(1)),
        ("paused", "paused", json!(true)),
    ] {
        let mut object = deployment("shop", name, MESH, None);
        object["spec"][field] = value;
        stage.put(object);
    }
    stage.step();
    let status = &stage.get("Flipper", "shop", "trial").unwrap()["status"];
    assert_eq!(status["wouldRestart"], json!(["Deployment shop/never"]));
    assert_eq!(status["skipped"], 2);
    stage.now += minutes(1);
    assert!(is_quiet(&stage.step()));
}

/// The first Flipper of the page about restarts, as people copy it.
fn documented() -> Value {
    let page = include_str!("../../../../../docs/restarts.md");
    let text = page.split("<<'YAML'\n").nth(1).unwrap();
    let text = text.split("\nYAML\n").next().unwrap();
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn nightly_as_documented_restarts_in_the_first_night() {
    let mut stage = stage_with(Settings::default());
    stage.now = at("2026-03-04T15:00:00Z");
    let mut nightly = documented();
    nightly["spec"]["dryRun"] = json!(false);
    stage.put(nightly);
    stage.put(deployment("shop", "web", MESH, None));
    assert_eq!(stamped(&stage.step()), ["shop/web"]);
    // Two in the morning in Berlin.
    stage.now = at("2026-03-05T00:59:59Z");
    assert!(restarted(&stage.step()).is_empty());
    stage.now = at("2026-03-05T01:00:00Z");
    assert_eq!(restarted(&stage.step()), ["shop/web"]);
    stage.now = at("2026-03-06T00:59:59Z");
    assert!(restarted(&stage.step()).is_empty());
    stage.now = at("2026-03-06T01:00:00Z");
    assert_eq!(restarted(&stage.step()), ["shop/web"]);
}

/// Rights are given by namespace. Where budgets cannot be seen, for whatever reason, nothing that should respect them is
/// restarted; elsewhere it is.
#[test]
fn budgets_that_cannot_be_seen_in_a_namespace_hold_back_its_workloads() {
    let budgets = &kinds::DISRUPTION_BUDGET;
    let unseen = |how| Missing::unseen(how, &ClusterId::local(), budgets);
    for (missing, number) in [
        (None, 2),
        (Some(unseen(Unseen::Absent).within("e")), 1),
        (Some(unseen(Unseen::Absent)), 0),
        (Some(unseen(Unseen::Forbidden)), 0),
        (Some(unseen(Unseen::OutOfSync)), 0),
    ] {
        let mut stage = stage();
        let spec = json!({"interval": "10m", "respectPodDisruptionBudgets": true,
            "match": {"labels": {"mesh": "true"}}});
        stage.put(flipper("default", "f", &spec));
        for namespace in ["d", "e"] {
            stage.put(deployment(namespace, "a", MESH, Some(&ago(11))));
        }
        stage.facts.missing.extend(missing.clone());
        let plan = stage.step();
        assert_eq!(restarted(&plan).len(), number, "{missing:?}");
        let held = waiting(&stage, "default", "f");
        assert_eq!(held.contains(&"DisruptionBudget".to_owned()), number < 2);
    }
}
