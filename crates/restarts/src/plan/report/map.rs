//! The `ConfigMap` that carries what the default criteria came to: written on change, and rarely. It also remembers
//! whether they act, so that their beginning and their end are told once; where it cannot be kept, they are not told.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::flipper::FlipperStatus;
use slipway_kernel::event::EventType;
use slipway_kernel::identity::kinds;
use slipway_kernel::status_map::{Contents, own_map};
use slipway_kernel::{Action, Event, ObjectRef, Plan, Step};

use super::words;
use crate::observe::{Item, STATUS_MAP, World};
use crate::plan::active::Active;
use crate::reasons::news;
use crate::render::{self, purpose};
use crate::settings::Settings;

/// Whether the default criteria act.
const ACTIVE: &str = "active";

/// Its name.
pub(super) fn reference(world: &World, namespace: &str) -> ObjectRef {
    ObjectRef {
        cluster: world.cluster.clone(),
        kind: kinds::CONFIG_MAP,
        namespace: namespace.to_owned(),
        name: STATUS_MAP.to_owned(),
    }
}

/// The status as stored; what cannot be read counts as absent.
pub(super) fn stored(world: &World) -> FlipperStatus {
    let map = world.status_map.iter().flatten().next();
    map.map(|map| map.body().status()).unwrap_or_default()
}

/// Brings the `ConfigMap` up to date, rarely.
pub(super) fn write(
    settings: &Settings,
    world: &World,
    made: Option<(&Active<'_>, &FlipperStatus)>,
    plan: &mut Plan,
    now: Timestamp,
) {
    let (Some(namespace), Some(stored)) = (&settings.operator_namespace, &world.status_map) else {
        return;
    };
    let before = stored.as_ref().map(Item::body);
    let contents = match made {
        Some((policy, made)) => Contents::default()
            .with(ACTIVE, "true")
            .with("criteria", words::criteria(policy))
            .with_status(made),
        None if before.is_some() => Contents::default().with(ACTIVE, "false"),
        None => return,
    };
    let Some(data) = contents.due(before, plan, now) else {
        return;
    };
    let was_active = before.is_some_and(|map| map.has(ACTIVE, "true"));
    let news = match made {
        Some((policy, _)) if !was_active => Some((
            news::DEFAULT_CRITERIA_BEGIN,
            format!(
                "There is no Flipper: the default criteria act ({})",
                words::criteria(policy)
            ),
        )),
        None if was_active => Some((
            news::DEFAULT_CRITERIA_CEASE,
            "The default criteria no longer act".to_owned(),
        )),
        _ => None,
    };
    let object = reference(world, namespace);
    let uid = stored.as_ref().map(|map| map.meta().uid.clone());
    let events = news.map(|(reason, note)| Event {
        regarding: object.clone(),
        uid: uid.unwrap_or_default(),
        severity: EventType::Normal,
        reason,
        action: "Plan",
        note,
        instance: render::stamp_of(now),
    });
    plan.steps.push(Step {
        action: Action::apply(object, purpose::STATUS_MAP, configuration(namespace, data)),
        events: events.into_iter().collect(),
    });
}

fn configuration(namespace: &str, data: Value) -> Value {
    let mut map = own_map(namespace, STATUS_MAP);
    map["data"] = data;
    map
}
