//! How the original reads a budget, and laws of reading one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use slipway_kernel::fields::strings;
use slipway_kernel::store::Projection;

use super::{Budget, BudgetSeen, Most, Observed};

fn object(fields: &Value) -> Value {
    let mut object = json!({"apiVersion": "rollout-operator.grafana.com/v1",
        "kind": "ZoneAwarePodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"rollout-group": "ingester"}}}});
    for (name, value) in fields.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

fn parse(fields: &Value) -> Result<Budget, String> {
    Budget::parse(&object(fields)).map_err(|error| error.to_string())
}

fn most(fields: &Value, asked: i64, are: i64) -> i64 {
    parse(fields).unwrap().max_unavailable(asked, are)
}

#[test]
fn max_unavailable_arithmetic() {
    assert_eq!(most(&json!({}), 3, 3), 1);
    assert_eq!(most(&json!({"maxUnavailable": 0}), 3, 3), 0);
    assert_eq!(most(&json!({"maxUnavailable": 1}), 3, 3), 1);
    let percent =
        |percent: i64, asked, are| most(&json!({"maxUnavailablePercentage": percent}), asked, are);
    assert_eq!(percent(0, 3, 3), 0);
    assert_eq!(percent(100, 3, 3), 3);
    assert_eq!(percent(1, 3, 3), 1);
    assert_eq!(percent(75, 3, 3), 2);
    assert_eq!(percent(50, 10, 6), 3);
    assert_eq!(percent(50, 10, 20), 5);
    assert_eq!(percent(50, 10, 0), 0);
}

#[test]
fn partitions_of_names() {
    let of = |fields: &Value, name: &str| {
        let partition = parse(fields).unwrap().partition.unwrap();
        partition.of(name).map(str::to_owned)
    };
    let one = json!({"podNamePartitionRegex": "[a-z\\-]+-zone-[a-z]-([0-9]+)"});
    assert_eq!(of(&one, "ingester-zone-a-0").unwrap(), "0");
    assert_eq!(of(&one, "ingester-zone-a-12").unwrap(), "12");
    assert_eq!(of(&one, "ingester-zone-a"), None);
    assert_eq!(of(&one, "ingester-zone-a-1-x"), None);
    let two =
        json!({"podNamePartitionRegex": "(ingester)-zone-[a-z]-([0-9]+)", "podNameRegexGroup": 2});
    assert_eq!(of(&two, "ingester-zone-b-7").unwrap(), "7");
    let maybe = json!({"podNamePartitionRegex": "ingester(-[0-9]+)?"});
    assert_eq!(of(&maybe, "ingester"), None);
    assert_eq!(of(&maybe, "ingester-3").unwrap(), "-3");
    // Half anchored, as the original.
    let half = json!({"podNamePartitionRegex": "a-([0-9])|b-[0-9]"});
    assert_eq!(of(&half, "a-1-and-more").unwrap(), "1");
}

#[test]
fn bad_regexes_are_told_apart() {
    let error = |fields: &Value| parse(fields).unwrap_err();
    let prefix = "invalid value: regex is not valid, got ";
    assert!(error(&json!({"podNamePartitionRegex": "([0-9]"})).starts_with(prefix));
    assert_eq!(
        error(&json!({"podNamePartitionRegex": "[0-9]+"})),
        format!("{prefix}regular expression requires at least one subexpression")
    );
    assert_eq!(
        error(&json!({"podNamePartitionRegex": "(a)([0-9]+)"})),
        format!(
            "{prefix}regular expression has multiple subexpressions and requires podNameRegexGroup to be set"
        )
    );
    for group in [0, 2, -1] {
        let fields = json!({"podNamePartitionRegex": "a([0-9]+)", "podNameRegexGroup": group});
        assert_eq!(
            error(&fields),
            format!("{prefix}regular expression subexpression index out of range")
        );
    }
}

#[test]
fn what_makes_no_sense_is_told_as_the_original_tells_it() {
    let cases = [
        (
            json!({"maxUnavailable": 1, "maxUnavailablePercentage": 1}),
            "invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set",
        ),
        (
            json!({"maxUnavailable": 1.5}),
            "failed to extract value from config field maxUnavailable",
        ),
        (
            json!({"maxUnavailable": "1"}),
            "failed to extract value from config field maxUnavailable",
        ),
        (
            json!({"maxUnavailablePercentage": "1"}),
            "failed to extract value from config field maxUnavailablePercentage",
        ),
        (
            json!({"maxUnavailable": -1}),
            "invalid value: max unavailable must be 0 <= val, got -1",
        ),
        (
            json!({"maxUnavailablePercentage": -1}),
            "invalid value: max unavailable percentage must be 0 <= val <= 100, got -1",
        ),
        (
            json!({"maxUnavailablePercentage": 101}),
            "invalid value: max unavailable percentage must be 0 <= val <= 100, got 101",
        ),
        (
            json!({"podNamePartitionRegex": 5}),
            "failed to extract value from config field podNamePartitionRegex",
        ),
        (
            json!({"podNamePartitionRegex": "a-([0-9]+)", "maxUnavailablePercentage": 10}),
            "invalid value: max unavailable percentage can not be used with partition awareness",
        ),
        (
            json!({"selector": {"matchLabels": {"a b": "c"}}}),
            "invalid value: selector is not valid, got a b=c",
        ),
    ];
    for (fields, text) in cases {
        assert_eq!(parse(&fields).unwrap_err(), text, "{fields}");
    }
    let error = |object: &Value| Budget::parse(object).unwrap_err().to_string();
    assert_eq!(error(&Value::Null), "unexpected end of JSON input");
    assert_eq!(error(&json!({})), "no spec found in unstructured object");
    let pod = json!({"kind": "Pod", "spec": {}});
    assert_eq!(
        error(&pod),
        "unexpected object kind - expecting ZoneAwarePodDisruptionBudget"
    );
    let bare = json!({"kind": "ZoneAwarePodDisruptionBudget", "spec": {}});
    assert_eq!(error(&bare), "invalid value: selector is not found");
}

#[test]
fn what_is_left_out_or_empty_has_its_default() {
    let budget =
        parse(&json!({"podNamePartitionRegex": "", "crossZoneEvictionDelay": ""})).unwrap();
    assert_eq!(budget.most, Most::Pods(1));
    assert!(budget.partition.is_none());
    assert_eq!(budget.delay, Duration::ZERO);
    let all = parse(&json!({"selector": {"matchLabels": {}}})).unwrap();
    assert!(all.selects(&BTreeMap::new()));
}

#[test]
fn delays() {
    let delay = |text: &str| {
        let regex = "a-([0-9]+)";
        parse(&json!({"podNamePartitionRegex": regex, "crossZoneEvictionDelay": text}))
            .map(|budget| budget.delay.as_secs())
    };
    assert_eq!(delay("20m"), Ok(1_200));
    assert_eq!(delay("1h30m"), Ok(5_400));
    assert_eq!(delay("0s"), Ok(0));
    assert_eq!(parse(&json!({})).unwrap().delay, Duration::ZERO);
    for text in ["bad", "1d", "5", "1h 5m"] {
        let expected =
            format!("invalid value: crossZoneEvictionDelay is not a valid duration, got {text}");
        assert_eq!(delay(text), Err(expected));
    }
    let negative = "invalid value: crossZoneEvictionDelay must be >= 0, got -5m";
    assert_eq!(delay("-5m"), Err(negative.to_owned()));
    assert_eq!(
        parse(&json!({"crossZoneEvictionDelay": "20m"})).unwrap_err(),
        "invalid value: crossZoneEvictionDelay requires podNamePartitionRegex to be set"
    );
}

#[test]
fn a_budget_that_makes_no_sense_still_concerns_its_pods() {
    let seen = BudgetSeen::read(&object(&json!({"maxUnavailable": -1}))).unwrap();
    assert!(seen.budget.is_err());
    let labels = |value: &str| BTreeMap::from([("rollout-group".to_owned(), value.to_owned())]);
    assert!(seen.concerns(&labels("ingester")));
    assert!(!seen.concerns(&labels("compactor")));
}

#[test]
fn how_arrivals_are_counted() {
    let good = object(&json!({}));
    assert_eq!(Observed::of(&good, true).as_str(), "updated");
    assert_eq!(Observed::of(&good, false).as_str(), "ignored");
    assert_eq!(
        Observed::of(&json!({"kind": "Pod", "spec": {}}), true).as_str(),
        "ignored"
    );
    let bad = object(&json!({"maxUnavailable": -1}));
    assert_eq!(Observed::of(&bad, true).as_str(), "invalid");
    assert_eq!(Observed::of_deletion(true).as_str(), "deleted");
    assert_eq!(Observed::of_deletion(false).as_str(), "delete-ignored");
}

fn field() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (-3_i64..150).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z()0-9|+-]{0,8}".prop_map(Value::from),
        Just(json!("1h")),
        Just(json!({"matchLabels": {"a": "b"}})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_read_keeps_its_promises(
        names in proptest::collection::vec(0_usize..6, 0..5),
        values in proptest::collection::vec(field(), 5),
        replicas in (0_i64..20, 0_i64..20),
    ) {
        const FIELDS: [&str; 6] = ["maxUnavailable", "maxUnavailablePercentage", "selector",
            "podNamePartitionRegex", "podNameRegexGroup", "crossZoneEvictionDelay"];
        let mut object = object(&json!({}));
        for (name, value) in names.iter().zip(values) {
            object["spec"][FIELDS[*name]] = value;
        }
        let seen = BudgetSeen::read(&object).unwrap();
        if let Ok(budget) = &seen.budget {
            let most = budget.max_unavailable(replicas.0, replicas.1);
            prop_assert!(most >= 0);
            if let Most::Percent(percent) = budget.most {
                prop_assert!((0..=100).contains(&percent));
                prop_assert!(most <= replicas.0.min(replicas.1));
                prop_assert!(budget.partition.is_none());
            }
            prop_assert!(budget.delay.is_zero() || budget.partition.is_some());
            // What selects also concerns, and reading is the same each time.
            let labels = strings(&object, "/spec/selector/matchLabels");
            prop_assert!(budget.selects(&labels) && seen.concerns(&labels));
            prop_assert_eq!(Budget::parse(&object).unwrap().most, budget.most);
        }
    }
}
