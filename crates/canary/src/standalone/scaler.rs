//! The autoscaler of the copy that serves: a person's `HorizontalPodAutoscaler`, pointed at the copy.
//!
//! The person's own stays with the workload, where it rests while that has no replicas. What they change of it reaches the
//! copy with the next promotion.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_api::canary::AutoscalerRef;
use slipway_api::flagger::{LAST_APPLIED, PRIMARY};
use slipway_kernel::fields::{integer, strings};

use super::Names;
use super::readiness::Workload;

/// What the copy's autoscaler is called.
pub fn name(asked: &AutoscalerRef) -> String {
    format!("{}{PRIMARY}", asked.name)
}

/// The copy's autoscaler.
pub fn scaler(asked: &AutoscalerRef, theirs: &Value, names: &Names, owner: &Value) -> Value {
    let mut spec = Map::new();
    for field in ["minReplicas", "maxReplicas", "metrics", "behavior"] {
        if let Some(value) = theirs.pointer(&format!("/spec/{field}")) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    let bounds = asked.primary_scaler_replicas.clone().unwrap_or_default();
    for (field, value) in [
        ("minReplicas", bounds.min_replicas),
        ("maxReplicas", bounds.max_replicas),
    ] {
        if let Some(value) = value {
            spec.insert(field.to_owned(), json!(value));
        }
    }
    spec.insert(
        "scaleTargetRef".to_owned(),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": names.primary}),
    );
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": name(asked),
            "namespace": theirs.pointer("/metadata/namespace"),
            "labels": strings(theirs, "/metadata/labels"),
            "annotations": annotations(theirs),
            "ownerReferences": [owner],
        },
        "spec": spec,
    })
}

fn annotations(theirs: &Value) -> BTreeMap<String, String> {
    let all = strings(theirs, "/metadata/annotations").into_iter();
    all.filter(|(name, _)| name != LAST_APPLIED).collect()
}

/// How many replicas a workload that comes up has at least: what it asks for itself, else what serves has; with an
/// autoscaler, what that begins with.
pub fn from_zero(
    kind: Workload,
    target: &Value,
    primary: Option<&Value>,
    theirs: Option<&Value>,
) -> u32 {
    let own = kind.size(target);
    if own > 0 {
        return own;
    }
    let least = theirs.map(|scaler| integer(scaler, "/spec/minReplicas").unwrap_or(1));
    let least = least.and_then(|least| u32::try_from(least).ok());
    let served = primary.map(|primary| kind.size(primary));
    least.or(served).unwrap_or(1).max(1)
}

/// The most replicas that an autoscaler gives.
pub fn most(scaler: &Value) -> Option<u32> {
    u32::try_from(integer(scaler, "/spec/maxReplicas")?).ok()
}
