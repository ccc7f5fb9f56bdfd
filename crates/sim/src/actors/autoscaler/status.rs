//! What an autoscaler says of itself.

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricStatus, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus,
    MetricValueStatus, ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::super::key::Kind;
use super::super::pod;
use super::super::write::{self, Step};
use super::{Look, Reading, ceil, goal};

/// What came of a look.
pub(super) enum Verdict {
    /// The target is at zero, which means: leave it alone.
    Disabled,
    /// The size was out of bounds.
    Bounded(i32),
    /// No metric has a value.
    Blind,
    Measured {
        desired: i32,
        /// An earlier, higher recommendation holds.
        held: bool,
        reason: &'static str,
    },
}

impl Verdict {
    pub(super) fn desired(&self) -> Option<i32> {
        match self {
            Self::Disabled | Self::Blind => None,
            Self::Bounded(desired) | Self::Measured { desired, .. } => Some(*desired),
        }
    }
}

/// The status after a look.
pub(super) fn of(
    look: &Look<'_>,
    current: i32,
    verdict: &Verdict,
    readings: &[Reading<'_>],
) -> HorizontalPodAutoscalerStatus {
    let mut next = look.scaler.status.clone().unwrap_or_default();
    let desired = verdict.desired().unwrap_or(current);
    let rescaled = desired != current;
    next.current_replicas = Some(current);
    next.desired_replicas = desired;
    if rescaled {
        next.last_scale_time = Some(pod::stamp(look.now));
    }
    let mut say = |kind, status, reason, message: &str| {
        set(&mut next, kind, (status, reason, message), look.now);
    };
    let (reason, message) = match verdict {
        _ if rescaled => (
            "SucceededRescale",
            format!("the HPA controller was able to update the target scale to {desired}"),
        ),
        Verdict::Measured { held: true, .. } => (
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent recommendation".to_owned(),
        ),
        Verdict::Measured { .. } => (
            "ReadyForNewScale",
            "recommended size matches current size".to_owned(),
        ),
        _ => (
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale".to_owned(),
        ),
    };
    say("AbleToScale", "True", reason, &message);
    match verdict {
        Verdict::Disabled => say(
            "ScalingActive",
            "False",
            "ScalingDisabled",
            "scaling is disabled since the replica count of the target is zero",
        ),
        Verdict::Blind => say(
            "ScalingActive",
            "False",
            "FailedGetResourceMetric",
            "the HPA was unable to compute the replica count: no metrics returned",
        ),
        Verdict::Bounded(_) => {}
        Verdict::Measured { reason, .. } => {
            say(
                "ScalingActive",
                "True",
                "ValidMetricFound",
                "the HPA was able to successfully calculate a replica count",
            );
            let limited = if *reason == "DesiredWithinRange" {
                "False"
            } else {
                "True"
            };
            say("ScalingLimited", limited, *reason, explain(reason));
        }
    }
    let metrics: Vec<MetricStatus> = readings.iter().map(metric).collect();
    next.current_metrics = (!metrics.is_empty()).then_some(metrics);
    next
}

fn explain(reason: &str) -> &'static str {
    match reason {
        "TooFewReplicas" => "the desired replica count is less than the minimum replica count",
        "TooManyReplicas" => "the desired replica count is more than the maximum replica count",
        "ScaleUpLimit" => {
            "the desired replica count is increasing faster than the maximum scale rate"
        }
        _ => "the desired count is within the acceptable range",
    }
}

/// Says that there is nothing to scale.
pub(super) fn lost(scaler: &HorizontalPodAutoscaler, now: Timestamp, step: &mut Step) {
    let mut next = scaler.status.clone().unwrap_or_default();
    let message = "the HPA controller was unable to get the target's current scale: not found";
    set(
        &mut next,
        "AbleToScale",
        ("False", "FailedGetScale", message),
        now,
    );
    let old = scaler.status.as_ref();
    let write = write::status(Kind::Autoscaler, &scaler.metadata, old, &next);
    step.writes.extend(write);
}

fn set(
    status: &mut HorizontalPodAutoscalerStatus,
    kind: &str,
    (value, reason, message): (&str, &str, &str),
    now: Timestamp,
) {
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter().position(|c| c.type_ == kind);
    let since = known
        .and_then(|at| conditions.get(at))
        .filter(|condition| condition.status == value)
        .and_then(|condition| condition.last_transition_time.clone());
    let condition = HorizontalPodAutoscalerCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(since.unwrap_or_else(|| pod::stamp(now))),
    };
    match known.and_then(|at| conditions.get_mut(at)) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

fn metric(reading: &Reading<'_>) -> MetricStatus {
    let spec = reading.spec;
    let percent = goal(spec).is_some_and(|(_, goal)| goal.average_utilization.is_some());
    let quantity = Quantity(format!("{}m", ceil(reading.value * 1000.0)));
    let current = MetricValueStatus {
        average_utilization: percent.then(|| ceil(reading.value)),
        average_value: Some(quantity),
        value: None,
    };
    let mut status = MetricStatus {
        type_: spec.type_.clone(),
        ..MetricStatus::default()
    };
    status.resource = spec.resource.as_ref().map(|source| ResourceMetricStatus {
        name: source.name.clone(),
        current: current.clone(),
    });
    status.container_resource =
        spec.container_resource
            .as_ref()
            .map(|source| ContainerResourceMetricStatus {
                container: source.container.clone(),
                name: source.name.clone(),
                current: current.clone(),
            });
    status.pods = spec.pods.as_ref().map(|source| PodsMetricStatus {
        metric: source.metric.clone(),
        current: current.clone(),
    });
    status.object = spec.object.as_ref().map(|source| ObjectMetricStatus {
        metric: source.metric.clone(),
        described_object: source.described_object.clone(),
        current: current.clone(),
    });
    status.external = spec.external.as_ref().map(|source| ExternalMetricStatus {
        metric: source.metric.clone(),
        current,
    });
    status
}
