//! Deployments, `StatefulSets` and `DaemonSets`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::flipper::WorkloadKind;
use slipway_api::names;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Undecodable};

use super::{integer, strings, text};
use crate::due::{Past, Written};

/// How long a rollout may take where the workload does not say.
const DEFAULT_DEADLINE: Duration = Duration::from_mins(10);

/// What is kept of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the object"
)]
pub struct Workload {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When we last restarted it, on its own metadata.
    pub stamp: Written,
    /// `restartedAt` in its pod template.
    pub template: Written,
    /// Whether that was written by us.
    pub template_is_ours: bool,
    /// When somebody went back to an earlier revision, and so brought an earlier stamp back.
    pub rolled_back: Option<Timestamp>,
    /// Whether it asks to be left alone.
    pub is_opted_out: bool,
    /// It asks for no restart before this.
    pub not_before: Written,
    /// Its own interval.
    pub interval: Option<String>,
    /// Who says to disrupt it.
    pub claim: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether another controller owns it.
    pub is_controlled: bool,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Whether all its pods go before the first new one comes.
    pub recreates: bool,
    /// Whether its pods are replaced only when somebody deletes them.
    pub on_delete: bool,
    /// Its pods below this ordinal are held back.
    pub partition: i64,
    /// How long a rollout may take.
    pub deadline: Duration,
    /// The labels of its pods.
    pub pod_labels: BTreeMap<String, String>,
    /// What its controller says.
    pub status: Status,
    replicas: i64,
}

/// What a workload's controller says about it. What it does not say is 0 or false.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The generation that all of this is about.
    pub observed_generation: i64,
    /// Pods there are.
    pub replicas: i64,
    /// Pods of the newest template.
    pub updated: i64,
    /// Pods that are ready.
    pub ready: i64,
    /// Pods that have been ready for long enough.
    pub available: i64,
    /// Whether a `StatefulSet` has come to its newest revision.
    pub is_current_revision: bool,
    /// Whether a Deployment says that it did not finish in its time.
    pub is_overdue: bool,
    /// Whether a Deployment says that its newest template has been fully available.
    pub is_complete: bool,
    /// Pods that a `DaemonSet` should have.
    pub desired_scheduled: i64,
    /// Those of the newest template.
    pub updated_scheduled: i64,
    /// Those that are available.
    pub number_available: i64,
}

/// The field managers under which kubectl goes back to an earlier revision.
const ROLLBACK_MANAGERS: [&str; 2] = ["kubectl", "kubectl-rollout"];

impl Projection for Workload {
    const READS: Parts = Parts::NONE.and(Part::ManagedFields).and(Part::Status);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let annotation = |name: &str| {
            object
                .get("metadata")?
                .get("annotations")?
                .get(name)?
                .as_str()
        };
        let deadline = integer(object, "/spec/progressDeadlineSeconds");
        let owners = object.pointer("/metadata/ownerReferences");
        let strategy = text(object, "/spec/strategy/type");
        let update = text(object, "/spec/updateStrategy/type");
        let restarted_at = object
            .pointer("/spec/template/metadata/annotations")
            .and_then(|annotations| annotations.get(names::RESTARTED_AT));
        Ok(Self {
            labels: strings(object, "/metadata/labels"),
            stamp: Written::read(annotation(names::LAST_RESTART)),
            template: Written::read(restarted_at.and_then(Value::as_str)),
            template_is_ours: owner(object, &template_path())
                .is_some_and(|entry| text(entry, "/manager") == Some(names::FIELD_MANAGER)),
            rolled_back: rolled_back(object),
            is_opted_out: annotation(names::RESTARTS_ENABLED) == Some("false"),
            not_before: Written::read(annotation(names::RESTART_NOT_BEFORE)),
            interval: annotation(names::RESTART_INTERVAL).map(str::to_owned),
            claim: annotation(names::DISRUPTION_CLAIM).map(str::to_owned),
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
            is_controlled: owners
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .any(|owner| owner.get("controller") == Some(&Value::Bool(true))),
            is_paused: object.pointer("/spec/paused") == Some(&Value::Bool(true)),
            recreates: strategy == Some("Recreate"),
            on_delete: update == Some("OnDelete"),
            partition: integer(object, "/spec/updateStrategy/rollingUpdate/partition")
                .unwrap_or_default(),
            deadline: deadline
                .and_then(|seconds| u64::try_from(seconds).ok())
                // The largest number is how a Deployment says that it has no deadline.
                .filter(|seconds| *seconds < u64::from(i32::MAX.unsigned_abs()))
                .map_or(DEFAULT_DEADLINE, Duration::from_secs),
            pod_labels: strings(object, "/spec/template/metadata/labels"),
            status: status(object),
            replicas: integer(object, "/spec/replicas").unwrap_or(1),
        })
    }
}

fn status(object: &Value) -> Status {
    let number = |name: &str| {
        let value = object.get("status").and_then(|status| status.get(name));
        value.and_then(Value::as_i64).unwrap_or_default()
    };
    let conditions = object.pointer("/status/conditions");
    let progressing = conditions
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|condition| text(condition, "/type") == Some("Progressing"));
    let says = |status: &str, reason: &str| {
        progressing.is_some_and(|condition| {
            text(condition, "/status") == Some(status) && text(condition, "/reason") == Some(reason)
        })
    };
    Status {
        observed_generation: number("observedGeneration"),
        replicas: number("replicas"),
        updated: number("updatedReplicas"),
        ready: number("readyReplicas"),
        available: number("availableReplicas"),
        is_current_revision: text(object, "/status/currentRevision")
            == text(object, "/status/updateRevision"),
        is_overdue: says("False", "ProgressDeadlineExceeded"),
        is_complete: says("True", "NewReplicaSetAvailable"),
        desired_scheduled: number("desiredNumberScheduled"),
        updated_scheduled: number("updatedNumberScheduled"),
        number_available: number("numberAvailable"),
    }
}

fn template_path() -> [String; 5] {
    [
        "f:spec".to_owned(),
        "f:template".to_owned(),
        "f:metadata".to_owned(),
        "f:annotations".to_owned(),
        format!("f:{}", names::RESTARTED_AT),
    ]
}

/// When an older stamp was brought back together with an older revision.
fn rolled_back(object: &Value) -> Option<Timestamp> {
    let stamp = format!("f:{}", names::LAST_RESTART);
    let path = ["f:metadata".to_owned(), "f:annotations".to_owned(), stamp];
    let entry = owner(object, &path)?;
    let manager = text(entry, "/manager")?;
    if !ROLLBACK_MANAGERS.contains(&manager) {
        return None;
    }
    text(entry, "/time")?.parse().ok()
}

/// The entry of the field manager that last wrote a field.
fn owner<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    entries.iter().find(|entry| {
        let fields = entry.get("fieldsV1");
        path.iter().fold(fields, |at, name| at?.get(name)).is_some()
    })
}

impl Workload {
    /// How many pods it should have.
    pub fn desired(&self, kind: WorkloadKind) -> i64 {
        match kind {
            WorkloadKind::DaemonSet => self.status.desired_scheduled,
            _ => self.replicas,
        }
    }

    /// Whether there is nothing to restart. A `DaemonSet` knows only when its controller has said so.
    pub fn is_empty(&self, kind: WorkloadKind) -> bool {
        match kind {
            WorkloadKind::DaemonSet => {
                self.status.observed_generation > 0 && self.status.desired_scheduled == 0
            }
            _ => self.replicas == 0,
        }
    }

    /// What is known about its last restart.
    pub fn past(&self) -> Past<'_> {
        Past {
            stamp: &self.stamp,
            template: &self.template,
            template_is_ours: self.template_is_ours,
            rolled_back: self.rolled_back,
        }
    }
}
