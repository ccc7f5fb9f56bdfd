#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::json;

use super::*;

#[test]
fn there_and_back() {
    let object = json!({
        "metadata": {"name": "a", "annotations": {"own": "1"}},
        "spec": {
            "maxReplicas": 3,
            "metrics": [
                {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "x"},
                    "metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "2"}}},
                {"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"a": "<b>"}}},
                    "target": {"type": "Value", "value": "3"}}},
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 7}}},
            ],
            "behavior": {"scaleUp": {"selectPolicy": "Max", "tolerance": "50m",
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]}},
        },
        "status": {
            "desiredReplicas": 2,
            "currentMetrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "3"}}}],
            "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    });
    let first = from_version_2(&object);
    assert_eq!(
        first["spec"],
        json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 7})
    );
    assert_eq!(
        first["status"],
        json!({"currentReplicas": 0, "desiredReplicas": 2})
    );
    assert_eq!(to_version_2(&first), {
        let mut same = object.clone();
        same["status"]["currentReplicas"] = Value::Null;
        take(&mut same, "status.currentReplicas");
        same
    });
}

#[test]
fn annotations_that_cannot_be_read_are_dropped() {
    for text in [
        "",
        "5",
        "[{\"type\":5}]",
        "[{\"pods\":{\"targetAverageValue\":\"x\"}}]",
    ] {
        let object =
            json!({"metadata": {"annotations": {METRICS: text, BEHAVIOR: text}}, "spec": {}});
        assert_eq!(
            to_version_2(&object),
            json!({"metadata": {}, "spec": {"metrics": [usual_metric(80)]}}),
            "{text}"
        );
    }
}
