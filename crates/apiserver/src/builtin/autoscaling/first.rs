//! Horizontal pod autoscalers in version 1, which knows one metric: the share of the processor. What it has no field
//! for stands in annotations, so that nothing is lost on the way from version 2 and back.

use serde_json::{Map, Value, json};

use crate::value::{at, map, put, take, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// A type of metric, a field in version 1 and the same in version 2. `@` is `target` in a spec, `current` in a status.
const FIELDS: &[(&str, &str, &str)] = &[
    ("Object", "target", "describedObject"),
    ("Object", "metricName", "metric.name"),
    ("Object", "selector", "metric.selector"),
    ("Object", "@Value", "@.value"),
    ("Object", "averageValue", "@.averageValue"),
    ("Pods", "metricName", "metric.name"),
    ("Pods", "selector", "metric.selector"),
    ("Pods", "@AverageValue", "@.averageValue"),
    ("Resource", "name", "name"),
    ("Resource", "@AverageUtilization", "@.averageUtilization"),
    ("Resource", "@AverageValue", "@.averageValue"),
    ("ContainerResource", "name", "name"),
    ("ContainerResource", "container", "container"),
    (
        "ContainerResource",
        "@AverageUtilization",
        "@.averageUtilization",
    ),
    ("ContainerResource", "@AverageValue", "@.averageValue"),
    ("External", "metricName", "metric.name"),
    ("External", "metricSelector", "metric.selector"),
    ("External", "@Value", "@.value"),
    ("External", "@AverageValue", "@.averageValue"),
];

/// Makes an object of version 2 one of version 1.
pub(super) fn from_second(object: &mut Value) {
    let metrics = take(object, "spec.metrics").unwrap_or_default();
    let current = take(object, "status.currentMetrics").unwrap_or_default();
    let mut others = Vec::new();
    let mut share = None;
    for metric in list(&metrics) {
        match share_of(metric, "target") {
            Some(found) => share = share.or(Some(found)),
            None => others.push(translate(metric, "target", true)),
        }
    }
    if let Some(share) = share {
        put(object, "spec.targetCPUUtilizationPercentage", share);
    }
    if let Some(share) = list(&current)
        .iter()
        .find_map(|metric| share_of(metric, "current"))
    {
        put(object, "status.currentCPUUtilizationPercentage", share);
    }
    let shown: Vec<Value> = list(&current)
        .iter()
        .map(|metric| translate(metric, "current", true))
        .collect();
    let conditions = take(object, "status.conditions").unwrap_or_default();
    let behavior = take(object, "spec.behavior").unwrap_or_default();
    for (name, value) in [
        (METRICS, Value::from(others)),
        (CURRENT, Value::from(shown)),
        (CONDITIONS, conditions),
        // Go writes a type there that has no names of its own for JSON.
        (BEHAVIOR, renamed(&behavior, str::to_ascii_uppercase)),
    ] {
        annotate(object, name, &value);
    }
    if !at(object, "status").is_none_or(Value::is_null) {
        let count = at(object, "status.currentReplicas")
            .cloned()
            .unwrap_or_else(|| json!(0));
        put(object, "status.currentReplicas", count);
    }
}

/// Makes an object of version 1 one of version 2.
pub(super) fn to_second(object: &mut Value) {
    let mut metrics: Vec<Value> = annotated(object, METRICS).map_or_else(Vec::new, |others| {
        list(&others)
            .iter()
            .map(|metric| translate(metric, "target", false))
            .collect()
    });
    let share =
        take(object, "spec.targetCPUUtilizationPercentage").filter(|share| !share.is_null());
    if share.is_some() || metrics.is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": share.unwrap_or_else(|| json!(80))});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    put(object, "spec.metrics", metrics);
    if let Some(behavior) = annotated(object, BEHAVIOR) {
        put(
            object,
            "spec.behavior",
            renamed(&behavior, str::to_ascii_lowercase),
        );
    }
    let share =
        take(object, "status.currentCPUUtilizationPercentage").filter(|share| !share.is_null());
    let current = match (annotated(object, CURRENT), share) {
        (Some(current), _) => list(&current)
            .iter()
            .map(|metric| translate(metric, "current", false))
            .collect(),
        (None, Some(share)) => {
            let current = json!({"averageUtilization": share});
            Value::from(vec![
                json!({"type": "Resource", "resource": {"name": "cpu", "current": current}}),
            ])
        }
        (None, None) => Value::Null,
    };
    if at(object, "status").is_some_and(Value::is_object) {
        put(object, "status.currentMetrics", current);
        if let Some(conditions) = annotated(object, CONDITIONS) {
            put(object, "status.conditions", conditions);
        }
        if at(object, "status.currentReplicas") == Some(&json!(0)) {
            take(object, "status.currentReplicas");
        }
    }
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        annotations
            .retain(|name, _| ![METRICS, CURRENT, CONDITIONS, BEHAVIOR].contains(&name.as_str()));
    }
    if map(object, "metadata.annotations").is_some_and(Map::is_empty) {
        take(object, "metadata.annotations");
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The share of the processor, if that is what a metric of version 2 is about.
fn share_of(metric: &Value, inner: &str) -> Option<Value> {
    if text(metric, "type") != "Resource" || text(metric, "resource.name") != "cpu" {
        return None;
    }
    at(metric, &format!("resource.{inner}.averageUtilization"))
        .filter(|share| !share.is_null())
        .cloned()
}

/// A metric in the other version.
fn translate(metric: &Value, inner: &str, to_first: bool) -> Value {
    let kind = text(metric, "type");
    let place = renamed_word(kind, str::to_ascii_lowercase);
    let nothing = json!({});
    let source = at(metric, &place).unwrap_or(&nothing);
    let mut made = json!({});
    for (_, first, second) in FIELDS.iter().filter(|(of, _, _)| *of == kind) {
        let (first, second) = (first.replace('@', inner), second.replace('@', inner));
        let (from, to) = if to_first {
            (&second, &first)
        } else {
            (&first, &second)
        };
        if let Some(value) = at(source, from).filter(|value| !value.is_null()) {
            put(&mut made, to, value.clone());
        }
    }
    if !to_first && inner == "target" {
        let has = |field: &str| at(&made, &format!("target.{field}")).is_some();
        let kind = if has("averageUtilization") {
            "Utilization"
        } else if has("averageValue") {
            "AverageValue"
        } else {
            "Value"
        };
        put(&mut made, "target.type", kind);
    }
    let mut translated = json!({"type": kind});
    put(&mut translated, &place, made);
    translated
}

/// Writes an annotation, unless there is nothing to write.
fn annotate(object: &mut Value, name: &str, value: &Value) {
    let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if is_empty {
        return;
    }
    let mut annotations = map(object, "metadata.annotations")
        .cloned()
        .unwrap_or_default();
    annotations.insert(name.to_owned(), Value::String(value.to_string()));
    put(object, "metadata.annotations", Value::Object(annotations));
}

fn annotated(object: &Value, name: &str) -> Option<Value> {
    let text = map(object, "metadata.annotations")?.get(name)?.as_str()?;
    serde_json::from_str(text).ok()
}

/// A value whose members' names begin with another letter.
fn renamed(value: &Value, letter: fn(&str) -> String) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members
                .map(|(name, value)| (renamed_word(name, letter), renamed(value, letter)))
                .collect()
        }
        Value::Array(values) => values.iter().map(|value| renamed(value, letter)).collect(),
        other => other.clone(),
    }
}

fn renamed_word(word: &str, letter: fn(&str) -> String) -> String {
    match word.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}", letter(first)),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::items;

    #[test]
    fn nothing_is_lost_on_the_way_and_back() {
        let metrics = json!([
            {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "3"}}},
            {"type": "External", "external": {"metric": {"name": "e", "selector": {"matchLabels": {"a": "b"}}},
                "target": {"type": "Value", "value": "7"}}},
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
        ]);
        let second = json!({"metadata": {"name": "x"}, "spec": {"maxReplicas": 3, "metrics": metrics,
            "behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 9}]}}},
            "status": {"desiredReplicas": 0, "currentMetrics": null}});
        let mut first = second.clone();
        from_second(&mut first);
        assert_eq!(
            at(&first, "spec.targetCPUUtilizationPercentage"),
            Some(&json!(50))
        );
        assert_eq!(items(&first, "spec.metrics"), &[] as &[Value]);
        assert_eq!(at(&first, "status.currentReplicas"), Some(&json!(0)));
        to_second(&mut first);
        assert_eq!(first, second);
    }

    #[test]
    fn without_a_metric_the_processor_is_meant() {
        let mut object = json!({"spec": {"maxReplicas": 3}});
        to_second(&mut object);
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let processor =
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
        assert_eq!(at(&object, "spec.metrics"), Some(&processor));
    }
}
