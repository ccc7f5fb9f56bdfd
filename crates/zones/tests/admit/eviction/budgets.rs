//! Which budget a pod is under.

use slipway_kernel::fact::Unseen;
use slipway_kernel::store::Change;
use slipway_zones::observe::ZONE_BUDGET;
use slipway_zones::zpdb::BudgetSeen;

use super::*;

#[test]
fn two_budgets() {
    let mut world = guarded(&json!({}));
    world.budget(&json!({"maxUnavailable": 2}));
    let text = "multiple zoned pod disruption budgets found for pod";
    refused(&world, "a", 0, 400, text, "cfg-not-found");
}

#[test]
fn a_budget_that_makes_no_sense_lets_nobody_go() {
    let world = guarded(&json!({"maxUnavailable": -1}));
    let text = "zoned pod disruption budget budget-0 makes no sense: invalid value: max unavailable must be 0 <= val, got -1";
    refused(&world, "a", 0, 400, text, "cfg-not-found");
}

/// D6: without the definition everything works, but while it is only not listed yet nobody goes.
#[test]
fn d6_budgets_may_be_undefined_but_not_unlisted() {
    let world = World::healthy(&["a", "b"]);
    let mut stores = world.stores();
    let key = (
        ClusterId::local(),
        ZONE_BUDGET,
        std::any::type_name::<BudgetSeen>().into(),
    );
    stores.store_mut(&key).unwrap().set_synced(false);
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &stores,
        &Facts::default(),
        &mut Nobody,
    );
    assert_eq!(served.denial().0, Some(429));
    let facts = without(Unseen::Absent, &ZONE_BUDGET);
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &stores,
        &facts,
        &mut Nobody,
    );
    assert_eq!(pair(&served), "pod-not-in-scope/200");
}

/// As in the original's cache: what is older than what is known changes nothing, neither an update nor a deletion; a later deletion does.
#[test]
fn stale_news_of_a_budget_change_nothing() {
    let world = guarded(&json!({"maxUnavailable": 0}));
    let mut stores = world.stores();
    let key = (
        ClusterId::local(),
        ZONE_BUDGET,
        std::any::type_name::<BudgetSeen>().into(),
    );
    let mut ask = |change: &str, version: &str| {
        let mut budget = world.budgets[0].clone();
        budget["metadata"]["resourceVersion"] = json!(version);
        budget["spec"]["maxUnavailable"] = json!(1);
        let store = stores.store_mut(&key).unwrap();
        let news = match change {
            "update" => store.observe(&budget),
            _ => store.observe_deletion(&budget),
        };
        let facts = Facts::default();
        let served = serve(
            &PodEviction::default(),
            &review("a", 0),
            &stores,
            &facts,
            &mut Api::default(),
        );
        (news == Change::Changed, pair(&served))
    };
    let zero = "max-unavailable-0/403".to_owned();
    assert_eq!(ask("update", "1"), (false, zero.clone()));
    assert_eq!(ask("delete", "0"), (false, zero));
    assert_eq!(ask("update", "5"), (true, "allowed/200".to_owned()));
    assert_eq!(
        ask("delete", "6"),
        (true, "pod-not-in-scope/200".to_owned())
    );
    // A budget that is made anew begins with generation 1 again, and counts all the same.
    assert_eq!(ask("update", "7"), (true, "allowed/200".to_owned()));
}

/// 0013: a budget may be there that we have no right to see. Pods that do no work go, as before any look at budgets.
#[test]
fn budgets_that_may_not_be_seen_let_nobody_go() {
    let mut world = World::healthy(&["a", "b"]);
    let facts = without(Unseen::Forbidden, &ZONE_BUDGET);
    let ask = |world: &World| {
        let stores = world.stores();
        serve(
            &PodEviction::default(),
            &review("a", 0),
            &stores,
            &facts,
            &mut Nobody,
        )
    };
    let served = ask(&world);
    assert_eq!(pair(&served), "cfg-not-found/500");
    let (code, text) = served.denial();
    assert_eq!(code, Some(500));
    let right = "get, list and watch on zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
    assert!(text.contains(right), "{text}");
    world.fail("a", 0);
    assert_eq!(pair(&ask(&world)), "pod-not-ready/200");
}

/// What was known of budgets before counts for nothing while they cannot be read, nor does it that none was known.
#[test]
fn budgets_that_are_not_synced_let_nobody_go() {
    let facts = without(Unseen::OutOfSync, &ZONE_BUDGET);
    for mut world in [
        World::healthy(&["a", "b"]),
        guarded(&json!({"maxUnavailable": 1})),
    ] {
        let ask = |world: &World| {
            let stores = world.stores();
            serve(
                &PodEviction::default(),
                &review("a", 0),
                &stores,
                &facts,
                &mut Nobody,
            )
        };
        let served = ask(&world);
        let (code, text) = served.denial();
        assert_eq!(code, Some(500));
        assert!(text.contains("cannot be read just now"), "{text}");
        world.fail("a", 0);
        assert_eq!(pair(&ask(&world)), "pod-not-ready/200");
    }
}
