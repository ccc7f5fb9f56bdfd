//! The horizontal autoscaler, on metrics from the script.
//!
//! Every metric asks for `ceil(replicas × value / target)` unless the value is within a tenth of the target; the largest
//! wins, bounded by minimum, maximum and, upwards, by the double (at least four). Downwards the highest recommendation
//! of the stabilisation window counts (300 s unless the behaviour says otherwise). It looks every 15 s at most, and only
//! when something can have changed. Not played: scaling policies of the behaviour, readiness of pods, scaling to zero.

mod status;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricSpec, MetricTarget,
};
use serde_json::json;
use slipway_apiserver::builtin::quantity::Quantity;

use super::key::{Key, Kind};
use super::pod;
use super::scheduler::after;
use super::script::{Metric, Scene, Script};
use super::world::World;
use super::write::{self, Step, Write};

/// How often an autoscaler looks, in seconds.
const PERIOD: i64 = 15;
/// How long a higher recommendation holds, in seconds, unless the behaviour says otherwise.
const WINDOW: i32 = 300;
/// How far from its target a value has to be to count.
const TOLERANCE: f64 = 0.1;

/// What an autoscaler remembers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// It looks again at this time at the earliest.
    next: Option<Timestamp>,
    /// What it wanted, since when.
    recommended: Vec<(Timestamp, i32)>,
}

/// One value of a metric against its target.
struct Reading<'a> {
    spec: &'a MetricSpec,
    value: f64,
    wanted: i32,
}

/// What the autoscaler does.
pub(crate) fn reconcile(world: &mut World, scene: Scene<'_>, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let Some(scaler) = world.autoscalers.get(key).cloned() else {
        world.recommendations.remove(key);
        return step;
    };
    let Some(spec) = &scaler.spec else {
        return step;
    };
    let target = target(world, spec, key);
    let mut memory = world.recommendations.remove(key).unwrap_or_default();
    let created = scaler.metadata.creation_timestamp.as_ref();
    let first = created.map_or(now, |time| pod::later(time.0, PERIOD));
    let due = memory.next.unwrap_or(first);
    if due > now {
        step.wake_at(due);
    } else {
        memory.next = Some(pod::later(now, PERIOD));
        let (script, since) = (scene.script, scene.since(now));
        match target {
            Some(target) => {
                let look = Look {
                    scaler: &scaler,
                    spec,
                    script,
                    since,
                    now,
                };
                look.scale(target, &mut memory, &mut step);
            }
            None => status::lost(&scaler, now, &mut step),
        }
        let next = metrics(script, key).flat_map(|metric| &metric.steps);
        let next = next.map(|s| s.at).filter(|at| *at > since).min();
        if let Some(at) = next {
            step.wake_at(after(scene.started, at).max(pod::later(now, PERIOD)));
        }
    }
    world.recommendations.insert(key.clone(), memory);
    step
}

/// A workload with a size.
#[derive(Clone)]
struct Target {
    kind: Kind,
    key: Key,
    replicas: i32,
}

fn target(world: &World, spec: &HorizontalPodAutoscalerSpec, key: &Key) -> Option<Target> {
    let reference = &spec.scale_target_ref;
    let key = Key::new(&key.namespace, &reference.name);
    let (kind, replicas) = match reference.kind.as_str() {
        "Deployment" => {
            let found = world.deployments.get(&key)?;
            (Kind::Deployment, found.spec.as_ref()?.replicas)
        }
        "ReplicaSet" => {
            let found = world.replica_sets.get(&key)?;
            (Kind::ReplicaSet, found.spec.as_ref()?.replicas)
        }
        "StatefulSet" => {
            let found = world.stateful_sets.get(&key)?;
            (Kind::StatefulSet, found.spec.as_ref()?.replicas)
        }
        _ => return None,
    };
    Some(Target {
        kind,
        key,
        replicas: replicas.unwrap_or(1),
    })
}

fn metrics<'a>(script: &'a Script, key: &'a Key) -> impl Iterator<Item = &'a Metric> {
    let ours =
        |metric: &&Metric| metric.namespace == key.namespace && metric.autoscaler == key.name;
    script.metrics.iter().filter(ours)
}

/// One look at the metrics.
struct Look<'a> {
    scaler: &'a HorizontalPodAutoscaler,
    spec: &'a HorizontalPodAutoscalerSpec,
    script: &'a Script,
    since: SignedDuration,
    now: Timestamp,
}

impl Look<'_> {
    fn scale(&self, target: Target, memory: &mut Memory, step: &mut Step) {
        let current = target.replicas;
        if memory.recommended.is_empty() {
            memory.recommended.push((self.now, current));
        }
        let (min, max) = (self.spec.min_replicas.unwrap_or(1), self.spec.max_replicas);
        let readings = self.readings(current);
        let verdict = if current == 0 {
            status::Verdict::Disabled
        } else if current > max || current < min {
            status::Verdict::Bounded(current.clamp(min, max))
        } else if readings.is_empty() {
            status::Verdict::Blind
        } else {
            let wanted = readings.iter().map(|reading| reading.wanted).max();
            self.settle(current, wanted.unwrap_or(current), (min, max), memory, step)
        };
        if let Some(desired) = verdict.desired().filter(|desired| *desired != current) {
            step.writes.push(Write::Patch {
                kind: target.kind,
                key: target.key,
                subresource: "scale",
                body: json!({"spec": {"replicas": desired}}),
            });
        }
        let next = status::of(self, current, &verdict, &readings);
        let (meta, old) = (&self.scaler.metadata, self.scaler.status.as_ref());
        step.writes
            .extend(write::status(Kind::Autoscaler, meta, old, &next));
    }

    /// The size that stabilisation and bounds make of a wanted one.
    fn settle(
        &self,
        current: i32,
        wanted: i32,
        (min, max): (i32, i32),
        memory: &mut Memory,
        step: &mut Step,
    ) -> status::Verdict {
        let window = i64::from(self.window());
        let (stable, until) = memory.stabilise(wanted, window, self.now);
        if let Some(until) = until.filter(|_| stable > wanted) {
            step.wake_at(until.max(pod::later(self.now, PERIOD)));
        }
        let limit = (2 * current).max(4);
        let desired = stable.min(limit).clamp(min, max);
        let reason = if stable < min {
            "TooFewReplicas"
        } else if stable > max.min(limit) {
            if max > limit {
                "ScaleUpLimit"
            } else {
                "TooManyReplicas"
            }
        } else {
            "DesiredWithinRange"
        };
        status::Verdict::Measured {
            desired,
            held: stable != wanted,
            reason,
        }
    }

    fn window(&self) -> i32 {
        let behaviour = self.spec.behavior.as_ref();
        let down: Option<&HPAScalingRules> = behaviour.and_then(|b| b.scale_down.as_ref());
        let window = down.and_then(|down| down.stabilization_window_seconds);
        window.unwrap_or(WINDOW)
    }

    fn readings(&self, current: i32) -> Vec<Reading<'_>> {
        let specs = self.spec.metrics.iter().flatten();
        specs
            .filter_map(|spec| self.reading(spec, current))
            .collect()
    }

    fn reading<'b>(&self, spec: &'b MetricSpec, current: i32) -> Option<Reading<'b>> {
        let (name, goal) = goal(spec)?;
        let key = Key::of(&self.scaler.metadata);
        let metric = metrics(self.script, &key)
            .find(|metric| metric.name.as_deref().is_none_or(|wanted| wanted == name))?;
        let steps = metric.steps.iter().filter(|step| step.at <= self.since);
        let value = steps.max_by_key(|step| step.at)?.value;
        let share = if metric.shared {
            f64::from(current.max(1))
        } else {
            1.0
        };
        let value = value / share;
        let ratio = value / amount(goal)?;
        let wanted = if (ratio - 1.0).abs() <= TOLERANCE {
            current
        } else {
            ceil(ratio * f64::from(current))
        };
        Some(Reading {
            spec,
            value,
            wanted,
        })
    }
}

#[allow(clippy::cast_possible_truncation, reason = "bounded before the cast")]
fn ceil(value: f64) -> i32 {
    value.ceil().clamp(0.0, f64::from(i32::MAX)) as i32
}

/// The name and the target of a metric.
fn goal(spec: &MetricSpec) -> Option<(&str, &MetricTarget)> {
    if let Some(resource) = &spec.resource {
        return Some((&resource.name, &resource.target));
    }
    if let Some(resource) = &spec.container_resource {
        return Some((&resource.name, &resource.target));
    }
    if let Some(pods) = &spec.pods {
        return Some((&pods.metric.name, &pods.target));
    }
    if let Some(object) = &spec.object {
        return Some((&object.metric.name, &object.target));
    }
    let external = spec.external.as_ref()?;
    Some((&external.metric.name, &external.target))
}

/// The number that a target names; none if it is not positive.
fn amount(target: &MetricTarget) -> Option<f64> {
    if let Some(percent) = target.average_utilization {
        return (percent > 0).then(|| f64::from(percent));
    }
    let quantity = target.average_value.as_ref().or(target.value.as_ref())?;
    let millis = Quantity::parse(&quantity.0).ok()?.millis();
    #[allow(clippy::cast_precision_loss, reason = "metrics are no sums of money")]
    (millis > 0).then(|| millis as f64 / 1000.0)
}

impl Memory {
    /// The highest recommendation within the window, and when the next lower one counts.
    fn stabilise(&mut self, wanted: i32, window: i64, now: Timestamp) -> (i32, Option<Timestamp>) {
        if self.recommended.last().map(|(_, last)| *last) != Some(wanted) {
            self.recommended.push((now, wanted));
        }
        // A recommendation holds until the period before the next one.
        let ends: Vec<Timestamp> = self
            .recommended
            .iter()
            .skip(1)
            .map(|(at, _)| pod::later(*at, window - PERIOD))
            .chain([Timestamp::MAX])
            .collect();
        let mut held: Vec<(i32, Timestamp)> = Vec::new();
        let mut kept = Vec::new();
        for (recommended, end) in self.recommended.iter().zip(ends) {
            if end >= now {
                held.push((recommended.1, end));
                kept.push(*recommended);
            }
        }
        self.recommended = kept;
        let highest = held.iter().map(|(size, _)| *size).max().unwrap_or(wanted);
        let tops = held.iter().filter(|(size, _)| *size == highest);
        let until = tops.map(|(_, end)| *end).max();
        (highest.max(wanted), until.map(|until| pod::later(until, 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_recommendation_counts_when_the_higher_ones_are_old() {
        let at = |seconds: i64| Timestamp::from_second(1_000_000 + seconds).unwrap();
        let mut memory = Memory::default();
        assert_eq!(memory.stabilise(4, 300, at(0)).0, 4);
        assert_eq!(memory.stabilise(8, 300, at(60)).0, 8);
        let (size, until) = memory.stabilise(2, 300, at(120));
        assert_eq!(size, 8);
        assert_eq!(until, Some(at(120 + 300 - 15 + 1)));
        assert_eq!(memory.stabilise(2, 300, at(406)).0, 2);
    }
}
