//! I1–I4 and D1–D4: a controller that runs.

use serde_json::json;
use slipway_kernel::fact::Unseen;
use slipway_kernel::{Capability, Controller, Facts};
use slipway_restarts::kinds;
use slipway_restarts::stage::Stage;

use crate::objects::*;

/// Lets time pass in steps of ten seconds; how often each workload was restarted meanwhile.
fn pass(stage: &mut Stage, minutes: i64) -> Vec<(String, usize)> {
    let mut all = std::collections::BTreeMap::new();
    for _ in 0..minutes * 6 {
        stage.now += jiff::SignedDuration::from_secs(10);
        for name in restarted(&stage.step()) {
            *all.entry(name).or_default() += 1;
        }
    }
    all.into_iter().collect()
}

fn times(name: &str, times: usize) -> (String, usize) {
    (name.to_owned(), times)
}

#[test]
fn i1_an_old_stamp_is_restarted() {
    let mut stage = stage();
    stage.step();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    assert_eq!(pass(&mut stage, 1), [times("d/a", 1)]);
}

#[test]
fn i2_without_the_label_never_during_an_hour() {
    let mut stage = stage();
    stage.put(deployment("d", "a", ("mesh", "false"), Some(&ago(11))));
    assert_eq!(pass(&mut stage, 60), []);
}

#[test]
fn i3_a_young_stamp_never_during_its_interval() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(1))));
    assert_eq!(pass(&mut stage, 8), []);
    assert_eq!(pass(&mut stage, 2), [times("d/a", 1)]);
}

#[test]
fn i4_a_flipper_replaces_the_default_for_the_whole_time() {
    let mut stage = stage();
    let spec = json!({"interval": "3m", "match": {"labels": {"foo": "true"}}});
    stage.put(flipper("default", "foo-flipper", &spec));
    stage.put(deployment("d", "a", ("foo", "true"), Some(&ago(11))));
    stage.put(deployment("d", "b", MESH, Some(&ago(11))));
    assert_eq!(pass(&mut stage, 30), [times("d/a", 10)]);
}

#[test]
fn d1_to_d4_the_demo() {
    let mut stage = stage();
    stage.put(deployment("inventory", "orders", MESH, None));
    stage.put(deployment("data", "search", MESH, None));
    stage.step();
    // D1: no Flipper, both every ten minutes.
    let both = [times("data/search", 2), times("inventory/orders", 2)];
    assert_eq!(pass(&mut stage, 20), both);
    // D2: orders every two minutes, search no more.
    let mesh = json!({"interval": "2m", "match": {"labels": {"mesh": "true"}, "namespaces": ["inventory"]}});
    stage.put(flipper("default", "mesh-flipper", &mesh));
    assert_eq!(pass(&mut stage, 20), [times("inventory/orders", 10)]);
    // D3: another Flipper for others, and orders goes on.
    stage.put(deployment("payment", "credits", ("mesh", "false"), None));
    stage.put(deployment("payment", "debits", ("mesh", "false"), None));
    let other = json!({"interval": "2m", "match": {"labels": {"mesh": "false"}, "namespaces": ["payment"]}});
    stage.put(flipper("default", "non-mesh-flipper", &other));
    let all = pass(&mut stage, 20);
    assert_eq!(all[0], times("inventory/orders", 10));
    assert!(all[1..].iter().all(|(_, times)| *times >= 9), "{all:?}");
    assert_eq!(all.len(), 3);
    // D4: one Flipper gone, the other is still there: no default. Both gone: the default is back.
    stage.delete("Flipper", "default", "mesh-flipper");
    let left = pass(&mut stage, 20);
    assert!(
        left.iter().all(|(name, _)| name.starts_with("payment/")),
        "{left:?}"
    );
    stage.delete("Flipper", "default", "non-mesh-flipper");
    let both = [times("data/search", 2), times("inventory/orders", 2)];
    assert_eq!(pass(&mut stage, 20), both);
}

#[test]
fn default_criteria_never_act_before_the_flippers_are_known() {
    let mut stage = stage();
    stage.put(deployment("d", "a", MESH, Some(&ago(11))));
    let mut stores = slipway_kernel::Stores::default();
    let listed = stage.stores();
    let local = slipway_kernel::ClusterId::local();
    let deployments = [stage.get("Deployment", "d", "a").unwrap().clone()];
    for interest in Controller::interests(&stage.planner) {
        let key = stores.open(&local, &interest);
        if interest.kind == kinds::DEPLOYMENT {
            stores
                .store_mut(&key)
                .unwrap()
                .observe_list(&deployments, "9");
        } else if interest.kind != kinds::FLIPPER {
            stores.store_mut(&key).unwrap().observe_list(&[], "9");
        }
    }
    let key = slipway_restarts::observe::sweep(&local);
    let plan =
        |stores, facts: &Facts| Capability::plan(&stage.planner, stores, facts, &key, noon());
    assert!(plan(&stores, &Facts::default()).is_none());
    // Nor while they cannot be read, although none was known before: nothing that one could govern is restarted.
    for unseen in [Unseen::OutOfSync, Unseen::Forbidden] {
        let mut facts = Facts::default();
        facts.missing.insert(unseen.feature(&kinds::FLIPPER));
        for stores in [&stores, &listed] {
            let plan = plan(stores, &facts).unwrap();
            assert!(plan.steps.is_empty() && plan.statuses.is_empty());
            assert_eq!(plan.blockers[0].reason, "PoliciesUnseen");
        }
    }
    let mut facts = Facts::default();
    facts.missing.insert("watch flippers".to_owned());
    assert_eq!(restarted(&plan(&stores, &facts).unwrap()), ["d/a"]);
    assert_eq!(
        restarted(&plan(&listed, &Facts::default()).unwrap()),
        ["d/a"]
    );
}
