//! Autoscalers of version 1, which are kept as those of version 2.
//!
//! Version 1 knows one metric, the use of processors. What else there is goes into annotations, as JSON in the order
//! of the real server's fields; an annotation that cannot be read is as good as none.

mod metric;
mod read;
mod rules;

use serde_json::{Map, Value, json};

use crate::field;
use crate::meta;
use crate::value::{at, copy, integer, items, put, take, text};
use metric::Metrics;
use read::Unreadable;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The metric of an autoscaler that names none.
pub(super) fn usual_metric(percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

/// Drops the annotations that only version 1 has.
pub(super) fn drop_annotations(object: &mut Value) {
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else {
        return;
    };
    annotations.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
    if annotations.is_empty() {
        take(object, "metadata.annotations");
    }
}

/// The autoscaler in version 2; its `apiVersion` stays.
pub(super) fn to_version_2(object: &Value) -> Value {
    let annotation = |name: &str| -> Option<Value> {
        let annotations = at(object, "metadata.annotations")?;
        serde_json::from_str(annotations.get(name)?.as_str()?).ok()
    };
    let mut out = object.clone();
    let mut metrics = Vec::new();
    if let Some(Ok(others)) = annotation(METRICS).map(|v| metric::read(&v, Metrics::Wanted)) {
        metrics = others;
    }
    let percent = take(&mut out, "spec.targetCPUUtilizationPercentage");
    if let Some(percent) = percent.and_then(|p| p.as_i64()) {
        metrics.push(usual_metric(percent));
    }
    if metrics.is_empty() {
        metrics.push(usual_metric(super::USUAL_PERCENT));
    }
    put(&mut out, "spec.metrics", metrics);
    if let Some(Ok(Some(behavior))) = annotation(BEHAVIOR).map(|v| rules::read(&v)) {
        put(&mut out, "spec.behavior", behavior);
    }
    if out.get("status").is_some_and(Value::is_object) {
        put(&mut out, "status", status_to_version_2(object, &annotation));
    }
    drop_annotations(&mut out);
    out
}

fn status_to_version_2(object: &Value, annotation: &dyn Fn(&str) -> Option<Value>) -> Value {
    let mut status = object.get("status").cloned().unwrap_or_default();
    let percent = take(&mut status, "currentCPUUtilizationPercentage");
    let mut current = match percent.filter(|p| !p.is_null()) {
        Some(percent) => json!([{"type": "Resource", "resource": {"name": "cpu",
            "current": {"averageUtilization": percent}}}]),
        None => Value::Null,
    };
    if let Some(Ok(read)) = annotation(CURRENT).map(|v| metric::read(&v, Metrics::Current)) {
        current = if read.is_empty() {
            Value::Null
        } else {
            read.into()
        };
    }
    put(&mut status, "currentMetrics", current);
    if let Some(Ok(conditions)) = annotation(CONDITIONS).map(|v| read_conditions(&v))
        && !conditions.is_empty()
    {
        put(&mut status, "conditions", conditions);
    }
    if integer(&status, "currentReplicas") == Some(0) {
        take(&mut status, "currentReplicas");
    }
    status
}

fn is_processors(metric: &Value, percent: &str) -> bool {
    text(metric, "type") == "Resource"
        && text(metric, "resource.name") == "cpu"
        && integer(metric, percent).is_some()
}

/// The autoscaler in version 1; its `apiVersion` stays.
pub(super) fn from_version_2(object: &Value) -> Value {
    const WANTED: &str = "resource.target.averageUtilization";
    const NOW: &str = "resource.current.averageUtilization";
    let mut out = object.clone();
    drop_annotations(&mut out);
    let (own, others): (Vec<&Value>, Vec<&Value>) = items(object, "spec.metrics")
        .iter()
        .partition(|m| is_processors(m, WANTED));
    take(&mut out, "spec.metrics");
    take(&mut out, "spec.behavior");
    if let Some(percent) = own.first().and_then(|m| integer(m, WANTED)) {
        put(&mut out, "spec.targetCPUUtilizationPercentage", percent);
    }
    let current: Vec<&Value> = items(object, "status.currentMetrics").iter().collect();
    let conditions = items(object, "status.conditions");
    if let Some(status) = object.get("status").filter(|s| s.is_object()) {
        let mut seen = json!({"currentReplicas": 0, "desiredReplicas": 0});
        for field in [
            "observedGeneration",
            "lastScaleTime",
            "currentReplicas",
            "desiredReplicas",
        ] {
            if status.get(field).is_some() {
                copy(&mut seen, status, field);
            }
        }
        let processors = current.iter().rev().find(|m| is_processors(m, NOW));
        if let Some(percent) = processors.and_then(|m| integer(m, NOW)) {
            put(&mut seen, "currentCPUUtilizationPercentage", percent);
        }
        put(&mut out, "status", seen);
    }
    let mut annotate = |name: &str, text: String| {
        if let Some(slot) = crate::value::slot(&mut out, "metadata.annotations") {
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            slot[name] = Value::String(field::escape_html(&text));
        }
    };
    if !others.is_empty() {
        annotate(METRICS, metric::write(&others, Metrics::Wanted));
    }
    if !current.is_empty() {
        annotate(CURRENT, metric::write(&current, Metrics::Current));
    }
    if let Some(behavior) = at(object, "spec.behavior").filter(|b| b.is_object()) {
        annotate(BEHAVIOR, rules::write(behavior));
    }
    if !conditions.is_empty() {
        annotate(CONDITIONS, write_conditions(conditions));
    }
    out
}

fn write_conditions(conditions: &[Value]) -> String {
    let all: Vec<String> = conditions
        .iter()
        .map(|condition| {
            let mut fields = vec![
                read::pair("type", &text(condition, "type").into()),
                read::pair("status", &text(condition, "status").into()),
                read::pair(
                    "lastTransitionTime",
                    condition.get("lastTransitionTime").unwrap_or(&Value::Null),
                ),
            ];
            for optional in ["reason", "message"] {
                let said = text(condition, optional);
                if !said.is_empty() {
                    fields.push(read::pair(optional, &said.into()));
                }
            }
            format!("{{{}}}", fields.join(","))
        })
        .collect();
    format!("[{}]", all.join(","))
}

fn read_conditions(written: &Value) -> Result<Vec<Value>, Unreadable> {
    let mut conditions = Vec::new();
    for condition in read::list(written)? {
        let mut out = Map::new();
        for field in ["type", "status", "reason", "message"] {
            let said = read::string(condition, field)?;
            if !said.is_empty() || matches!(field, "type" | "status") {
                out.insert(field.to_owned(), said.into());
            }
        }
        let since = read::string(condition, "lastTransitionTime")?;
        let since = match since {
            "" => Value::Null,
            text => {
                let at: jiff::Timestamp = text.parse().map_err(|_| Unreadable)?;
                meta::timestamp(at).into()
            }
        };
        out.insert("lastTransitionTime".to_owned(), since);
        conditions.push(Value::Object(out));
    }
    Ok(conditions)
}

#[cfg(test)]
mod tests;
