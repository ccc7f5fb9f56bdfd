//! The `autoscaling` kinds: horizontal pod autoscalers, which are kept in version 2. Those of version 1 are judged
//! in the form of version 2, as in the real server.

mod metrics;
mod version_1;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::describe;
use crate::builtin::pod::{check, condition, printing};
use crate::builtin::rules;
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part, Resource, Strategy};
use crate::table::Column;
use crate::value::{at, at_mut, integer, items, put, put_default, text};

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    vec![
        describe::resource(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            Arc::new(Autoscalers),
        )
        .also("v1")
        .short(&["hpa"])
        .category("all")
        .status()
        .build(),
    ]
}

/// The rules of horizontal pod autoscalers.
#[derive(Debug)]
struct Autoscalers;

/// What autoscalers without metrics aim at: this much of the requested processors.
const USUAL_PERCENT: i64 = 80;

/// The object of a request in version 2.
fn in_version_2<'a>(object: &'a Value, cx: &Context<'_>) -> Cow<'a, Value> {
    if cx.version == "v1" {
        Cow::Owned(version_1::to_version_2(object))
    } else {
        Cow::Borrowed(object)
    }
}

/// Changes the object of a request in the form of version 2.
fn change_in_version_2(object: &mut Value, cx: &Context<'_>, change: impl FnOnce(&mut Value)) {
    if cx.version == "v1" {
        let mut converted = version_1::to_version_2(object);
        change(&mut converted);
        *object = version_1::from_version_2(&converted);
    } else {
        change(object);
    }
}

impl Strategy for Autoscalers {
    fn default(&self, object: &mut Value, cx: &Context<'_>) {
        put_default(object, "spec.minReplicas", 1);
        if cx.version == "v1" {
            // Conversion fills in the metric; rules for scaling have no defaults before they are stored.
            change_in_version_2(object, cx, |_| {});
            return;
        }
        version_1::drop_annotations(object);
        if items(object, "spec.metrics").is_empty() {
            let usual = version_1::usual_metric(USUAL_PERCENT);
            put(object, "spec.metrics", json!([usual]));
        }
        if let Some(behavior) = at_mut(object, "spec.behavior") {
            metrics::default_behavior(behavior);
        }
    }

    fn prepare_create(&self, object: &mut Value, cx: &Context<'_>) {
        change_in_version_2(object, cx, |object| {
            let zero = json!({"desiredReplicas": 0, "currentMetrics": null});
            put(object, "status", zero);
        });
    }

    fn validate(&self, object: &Value, cx: &Context<'_>) -> FieldErrors {
        let mut errors = FieldErrors::new();
        validate_spec(&mut errors, &in_version_2(object, cx), None);
        errors
    }

    fn prepare_update(&self, part: Part, object: &mut Value, old: &Value, cx: &Context<'_>) {
        let old = in_version_2(old, cx);
        change_in_version_2(object, cx, |object| {
            rules::keep_other_part(part, object, &old);
        });
    }

    fn validate_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        cx: &Context<'_>,
    ) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let (object, old) = (in_version_2(object, cx), in_version_2(old, cx));
        if part == Part::Status {
            let status = object.get("status").cloned().unwrap_or_default();
            let counts = ["currentReplicas", "desiredReplicas"];
            check::non_negative_fields(&mut errors, &status, "status", &counts);
        } else {
            validate_spec(&mut errors, &object, Some(&old));
        }
        errors
    }

    fn stored_as_is(&self) -> bool {
        false
    }

    fn from_storage(&self, object: &mut Value, version: &str) {
        if version == "v1" {
            *object = version_1::from_version_2(object);
        }
    }

    fn to_storage(&self, object: &mut Value, version: &str) {
        if version == "v1" {
            *object = version_1::to_version_2(object);
            if let Some(behavior) = at_mut(object, "spec.behavior") {
                metrics::default_behavior(behavior);
            }
        }
    }

    fn generation_changed(&self, _object: &Value, _old: &Value) -> bool {
        false
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn reset_fields(&self, part: Part) -> Vec<&'static str> {
        vec![rules::other_part(part)]
    }

    fn columns(&self, _version: &str) -> Vec<Column> {
        printing::columns(&[
            ("Name", "string", 0),
            ("Reference", "string", 0),
            ("Targets", "string", 0),
            ("MinPods", "string", 0),
            ("MaxPods", "string", 0),
            ("Replicas", "string", 0),
            ("Age", "string", 0),
        ])
    }

    fn cells(&self, object: &Value, cx: &Context<'_>) -> Vec<Value> {
        let object = &*in_version_2(object, cx);
        let reference = format!(
            "{}/{}",
            text(object, "spec.scaleTargetRef.kind"),
            text(object, "spec.scaleTargetRef.name")
        );
        let targets = metrics::format(
            items(object, "spec.metrics"),
            items(object, "status.currentMetrics"),
        );
        let least = integer(object, "spec.minReplicas");
        vec![
            text(object, "metadata.name").into(),
            reference.into(),
            targets.into(),
            least
                .map_or_else(|| "<unset>".to_owned(), |m| m.to_string())
                .into(),
            printing::count(object, "spec.maxReplicas"),
            printing::count(object, "status.currentReplicas"),
            condition::age(object, cx.now).into(),
        ]
    }
}

fn validate_spec(errors: &mut FieldErrors, object: &Value, old: Option<&Value>) {
    const MOST: &str = "spec.maxReplicas";
    const LEAST: &str = "spec.minReplicas";
    let bound = i64::from(old.is_none_or(|old| integer(old, LEAST) != Some(0)));
    let (least, most) = (integer(object, LEAST), integer(object, MOST).unwrap_or(0));
    if let Some(least) = least.filter(|l| *l < bound) {
        let detail = format!("must be greater than or equal to {bound}");
        errors.push(check::number(LEAST, least, &detail));
    }
    if most == 0 {
        errors.push(FieldError::required(MOST, "must be set and greater than 0"));
    } else if most < 0 {
        errors.push(check::number(
            MOST,
            most,
            "must be greater than or equal to 1",
        ));
    }
    if least.is_some_and(|l| most < l) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(check::number(MOST, most, detail));
    }
    validate_target(errors, object, old);
    let specs = items(object, "spec.metrics");
    for (i, metric) in specs.iter().enumerate() {
        metrics::validate(errors, &format!("spec.metrics[{i}]"), metric);
    }
    let outside = |m: &Value| matches!(text(m, "type"), "Object" | "External");
    if least == Some(0) && !specs.iter().any(outside) {
        errors.push(FieldError::forbidden(
            "spec.metrics",
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let path = format!("spec.behavior.{direction}");
        if let Some(rules) = at(object, &path).filter(|r| !r.is_null()) {
            metrics::validate_rules(errors, &path, rules);
        }
    }
}

/// The target's version is judged when it or the kind changes.
fn validate_target(errors: &mut FieldErrors, object: &Value, old: Option<&Value>) {
    const TARGET: &str = "spec.scaleTargetRef";
    let nothing = Value::Null;
    let target = at(object, TARGET).unwrap_or(&nothing);
    let same = old.and_then(|old| at(old, TARGET)).is_some_and(|before| {
        ["apiVersion", "kind"]
            .iter()
            .all(|f| text(before, f) == text(target, f))
    });
    let core = text(target, "kind") == "ReplicationController";
    let mut found = FieldErrors::new();
    metrics::validate_reference(&mut found, TARGET, target, core);
    if same {
        found.retain(|e| e.path != format!("{TARGET}.apiVersion"));
    }
    errors.extend(found);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn cx() -> Context<'static> {
        Context {
            version: "v2",
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            user: None,
        }
    }

    fn made(spec: impl Into<Value>) -> Value {
        let mut object = json!({"metadata": {"name": "d0"}, "spec": spec.into()});
        Autoscalers.default(&mut object, &cx());
        Autoscalers.prepare_create(&mut object, &cx());
        object
    }

    #[test]
    fn defaults() {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
        let made = made(json!({"maxReplicas": 3, "scaleTargetRef": target,
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 3}}}));
        assert_eq!(
            made["spec"],
            json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}],
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 3, "selectPolicy": "Max", "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]},
                "scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}})
        );
        assert!(Autoscalers.validate(&made, &cx()).is_empty());
        assert_eq!(
            Autoscalers.cells(&made, &cx())[1..6],
            [
                json!("Deployment/x"),
                json!("cpu: <unknown>/80%"),
                json!("1"),
                json!(3),
                json!(0)
            ]
        );
    }

    #[test]
    fn an_empty_spec() {
        let found: Vec<String> = Autoscalers
            .validate(&made(json!({})), &cx())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                "spec.scaleTargetRef.kind: Required value",
                "spec.scaleTargetRef.name: Required value",
                "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
            ]
        );
    }
}
