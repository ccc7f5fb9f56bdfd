//! Replaces pods under a claim: the zone that has the turn is claimed in one plan, its pods go in the next ones, and the
//! claim is given up when the zone is done. So at most one zone of a group is claimed by us at a time, and it is the API
//! that knows which.
//!
//! Where the API refuses the claim, pods go without; a server that is only busy is waited for.

use jiff::Timestamp;
use slipway_kernel::claim::Claim;
use slipway_kernel::fact::{Cause, Refusal};
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::later;
use slipway_kernel::{ObjectRef, Plan};

use super::reserve;
use super::rollout::{self, Rollout, Victim};
use crate::observe::{World, Zone};
use crate::readiness::Survey;
use crate::reasons::Reason;
use crate::render;
use crate::settings::Settings;

/// Adds what is to be done about pods to a plan.
pub(super) fn roll(
    settings: &Settings,
    world: &World,
    surveys: &[Survey<'_>],
    plan: &mut Plan,
    now: Timestamp,
) {
    let rollout = rollout::decide(world, surveys, now);
    if let Some(at) = rollout.wake_at {
        plan.wake(at);
    }
    plan.blockers.extend(rollout.blockers.iter().cloned());
    if may_act(settings, world, surveys, &rollout, plan, now) {
        let victims = deletable(world, &rollout.victims, plan, now);
        if reserve::is_announced(world, &victims, plan, now) {
            for victim in victims {
                replace(world, victim, plan);
            }
        }
    }
    let settled = rollout.settled.iter();
    for zone in settled.filter_map(|place| world.zones.get(*place)) {
        match world.refused(&world.set_ref(zone), now) {
            Some(refusal) => plan.wake(refusal.retry_at),
            None => plan.statuses.push(render::settle(world, zone)),
        }
    }
}

/// Those whose deletion the API does not refuse for now. The others are not announced either: webhooks would keep pods of
/// other zones from going for the sake of one that stays.
fn deletable<'v, 'w>(
    world: &World,
    victims: &'v [Victim<'w>],
    plan: &mut Plan,
    now: Timestamp,
) -> Vec<&'v Victim<'w>> {
    let mut all = Vec::new();
    for victim in victims {
        let name = &victim.member.pod.meta().name;
        let object = world.object(kinds::POD, name);
        match world.refused(&object, now) {
            None => all.push(victim),
            Some(refusal) => {
                let what = format!("the deletion of pod {name}");
                refused(object, &what, refusal, plan, now);
            }
        }
    }
    all
}

fn replace(world: &World, victim: &Victim<'_>, plan: &mut Plan) {
    if let Some(zone) = world.zones.get(victim.zone) {
        plan.steps
            .push(render::replace(world, zone, &victim.member));
    }
}

/// The API refused something; until it may be tried again, that is what is waited for.
pub(super) fn refused(
    object: ObjectRef,
    what: &str,
    refusal: &Refusal,
    plan: &mut Plan,
    now: Timestamp,
) {
    let message = format!("{what} was refused: {}", refusal.message);
    let unblock = "what the API or a webhook asks for";
    let mut blocker = Reason::RefusedByApi.blocker(object, message, unblock, now);
    blocker.until = Some(refusal.retry_at);
    plan.wake(refusal.retry_at);
    plan.blockers.push(blocker);
}

/// Whose a zone is now.
enum Held {
    Nobody,
    Us(Timestamp),
    /// Our claim has ended by itself: nobody's, but still to be seen.
    Lapsed,
    Other(Claim),
}

fn held(zone: &Zone, now: Timestamp) -> Held {
    let claim = zone.set.body().claim.as_deref();
    let is_ours = |claim: &Claim| claim.holder == crate::NAME;
    match claim.and_then(|claim| Claim::read(claim, now)) {
        None => {
            let ended = claim.and_then(|claim| Claim::read(claim, Timestamp::MIN));
            ended.filter(is_ours).map_or(Held::Nobody, |_| Held::Lapsed)
        }
        Some(claim) if is_ours(&claim) => Held::Us(claim.until),
        Some(claim) => Held::Other(claim),
    }
}

/// Takes, renews and gives up claims; gives whether pods may go in this plan.
fn may_act(
    settings: &Settings,
    world: &World,
    surveys: &[Survey<'_>],
    rollout: &Rollout<'_>,
    plan: &mut Plan,
    now: Timestamp,
) -> bool {
    let turn = rollout.victims.first().map(|victim| victim.zone);
    let mut is_free = true;
    for (place, zone) in world.zones.iter().enumerate() {
        if Some(place) == turn {
            continue;
        }
        let is_settling = rollout.settled.contains(&place);
        let is_done = surveys
            .get(place)
            .is_some_and(|survey| survey.outdated() == 0 && survey.unavailable() == 0);
        let set = world.set_ref(zone);
        match (held(zone, now), world.refused(&set, now)) {
            // A claim that cannot be given up keeps the next zone waiting until it ends by itself.
            (Held::Us(_), Some(refusal)) => {
                is_free = false;
                plan.wake(refusal.retry_at);
                if turn.is_some() {
                    let what = format!("giving up the claim on {}", set.name);
                    refused(set, &what, refusal, plan, now);
                }
            }
            (Held::Us(_), None) if turn.is_some() || is_done => {
                is_free = false;
                // The write of the status carries the version that a release would change.
                if !is_settling {
                    plan.prepare(render::release(world, zone));
                }
            }
            // Its pods are still on their way back: nobody else may come between.
            (Held::Us(until), None) if rollout.turn == Some(place) => {
                renew(settings, world, zone, until, plan, now);
            }
            // After an outage that it did not outlast; people would take it for a disruption that still goes on.
            (Held::Lapsed, None) if turn.is_none() && is_done && !is_settling => {
                plan.prepare(render::release(world, zone));
            }
            (Held::Other(claim), _) if turn.is_some() => {
                is_free = false;
                claimed(world, zone, &claim, plan, now);
            }
            _ => {}
        }
    }
    let Some(zone) = turn.and_then(|turn| world.zones.get(turn)) else {
        return false;
    };
    let refusal = world.refused(&world.set_ref(zone), now);
    match held(zone, now) {
        Held::Other(claim) => {
            claimed(world, zone, &claim, plan, now);
            false
        }
        Held::Us(until) => {
            if refusal.is_none() {
                renew(settings, world, zone, until, plan, now);
            }
            is_free
        }
        Held::Nobody | Held::Lapsed => match refusal {
            Some(refusal) if refusal.cause == Cause::Busy => {
                let set = world.set_ref(zone);
                let what = format!("claiming {}", set.name);
                refused(set, &what, refusal, plan, now);
                false
            }
            Some(_) => is_free,
            None => {
                if is_free {
                    plan.prepare(render::claim(settings, world, zone, now));
                }
                false
            }
        },
    }
}

/// Renews a claim when half of its time is over.
fn renew(
    settings: &Settings,
    world: &World,
    zone: &Zone,
    until: Timestamp,
    plan: &mut Plan,
    now: Timestamp,
) {
    let Some(half) = later(now, settings.claim / 2) else {
        return;
    };
    if until < half {
        plan.act(render::claim(settings, world, zone, now));
    } else if let Some(at) = later(now, until.duration_since(half).unsigned_abs()) {
        plan.wake(at);
    }
}

fn claimed(world: &World, zone: &Zone, claim: &Claim, plan: &mut Plan, now: Timestamp) {
    let message = format!(
        "{} is claimed by {} until {}",
        zone.set.meta().name,
        claim.holder,
        claim.until
    );
    let object = world.set_ref(zone);
    let unblock = "the end of the other's disruption";
    let mut blocker = Reason::ClaimedByOther.blocker(object, message, unblock, now);
    blocker.until = Some(claim.until);
    plan.wake(claim.until);
    plan.blockers.push(blocker);
}
