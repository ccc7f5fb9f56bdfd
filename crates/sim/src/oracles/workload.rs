//! The oracles' own reading of workloads: what a restart is, and when a rollout is done.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::names::{LAST_RESTART, RESTARTED_AT};

use super::policy;
use crate::history::{Change, History, Image, Object, Request};

/// What restarts call themselves.
const RESTARTS: &str = "restarts";

/// The kind behind `group/plural`, if it is a workload.
pub(super) fn kind(resource: &str) -> Option<&'static str> {
    match resource {
        "apps/deployments" => Some("Deployment"),
        "apps/statefulsets" => Some("StatefulSet"),
        "apps/daemonsets" => Some("DaemonSet"),
        _ => None,
    }
}

/// `Deployment shop/cart`.
pub(super) fn name(object: &Object) -> String {
    let kind = kind(&object.0).unwrap_or(&object.0);
    format!("{kind} {}/{}", object.1, object.2)
}

/// A change of a workload, with the object before and after.
pub(super) struct Touch<'a> {
    pub(super) change: &'a Change,
    pub(super) request: &'a Request,
    pub(super) before: &'a Image,
    pub(super) after: &'a Image,
}

impl Touch<'_> {
    /// The new value of the template's `restartedAt`, if that is new.
    pub(super) fn restarted_at(&self) -> Option<&str> {
        let after = self.after.template_annotation(RESTARTED_AT);
        (after != self.before.template_annotation(RESTARTED_AT)).then_some(after)?
    }
}

/// All changes that the operator made to workloads.
pub(super) fn touches(history: &History) -> impl Iterator<Item = Touch<'_>> {
    history.deeds().filter_map(|(change, request)| {
        kind(&change.object.0)?;
        Some(Touch {
            change,
            request,
            before: change.before.as_deref()?,
            after: change.after.as_deref()?,
        })
    })
}

/// Those of them that are of restarts.
pub(super) fn of_restarts(history: &History) -> impl Iterator<Item = Touch<'_>> {
    touches(history).filter(|touch| touch.request.context.controller == RESTARTS)
}

/// All restarts by the operator.
pub(super) fn restarts(history: &History) -> impl Iterator<Item = Touch<'_>> {
    touches(history).filter(|touch| touch.restarted_at().is_some())
}

/// When a workload was last restarted, as its annotations say at a moment; what lies in the future does not count.
pub(super) fn last_restart(image: &Image, now: Timestamp) -> Option<Timestamp> {
    let stamp = policy::time(image.annotation(LAST_RESTART)).filter(|at| *at <= now);
    let template = policy::time(image.template_annotation(RESTARTED_AT)).filter(|at| *at <= now);
    stamp.max(template)
}

/// How many pods there should be.
pub(super) fn desired(object: &Object, image: &Image) -> i64 {
    if &*object.0 == "apps/daemonsets" {
        return image.number("/status/desiredNumberScheduled");
    }
    image
        .at("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1)
}

/// Whether its controller has ever said anything.
pub(super) fn is_observed(image: &Image) -> bool {
    image.number("/status/observedGeneration") > 0
}

/// Whether its rollout is done, by what its controller says.
pub(super) fn is_complete(object: &Object, image: &Image) -> bool {
    if image.number("/status/observedGeneration") < image.number("/metadata/generation") {
        return false;
    }
    let desired = desired(object, image);
    let status = |name: &str| image.number(&format!("/status/{name}"));
    match &*object.0 {
        "apps/deployments" => {
            status("updatedReplicas") >= desired
                && status("replicas") <= status("updatedReplicas")
                && status("availableReplicas") >= desired
        }
        "apps/statefulsets" => {
            let partition = image.number("/spec/updateStrategy/rollingUpdate/partition");
            let on_delete = image.text("/spec/updateStrategy/type") == Some("OnDelete");
            (on_delete || status("updatedReplicas") >= desired - partition)
                && status("readyReplicas") >= desired
        }
        _ => {
            let on_delete = image.text("/spec/updateStrategy/type") == Some("OnDelete");
            (on_delete || status("updatedNumberScheduled") >= desired)
                && status("numberAvailable") >= desired
        }
    }
}
