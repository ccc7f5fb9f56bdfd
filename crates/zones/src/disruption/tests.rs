//! What the rollout asks, besides what evictions ask.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::store::Projection;

use super::outcome::Outcome;
use super::{CountedPod, CountedZone, Denial, Scene, evict};
use crate::observe::Owner;
use crate::zpdb::BudgetSeen;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("rollout-group".to_owned(), "ingester".to_owned())])
}

fn budget(fields: &Value) -> BudgetSeen {
    let mut object = json!({"kind": "ZoneAwarePodDisruptionBudget",
        "spec": {"selector": {"matchLabels": {"rollout-group": "ingester"}}}});
    for (name, value) in fields.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    BudgetSeen::read(&object).unwrap()
}

const ZONES: [(&str, [&str; 2]); 2] = [
    ("zone-a", ["zone-a-0", "zone-a-1"]),
    ("zone-b", ["zone-b-0", "zone-b-1"]),
];

/// Asks for `zone-a-0` in two zones of two pods, of which all but `away` are ready since `since`.
fn ask(
    fields: &Value,
    instead: Option<i64>,
    away: &[&str],
    held: &[&str],
    since: Option<i64>,
) -> Result<(), Denial> {
    let labels = labels();
    let budget = budget(fields);
    let held: BTreeMap<String, Timestamp> = held
        .iter()
        .map(|uid| ((*uid).to_owned(), at(101)))
        .collect();
    let owners = ZONES.map(|(zone, _)| Owner::Set(zone.to_owned()));
    let pod = |name: &'static str, owner| CountedPod {
        name,
        uid: name,
        labels: &labels,
        owner,
        is_idle: false,
        is_ready: !away.contains(&name),
        ready_since: since.map(at),
    };
    let zones: Vec<CountedZone<'_>> = ZONES
        .iter()
        .zip(&owners)
        .map(|((zone, pods), owner)| CountedZone {
            name: zone,
            uid: zone,
            labels: &labels,
            asked: 2,
            are: 2,
            pods: pods.iter().map(|name| pod(name, owner)).collect(),
        })
        .collect();
    let scene = Scene {
        budgets: &[("budget", &budget)],
        zones: &zones,
        held: &held,
        now: at(100),
    };
    evict(&scene, &pod("zone-a-0", &owners[0]), instead)
}

fn message(asked: Result<(), Denial>) -> String {
    asked.unwrap_err().message
}

#[test]
fn a_budget_of_zero_can_mean_something_to_the_rollout() {
    let zero = json!({"maxUnavailable": 0});
    let denial = ask(&zero, None, &[], &[], None).unwrap_err();
    assert_eq!(denial.outcome, Outcome::MaxUnavailableZero);
    assert_eq!(denial.message, "max unavailable = 0");
    assert_eq!(ask(&zero, Some(1), &[], &[], None), Ok(()));
    // The second one of the same zone finds the first.
    let second = ask(&zero, Some(1), &[], &["zone-a-1"], None);
    assert_eq!(message(second), "1 pod not ready in zone-a");
}

#[test]
fn otherwise_the_budget_counts() {
    let one = json!({"maxUnavailable": 1});
    for instead in [0, 2] {
        assert_eq!(ask(&one, Some(instead), &[], &[], None), Ok(()));
        let asked = ask(&one, Some(instead), &["zone-a-1"], &[], None);
        assert_eq!(message(asked), "1 pod not ready in zone-a");
    }
}

#[test]
fn a_delay_says_when_it_ends() {
    let fields =
        json!({"podNamePartitionRegex": "zone-[a-z]-([0-9]+)", "crossZoneEvictionDelay": "1m"});
    let denial = ask(&fields, None, &[], &[], Some(50)).unwrap_err();
    // Just after it: it must have passed.
    assert_eq!(
        denial.until,
        Some(Timestamp::from_millisecond(110_001).unwrap())
    );
    assert_eq!(denial.message, "1 pod not ready in partition 0");
    let denial = ask(&fields, None, &[], &["zone-b-0"], Some(1)).unwrap_err();
    assert_eq!(denial.until, None);
    assert_eq!(ask(&fields, None, &[], &[], Some(39)), Ok(()));
}
