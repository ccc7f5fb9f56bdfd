#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
//! Each oracle objects to a history that was made up to be bad, and to no good one.

mod abroad;
mod divided;
mod fleets;
mod made;
mod masked;
mod outside;
mod pods;
mod zoned;

use jiff::SignedDuration;
use made::Made;
use serde_json::{Value, json};

use slipway_sim::history::{Ending, Event};
use slipway_sim::spell::{Disturbance, Spell};

use crate::scenarios::wiring;

/// A good history with one restart: 20 minutes after its stamp, by a Flipper of ten minutes.
fn good() -> Made {
    let mut made = Made::new();
    made.flipper(
        "f",
        &json!({"interval": "10m", "maxConcurrent": 1, "match": {"labels": {"mesh": "true"}}}),
    );
    made.deployment("a", 0);
    made.deployment("b", 0);
    made.pass(1200);
    made.restart("a", 1200);
    made
}

#[test]
fn nobody_objects_to_a_good_history() {
    let mut made = good();
    made.complete("a");
    made.pass(60);
    made.restart("b", 1260);
    made.complete("b");
    made.pass(60);
    let objections = made.objections();
    assert!(objections.is_empty(), "{objections:?}");
}

#[test]
fn nobody_objects_to_a_good_rollout() {
    let objections = zoned::good_rollout().objections();
    assert!(objections.is_empty(), "{objections:?}");
}

#[test]
fn nobody_objects_to_a_good_promotion() {
    let objections = divided::good().objections();
    assert!(objections.is_empty(), "{objections:?}");
}

#[test]
fn nobody_objects_to_a_good_rollout_over_clusters() {
    let objections = fleets::good_rollout().objections();
    assert!(objections.is_empty(), "{objections:?}");
}

/// Who was unready before a change is told by what Flux said there, and not by what the operator says of it.
#[test]
fn who_was_ill_before_a_change_does_not_count_whatever_is_said() {
    let objections = fleets::with_one_that_was_ill().objections();
    assert!(objections.is_empty(), "{objections:?}");
    let said = fleets::with_one_that_is_said_to_have_been_ill();
    for made in [
        said,
        fleets::with_one_that_was_well_again(),
        fleets::with_one_that_fell_ill_in_a_change_that_was_stopped(),
        fleets::with_one_that_is_back(),
    ] {
        let objections = made.objections();
        let ids: Vec<&str> = objections.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, ["F6"], "{objections:?}");
    }
}

/// What a control plane forgot because it was put back is not unassigned.
#[test]
fn what_was_put_back_takes_nothing_away() {
    let objections = fleets::with_one_that_forgets().objections();
    let ids: Vec<&str> = objections.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["F1"], "{objections:?}");
}

/// One bad history for each oracle.
fn bad(id: &str) -> Made {
    let mut made = good();
    match id {
        "G1" => {
            made.last_request().body = json!({"metadata": {"annotations": {}}});
        }
        "G2" => {
            made.scenario.quiet = std::time::Duration::from_secs(30);
            made.pass(100);
            made.post_event();
        }
        "G3" => {
            made.request("DELETE", "/api/v1/namespaces/shop/pods/x", json!({}));
        }
        "G4" => made.restart("unlabelled", 1200),
        "G5" => {
            made.status("f", json!({"observedGeneration": 2}));
            made.status("f", json!({"observedGeneration": 1}));
        }
        "G6" => {
            made.complete("a");
            made.epoch = 2;
            made.restart("b", 1200);
            made.complete("b");
            made.pass(700);
            made.epoch = 1;
            made.restart("a", 1900);
        }
        "G8" => {
            made.reference = Some(Box::new(made.history.clone()));
            made.complete("a");
            made.pass(700);
            made.restart("a", 1900);
        }
        "G11" => {
            for _ in 0..1000 {
                made.pass(1);
                made.request("GET", "/apis/apps/v1/deployments", json!(null));
            }
        }
        "R1" => {
            made.complete("a");
            made.pass(300);
            made.restart("a", 1500);
        }
        "R2" => made.restart("b", 1200),
        "R3" => {
            made.pass(700);
            made.restart("a", 1900);
        }
        "R4" => {
            made.scenario
                .except
                .insert("R1".to_owned(), "the test is about R4".to_owned());
            made.mark(Event::Started("slipway-0-1".to_owned()), -1);
            made.complete("a");
            made.pass(60);
            made.restart("a", 1260);
        }
        "R5" => {
            made.complete("a");
            made.pass(700);
            made.restart_with(
                "a",
                1900,
                &json!({"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}),
            );
        }
        "R8" => {
            made.complete("a");
            made.pass(700);
            made.restart("a", 9000);
        }
        "L1" => {
            made.complete("a");
            made.pass(3600);
        }
        "L4" => {
            made.scenario.replicas = 2;
            made.lease();
            made.mark(Event::Crashed("slipway-0-0".to_owned()), 0);
            made.pass(60);
        }
        "P" => made.mark(Event::Panicked("index out of bounds".to_owned()), 0),
        "expect" => {
            let text = "{restarts: {Deployment shop/a: 2}}";
            made.scenario.expect = vec![serde_saphyr::from_str(text).unwrap()];
        }
        other => return bad_in_time(other),
    }
    made
}

/// The same for what is judged by the clock and by names.
fn bad_in_time(id: &str) -> Made {
    let mut made = good();
    match id {
        "R9" => {
            made = Made::new();
            let spec = json!({"suspend": true, "match": {"labels": {"mesh": "true"}}});
            made.flipper("f", &spec);
            made.deployment("a", 0);
            made.pass(1200);
            made.restart("a", 1200);
        }
        "R10" => {
            made = restarted_by(&json!({"windows": [{"cron": "0 2 * * *", "duration": "1h"}]}));
        }
        "R11" => made = restarted_by(&json!({"excludeDates": ["2026-01-05"]})),
        "R12" => made = restarted_by(&json!({"schedule": {"cron": "0 3 * * *"}})),
        "R13" => {
            made = Made::new();
            made.flipper("f", &json!({"interval": "10m", "jitter": "5m"}));
            let all = ["a", "b", "c"];
            for name in all {
                made.deployment(name, 0);
            }
            made.pass(660);
            for name in all {
                made.restart(name, 660);
            }
        }
        "G15" => {
            let uri = "/api/v1/namespaces/shop/configmaps/theirs";
            made.request("PUT", uri, json!({"metadata": {"resourceVersion": "1"}}));
        }
        "V1" => {
            made.mark(Event::Started("slipway-0-0".to_owned()), -1200);
            made.mark(Event::Ready("slipway-0-0".to_owned(), true), -1200);
            made.mark(Event::Ready("slipway-0-0".to_owned(), false), -60);
        }
        other => {
            let made = abroad::bad(other).or_else(|| zoned::bad(other));
            let made = made.or_else(|| divided::bad(other));
            let made = made.or_else(|| fleets::bad(other));
            let made = made.or_else(|| outside::bad(other));
            return made.unwrap_or_else(|| panic!("no bad history for {other}"));
        }
    }
    made
}

/// A restart 20 minutes after midnight of 2026-01-05, which was stamped at midnight, by a Flipper with this in its spec.
fn restarted_by(spec: &Value) -> Made {
    let mut made = Made::new();
    made.flipper("f", spec);
    made.deployment("a", 0);
    made.pass(1200);
    made.restart("a", 1200);
    made
}

#[test]
fn a_restart_is_judged_by_windows_days_and_schedules() {
    let window =
        |cron: &str, zone: &str| json!([{"cron": cron, "duration": "30m", "timeZone": zone}]);
    for (id, spec, is_bad) in [
        ("R10", json!({"windows": window("0 0 * * *", "UTC")}), false),
        (
            "R10",
            json!({"windows": window("0 9 * * mon", "Asia/Tokyo")}),
            false,
        ),
        (
            "R10",
            json!({"windows": window("0 9 * * tue", "Asia/Tokyo")}),
            true,
        ),
        (
            "R10",
            json!({"windows": window("30 23 * * *", "UTC")}),
            true,
        ),
        (
            "R11",
            json!({"excludeDates": ["2026-01-04", "2026-01-06"]}),
            false,
        ),
        (
            "R11",
            json!({"excludeDates": ["2026-01-04"], "windows": window("0 19 * * *", "America/New_York")}),
            true,
        ),
        ("R12", json!({"schedule": {"cron": "20 0 * * *"}}), false),
        ("R12", json!({"schedule": {"cron": "21 0 * * *"}}), true),
        ("R12", json!({"schedule": {"cron": "0 0 * * *"}}), true),
    ] {
        assert_eq!(objects(id, &restarted_by(&spec)), is_bad, "{id} {spec}");
    }
}

#[test]
fn a_restart_that_was_dated_into_its_window_and_sent_after_it_is_seen() {
    for (after, is_bad) in [(30, false), (600, true)] {
        let mut made = Made::new();
        let spec =
            json!({"interval": "10m", "windows": [{"cron": "0 0 * * *", "duration": "20m"}]});
        made.flipper("f", &spec);
        made.deployment("a", 0);
        made.pass(1190 + after);
        made.restart("a", 1190);
        assert_eq!(objects("R10", &made), is_bad, "{after}");
    }
}

#[test]
fn jitter_keeps_places_and_spreads_them() {
    // Seconds after it was due at which each of three is restarted, twice.
    for (first, second, is_bad) in [
        ([10, 100, 250], [10, 100, 250], false),
        ([10, 100, 250], [10, 100, 20], true),
        ([10, 100, 250], [10, 200, 250], true),
        ([10, 100, 350], [10, 100, 350], true),
        ([60, 60, 60], [60, 60, 60], true),
    ] {
        let mut made = Made::new();
        made.flipper("f", &json!({"interval": "10m", "jitter": "5m"}));
        let all = ["a", "b", "c"];
        let mut restarts = Vec::new();
        for ((name, first), second) in all.iter().zip(first).zip(second) {
            made.deployment(name, 0);
            restarts.push((600 + first, *name));
            restarts.push((1200 + first + second, *name));
        }
        restarts.sort_unstable();
        let mut now = 0;
        for (at, name) in restarts {
            made.pass(at - now);
            now = at;
            made.restart(name, at);
            made.complete(name);
        }
        assert_eq!(objects("R13", &made), is_bad, "{first:?} {second:?}");
    }
}

#[test]
fn every_oracle_objects_to_what_it_is_there_for() {
    for oracle in wiring().oracles.all() {
        let objections = bad(oracle.id).objections();
        let of_it = objections.iter().filter(|(id, _)| *id == oracle.id);
        assert!(of_it.count() > 0, "{} is silent: {objections:?}", oracle.id);
    }
}

fn objects(id: &str, made: &Made) -> bool {
    made.objections().iter().any(|(by, _)| *by == id)
}

#[test]
fn what_a_flipper_with_a_mistyped_window_matches_is_nobody_else_s() {
    for (cron, is_bad) in [("61 1 * * *", true), ("1 1 * * mon-fri", false)] {
        let mut made = Made::new();
        let windows = json!([{"cron": cron, "duration": "2h"}]);
        let spec =
            json!({"interval": "10m", "match": {"labels": {"mesh": "true"}}, "windows": windows});
        made.flipper("f", &spec);
        made.deployment("a", 0);
        made.pass(1200);
        made.restart("a", 1200);
        assert_eq!(objects("R9", &made), is_bad, "{cron}");
    }
}

#[test]
fn a_fault_at_the_start_excuses_nothing_that_is_done_by_default_long_after_it() {
    // Ten seconds after all is well again everybody knows the Flipper.
    for (calm, is_bad) in [(60, true), (1195, false)] {
        let mut made = Made::new();
        let spec = json!({"suspend": true, "match": {"labels": {"mesh": "true"}}});
        made.flipper("f", &spec);
        made.deployment("a", 0);
        made.pass(5);
        made.request(
            "GET",
            "/apis/flipper.io.github.com/v1alpha1/flippers",
            json!(null),
        );
        made.last_request().fault = Some("refused");
        made.history.calm = made.history.start + SignedDuration::from_secs(calm);
        made.pass(1195);
        made.restart("a", 1200);
        assert_eq!(objects("R9", &made), is_bad, "all is well after {calm} s");
    }
}

#[test]
fn a_schedule_beside_an_interval_does_not_switch_the_interval_off() {
    let matching = json!({"labels": {"mesh": "true"}});
    let nightly = json!({"schedule": {"cron": "0 3 * * *"}, "match": matching});
    let often = json!({"interval": "10m", "match": matching});
    for (policies, is_bad) in [
        (vec![&nightly, &often], true),
        (vec![&often, &nightly], true),
        // Nobody asks for an interval.
        (vec![&nightly], false),
    ] {
        let mut made = Made::new();
        for (name, spec) in ["f", "g"].iter().zip(&policies) {
            made.flipper(name, spec);
        }
        made.deployment("a", 0);
        made.pass(1200);
        made.restart("a", 1200);
        made.complete("a");
        made.pass(300);
        made.restart("a", 1500);
        assert_eq!(objects("R1", &made), is_bad, "{policies:?}");
    }
}

#[test]
fn a_registration_of_webhooks_is_not_ours_to_write() {
    let mut made = good();
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    made.request("PATCH", &format!("{hooks}/theirs"), json!({}));
    assert!(objects("G15", &made));
}

#[test]
fn a_look_at_pods_that_was_not_for_a_review_is_none() {
    let mut made = zoned::bad("W11").unwrap();
    let at = made.history.reviews.last().unwrap().at;
    made.request("GET", "/api/v1/namespaces/shop/pods", json!(null));
    made.last_request().at = at;
    assert!(objects("W11", &made));
}

#[test]
fn what_a_fault_forbids_is_no_missing_right() {
    for (fault, is_bad) in [(Some("forbidden"), true), (None, false)] {
        let mut made = zoned::bad("W12").unwrap();
        made.scenario.settings = json!({"alone": true});
        let request = made.last_request();
        request.ending = Ending::Answered(403);
        request.fault = fault;
        assert_eq!(objects("W12", &made), is_bad, "{fault:?}");
        made.scenario.settings = json!({});
        assert!(objects("W12", &made), "several replicas do not go without");
    }
}

#[test]
fn a_lost_answer_counts_as_done() {
    let mut made = good();
    made.last_request().ending = Ending::Lost(200);
    made.complete("a");
    made.pass(60);
    made.restart("a", 1260);
    assert!(made.objections().iter().any(|(id, _)| *id == "R1"));
}

/// A restart twice within its interval, where nothing on the workload tells of the first; 100 seconds after that everything
/// is put back to so many seconds before.
fn restarted_and_restored(back: u64) -> Made {
    let mut made = good();
    made.pass(100);
    made.restore(back);
    made.deployment("a", 0);
    made.pass(200);
    made.restart("a", 1500);
    made
}

/// Two restarts after a time without operator; 100 seconds after the second everything is put back to so many seconds before.
fn back_and_restored(back: u64) -> Made {
    let mut made = bad("R4");
    made.pass(100);
    made.restore(back);
    made
}

#[test]
fn what_a_restore_left_alone_still_counts() {
    for (back, is_bad) in [(20, true), (100, false)] {
        assert_eq!(objects("R1", &restarted_and_restored(back)), is_bad);
    }
    for (back, is_bad) in [(20, true), (100, false)] {
        assert_eq!(objects("R4", &back_and_restored(back)), is_bad);
    }
    for (back, is_bad) in [(20, true), (300, false)] {
        assert_eq!(objects("Z11", &zoned::told_and_restored(back)), is_bad);
    }
    for (back, is_bad) in [(20, true), (30, false)] {
        let made = zoned::evicted_and_restored(back);
        assert_eq!(objects("Z1", &made), is_bad, "{back}");
        assert_eq!(objects("Z14", &made), is_bad, "{back}");
    }
}

#[test]
fn a_warning_excuses_the_change_that_it_came_with() {
    for (seconds, is_bad) in [(1, false), (600, true)] {
        assert_eq!(objects("W1", &zoned::scaled_after(seconds)), is_bad);
    }
}

#[test]
fn what_befalls_a_member_excuses_no_delay_in_another() {
    for (away, unchanged, is_bad) in [
        ("east", &["east"][..], false),
        ("east", &["west"], true),
        ("east", &["east", "west"], true),
        ("east", &[], false),
    ] {
        let made = abroad::unchanged(away, unchanged);
        assert_eq!(objects("G8", &made), is_bad, "{away} {unchanged:?}");
    }
}

#[test]
fn only_of_what_a_fence_changes_are_changes_in_members_not_counted() {
    for (resource, is_bad) in [("apps/deployments", false), ("/configmaps", true)] {
        assert_eq!(objects("G8", &abroad::counted(resource)), is_bad);
    }
}

#[test]
fn a_pod_that_is_back_before_the_verdict_is_missed_by_nobody() {
    for (is_back, is_bad) in [(true, false), (false, true)] {
        assert_eq!(objects("W7", &zoned::let_go_meanwhile(is_back)), is_bad);
    }
}

#[test]
fn who_stood_still_is_late_while_it_did() {
    for (seconds, is_bad) in [(30, false), (600, true)] {
        assert_eq!(objects("W6", &zoned::late_after_pause(seconds)), is_bad);
    }
}

#[test]
fn a_budget_is_about_all_groups_that_it_selects() {
    let under_it = json!({"team": "store"});
    for (labels, is_bad) in [(under_it, true), (json!({}), false)] {
        let made = zoned::shared_budget(&labels);
        assert_eq!(objects("Z14", &made), is_bad, "{labels}");
        assert!(!objects("Z1", &made) && !objects("Z2", &made));
    }
}

#[test]
fn nothing_is_rolled_out_while_budgets_cannot_be_known() {
    let long = [200, 500, 500, 500, 500, 500, 500, 500, 500, 500];
    let cases: &[(&[u16], bool)] = &[
        (&[200, 200], false),
        (&[], true),
        (&[403], true),
        (&[200, 403], true),
        (&[200, 403, 200], false),
        (&[200, 500, 500], false),
        (&long, true),
    ];
    for (codes, is_bad) in cases {
        let made = zoned::read_budgets(codes);
        assert_eq!(objects("Z14", &made), *is_bad, "{codes:?}");
    }
}

/// Two Flippers, and a workload of the first that has been due for an hour; both say what these lists have.
fn waiting(own: &Value, other: &Value) -> Made {
    let mut made = Made::new();
    let spec = |label: &str| json!({"interval": "10m", "match": {"labels": {label: "true"}}});
    made.flipper("f", &spec("mesh"));
    made.flipper("g", &spec("else"));
    made.deployment("a", 0);
    made.pass(3600);
    made.status("f", json!({"waitingFor": own}));
    made.status("g", json!({"waitingFor": other}));
    made
}

/// A reason with this object and sentence.
fn reason(kind: &str, name: &str, message: &str) -> Value {
    let object = json!({"kind": kind, "namespace": "shop", "name": name});
    json!([{"reason": "Because", "object": object, "message": message}])
}

#[test]
fn only_its_own_policy_explains_why_a_workload_waits() {
    let mut many = Vec::new();
    for n in 0..8 {
        let one = reason("Deployment", &format!("x{n}"), "Deployment shop/x waits");
        many.extend(one.as_array().cloned().unwrap_or_default());
    }
    let nothing = json!([]);
    let of_a = reason("Deployment", "a", "Deployment shop/a waits");
    let by_budget = reason("PodDisruptionBudget", "p", "Deployment shop/a is protected");
    let of_ab = reason("Deployment", "ab", "Deployment shop/ab waits");
    let of_f = reason("Flipper", "f", "2 due");
    for (own, other, is_bad) in [
        (&nothing, &nothing, true),
        (&of_a, &nothing, false),
        (&by_budget, &nothing, false),
        (&of_f, &nothing, false),
        (&json!(many), &nothing, false),
        (&of_ab, &nothing, true),
        (&nothing, &of_a, true),
        (&nothing, &reason("Flipper", "g", "2 due"), true),
    ] {
        let made = waiting(own, other);
        assert_eq!(objects("L1", &made), is_bad, "{own} {other}");
    }
}

#[test]
fn what_waits_is_asked_of_clocks_that_are_off() {
    // By a clock that is an hour behind nothing is due yet; by one that is ahead it has been for long.
    for (after, by, is_bad) in [(3600, -3600, false), (540, 3600, true), (540, 0, false)] {
        let mut made = Made::new();
        let spec = json!({"interval": "10m", "match": {"labels": {"mesh": "true"}}});
        made.flipper("f", &spec);
        made.deployment("a", 0);
        made.mark(Event::Skewed("slipway-0-0".to_owned(), by), 0);
        let at = std::time::Duration::ZERO;
        let spell = Spell::new(Disturbance::Skew(by), at, at).only(0);
        made.mark(Event::Spell(spell), 0);
        made.pass(after);
        assert_eq!(objects("L1", &made), is_bad, "{after} {by}");
    }
}
