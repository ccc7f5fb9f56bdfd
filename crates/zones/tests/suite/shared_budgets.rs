//! A zone-aware budget over several groups: it is about all zones and pods that its selector selects.

use serde_json::{Value, json};
use slipway_kernel::stage::Stage;
use slipway_kernel::store::Meta;
use slipway_kernel::{ClusterId, Controller, Plan};
use slipway_zones::Zones;

use crate::objects::*;

const TEAM: &str = "team";

/// A zone of this group, and its pods, under the team's budget.
fn put(stage: &mut Stage<Zones>, name: &str, group: &str, revision: &str) {
    for ordinal in 0..3 {
        let mut pod = pod(name, ordinal, revision);
        pod["metadata"]["labels"]["rollout-group"] = json!(group);
        pod["metadata"]["labels"][TEAM] = json!("mimir");
        stage.put(pod);
    }
    let mut set = if revision == "new" {
        zone(name)
    } else {
        outdated(name)
    };
    set["metadata"]["labels"]["rollout-group"] = json!(group);
    set["metadata"]["labels"][TEAM] = json!("mimir");
    stage.put(set);
}

fn budget(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "rollout-operator.grafana.com/v1",
        "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"namespace": NS, "name": name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    })
}

/// Plans one group until a pod is deleted, or nothing is left to be done.
fn roll(stage: &mut Stage<Zones>, group: &str) -> Plan {
    for _ in 0..8 {
        let stores = stage.stores();
        let keys = stage.planner.keys(&stores);
        let key = keys.iter().find(|key| key.name == group).unwrap();
        let plan = Controller::plan(&stage.planner, &stores, &stage.facts, key, stage.now).unwrap();
        stage.execute(&plan);
        if !deleted(&plan).is_empty() || plan.steps.is_empty() {
            return plan;
        }
    }
    panic!("no end")
}

/// Two groups of two zones, all outdated, under one budget.
fn two_groups() -> Stage<Zones> {
    let mut stage = empty();
    for group in ["ingester", "store"] {
        for zone in ["a", "b"] {
            put(&mut stage, &format!("{group}-zone-{zone}"), group, "old");
        }
    }
    stage.put(budget("team", &json!({TEAM: "mimir"})));
    stage
}

#[test]
fn two_groups_under_one_budget_do_not_roll_at_once() {
    let mut stage = two_groups();
    let plan = roll(&mut stage, "ingester");
    assert_eq!(deleted(&plan), ["ingester-zone-a-0"]);
    let plan = roll(&mut stage, "store");
    assert_eq!(deleted(&plan), Vec::<String>::new());
    let why = "pod eviction denied for store-zone-a-0: 1 pod unknown in ingester-zone-a";
    let mut blockers = plan.blockers.iter();
    assert!(blockers.any(|b| b.message == why), "{:?}", plan.blockers);
    let mut back = pod("ingester-zone-a", 0, "new");
    back["metadata"]["labels"][TEAM] = json!("mimir");
    back["metadata"]["uid"] = json!("anew");
    stage.put(back);
    let plan = roll(&mut stage, "store");
    assert_eq!(deleted(&plan), ["store-zone-a-0"]);
}

/// Each group is one zone: the budget knows of three.
#[test]
fn groups_of_one_zone_under_one_budget_roll_one_after_the_other() {
    let mut stage = empty();
    for zone in ["a", "b", "c"] {
        let group = format!("ingester-{zone}");
        put(&mut stage, &format!("ingester-zone-{zone}"), &group, "old");
    }
    stage.put(budget("team", &json!({TEAM: "mimir"})));
    let plan = roll(&mut stage, "ingester-b");
    assert_eq!(deleted(&plan), ["ingester-zone-b-0"]);
    let plan = roll(&mut stage, "ingester-a");
    assert_eq!(deleted(&plan), Vec::<String>::new());
}

#[test]
fn groups_under_budgets_of_their_own_do_not_wait_for_each_other() {
    let mut stage = two_groups();
    stage.delete("ZoneAwarePodDisruptionBudget", NS, "team");
    for group in ["ingester", "store"] {
        stage.put(budget(group, &json!({"rollout-group": group})));
    }
    assert_eq!(
        deleted(&roll(&mut stage, "ingester")),
        ["ingester-zone-a-0"]
    );
    assert_eq!(deleted(&roll(&mut stage, "store")), ["store-zone-a-0"]);
}

/// What another group waits for is work for it when it changes.
#[test]
fn a_pod_under_a_shared_budget_is_work_for_all_groups_of_its_namespace() {
    let stage = two_groups();
    let meta = Meta {
        namespace: NS.to_owned(),
        name: "ingester-zone-a-0".to_owned(),
        ..Meta::default()
    };
    let interests = Controller::interests(&stage.planner);
    let interest = interests.iter().find(|i| i.kind.kind == "Pod").unwrap();
    let keys = (interest.triggers)(&ClusterId::local(), &meta, &stage.stores());
    let groups: Vec<String> = keys.into_iter().map(|key| key.name).collect();
    assert_eq!(groups, ["ingester", "store"]);
}
