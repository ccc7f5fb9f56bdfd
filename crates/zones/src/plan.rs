//! What is to be done now about one rollout group.
//!
//! ```text
//! replicas  at most one zone is scaled; then nothing else is done
//! rollout   which pods of which zone go, and if none, why
//! act       the zone is claimed before its first pod goes, and released when it is done
//! report    what the group came to: ConfigMap, events
//! ```

pub mod act;
pub mod report;
pub mod rollout;

use jiff::Timestamp;
use slipway_kernel::instant::later;
use slipway_kernel::{Action, Blocker, ObjectRef, Plan};

use crate::observe::World;
use crate::reasons::Reason;
use crate::settings::Settings;
use crate::{render, replicas};

/// Decides about a group.
pub fn plan(settings: &Settings, world: &World, now: Timestamp) -> Plan {
    let surveys = world.surveys(now);
    let mut plan = Plan {
        basis: world.basis.clone(),
        ..Plan::default()
    };
    if let Some(at) = later(now, settings.heartbeat) {
        plan.wake(at);
    }
    let adjustment = replicas::adjust(settings, world, now);
    if let Some(at) = adjustment.wake_at.filter(|at| *at > now) {
        plan.wake(at);
    }
    plan.blockers.extend(adjustment.blockers);
    let scaled = adjustment
        .scale
        .as_ref()
        .and_then(|scale| Some((scale, world.zones.get(scale.zone)?)));
    if let Some((scale, zone)) = scaled {
        plan.steps.push(render::scale(world, zone, scale));
    } else {
        act::roll(settings, world, &surveys, &mut plan, now);
    }
    for relock in &adjustment.relocks {
        plan.act(render::relock(world, relock));
    }
    for question in adjustment.questions {
        plan.act(Action::Ask(question));
    }
    plan.statuses.extend(adjustment.write_backs);
    report::report(world, &surveys, &mut plan, now);
    plan
}

/// A reason why nothing, or not more, is done.
pub fn blocker(
    reason: Reason,
    object: ObjectRef,
    message: String,
    unblock: &str,
    now: Timestamp,
) -> Blocker {
    Blocker {
        reason: reason.as_str(),
        message,
        object,
        since: now,
        until: None,
        unblock: unblock.to_owned(),
    }
}
