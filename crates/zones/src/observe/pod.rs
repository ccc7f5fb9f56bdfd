//! Pods: whose they are, of which revision, and how they are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::zones;
use slipway_kernel::fields::{list, strings, text};
use slipway_kernel::instant::instant;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Undecodable};

/// Whose a pod is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// No controller's.
    Nobody,
    /// That of the `StatefulSet` with this uid.
    Set(String),
    /// Another controller's, by name and kind: `web (ReplicaSet)`.
    Other(String),
}

/// What is kept of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whose it is.
    pub owner: Owner,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether its phase is `Pending`, `Succeeded` or `Failed`: it does no work.
    pub is_idle: bool,
    /// Whether it is running and ready, deletion aside.
    pub is_ready: bool,
    /// Since when its condition `Ready` is what it is.
    pub ready_since: Option<Timestamp>,
    /// Why a container of it cannot start, if one cannot.
    pub stuck: Option<String>,
}

/// Why a container does not start by itself any more, or only after long waits.
const STUCK: [&str; 6] = [
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
];

impl Projection for Pod {
    const READS: Parts = Parts::NONE.and(Part::Status);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let phase = text(object, "/status/phase").unwrap_or_default();
        let condition = list(object, "/status/conditions")
            .find(|condition| text(condition, "/type") == Some("Ready"));
        let says_ready = condition.map(|condition| text(condition, "/status") == Some("True"));
        let gates = list(object, "/spec/readinessGates").next().is_some();
        let containers = list(object, "/status/containerStatuses").all(|container| {
            container.get("ready") == Some(&Value::Bool(true))
                && container.pointer("/state/running").is_some()
        });
        let annotated = object
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(zones::READY_TIME)?.as_str());
        let since = condition.and_then(|condition| text(condition, "/lastTransitionTime"));
        Ok(Self {
            labels: strings(object, "/metadata/labels"),
            owner: owner(object),
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
            is_idle: matches!(phase, "Pending" | "Succeeded" | "Failed"),
            // The condition also knows of readiness gates and of sidecars; where it is missing, a gate cannot be open.
            is_ready: phase == "Running" && containers && says_ready.unwrap_or(!gates),
            ready_since: since.or(annotated).and_then(instant),
            stuck: stuck(object),
        })
    }
}

fn owner(object: &Value) -> Owner {
    let controller = list(object, "/metadata/ownerReferences")
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    match controller {
        None => Owner::Nobody,
        Some(owner) if text(owner, "/kind") == Some("StatefulSet") => {
            Owner::Set(text(owner, "/uid").unwrap_or_default().to_owned())
        }
        Some(owner) => {
            let said = |path: &str| text(owner, path).unwrap_or_default();
            Owner::Other(format!("{} ({})", said("/name"), said("/kind")))
        }
    }
}

/// The first reason of a container of any sort: sidecars and init containers can hold a pod up as well.
fn stuck(object: &Value) -> Option<String> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .flat_map(|path| list(object, path))
        .filter_map(|container| text(container, "/state/waiting/reason"))
        .find(|reason| STUCK.contains(reason))
        .map(str::to_owned)
}

impl Pod {
    /// The revision of the template that it was made from.
    pub fn revision(&self) -> Option<&str> {
        self.labels.get(zones::REVISION_LABEL).map(String::as_str)
    }
}
