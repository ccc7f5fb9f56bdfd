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
mod reserve;
pub mod rollout;

use jiff::Timestamp;
use slipway_kernel::instant::{Written, later};
use slipway_kernel::{Action, Plan};

use crate::observe::World;
use crate::settings::Settings;
use crate::{render, replicas};

/// Decides about a group.
pub fn plan(settings: &Settings, world: &World, now: Timestamp) -> Plan {
    let surveys = world.surveys(now);
    let mut plan = Plan {
        basis: world.basis.clone(),
        keeps: replicas::prepare::kept(world),
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
    mark_downscales(world, &mut plan, now);
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

/// Puts on zones when the webhooks let them be scaled down, unless they are changed in this plan anyway.
fn mark_downscales(world: &World, plan: &mut Plan, now: Timestamp) {
    for zone in &world.zones {
        let recorded = world.downscales.get(&zone.set.meta().name);
        let Some(Written::At(recorded)) = recorded else {
            continue;
        };
        let known = &zone.set.body().scaling.last_downscale;
        if matches!(known, Written::At(known) if known >= recorded) {
            continue;
        }
        let set = world.set_ref(zone);
        let is_busy = plan
            .steps
            .iter()
            .any(|step| step.action.object() == Some(&set))
            || plan
                .statuses
                .iter()
                .any(|status| *status.target.object() == set);
        match world.refused(&set, now) {
            Some(refusal) => plan.wake(refusal.retry_at),
            None if is_busy => {}
            None => plan.act(render::downscaled(world, zone, *recorded)),
        }
    }
}
