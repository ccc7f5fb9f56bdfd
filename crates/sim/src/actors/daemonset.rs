//! The `DaemonSet` controller: one pod on every node that takes it.
//!
//! Rolling updates within unavailability or surge, updates on deletion, revisions and counts. Ended pods are replaced at
//! once, without the back-off of the real controller.

mod make;
mod update;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};

use super::key::{Key, Kind};
use super::owner;
use super::pod;
use super::replicaset::delete;
use super::revision;
use super::scheduler;
use super::world::World;
use super::write::{self, Step, Write};

/// The label with the hash of a revision, on it and on its pods.
const HASH: &str = "controller-revision-hash";

/// A set at work.
struct Daemons<'a> {
    set: &'a DaemonSet,
    spec: &'a DaemonSetSpec,
    hash: String,
    now: Timestamp,
    nodes: Vec<&'a Arc<Node>>,
    /// The pods for each node, also on their way to it, oldest first.
    pods: BTreeMap<String, Vec<Arc<Pod>>>,
}

/// What the controller does about one `DaemonSet`.
pub(crate) fn reconcile(world: &World, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let Some(set) = world.daemon_sets.get(key) else {
        return step;
    };
    let Some(spec) = &set.spec else {
        return step;
    };
    if set.metadata.deletion_timestamp.is_some() {
        return step;
    }
    let reference = owner::reference("apps/v1", "DaemonSet", &set.metadata);
    let selector = owner::selector(Some(&spec.selector));
    let claimed = owner::claim::<Pod>(world, &set.metadata, &reference, &selector, pod::is_active);
    if !claimed.writes.is_empty() {
        step.writes = claimed.writes;
        return step;
    }
    let known = revision::of(world, &set.metadata);
    let (current, revise) =
        revision::current(&known, &set.metadata, reference, &spec.template, HASH);
    step.writes.extend(revise);
    let daemons = Daemons::new(world, set, spec, hash(&current), &claimed.objects, now);
    daemons.place(&mut step.writes);
    let placed = !step.writes.is_empty();
    if !placed && daemons.rolls() {
        update::roll(&daemons, &mut step.writes);
    }
    if step.writes.is_empty() {
        let status = daemons.status();
        let old = set.status.as_ref();
        let write = write::status(Kind::DaemonSet, &set.metadata, old, &status);
        step.writes.extend(write);
    }
    if step.writes.is_empty() {
        step.writes = daemons.truncate(&known, &current);
    }
    step.wake = pod::next_available(
        claimed.objects.iter().map(|pod| &**pod),
        daemons.min_ready(),
        now,
    );
    step
}

fn hash(revision: &ControllerRevision) -> String {
    let labels = revision.metadata.labels.as_ref();
    let hash = labels.and_then(|labels| labels.get(HASH));
    hash.cloned().unwrap_or_default()
}

impl<'a> Daemons<'a> {
    fn new(
        world: &'a World,
        set: &'a DaemonSet,
        spec: &'a DaemonSetSpec,
        hash: String,
        all: &[Arc<Pod>],
        now: Timestamp,
    ) -> Self {
        let mut pods: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in all {
            if let Some(node) = make::target(pod) {
                pods.entry(node).or_default().push(pod.clone());
            }
        }
        for pods in pods.values_mut() {
            let created = |pod: &Arc<Pod>| {
                let at = pod.metadata.creation_timestamp.as_ref();
                at.map(|time| time.0)
            };
            pods.sort_by_key(|pod| (pod::node(pod).is_none(), created(pod)));
        }
        Self {
            set,
            spec,
            hash,
            now,
            nodes: world.nodes.iter().map(|(_, node)| node).collect(),
            pods,
        }
    }

    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or(0)
    }

    fn strategy(&self) -> &str {
        let strategy = self.spec.update_strategy.as_ref();
        let kind = strategy.and_then(|strategy| strategy.type_.as_deref());
        kind.unwrap_or("RollingUpdate")
    }

    fn rolls(&self) -> bool {
        self.strategy() == "RollingUpdate"
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod::is_available(pod, self.min_ready(), self.now)
    }

    fn is_updated(&self, pod: &Pod) -> bool {
        pod::label(pod, HASH) == self.hash
    }

    fn on(&self, node: &Node) -> &[Arc<Pod>] {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.pods.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a pod is to be started on a node, and whether one that is there may stay.
    fn belongs(&self, node: &Node) -> (bool, bool) {
        let pod = make::free(self);
        if !scheduler::is_wanted(node, &pod) {
            return (false, false);
        }
        let starts = scheduler::is_tolerated(node, &pod, &["NoSchedule", "NoExecute"]);
        (starts, scheduler::is_tolerated(node, &pod, &["NoExecute"]))
    }

    /// Creates missing pods and deletes those that have no place.
    fn place(&self, writes: &mut Vec<Write>) {
        for node in &self.nodes {
            let (starts, stays) = self.belongs(node);
            let pods = self.on(node);
            if starts && pods.is_empty() {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                writes.push(make::create(self, name));
            } else if stays {
                self.thin_out(node, starts, writes);
            } else {
                let here = pods.iter().filter(|pod| !pod::is_terminating(pod));
                writes.extend(here.map(|pod| delete(pod)));
            }
        }
    }

    /// Deletes ended pods, and all but the oldest of those that run.
    fn thin_out(&self, node: &Node, starts: bool, writes: &mut Vec<Write>) {
        let here = self.on(node).iter().filter(|pod| !pod::is_terminating(pod));
        let (ended, running): (Vec<_>, Vec<_>) = here.partition(|pod| pod::is_finished(pod));
        writes.extend(ended.into_iter().map(|pod| delete(pod)));
        if !self.surges() {
            writes.extend(running.into_iter().skip(1).map(|pod| delete(pod)));
            return;
        }
        if running.is_empty() && starts {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            writes.push(make::create(self, name));
        }
        let new: Vec<_> = running.iter().filter(|pod| self.is_updated(pod)).collect();
        let old: Vec<_> = running.iter().filter(|pod| !self.is_updated(pod)).collect();
        let doubles = new.iter().skip(1).chain(old.iter().skip(1));
        writes.extend(doubles.map(|pod| delete(pod)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pod::is_ready(old) || self.is_available(new))
        {
            writes.push(delete(old));
        }
    }

    fn surges(&self) -> bool {
        update::bounds(self, 1).0 > 0
    }

    fn status(&self) -> DaemonSetStatus {
        let old = self.set.status.clone().unwrap_or_default();
        let mut status = DaemonSetStatus {
            observed_generation: self.set.metadata.generation,
            collision_count: old.collision_count,
            conditions: old.conditions,
            ..DaemonSetStatus::default()
        };
        let (mut available, mut updated) = (0, 0);
        for node in &self.nodes {
            let first = self.on(node).first();
            if !self.belongs(node).0 {
                status.number_misscheduled += i32::from(first.is_some());
                continue;
            }
            status.desired_number_scheduled += 1;
            let Some(first) = first else {
                continue;
            };
            status.current_number_scheduled += 1;
            status.number_ready += i32::from(pod::is_ready(first));
            available += usize::from(self.is_available(first));
            updated += usize::from(self.is_updated(first));
        }
        let wanted = usize::try_from(status.desired_number_scheduled).unwrap_or(0);
        status.number_available = pod::count(available);
        status.updated_number_scheduled = pod::count(updated);
        status.number_unavailable = pod::count(wanted.saturating_sub(available));
        status
    }

    fn truncate(
        &self,
        known: &[Arc<ControllerRevision>],
        current: &ControllerRevision,
    ) -> Vec<Write> {
        let live = |revision: &ControllerRevision| {
            let label = hash(revision);
            let mut pods = self.pods.values().flatten();
            revision.metadata.name == current.metadata.name
                || pods.any(|pod| pod::label(pod, HASH) == label)
        };
        revision::truncate(known, self.spec.revision_history_limit, live)
    }
}
