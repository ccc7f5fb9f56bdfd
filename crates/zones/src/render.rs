//! Decisions as the API takes them, with what is told when they are done.

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::{names, zones};
use slipway_kernel::Purpose;
use slipway_kernel::claim::Claim;
use slipway_kernel::event::EventType;
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::{later, second, stamp};
use slipway_kernel::plan::Status;
use slipway_kernel::status_map::own_map;
use slipway_kernel::store::Meta;
use slipway_kernel::{Action, Event, Step, Target};

use crate::observe::{Lock, Until, World, Zone, status_map_name};
use crate::readiness::{Health, Member};
use crate::reasons::news;
use crate::replicas::Relock;
use crate::replicas::Scale;
use crate::settings::Settings;

/// The purposes of our writes.
pub use slipway_api::purpose::zones as purpose;

/// Deletes a pod, as it was seen.
pub fn replace(world: &World, zone: &Zone, member: &Member<'_>) -> Step {
    let meta = member.pod.meta();
    let object = world.object(kinds::POD, &meta.name);
    let status = &zone.set.body().status;
    let down = if member.health == Health::Unready {
        let why = member.pod.body().stuck.as_deref().unwrap_or("not ready");
        format!("; it was down already ({why})")
    } else {
        String::new()
    };
    let note = format!(
        "terminating pod {} of revision {}, to come back with {}{down}",
        meta.name,
        member.pod.body().revision().unwrap_or("unknown"),
        status.update_revision,
    );
    let told = (EventType::Normal, news::POD_DELETED, "Replace");
    Step {
        action: Action::Delete {
            target: Target::seen(object, meta),
            purpose: purpose::REPLACE,
        },
        events: vec![event(world, zone, told, note, &meta.uid)],
    }
}

/// Scales a zone.
pub fn scale(world: &World, zone: &Zone, scale: &Scale) -> Step {
    let from = zone.set.body().desired();
    let note = format!("Scaled from {from} to {} replicas, {}", scale.to, scale.why);
    let instance = format!("{}-{}", zone.set.meta().generation, scale.to);
    let told = (EventType::Normal, news::SCALED, "Scale");
    Step {
        action: Action::Patch {
            target: target(world, zone),
            purpose: purpose::SCALE,
            body: json!({"spec": {"replicas": scale.to}}),
        },
        events: vec![event(world, zone, told, note, &instance)],
    }
}

/// Claims a zone, so that nobody else disrupts it.
pub fn claim(settings: &Settings, world: &World, zone: &Zone, now: Timestamp) -> Action {
    let claim = Claim {
        holder: crate::NAME.to_owned(),
        until: later(second(now), settings.claim).unwrap_or(now),
    };
    annotate(world, zone, purpose::CLAIM, &claim.render().into())
}

/// Gives a claim up.
pub fn release(world: &World, zone: &Zone) -> Action {
    annotate(world, zone, purpose::RELEASE, &Value::Null)
}

fn annotate(world: &World, zone: &Zone, purpose: Purpose, claim: &Value) -> Action {
    annotation(world, zone, purpose, names::DISRUPTION_CLAIM, claim)
}

/// Puts on a zone when it was last scaled down.
pub fn downscaled(world: &World, zone: &Zone, at: Timestamp) -> Action {
    let at = stamp(at).into();
    annotation(world, zone, purpose::DOWNSCALED, zones::LAST_DOWNSCALE, &at)
}

fn annotation(world: &World, zone: &Zone, purpose: Purpose, name: &str, value: &Value) -> Action {
    Action::Patch {
        target: target(world, zone),
        purpose,
        body: json!({"metadata": {"annotations": {name: value}}}),
    }
}

/// Writes what is locked in a map from now on, as it was seen.
pub fn relock(world: &World, relock: &Relock) -> Action {
    let Relock { map, locks } = relock;
    let text = if locks.is_empty() {
        Value::Null
    } else {
        Value::String(serde_json::to_string(locks).unwrap_or_default())
    };
    let is_ours = |lock: &Lock| lock.holder == crate::NAME;
    let is_taken = locks.get(&world.group).is_some_and(is_ours);
    Action::Patch {
        target: Target::seen(world.object(kinds::CONFIG_MAP, &map.name), map),
        purpose: if is_taken {
            purpose::TAKE_OVER
        } else {
            purpose::UNLOCK
        },
        body: json!({"metadata": {"annotations": {zones::DOWNSCALE_LOCKS: text}}}),
    }
}

/// Notes the pods that a rollout is about to delete in a map of reservations, as it was seen, or in one that is made.
pub fn note(world: &World, name: &str, map: Option<&Meta>, pods: &Until) -> Action {
    let text = serde_json::to_string(pods).unwrap_or_default();
    let annotations = json!({zones::ROLLOUT_PODS: text});
    let object = world.object(kinds::CONFIG_MAP, name);
    if let Some(map) = map {
        return Action::Patch {
            target: Target::seen(object, map),
            purpose: purpose::NOTE,
            body: json!({"metadata": {"annotations": annotations}}),
        };
    }
    let mut body = own_map(&world.namespace, name);
    body["metadata"]["annotations"] = annotations;
    Action::apply(object, purpose::NOTE, body)
}

/// Says in a zone's status that all its pods are of its revision.
pub fn settle(world: &World, zone: &Zone) -> Status {
    Status {
        target: target(world, zone),
        body: json!({"currentRevision": zone.set.body().status.update_revision}),
    }
}

fn target(world: &World, zone: &Zone) -> Target {
    Target::seen(world.set_ref(zone), zone.set.meta())
}

/// Something to be told on a zone.
pub fn event(
    world: &World,
    zone: &Zone,
    told: (EventType, &'static str, &'static str),
    note: String,
    instance: &str,
) -> Event {
    let uid = &zone.set.meta().uid;
    Event::on(world.set_ref(zone), uid, told, note, instance)
}

/// The `ConfigMap` with the status of a group.
pub fn status_map(world: &World, data: Value) -> Action {
    let name = status_map_name(&world.group);
    let object = world.object(kinds::CONFIG_MAP, &name);
    let mut body = own_map(&world.namespace, &name);
    body["metadata"]["labels"][zones::STATUS_LABEL] = json!("true");
    body["data"] = data;
    Action::apply(object, purpose::STATUS_MAP, body)
}
