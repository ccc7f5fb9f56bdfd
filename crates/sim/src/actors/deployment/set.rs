//! One `ReplicaSet` of a Deployment, as it is and as it is to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde_json::{Value, json};

use super::super::key::{Key, Kind};
use super::super::write::{Write, as_json, difference};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// The history annotation grows no longer than this.
const HISTORY_CHARS: usize = 2000;

/// Annotations of a Deployment that are its own business.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// One `ReplicaSet` and what is to become of it.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) object: Arc<ReplicaSet>,
    pub(super) replicas: i32,
    annotations: BTreeMap<String, String>,
    pub(super) min_ready: Option<i32>,
    /// It does not exist yet.
    pub(super) fresh: bool,
    pub(super) deleted: bool,
}

impl Set {
    pub(super) fn of(object: Arc<ReplicaSet>) -> Self {
        let spec = object.spec.as_ref();
        Self {
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            annotations: object.metadata.annotations.clone().unwrap_or_default(),
            min_ready: spec.and_then(|spec| spec.min_ready_seconds),
            fresh: false,
            deleted: false,
            object,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn revision(&self) -> i64 {
        let revision = self.annotations.get(REVISION);
        revision.and_then(|r| r.parse().ok()).unwrap_or(0)
    }

    pub(super) fn number(&self, annotation: &str) -> Option<i32> {
        let number = self.annotations.get(annotation)?.parse().ok()?;
        (number >= 0).then_some(number)
    }

    pub(super) fn created(&self) -> (Option<Timestamp>, &str) {
        let at = self.object.metadata.creation_timestamp.as_ref();
        (at.map(|time| time.0), self.name())
    }

    pub(super) fn actual(&self) -> i32 {
        self.object.status.as_ref().map_or(0, |s| s.replicas)
    }

    pub(super) fn ready(&self) -> i32 {
        let status = self.object.status.as_ref();
        status.and_then(|s| s.ready_replicas).unwrap_or(0)
    }

    pub(super) fn available(&self) -> i32 {
        let status = self.object.status.as_ref();
        status.and_then(|s| s.available_replicas).unwrap_or(0)
    }

    /// The size it has before this step.
    pub(super) fn object_replicas(&self) -> i32 {
        let spec = self.object.spec.as_ref();
        spec.and_then(|spec| spec.replicas).unwrap_or(1)
    }

    /// Its place in the history: by revision, then by age.
    pub(super) fn order(&self) -> (i64, Option<Timestamp>) {
        (self.revision(), self.created().0)
    }

    /// Whether everything about it is at rest at zero, so that it may go.
    pub(super) fn is_idle(&self) -> bool {
        let meta = &self.object.metadata;
        let seen = self
            .object
            .status
            .as_ref()
            .and_then(|s| s.observed_generation);
        self.actual() == 0
            && self.replicas == 0
            && meta.generation <= seen
            && meta.deletion_timestamp.is_none()
    }

    /// Notes what the Deployment wanted when it scaled this set.
    pub(super) fn note_replicas(&mut self, desired: i32, max: i32) {
        self.annotations
            .insert(DESIRED.to_owned(), desired.to_string());
        self.annotations.insert(MAX.to_owned(), max.to_string());
    }

    /// Makes this the set of revision `number`, with the Deployment's annotations.
    pub(super) fn annotate(&mut self, deployment: &Deployment, number: i64) {
        for (name, value) in deployment.metadata.annotations.iter().flatten() {
            if !NOT_COPIED.contains(&name.as_str()) {
                self.annotations.insert(name.clone(), value.clone());
            }
        }
        let before = self.annotations.get(REVISION).cloned();
        if self.revision() < number {
            self.annotations
                .insert(REVISION.to_owned(), number.to_string());
            if let Some(before) = before {
                let mut history: Vec<&str> = self
                    .annotations
                    .get(HISTORY)
                    .map(|history| history.split(',').collect())
                    .unwrap_or_default();
                history.push(&before);
                while history.iter().map(|r| r.len() + 1).sum::<usize>() > HISTORY_CHARS + 1 {
                    history.remove(0);
                }
                let history = history.join(",");
                self.annotations.insert(HISTORY.to_owned(), history);
            }
        }
    }

    pub(super) fn write(&self) -> Option<Write> {
        if self.deleted {
            return Some(Write::Delete {
                kind: Kind::ReplicaSet,
                key: Key::of(&self.object.metadata),
                uid: self.object.metadata.uid.clone().unwrap_or_default(),
                grace: None,
            });
        }
        if self.fresh {
            let mut object = ReplicaSet::clone(&self.object);
            object.metadata.annotations = Some(self.annotations.clone());
            object.spec.get_or_insert_default().replicas = Some(self.replicas);
            let body = as_json(&object);
            return Some(Write::Create {
                kind: Kind::ReplicaSet,
                body,
            });
        }
        let before = Self::of(self.object.clone());
        let mut spec = serde_json::Map::new();
        if before.replicas != self.replicas {
            spec.insert("replicas".to_owned(), json!(self.replicas));
        }
        if before.min_ready != self.min_ready {
            spec.insert("minReadySeconds".to_owned(), json!(self.min_ready));
        }
        let annotations = difference(&json!(before.annotations), &json!(self.annotations));
        if spec.is_empty() && annotations.is_none() {
            return None;
        }
        let version = &self.object.metadata.resource_version;
        let mut body = json!({"metadata": {"resourceVersion": version}});
        if let (Some(annotations), Some(Value::Object(meta))) =
            (annotations, body.get_mut("metadata"))
        {
            meta.insert("annotations".to_owned(), annotations);
        }
        if let (false, Some(body)) = (spec.is_empty(), body.as_object_mut()) {
            body.insert("spec".to_owned(), Value::Object(spec));
        }
        Some(Write::Patch {
            kind: Kind::ReplicaSet,
            key: Key::of(&self.object.metadata),
            subresource: "",
            body,
        })
    }
}
