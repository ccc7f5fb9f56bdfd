//! The Deployment controller: rolls a template out over `ReplicaSets`.
//!
//! Rolling updates within surge and unavailability, recreation, pausing, proportional scaling in the middle of a
//! rollout, revisions and their history, progress and availability conditions. Not played: the rollback field of the
//! long gone extensions API, and Events.

mod scale;
mod set;
mod sets;
mod status;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::amount;
use super::key::Key;
use super::owner;
use super::pod;
use super::world::World;
use super::write::Step;
use sets::Rollout;

/// What the controller does about one Deployment.
pub(crate) fn reconcile(world: &World, key: &Key, now: Timestamp) -> Step {
    let Some(deployment) = world.deployments.get(key) else {
        return Step::default();
    };
    let reference = owner::reference("apps/v1", "Deployment", &deployment.metadata);
    let selector = deployment.spec.as_ref().map(|spec| &spec.selector);
    let selector = owner::selector(selector);
    let claimed =
        owner::claim::<ReplicaSet>(world, &deployment.metadata, &reference, &selector, |_| true);
    if !claimed.writes.is_empty() {
        return Step {
            writes: claimed.writes,
            wake: None,
        };
    }
    let mut rollout = Rollout::new(deployment, claimed.objects, now);
    if deployment.metadata.deletion_timestamp.is_some() {
        rollout.find_new();
        status::sync(&mut rollout);
        return rollout.into_step();
    }
    status::note_pause(&mut rollout);
    rollout.find_new();
    let spec = &rollout.spec;
    if spec.paused == Some(true) {
        scale::proportionally(&mut rollout);
        scale::clean_up(&mut rollout);
        status::sync(&mut rollout);
    } else if rollout.is_scaled() {
        scale::proportionally(&mut rollout);
        status::sync(&mut rollout);
    } else if rollout.recreates() {
        recreate(&mut rollout, world);
    } else {
        roll(&mut rollout, world);
    }
    rollout.into_step()
}

fn roll(rollout: &mut Rollout, world: &World) {
    rollout.create_new(world);
    if !scale::up_new(rollout) && !scale::down_old(rollout) && status::is_complete(rollout) {
        scale::clean_up(rollout);
    }
    status::sync_rollout(rollout);
}

fn recreate(rollout: &mut Rollout, world: &World) {
    let scaled = scale::old_to_zero(rollout);
    if !scaled && !has_old_pods(rollout, world) {
        rollout.create_new(world);
        let replicas = rollout.replicas();
        if let Some(new) = rollout.new_mut() {
            new.replicas = replicas;
        }
        if status::is_complete(rollout) {
            scale::clean_up(rollout);
        }
    }
    status::sync_rollout(rollout);
}

fn has_old_pods(rollout: &Rollout, world: &World) -> bool {
    rollout.old().any(|set| {
        let pods = world.owned_by::<k8s_openapi::api::core::v1::Pod>(&set.object.metadata);
        set.actual() > 0 || pods.iter().any(|pod| !pod::is_finished(pod))
    })
}

/// How many pods there may be above the wanted number, and how many may be missing.
pub(crate) fn bounds(deployment: &Deployment) -> (i32, i32) {
    let Some(spec) = &deployment.spec else {
        return (0, 0);
    };
    let replicas = spec.replicas.unwrap_or(1);
    let strategy = spec.strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    if strategy.and_then(|s| s.type_.as_deref()) == Some("Recreate") {
        return (0, 0);
    }
    let part = |part: Option<&_>, up| part.map_or(0, |part| amount::of(part, replicas, up));
    let surge = part(rolling.and_then(|r| r.max_surge.as_ref()), true);
    let mut unavailable = part(rolling.and_then(|r| r.max_unavailable.as_ref()), false);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    (surge, unavailable.min(replicas))
}
