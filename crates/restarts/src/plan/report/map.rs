//! The `ConfigMap` that carries what the default criteria came to: written on change, and rarely. It also remembers
//! whether they act, so that their beginning and their end are told once; where it cannot be kept, they are not told.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::flipper::FlipperStatus;
use slipway_api::names;
use slipway_kernel::event::Severity;
use slipway_kernel::identity::kinds;
use slipway_kernel::{Action, Event, ObjectRef, Plan, Step};

use super::words;
use crate::due;
use crate::observe::{STATUS_MAP, World};
use crate::plan::active::Active;
use crate::reasons::news;
use crate::render::{self, purpose};
use crate::settings::Settings;

/// It is not written more often than this. A time in the future is another clock's, and counts as long ago.
const PAUSE: Duration = Duration::from_secs(10);

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
    let text = world
        .status_map
        .iter()
        .flatten()
        .find_map(|map| map.body().data.get("status"));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
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
    let before = stored.as_ref().map(|map| &map.body().data);
    let has = |key: &str, value: &str| {
        before.is_some_and(|data| data.get(key).is_some_and(|known| known == value))
    };
    let mut data = serde_json::Map::new();
    match made {
        Some((policy, made)) => {
            data.insert("active".to_owned(), json!("true"));
            let criteria = words::criteria(policy);
            data.insert("criteria".to_owned(), json!(criteria));
            let status = serde_json::to_string(made).unwrap_or_default();
            data.insert("status".to_owned(), json!(status));
        }
        None if before.is_some() => {
            data.insert("active".to_owned(), json!("false"));
        }
        None => return,
    }
    let is_same = data
        .iter()
        .all(|(key, value)| has(key, value.as_str().unwrap_or_default()));
    if is_same {
        return;
    }
    let written = before
        .and_then(|data| data.get("updatedAt"))
        .and_then(|at| due::instant(at))
        .filter(|at| *at <= now);
    if let Some(free) = written.and_then(|at| due::later(at, PAUSE))
        && now < free
    {
        plan.wake(free);
        return;
    }
    let stamp = render::stamp_of(now);
    data.insert("updatedAt".to_owned(), json!(stamp));
    let was_active = has("active", "true");
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
        severity: Severity::Normal,
        reason,
        action: "Plan",
        note,
        instance: stamp,
    });
    plan.steps.push(Step {
        action: Action::Apply {
            object,
            purpose: purpose::STATUS_MAP,
            body: configuration(namespace, &Value::Object(data)),
        },
        events: events.into_iter().collect(),
    });
}

fn configuration(namespace: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": STATUS_MAP,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": names::FIELD_MANAGER},
        },
        "data": data,
    })
}
