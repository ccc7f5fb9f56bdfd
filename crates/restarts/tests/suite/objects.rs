//! Objects and questions that several tests share.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_api::names;
use slipway_kernel::{Action, Plan};
use slipway_restarts::render::stamp_of;
use slipway_restarts::stage::Stage;
use slipway_restarts::{Restarts, Settings};

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The time at which most tests begin, with a fraction so that rounding shows.
pub(crate) fn noon() -> Timestamp {
    at("2026-03-04T12:00:00.5Z")
}

pub(crate) fn minutes(number: i64) -> SignedDuration {
    SignedDuration::from_mins(number)
}

pub(crate) fn ago(number: i64) -> String {
    stamp_of(noon() - minutes(number))
}

pub(crate) fn stage() -> Stage {
    Stage::new(Restarts::new(Settings::drop_in()), noon())
}

pub(crate) fn stage_with(settings: Settings) -> Stage {
    Stage::new(Restarts::new(settings), noon())
}

/// A workload with a label and perhaps a stamp, on both its metadata and its template as a restart leaves it.
pub(crate) fn workload(
    kind: &str,
    namespace: &str,
    name: &str,
    label: (&str, &str),
    stamp: Option<&str>,
) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name, "labels": {label.0: label.1}},
        "spec": {"template": {"metadata": {"labels": {"app": name}}}},
    });
    if let Some(stamp) = stamp {
        object["metadata"]["annotations"] = json!({names::LAST_RESTART: stamp});
        object["spec"]["template"]["metadata"]["annotations"] = json!({names::RESTARTED_AT: stamp});
    }
    object
}

pub(crate) fn deployment(
    namespace: &str,
    name: &str,
    label: (&str, &str),
    stamp: Option<&str>,
) -> Value {
    workload("Deployment", namespace, name, label, stamp)
}

pub(crate) fn flipper(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "flipper.io.github.com/v1alpha1",
        "kind": "Flipper",
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    })
}

pub(crate) const MESH: (&str, &str) = ("mesh", "true");

/// `namespace/name` of the workloads that a plan restarts.
pub(crate) fn restarted(plan: &Plan) -> Vec<String> {
    with_purpose(plan, "restart")
}

/// `namespace/name` of the workloads that a plan stamps.
pub(crate) fn stamped(plan: &Plan) -> Vec<String> {
    with_purpose(plan, "stamp")
}

fn with_purpose(plan: &Plan, wanted: &str) -> Vec<String> {
    plan.steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Patch {
                target, purpose, ..
            } if purpose.as_str() == wanted => {
                let object = target.object();
                Some(format!("{}/{}", object.namespace, object.name))
            }
            _ => None,
        })
        .collect()
}

pub(crate) fn bodies(plan: &Plan) -> Vec<&Value> {
    plan.steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Patch { body, .. } => Some(body),
            _ => None,
        })
        .collect()
}

/// How long until the plan asks to be woken.
pub(crate) fn wait(plan: &Plan, now: Timestamp) -> Option<SignedDuration> {
    plan.wake_at.map(|at| at.duration_since(now))
}

/// `restartedAt` in the pod template.
pub(crate) fn template_stamp(stage: &Stage, namespace: &str, name: &str) -> Option<String> {
    let object = stage.get("Deployment", namespace, name).unwrap();
    let annotations = object.pointer("/spec/template/metadata/annotations")?;
    Some(
        annotations
            .get(names::RESTARTED_AT)?
            .as_str()
            .unwrap()
            .to_owned(),
    )
}

/// The stamp on the workload itself.
pub(crate) fn own_stamp(stage: &Stage, namespace: &str, name: &str) -> Option<String> {
    let object = stage.get("Deployment", namespace, name).unwrap();
    let annotations = object.pointer("/metadata/annotations")?;
    Some(
        annotations
            .get(names::LAST_RESTART)?
            .as_str()
            .unwrap()
            .to_owned(),
    )
}

/// A condition of a Flipper: status and reason.
pub(crate) fn condition(
    stage: &Stage,
    namespace: &str,
    name: &str,
    kind: &str,
) -> Option<(String, String)> {
    let object = stage.get("Flipper", namespace, name).unwrap();
    let conditions = object.pointer("/status/conditions")?.as_array()?.clone();
    let found = conditions.into_iter().find(|c| c["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    Some((text("status"), text("reason")))
}

/// The reasons in a Flipper's `status.waitingFor`.
pub(crate) fn waiting(stage: &Stage, namespace: &str, name: &str) -> Vec<String> {
    let object = stage.get("Flipper", namespace, name).unwrap();
    let list = object
        .pointer("/status/waitingFor")
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .map(|w| w["reason"].as_str().unwrap().to_owned())
        .collect()
}

/// The reasons of all events that a plan tells, in steps or beside them.
pub(crate) fn news(plan: &Plan) -> Vec<&'static str> {
    let in_steps = plan.steps.iter().flat_map(|step| &step.events);
    in_steps.chain(&plan.events).map(|e| e.reason).collect()
}
