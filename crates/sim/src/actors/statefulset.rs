//! The `StatefulSet` controller: pods with a name and a place in a row.
//!
//! Ordered and parallel management, rolling updates with a partition, updates on deletion, start ordinals, revisions
//! and claims from templates. `maxUnavailable` of rolling updates is ignored, as in a cluster without its feature gate:
//! one pod at a time. Claims are created and never deleted (the retention policy is not played).

mod make;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::Pod;

use super::key::{Key, Kind};
use super::owner;
use super::pod;
use super::replicaset::delete;
use super::revision;
use super::world::World;
use super::write::{self, Step, Write};

/// The label of a revision with the hash in its name.
const HASH: &str = "controller.kubernetes.io/hash";
/// The label of a pod with the name of its revision.
const REVISION: &str = "controller-revision-hash";

/// A set at work.
struct Row<'a> {
    set: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    current: &'a ControllerRevision,
    update: &'a ControllerRevision,
    now: Timestamp,
    /// The pods of the row, in order of their ordinals; none where one is missing.
    places: Vec<Option<Arc<Pod>>>,
    /// Pods outside the row, highest ordinal first.
    condemned: Vec<Arc<Pod>>,
}

/// What the controller does about one `StatefulSet`.
pub(crate) fn reconcile(world: &World, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let Some(set) = world.stateful_sets.get(key) else {
        return step;
    };
    let Some(spec) = &set.spec else {
        return step;
    };
    let reference = owner::reference("apps/v1", "StatefulSet", &set.metadata);
    let selector = owner::selector(Some(&spec.selector));
    let fits = |pod: &Pod| ordinal(set, pod).is_some();
    let claimed = owner::claim::<Pod>(world, &set.metadata, &reference, &selector, fits);
    if !claimed.writes.is_empty() {
        step.writes = claimed.writes;
        return step;
    }
    let known = revision::of(world, &set.metadata);
    let (update, revise) =
        revision::current(&known, &set.metadata, reference, &spec.template, HASH);
    step.writes.extend(revise);
    let noted = set.status.as_ref().and_then(|s| s.current_revision.clone());
    let current = known
        .iter()
        .find(|revision| revision.metadata.name == noted)
        .map_or_else(|| update.clone(), |found| ControllerRevision::clone(found));
    let pods = claimed.objects;
    let row = Row::new(set, spec, (&current, &update), &pods, now);
    let before = step.writes.len();
    if set.metadata.deletion_timestamp.is_none() {
        row.work(&mut step.writes);
    }
    let mut counts = status::of(&row, &pods);
    // A pod that has just been told to go no longer counts as current.
    let going = step.writes.iter().skip(before);
    let created = going.clone().any(|w| matches!(w, Write::Create { .. }));
    if !created {
        status::complete(&row, &mut counts);
        let old = set.status.as_ref();
        if going.count() == 0 {
            let write = write::status(Kind::StatefulSet, &set.metadata, old, &counts);
            step.writes.extend(write);
        }
    }
    if step.writes.is_empty() {
        step.writes = row.truncate(&known, &pods);
    }
    step.wake = pod::next_available(
        pods.iter().map(|pod| &**pod),
        spec.min_ready_seconds.unwrap_or(0),
        now,
    );
    step
}

/// The place of a pod in the row of a set, from its name.
fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let name = pod.metadata.name.as_deref()?;
    let (parent, number) = name.rsplit_once('-')?;
    (Some(parent) == set.metadata.name.as_deref())
        .then(|| number.parse().ok())
        .flatten()
}

impl<'a> Row<'a> {
    fn new(
        set: &'a StatefulSet,
        spec: &'a StatefulSetSpec,
        (current, update): (&'a ControllerRevision, &'a ControllerRevision),
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Self {
        let replicas = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let mut row = Self {
            set,
            spec,
            current,
            update,
            now,
            places: vec![None; replicas],
            condemned: Vec::new(),
        };
        let start = row.start();
        for pod in pods {
            let Some(ordinal) = ordinal(set, pod) else {
                continue;
            };
            let place = usize::try_from(ordinal - start).ok();
            match place.and_then(|place| row.places.get_mut(place)) {
                Some(place) => *place = Some(pod.clone()),
                None => row.condemned.push(pod.clone()),
            }
        }
        row.condemned
            .sort_by_key(|pod| std::cmp::Reverse(ordinal(set, pod)));
        row
    }

    fn start(&self) -> i32 {
        self.spec
            .ordinals
            .as_ref()
            .and_then(|o| o.start)
            .unwrap_or(0)
    }

    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or(0)
    }

    fn partition(&self) -> usize {
        let strategy = self.spec.update_strategy.as_ref();
        let partition = strategy
            .and_then(|strategy| strategy.rolling_update.as_ref())
            .and_then(|rolling| rolling.partition);
        usize::try_from(partition.unwrap_or(0)).unwrap_or(0)
    }

    fn strategy(&self) -> &str {
        let strategy = self.spec.update_strategy.as_ref();
        let kind = strategy.and_then(|strategy| strategy.type_.as_deref());
        kind.unwrap_or("RollingUpdate")
    }

    fn is_healthy(&self, pod: &Pod) -> bool {
        pod::is_available(pod, self.min_ready(), self.now) && !pod::is_terminating(pod)
    }

    /// The changes of pods: the row first, then what is outside of it, then one update.
    fn work(&self, writes: &mut Vec<Write>) {
        let ordered = self.spec.pod_management_policy.as_deref() != Some("Parallel");
        if self.fill(writes, ordered) || self.shrink(writes, ordered) {
            return;
        }
        if self.strategy() != "OnDelete" && !self.has_gaps() {
            self.update(writes);
        }
    }

    fn has_gaps(&self) -> bool {
        self.places.iter().any(Option::is_none)
    }

    /// Creates missing pods and replaces ended ones; whether the rest has to wait.
    fn fill(&self, writes: &mut Vec<Write>, ordered: bool) -> bool {
        for (place, pod) in self.places.iter().enumerate() {
            let Some(pod) = pod else {
                writes.extend(make::pod(self, place));
                if ordered {
                    return true;
                }
                continue;
            };
            if pod::is_finished(pod) {
                if !pod::is_terminating(pod) {
                    writes.push(delete(pod));
                }
                if ordered {
                    return true;
                }
                continue;
            }
            if ordered && !(pod::phase(pod) == "Running" && self.is_healthy(pod)) {
                return true;
            }
        }
        false
    }

    /// Deletes pods outside the row, the highest first; whether the rest has to wait.
    fn shrink(&self, writes: &mut Vec<Write>, ordered: bool) -> bool {
        let in_row = self.places.iter().flatten();
        let outside = self.condemned.iter().rev();
        let mut pods = in_row.chain(outside);
        let sick = pods.find(|pod| !self.is_healthy(pod));
        let sick = sick.map(|pod| &pod.metadata.name);
        for pod in &self.condemned {
            if pod::is_terminating(pod) {
                if ordered {
                    return true;
                }
                continue;
            }
            let well = pod::is_available(pod, self.min_ready(), self.now);
            if ordered && !well && sick != Some(&pod.metadata.name) {
                return true;
            }
            writes.push(delete(pod));
            if ordered {
                return true;
            }
        }
        false
    }

    /// Deletes the last pod that is not of the update revision, once those after it are well.
    fn update(&self, writes: &mut Vec<Write>) {
        let wanted = self.update.metadata.name.as_deref().unwrap_or_default();
        let places = self.places.iter().enumerate().rev();
        for (_, pod) in places.take_while(|(place, _)| *place >= self.partition()) {
            let Some(pod) = pod else {
                return;
            };
            if pod::label(pod, REVISION) != wanted && !pod::is_terminating(pod) {
                writes.push(delete(pod));
                return;
            }
            if !self.is_healthy(pod) {
                return;
            }
        }
    }

    fn truncate(&self, known: &[Arc<ControllerRevision>], pods: &[Arc<Pod>]) -> Vec<Write> {
        let live = |revision: &ControllerRevision| {
            let name = &revision.metadata.name;
            let carried = |pod: &Arc<Pod>| name.as_deref() == Some(pod::label(pod, REVISION));
            *name == self.current.metadata.name
                || *name == self.update.metadata.name
                || pods.iter().any(carried)
        };
        revision::truncate(known, self.spec.revision_history_limit, live)
    }
}
