//! The oracles' own reading of workloads: what a restart is, and when a rollout is done.

use serde_json::Value;
use slipway_api::names::RESTARTED_AT;

use crate::history::{Change, History, Image, Object, Request};

/// The kind behind `group/plural`, if it is a workload.
pub fn kind(resource: &str) -> Option<&'static str> {
    match resource {
        "apps/deployments" => Some("Deployment"),
        "apps/statefulsets" => Some("StatefulSet"),
        "apps/daemonsets" => Some("DaemonSet"),
        _ => None,
    }
}

/// `Deployment shop/cart`.
pub fn name(object: &Object) -> String {
    let kind = kind(&object.0).unwrap_or(&object.0);
    format!("{kind} {}/{}", object.1, object.2)
}

/// A change of a workload, with the object before and after.
pub struct Touch<'a> {
    /// The change.
    pub change: &'a Change,
    /// The request that made it.
    pub request: &'a Request,
    /// The workload before.
    pub before: &'a Image,
    /// The workload after.
    pub after: &'a Image,
}

impl Touch<'_> {
    /// The new value of the template's `restartedAt`, if that is new.
    pub fn restarted_at(&self) -> Option<&str> {
        let after = self.after.template_annotation(RESTARTED_AT);
        (after != self.before.template_annotation(RESTARTED_AT)).then_some(after)?
    }
}

/// All changes that the operator made to workloads at home.
pub fn touches(history: &History) -> impl Iterator<Item = Touch<'_>> {
    history.deeds().filter_map(touch)
}

fn touch<'a>((change, request): (&'a Change, &'a Request)) -> Option<Touch<'a>> {
    kind(&change.object.0)?;
    Some(Touch {
        change,
        request,
        before: change.before.as_deref()?,
        after: change.after.as_deref()?,
    })
}

/// All restarts by the operator.
pub fn restarts(history: &History) -> impl Iterator<Item = Touch<'_>> {
    touches(history).filter(|touch| touch.restarted_at().is_some())
}

/// How many pods there should be.
pub fn desired(object: &Object, image: &Image) -> i64 {
    if &*object.0 == "apps/daemonsets" {
        return image.number("/status/desiredNumberScheduled");
    }
    image
        .at("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1)
}

/// Whether its controller has ever said anything.
pub fn is_observed(image: &Image) -> bool {
    image.number("/status/observedGeneration") > 0
}

/// Whether its rollout is done, by what its controller says.
pub fn is_complete(object: &Object, image: &Image) -> bool {
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
