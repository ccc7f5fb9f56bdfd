//! A Deployment with its `ReplicaSets`, as they are and as they are to be.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetSpec,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::super::key::{Key, Kind};
use super::super::world::World;
use super::super::write::{Step, Write, as_json, difference};
use super::super::{hash, owner};
use super::set::{DESIRED, REVISION, Set};
use super::{bounds, status};

const HASH: &str = "pod-template-hash";

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

    /// Makes a set for the template if there is none. If another object has its name, the next attempt takes another.
    pub(super) fn create_new(&mut self, world: &World) {
        if self.new.is_some() {
            return;
        }
        let number = self.next_revision();
        let fresh = self.fresh_set();
        if world.replica_sets.get(&Key::of(&fresh.metadata)).is_some() {
            let collisions = self.base.collision_count.unwrap_or(0);
            self.base.collision_count = Some(collisions + 1);
            return;
        }
        let mut set = Set::of(Arc::new(fresh));
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
                key: Key::of(meta),
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
