//! zpdb-validation.

use serde_json::{Value, json};
use slipway_kernel::admission::{Review, Verdict};
use slipway_kernel::{Facts, Stores};
use slipway_zones::admit::zpdb_validation::ZpdbValidation;

use crate::harness::*;

fn verdict(object: Value) -> Verdict {
    let review = Review {
        operation: "CREATE".to_owned(),
        ..update(
            "zoneawarepoddisruptionbudgets",
            "",
            "b",
            Value::Null,
            object,
        )
    };
    let facts = Facts::default();
    serve(
        &ZpdbValidation,
        &review,
        &Stores::default(),
        &facts,
        &mut Nobody,
    )
    .verdict
}

fn budget(fields: &Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"rollout-group": "ingester"}}});
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    json!({"apiVersion": "rollout-operator.grafana.com/v1", "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"name": "b"}, "spec": spec})
}

#[test]
fn valid() {
    assert_eq!(
        verdict(budget(&json!({"maxUnavailable": 1}))),
        Verdict::allowed()
    );
}

#[test]
fn valid_with_delay_and_regex() {
    let fields = json!({"maxUnavailable": 1, "podNamePartitionRegex": "[a-z-]+-([0-9]+)", "crossZoneEvictionDelay": "20m"});
    assert_eq!(verdict(budget(&fields)), Verdict::allowed());
}

#[test]
fn negative_max_unavailable() {
    let text = "invalid value: max unavailable must be 0 <= val, got -1";
    assert_eq!(
        verdict(budget(&json!({"maxUnavailable": -1}))),
        Verdict::refused(400, text)
    );
}

#[test]
fn delay_without_regex() {
    let text = "invalid value: crossZoneEvictionDelay requires podNamePartitionRegex to be set";
    let fields = json!({"crossZoneEvictionDelay": "20m"});
    assert_eq!(verdict(budget(&fields)), Verdict::refused(400, text));
}

#[test]
fn no_object() {
    assert_eq!(
        verdict(Value::Null),
        Verdict::refused(400, "unexpected end of JSON input")
    );
}
