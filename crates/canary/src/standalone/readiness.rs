//! How ready a workload is, as its controller says.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::flagger::SCALE_TO_ZERO;
use slipway_kernel::fields::{integer, list, text};
use slipway_kernel::instant::{instant, later};

use crate::engine::Readiness;

/// A kind of workload that can be rolled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// A Deployment.
    Deployment,
    /// A `DaemonSet`.
    DaemonSet,
}

impl Workload {
    /// The kind of this name.
    pub fn of(kind: &str) -> Option<Self> {
        match kind {
            "Deployment" => Some(Self::Deployment),
            "DaemonSet" => Some(Self::DaemonSet),
            _ => None,
        }
    }

    /// How many replicas are asked for. A `DaemonSet` has some or none.
    pub fn size(self, object: &Value) -> u32 {
        match self {
            Self::Deployment => {
                let replicas = integer(object, "/spec/replicas").unwrap_or(1);
                u32::try_from(replicas).unwrap_or_default()
            }
            Self::DaemonSet => {
                let selector = object.pointer("/spec/template/spec/nodeSelector");
                u32::from(selector.is_none_or(|all| all.get(SCALE_TO_ZERO).is_none()))
            }
        }
    }
}

/// What is asked of a workload to count as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// How many percent of its pods have to be available.
    pub percent: u8,
    /// How long it may take.
    pub deadline: Duration,
}

/// How ready a workload is.
pub fn readiness(kind: Workload, object: &Value, demand: Demand, now: Timestamp) -> Readiness {
    let seen = integer(object, "/status/observedGeneration").unwrap_or_default();
    let generation = integer(object, "/metadata/generation").unwrap_or_default();
    let available = available(kind, object);
    let unready = |why: String| {
        if available > 0 {
            Readiness::Partly(why)
        } else {
            Readiness::Down(why)
        }
    };
    if seen < generation {
        return unready(format!(
            "its controller has not observed generation {generation} yet"
        ));
    }
    let problem = match kind {
        Workload::Deployment => {
            if let Some(why) = stuck(object, demand, now) {
                return if available > 0 {
                    Readiness::Stalled(why)
                } else {
                    Readiness::Stuck(why)
                };
            }
            deployment(object, demand.percent)
        }
        Workload::DaemonSet => daemon_set(object, demand.percent),
    };
    problem.map_or(Readiness::Ready, unready)
}

fn status(object: &Value, field: &str) -> i64 {
    integer(object, &format!("/status/{field}")).unwrap_or_default()
}

fn available(kind: Workload, object: &Value) -> i64 {
    match kind {
        Workload::Deployment => status(object, "availableReplicas"),
        Workload::DaemonSet => status(object, "numberAvailable"),
    }
}

/// So many of these are enough.
fn enough(of: i64, percent: u8) -> i64 {
    of.saturating_mul(i64::from(percent.min(100))) / 100
}

fn deployment(object: &Value, percent: u8) -> Option<String> {
    let desired = integer(object, "/spec/replicas").unwrap_or(1);
    let updated = status(object, "updatedReplicas");
    let all = status(object, "replicas");
    let available = status(object, "availableReplicas");
    if let Some(why) = outdated(updated, desired) {
        return Some(why);
    }
    if all > updated {
        let old = all - updated;
        return Some(format!("{old} pods of the former template are still there"));
    }
    too_few(available, updated, percent)
}

/// Why the pods are not of the new template yet.
fn outdated(updated: i64, desired: i64) -> Option<String> {
    (updated < desired).then(|| format!("{updated} of {desired} pods are of the new template"))
}

/// Why those that are available are too few of all. Without any nobody answers, however few are enough.
fn too_few(available: i64, all: i64, percent: u8) -> Option<String> {
    let least = enough(all, percent).max(i64::from(all > 0));
    (available < least).then(|| format!("{available} of {least} pods are available"))
}

fn daemon_set(object: &Value, percent: u8) -> Option<String> {
    let desired = status(object, "desiredNumberScheduled");
    let updated = status(object, "updatedNumberScheduled");
    let available = status(object, "numberAvailable");
    if desired == 0 && Workload::DaemonSet.size(object) > 0 {
        return Some("it has no node to run on".to_owned());
    }
    outdated(updated, desired).or_else(|| too_few(available, desired, percent))
}

/// Why a Deployment does not get ready any more.
fn stuck(object: &Value, demand: Demand, now: Timestamp) -> Option<String> {
    let condition = |kind: &str| {
        list(object, "/status/conditions").find(|one| text(one, "/type") == Some(kind))
    };
    let progressing = condition("Progressing");
    let reason = |one: &Value| text(one, "/reason").map(str::to_owned);
    if progressing.and_then(reason).as_deref() == Some("ProgressDeadlineExceeded") {
        return Some("its progress deadline is exceeded".to_owned());
    }
    let unavailable = condition("Available").filter(|one| text(one, "/status") == Some("False"))?;
    if reason(unavailable).as_deref() != Some("MinimumReplicasUnavailable") {
        return None;
    }
    let since = text(unavailable, "/lastUpdateTime").and_then(instant)?;
    let end = later(since, demand.deadline)?;
    (end <= now).then(|| {
        let seconds = demand.deadline.as_secs();
        format!("it has not been available for {seconds} seconds")
    })
}
