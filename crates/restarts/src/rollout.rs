//! How far a workload's rollout is, by what its own controller says about it.
//!
//! A status that was never observed says nothing and holds nothing back: there may be no controller at all.

use jiff::Timestamp;
use slipway_api::flipper::WorkloadKind;

use crate::due::later;
use crate::observe::Workload;

/// How far a rollout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollout {
    /// Nobody has said anything yet.
    Unknown,
    /// It goes on, or is about to.
    Rolling,
    /// It did not finish in its time.
    Failed,
    /// It is done, but not all replicas are available.
    Unavailable,
    /// It is done.
    Complete,
}

/// What the rollout of a workload means for the number that may roll at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// It takes no place.
    Free,
    /// It takes a place, until then at the latest if that is known.
    Taken(Option<Timestamp>),
}

/// When we last restarted the workload, if its pods are of that restart: both annotations carry the same time.
pub fn restarted(workload: &Workload) -> Option<Timestamp> {
    let template = workload.template.at()?;
    (workload.stamp.at() == Some(template)).then_some(template)
}

/// How far the rollout is.
pub fn assess(kind: WorkloadKind, workload: &Workload, generation: i64, now: Timestamp) -> Rollout {
    let status = &workload.status;
    if status.observed_generation <= 0 {
        return Rollout::Unknown;
    }
    if status.observed_generation < generation {
        return Rollout::Rolling;
    }
    let desired = workload.desired(kind);
    let (moved, is_available) = match kind {
        WorkloadKind::Deployment => {
            if status.is_overdue {
                return Rollout::Failed;
            }
            let moved = status.updated >= desired && status.replicas <= status.updated;
            (moved, status.available >= desired)
        }
        WorkloadKind::StatefulSet => {
            let moved = status.updated >= desired - workload.partition
                && (workload.partition > 0 || status.is_current_revision);
            (moved || workload.on_delete, status.ready >= desired)
        }
        WorkloadKind::DaemonSet => {
            let moved = status.updated_scheduled >= desired;
            (
                moved || workload.on_delete,
                status.number_available >= desired,
            )
        }
    };
    if !moved {
        return Rollout::Rolling;
    }
    if is_available {
        return Rollout::Complete;
    }
    // The pods are all new. Whether they have been available since tells a Deployment's own condition; for the
    // others, a restart is believed to go on for as long as it may take.
    let is_fresh = match kind {
        WorkloadKind::Deployment => !status.is_complete,
        _ => restart_ends(workload).is_some_and(|end| now < end),
    };
    if is_fresh {
        Rollout::Rolling
    } else {
        Rollout::Unavailable
    }
}

fn restart_ends(workload: &Workload) -> Option<Timestamp> {
    later(restarted(workload)?, workload.deadline)
}

/// Whether the workload counts as one of those that roll.
pub fn slot(rollout: Rollout, workload: &Workload, now: Timestamp) -> Slot {
    match rollout {
        // What somebody stopped half-way does not roll, unless it was our restart.
        Rollout::Rolling if workload.is_paused && restarted(workload).is_none() => Slot::Free,
        Rollout::Rolling => Slot::Taken(restart_ends(workload)),
        // A restart of ours that broke something uses up its place: the limit is also a brake.
        Rollout::Failed if restarted(workload).is_some() => Slot::Taken(None),
        Rollout::Unknown => match restart_ends(workload) {
            Some(end) if now < end => Slot::Taken(Some(end)),
            _ => Slot::Free,
        },
        _ => Slot::Free,
    }
}
