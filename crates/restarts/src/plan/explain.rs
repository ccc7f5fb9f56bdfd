//! What is known about one workload, for who asks.

use jiff::Timestamp;
use slipway_kernel::{Blocker, ObjectRef};

use super::active::{Active, Finder};
use super::gates::{offset, reference};
use super::report::blocker;
use super::sweep::{Outcome, Sweep};
use crate::due::{self, Decision};
use crate::observe::World;
use crate::settings::Settings;

/// Why a workload is, or is not, restarted.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The Flipper that decides about it; none for the default criteria.
    pub policy: Option<ObjectRef>,
    /// When it is due next, or since when it is due.
    pub due: Option<Timestamp>,
    /// What holds it back.
    pub blocker: Option<Blocker>,
}

/// Explains one workload; none if no policy is about it.
pub fn explain(
    settings: &Settings,
    world: &World,
    object: &ObjectRef,
    now: Timestamp,
) -> Option<Explanation> {
    let (kind, item) = world
        .workloads
        .iter()
        .find(|(kind, item)| reference(&world.cluster, *kind, item) == *object)?;
    let active = Active::all(settings, world, now);
    let place = *Finder::new(settings, &active).find(*kind, item).first()?;
    let policy = active.get(place)?;
    let cadence = policy.cadence_of(item.body());
    let due = match due::decide(item.body().past(), &cadence, now) {
        Decision::Stamp { .. } => cadence.after(now),
        Decision::Future { due } | Decision::Wait { due } => {
            due.and_then(|due| due::later(due, offset(&item.meta().uid, policy.policy.jitter)))
        }
        Decision::Restart { due } => Some(due),
    };
    let due = due.filter(|_| policy.invalid.is_none());
    let sweep = Sweep::over(settings, world, &active, now);
    let case = sweep
        .cases
        .iter()
        .find(|case| case.kind == *kind && case.item.meta() == item.meta());
    let blocker = match case.map(|case| (case, &case.outcome)) {
        Some((case, Outcome::Held(held))) => Some(blocker(world, policy, case, held)),
        _ => None,
    };
    Some(Explanation {
        policy: policy.flipper.map(|flipper| ObjectRef {
            cluster: world.cluster.clone(),
            kind: crate::kinds::FLIPPER,
            namespace: flipper.meta().namespace.clone(),
            name: flipper.meta().name.clone(),
        }),
        due,
        blocker,
    })
}
