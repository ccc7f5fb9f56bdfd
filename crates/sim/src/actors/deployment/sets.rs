//! A Deployment with its `ReplicaSets`, as they are and as they are to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetSpec,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::super::key::Kind;
use super::super::write::{Step, Write, as_json, difference};
use super::super::{hash, owner};
use super::{bounds, patch, status};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
const HASH: &str = "pod-template-hash";
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
    min_ready: Option<i32>,
    /// It does not exist yet.
    fresh: bool,
    pub(super) deleted: bool,
}

impl Set {
    fn of(object: Arc<ReplicaSet>) -> Self {
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

    fn revision(&self) -> i64 {
        let revision = self.annotations.get(REVISION);
        revision.and_then(|r| r.parse().ok()).unwrap_or(0)
    }

    pub(super) fn number(&self, annotation: &str) -> Option<i32> {
        let number = self.annotations.get(annotation)?.parse().ok()?;
        (number >= 0).then_some(number)
    }

    fn created(&self) -> (Option<Timestamp>, &str) {
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
    fn annotate(&mut self, deployment: &Deployment, number: i64) {
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

    fn write(&self) -> Option<Write> {
        if self.deleted {
            return Some(Write::Delete {
                kind: Kind::ReplicaSet,
                key: super::Key::of(&self.object.metadata),
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
        Some(patch(self, body))
    }
}

/// One Deployment at work.
#[derive(Debug)]
pub(super) struct Rollout {
    pub(super) deployment: Arc<Deployment>,
    pub(super) spec: DeploymentSpec,
    pub(super) now: Timestamp,
    /// Oldest first.
    pub(super) sets: Vec<Set>,
    new: Option<usize>,
    /// The status to compare with, and the one to write.
    pub(super) base: DeploymentStatus,
    pub(super) next: DeploymentStatus,
    revision: Option<String>,
    pub(super) wake: Option<Timestamp>,
}

impl Rollout {
    pub(super) fn new(
        deployment: &Arc<Deployment>,
        sets: Vec<Arc<ReplicaSet>>,
        now: Timestamp,
    ) -> Self {
        let mut sets: Vec<Set> = sets.into_iter().map(Set::of).collect();
        sets.sort_by(|a, b| a.created().cmp(&b.created()));
        let status = deployment.status.clone().unwrap_or_default();
        Self {
            spec: deployment.spec.clone().unwrap_or_default(),
            deployment: deployment.clone(),
            now,
            sets,
            new: None,
            base: status.clone(),
            next: status,
            revision: None,
            wake: None,
        }
    }

    pub(super) fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    pub(super) fn surge(&self) -> i32 {
        bounds(&self.deployment).0
    }

    pub(super) fn max_unavailable(&self) -> i32 {
        bounds(&self.deployment).1
    }

    pub(super) fn recreates(&self) -> bool {
        let strategy = self.spec.strategy.as_ref();
        strategy.and_then(|s| s.type_.as_deref()) == Some("Recreate")
    }

    pub(super) fn new_set(&self) -> Option<&Set> {
        self.new.and_then(|at| self.sets.get(at))
    }

    pub(super) fn new_mut(&mut self) -> Option<&mut Set> {
        self.new.and_then(|at| self.sets.get_mut(at))
    }

    pub(super) fn old(&self) -> impl Iterator<Item = &Set> {
        let new = self.new;
        let sets = self.sets.iter().enumerate();
        sets.filter(move |(at, _)| Some(*at) != new)
            .map(|(_, set)| set)
    }

    /// The old sets, oldest first.
    pub(super) fn old_mut(&mut self) -> impl Iterator<Item = &mut Set> {
        let new = self.new;
        let sets = self.sets.iter_mut().enumerate();
        sets.filter(move |(at, _)| Some(*at) != new)
            .map(|(_, set)| set)
    }

    /// The number of pods that all sets together ask for.
    pub(super) fn total(&self) -> i32 {
        self.sets.iter().map(|set| set.replicas).sum()
    }

    /// The revision that the new set has to have at least.
    fn next_revision(&self) -> i64 {
        self.old().map(Set::revision).max().unwrap_or(0) + 1
    }

    /// Finds the set with the Deployment's template and brings its annotations up to date.
    pub(super) fn find_new(&mut self) {
        let wanted = without_hash(&self.spec.template);
        self.new = self.sets.iter().position(|set| {
            let template = set
                .object
                .spec
                .as_ref()
                .and_then(|spec| spec.template.as_ref());
            template.is_some_and(|template| without_hash(template) == wanted)
        });
        if self.deployment.metadata.deletion_timestamp.is_some() {
            return;
        }
        let (number, min_ready) = (self.next_revision(), self.spec.min_ready_seconds);
        let deployment = self.deployment.clone();
        let Some(new) = self.new_mut() else {
            return;
        };
        new.annotate(&deployment, number);
        new.min_ready = min_ready;
        let (name, revision) = (new.name().to_owned(), new.revision());
        self.revision = Some(revision.to_string());
        status::note_found(self, &name);
    }

    /// Makes a set for the template if there is none.
    pub(super) fn create_new(&mut self) {
        if self.new.is_some() {
            return;
        }
        let number = self.next_revision();
        let mut set = Set::of(Arc::new(self.fresh_set()));
        set.fresh = true;
        set.replicas = 0;
        set.annotate(&self.deployment, number);
        let (desired, surge) = (self.replicas(), self.surge());
        set.note_replicas(desired, desired + surge);
        set.replicas = if self.recreates() {
            desired
        } else {
            let room = desired + surge - self.total();
            room.clamp(0, desired)
        };
        let name = set.name().to_owned();
        self.new = Some(self.sets.len());
        self.sets.push(set);
        self.revision = Some(number.to_string());
        status::note_created(self, &name);
    }

    fn fresh_set(&self) -> ReplicaSet {
        let mut template = self.spec.template.clone();
        let hash = hash::name(&template, self.base.collision_count);
        let labels = &mut template.metadata.get_or_insert_default().labels;
        labels
            .get_or_insert_default()
            .insert(HASH.to_owned(), hash.clone());
        let labels = labels.clone();
        let mut selector = self.spec.selector.clone();
        let matched = selector.match_labels.get_or_insert_default();
        matched.insert(HASH.to_owned(), hash.clone());
        let meta = &self.deployment.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        ReplicaSet {
            metadata: ObjectMeta {
                name: Some(format!("{name}-{hash}")),
                namespace: meta.namespace.clone(),
                labels,
                owner_references: Some(vec![owner::reference("apps/v1", "Deployment", meta)]),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(0),
                min_ready_seconds: self.spec.min_ready_seconds,
                selector,
                template: Some(template),
            }),
            status: None,
        }
    }

    /// Whether somebody changed the number of replicas since the sets were last scaled.
    pub(super) fn is_scaled(&self) -> bool {
        let active = self.sets.iter().filter(|set| set.replicas > 0);
        active
            .filter_map(|set| set.number(DESIRED))
            .any(|desired| desired != self.replicas())
    }

    /// The writes that bring all of it about.
    pub(super) fn into_step(self) -> Step {
        let mut writes: Vec<Write> = self.sets.iter().filter_map(Set::write).collect();
        let meta = &self.deployment.metadata;
        let old = self.deployment.status.as_ref();
        let old = old.map_or(Value::Null, as_json);
        let change = difference(&old, &as_json(&self.next));
        let annotations = meta.annotations.as_ref();
        let noted = annotations.and_then(|annotations| annotations.get(REVISION));
        let revision = self
            .revision
            .filter(|revision| noted != Some(revision) && meta.deletion_timestamp.is_none());
        if change.is_some() || revision.is_some() {
            let mut body = json!({
                "metadata": {"resourceVersion": meta.resource_version},
                "status": change.unwrap_or_else(|| json!({})),
            });
            if let Some(revision) = revision {
                let annotations = json!({REVISION: revision});
                slipway_apiserver::value::put(&mut body, "metadata.annotations", annotations);
            }
            writes.push(Write::Patch {
                kind: Kind::Deployment,
                key: super::Key::of(meta),
                subresource: "status",
                body,
            });
        }
        Step {
            writes,
            wake: self.wake,
        }
    }
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(meta) = &mut template.metadata {
        if let Some(labels) = &mut meta.labels {
            labels.remove(HASH);
        }
        // The server writes it into templates as null or not at all.
        meta.creation_timestamp = None;
    }
    template
}
