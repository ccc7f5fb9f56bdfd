//! Specs as people write them, and hostile ones.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_api::canary::CanarySpec;
use slipway_canary::engine::Strategy;
use slipway_canary::provider::Provider;
use slipway_canary::spec::{Asked, Problem, read};

use crate::routes::named;

fn spec(analysis: Value) -> CanarySpec {
    serde_json::from_value(json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "analysis": analysis,
    }))
    .unwrap()
}

fn asked(analysis: Value) -> Result<Asked, Problem> {
    read(&spec(analysis), Provider::default())
}

fn steps(analysis: Value) -> Vec<u8> {
    match asked(analysis).unwrap().rules.strategy {
        Strategy::Weights(steps) => steps,
        other => panic!("{other:?}"),
    }
}

#[test]
fn steps_are_those_of_the_original() {
    assert_eq!(
        steps(json!({"stepWeight": 20, "maxWeight": 50})),
        [20, 40, 60]
    );
    assert_eq!(steps(json!({"stepWeight": 50})), [50, 100]);
    assert_eq!(steps(json!({"stepWeight": 50, "maxWeight": 0})), [50, 100]);
    assert_eq!(steps(json!({"stepWeight": 70})), [70, 100]);
    assert_eq!(
        steps(json!({"stepWeights": [1, 2, 10, 80]})),
        [1, 2, 10, 80]
    );
    assert_eq!(
        steps(json!({"stepWeights": [1, 2, 10, 200]})),
        [1, 2, 10, 100]
    );
    assert_eq!(steps(json!({"stepWeight": 1})).len(), 100);
    assert_eq!(steps(json!({"stepWeight": 1_000_000_000})), [100]);
}

#[test]
fn steps_that_go_nowhere_are_refused() {
    for bad in [
        json!({}),
        json!({"stepWeight": 0}),
        json!({"stepWeight": -5}),
        json!({"stepWeights": [10, 10]}),
        json!({"stepWeights": [20, 10]}),
        json!({"stepWeights": [0, 10]}),
        json!({"stepWeights": vec![1; 10_000]}),
        json!({"stepWeights": [150, 200]}),
    ] {
        let problem = asked(bad.clone()).unwrap_err().to_string();
        assert!(problem.contains("stepWeight"), "{bad}: {problem}");
    }
}

#[test]
fn a_way_is_chosen_as_the_original_does() {
    let way = |analysis: Value| asked(analysis).unwrap().rules.strategy.as_str();
    let matches = json!([{"headers": {"a": {"exact": "b"}}}]);
    assert_eq!(
        way(json!({"iterations": 3, "match": matches})),
        "ab-testing"
    );
    assert_eq!(way(json!({"iterations": 3})), "blue-green");
    assert_eq!(way(json!({"stepWeight": 10, "match": matches})), "canary");
}

#[test]
fn scenarios_41_and_45_without_a_router_it_is_blue_green_and_that_is_said() {
    let matches = json!([{"headers": {"a": {"exact": "b"}}}]);
    let analysis = json!({"stepWeight": 10, "match": matches});
    let asked = read(&spec(analysis), named("kubernetes")).unwrap();
    assert_eq!(asked.rules.strategy, Strategy::Switch(10));
    assert!(!asked.rules.is_live());
    assert_eq!(asked.warnings.len(), 2);
}

#[test]
fn intervals_and_deadlines_are_bounded() {
    let interval = |text: &str| {
        let asked = asked(json!({"stepWeight": 10, "interval": text})).unwrap();
        asked.rules.interval
    };
    assert_eq!(interval("30s"), Duration::from_secs(30));
    assert_eq!(interval("1ns"), Duration::from_secs(10));
    assert_eq!(interval("soon"), Duration::from_mins(1));
    assert_eq!(interval("2540400h"), Duration::from_hours(24 * 365));
    let mut spec = spec(json!({"stepWeight": 10}));
    for (seconds, expected) in [(None, 600), (Some(0), 600), (Some(-1), 600), (Some(60), 60)] {
        spec.progress_deadline_seconds = seconds;
        let asked = read(&spec, Provider::default()).unwrap();
        assert_eq!(asked.rules.deadline.as_secs(), expected);
    }
}

#[test]
fn what_is_not_built_is_refused_by_name_at_once() {
    let mut other = spec(json!({"stepWeight": 10}));
    other.target_ref.kind = "Service".to_owned();
    let problem = read(&other, Provider::default()).unwrap_err();
    assert!(problem.is_unsupported() && problem.to_string().contains("Service"));
    let mut scaled = spec(json!({"stepWeight": 10}));
    scaled.autoscaler_ref = serde_json::from_value(
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web"}),
    )
    .unwrap();
    let problem = read(&scaled, Provider::default()).unwrap_err();
    assert!(problem.is_unsupported() && problem.to_string().contains("ScaledObject"));
    let mut traefik = spec(json!({"stepWeight": 10}));
    traefik.provider = Some("traefik".to_owned());
    assert!(
        read(&traefik, Provider::default())
            .unwrap_err()
            .is_unsupported()
    );
    traefik.provider = Some("treafik".to_owned());
    assert!(
        !read(&traefik, Provider::default())
            .unwrap_err()
            .is_unsupported()
    );
}

#[test]
fn d18_a_canary_without_analysis_is_a_condition() {
    let mut none = spec(json!({"stepWeight": 10}));
    none.analysis = None;
    assert_eq!(read(&none, Provider::default()), Err(Problem::NoAnalysis));
    none.skip_analysis = Some(true);
    assert!(read(&none, Provider::default()).unwrap().rules.skip);
}

#[test]
fn thresholds_are_read_in_both_ways() {
    let metrics = json!([
        {"name": "request-success-rate", "threshold": 99.0},
        {"name": "request-success-rate"},
        {"name": "request-duration", "thresholdRange": {"max": 500.7}},
        {"name": "own", "query": "x", "threshold": 5.0},
        {"name": "own", "query": "x"},
        {"name": "own", "query": "x", "thresholdRange": {}},
    ]);
    let asked = asked(json!({"stepWeight": 10, "metrics": metrics})).unwrap();
    let good: Vec<_> = asked
        .rules
        .metrics
        .iter()
        .map(|m| (m.good.min, m.good.max))
        .collect();
    assert_eq!(
        good,
        [
            (Some(99.0), None),
            (Some(0.0), None),
            (None, Some(500.0)),
            (None, Some(5.0)),
            (None, Some(0.0)),
            (None, None),
        ]
    );
}

#[test]
fn cookies_of_both_sides_must_differ() {
    let affinity = json!({"cookieName": "a", "primaryCookieName": "a"});
    let problem = asked(json!({"stepWeight": 10, "sessionAffinity": affinity})).unwrap_err();
    assert!(problem.to_string().contains("differ"));
}

#[test]
fn a_webhook_of_an_unknown_type_is_named() {
    let hooks = json!([{"name": "gate", "url": "http://x", "type": "confirm"}]);
    let problem = asked(json!({"stepWeight": 10, "webhooks": hooks})).unwrap_err();
    assert!(problem.to_string().contains("confirm") && problem.to_string().contains("gate"));
    let many: Vec<Value> = (0..101)
        .map(|n| json!({"name": n.to_string(), "url": "u"}))
        .collect();
    assert!(asked(json!({"stepWeight": 10, "webhooks": many})).is_err());
}
