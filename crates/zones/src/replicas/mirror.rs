//! Zones that mirror the replicas of another resource, of any kind that can be scaled.
//!
//! The scale is asked for: nobody watches a resource of an unknown kind. The question is addressed to the API by
//! [`ScaleOf`]; its answer is [`Reference`] as JSON, which also names the resource as the API spells it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_api::purpose::zones::SCALE;
use slipway_kernel::fact::{Answer, Question, QuestionId, Request, ScaleOf};
use slipway_kernel::identity::Kind;
use slipway_kernel::plan::Status;
use slipway_kernel::question::Failure;
use slipway_kernel::store::Meta;
use slipway_kernel::{ObjectRef, Target};

use super::{Adjustment, Held, prepare, scale};
use crate::group::api_group;
use crate::observe::{Mirror, World, Zone};
use crate::reasons::Reason;
use crate::settings::Settings;

/// The answer to the question for a scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// The API group of the resource.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its plural.
    pub plural: String,
    /// The autoscaling/v1 Scale, as the API gave it.
    pub scale: Value,
}

impl Reference {
    fn number(&self, path: &str) -> i64 {
        let number = self.scale.pointer(path).and_then(Value::as_i64);
        number.unwrap_or_default()
    }

    /// How many replicas it asks for.
    pub fn wanted(&self) -> i64 {
        self.number("/spec/replicas")
    }

    fn write_back(&self, world: &World, replicas: i64) -> Option<Status> {
        if self.number("/status/replicas") == replicas {
            return None;
        }
        let meta = Meta::of(&self.scale);
        let object = ObjectRef {
            cluster: world.cluster.clone(),
            kind: Kind {
                group: self.group.clone().into(),
                version: self.version.clone().into(),
                kind: self.kind.clone().into(),
                plural: self.plural.clone().into(),
                namespaced: true,
            },
            namespace: world.namespace.clone(),
            name: meta.name.clone(),
        };
        Some(Status {
            target: Target::seen(object, &meta),
            body: json!({"replicas": replicas}),
        })
    }
}

/// Whether to look at the next zone.
enum Next {
    GoOn,
    Stop,
}

/// Goes through the zones that mirror, until one is scaled or something is wrong.
pub(super) fn mirrors(
    settings: &Settings,
    world: &World,
    adjustment: &mut Adjustment,
    now: Timestamp,
) {
    for (place, zone) in world.zones.iter().enumerate() {
        let Some(mirror) = &zone.set.body().scaling.mirror else {
            continue;
        };
        let next = match reference(settings, world, zone, mirror, now) {
            Ok(reference) => {
                adjustment.wake(prepare::next(now, settings.poll));
                reflect(
                    settings,
                    world,
                    (place, zone, mirror),
                    &reference,
                    adjustment,
                    now,
                )
            }
            Err(Unknown::Asking(question)) => {
                adjustment.questions.push(*question);
                Next::GoOn
            }
            Err(Unknown::Failed(held)) => {
                adjustment.wake(held.until);
                let object = world.set_ref(zone);
                adjustment.blockers.push(held.blocker(object, now));
                Next::Stop
            }
        };
        if matches!(next, Next::Stop) {
            return;
        }
    }
}

/// Why a scale is not known.
enum Unknown {
    Asking(Box<Question>),
    Failed(Held),
}

fn reference(
    settings: &Settings,
    world: &World,
    zone: &Zone,
    mirror: &Mirror,
    now: Timestamp,
) -> Result<Reference, Unknown> {
    let unknown = |problem: String| {
        let message = format!(
            "the scale of {} {} is not known: {problem}",
            mirror.kind, mirror.name
        );
        let unblock = "correcting the annotations, the resource, or the rights of the operator";
        let held = Held::new(Reason::ReferenceUnknown, message, unblock);
        Unknown::Failed(held.until(prepare::next(now, settings.poll)))
    };
    let Some(group) = api_group(&mirror.api_version) else {
        return Err(unknown(format!(
            "{:?} is no API version",
            mirror.api_version
        )));
    };
    let id = QuestionId {
        controller: crate::NAME,
        uid: zone.set.meta().uid.clone(),
        purpose: SCALE,
        attempt: 0,
        due: prepare::floor(now, settings.poll),
    };
    match world.answers.get(&id).map(|(_, answer)| answer) {
        None => {
            let of = ScaleOf {
                group: group.to_owned(),
                kind: mirror.kind.clone(),
                namespace: world.namespace.clone(),
                name: mirror.name.clone(),
            };
            let question = Question::new(id, Request::Scale(of), settings.question_timeout);
            Err(Unknown::Asking(Box::new(question)))
        }
        Some(Answer::Said { code: 200, body }) => serde_json::from_str(body)
            .map_err(|error| unknown(format!("its answer cannot be read: {error}"))),
        Some(Answer::Said { code, body }) => Err(unknown(format!("{code} {body}"))),
        Some(Answer::Read(reply)) => Err(unknown(format!("{} is no scale", reply.code))),
        Some(Answer::Failed(Failure::Timeout(_))) => Err(unknown("no answer in time".to_owned())),
        Some(Answer::Failed(failure)) => Err(unknown(failure.why().into_owned())),
        Some(Answer::NoRight(why)) => Err(unknown(why.clone())),
    }
}

fn reflect(
    settings: &Settings,
    world: &World,
    (place, zone, mirror): (usize, &Zone, &Mirror),
    reference: &Reference,
    adjustment: &mut Adjustment,
    now: Timestamp,
) -> Next {
    let set = zone.set.body();
    let current = set.desired();
    let wanted = set.scaling.force.unwrap_or_else(|| reference.wanted());
    let write_back = |replicas: i64, adjustment: &mut Adjustment| {
        let status = reference.write_back(world, replicas);
        let refused = |status: &Status| world.refused(status.target.object(), now).is_some();
        let status = status.filter(|status| mirror.write_back && !refused(status));
        adjustment.write_backs.extend(status);
    };
    let allowed = prepare::allowed(settings, world, zone, wanted, adjustment, now);
    if wanted == current {
        write_back(current, adjustment);
        return Next::GoOn;
    }
    let why = format!("as {} {}", mirror.kind, mirror.name);
    let scaled = allowed.and_then(|to| scale(world, place, zone, to, why, now));
    match scaled {
        Ok(scale) => {
            write_back(scale.to, adjustment);
            adjustment.scale = Some(scale);
            Next::Stop
        }
        Err(held) => {
            write_back(current, adjustment);
            adjustment.wake(held.until);
            let is_refused = held.reason == Reason::RefusedByApi;
            let object = world.set_ref(zone);
            adjustment.blockers.push(held.blocker(object, now));
            if is_refused { Next::Stop } else { Next::GoOn }
        }
    }
}
