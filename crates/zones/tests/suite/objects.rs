//! Objects and questions that several tests share.

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::fact::Cause;
use slipway_kernel::identity::kinds;
use slipway_kernel::stage::Stage;
use slipway_kernel::{Action, ObjectRef, Plan};
use slipway_zones::Zones;
use slipway_zones::render::purpose;

pub(crate) const NS: &str = "mimir";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn noon() -> Timestamp {
    at("2026-03-04T12:00:00Z")
}

pub(crate) fn empty() -> Stage<Zones> {
    Stage::new(Zones::default(), noon())
}

/// A zone as most tests want it: three pods, two of which may be unavailable; all is up to date.
pub(crate) fn zone(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "namespace": NS,
            "name": name,
            "generation": 1,
            "labels": {"rollout-group": "ingester", "name": name},
            "annotations": {"rollout-max-unavailable": "2"},
        },
        "spec": {
            "replicas": 3,
            "serviceName": "ingester",
            "updateStrategy": {"type": "OnDelete"},
            "template": {"metadata": {"labels": {"name": name}}},
        },
        "status": {
            "observedGeneration": 1, "replicas": 3, "readyReplicas": 3,
            "currentRevision": "new", "updateRevision": "new",
        },
    })
}

pub(crate) fn pod(zone: &str, ordinal: i64, revision: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": NS,
            "name": format!("{zone}-{ordinal}"),
            "labels": {
                "name": zone, "rollout-group": "ingester", "controller-revision-hash": revision,
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "controller": true,
                "name": zone, "uid": format!("uid-{NS}-{zone}"),
            }],
        },
        "spec": {},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "c", "ready": true, "state": {"running": {}}}],
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T00:00:00Z"},
            ],
        },
    })
}

/// A zone that is not up to date, with `new` pods of the new revision first.
pub(crate) fn outdated(name: &str) -> Value {
    let mut set = zone(name);
    set["status"]["currentRevision"] = json!("old");
    set
}

/// A stage with these zones; those whose current revision is old have old pods only.
pub(crate) fn stage(zones: &[Value]) -> Stage<Zones> {
    let mut stage = empty();
    for set in zones {
        let name = set["metadata"]["name"].as_str().unwrap().to_owned();
        let revision = set["status"]["currentRevision"]
            .as_str()
            .unwrap()
            .to_owned();
        for ordinal in 0..set["spec"]["replicas"].as_i64().unwrap() {
            stage.put(pod(&name, ordinal, &revision));
        }
        stage.put(set.clone());
    }
    stage
}

pub(crate) fn change(stage: &mut Stage<Zones>, kind: &str, name: &str, patch: &Value) {
    stage.patch(kind, NS, name, patch);
}

pub(crate) fn terminate(stage: &mut Stage<Zones>, pod: &str) {
    let patch = json!({"metadata": {"deletionTimestamp": "2026-03-04T11:59:00Z"}});
    change(stage, "Pod", pod, &patch);
}

pub(crate) fn unready(stage: &mut Stage<Zones>, pod: &str) {
    let patch = json!({"status": {
        "containerStatuses": [{"name": "c", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T00:00:00Z"}],
    }});
    change(stage, "Pod", pod, &patch);
}

pub(crate) fn names(plan: &Plan, purpose: &str) -> Vec<String> {
    plan.steps
        .iter()
        .filter(|step| step.action.purpose().as_str() == purpose)
        .map(|step| step.action.object().unwrap().name.clone())
        .collect()
}

pub(crate) fn deleted(plan: &Plan) -> Vec<String> {
    names(plan, "replace")
}

/// Zones and the replicas that they are scaled to.
pub(crate) fn scaled(plan: &Plan) -> Vec<(String, i64)> {
    let steps = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Patch {
            target,
            purpose: purpose::SCALE,
            body,
        } => Some((
            target.object().name.clone(),
            body["spec"]["replicas"].as_i64().unwrap(),
        )),
        _ => None,
    });
    steps.collect()
}

/// Statuses that are written, by object.
pub(crate) fn statuses(plan: &Plan) -> Vec<(String, Value)> {
    let statuses = plan.statuses.iter();
    statuses
        .map(|status| (status.target.object().name.clone(), status.body.clone()))
        .collect()
}

pub(crate) fn reasons(plan: &Plan) -> Vec<&'static str> {
    plan.blockers.iter().map(|blocker| blocker.reason).collect()
}

/// Plans and carries out until a pod is deleted or a zone scaled, or nothing is left to be done: what the original does in
/// one pass, without the claims and the report.
pub(crate) fn pass(stage: &mut Stage<Zones>) -> Plan {
    for _ in 0..8 {
        let plan = stage.step();
        let is_work = |purpose| matches!(purpose, purpose::REPLACE | purpose::SCALE);
        let mut steps = plan.steps.iter().map(|step| step.action.purpose());
        if steps.any(is_work) || plan.steps.is_empty() {
            return plan;
        }
    }
    panic!("no end: {:?}", stage.plan())
}

pub(crate) fn refuse(stage: &mut Stage<Zones>, zone: &str) {
    refuse_for(stage, zone, Cause::Rejected);
}

pub(crate) fn refuse_for(stage: &mut Stage<Zones>, zone: &str, cause: Cause) {
    let refusal = slipway_kernel::fact::Refusal {
        cause,
        reason: "BadRequest".to_owned(),
        message: "admission webhook denied the request".to_owned(),
        attempts: 1,
        since: stage.now,
        retry_at: stage.now + jiff::SignedDuration::from_secs(30),
    };
    let object = ObjectRef::local(kinds::STATEFUL_SET, NS, zone);
    stage.facts.refusals.insert(object, refusal);
}
