//! How many replicas a zone should have: as its leader, or as a resource that it mirrors, or as somebody forces.
//!
//! At most one zone is changed in a plan, and no pod is deleted in the same plan: what is known of the group is stale then.
//! What goes wrong here is told, and does not stop the rollout of pods.

pub mod follow;
mod keep;
pub mod mirror;
pub mod prepare;

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_kernel::fact::Question;
use slipway_kernel::plan::Status;
use slipway_kernel::store::Meta;
use slipway_kernel::{Blocker, ObjectRef};

use crate::observe::{Lock, World, Zone};
use crate::reasons::Reason;
use crate::settings::Settings;
pub(crate) use keep::GIVE_UP;

/// A change of replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The place of the zone.
    pub zone: usize,
    /// To how many.
    pub to: i64,
    /// As whom.
    pub why: String,
}

/// A map of locks as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relock {
    /// The `ConfigMap`.
    pub map: Meta,
    /// What is locked in it.
    pub locks: BTreeMap<String, Lock>,
}

/// What is to be done about replicas.
#[derive(Debug, Default, PartialEq)]
pub struct Adjustment {
    /// The one change.
    pub scale: Option<Scale>,
    /// Replicas written back into mirrored resources.
    pub write_backs: Vec<Status>,
    /// Maps of locks, and what is locked in them from now on; each at most once.
    pub relocks: Vec<Relock>,
    /// What has to be known first.
    pub questions: Vec<Question>,
    /// Why not more is done.
    pub blockers: Vec<Blocker>,
    /// When that changes by itself.
    pub wake_at: Option<Timestamp>,
}

impl Adjustment {
    /// Writes a map of locks, unless this plan does so already: the next one sees what became of that.
    pub(crate) fn relock(&mut self, map: &Meta, locks: BTreeMap<String, Lock>) {
        if !self.relocks.iter().any(|known| known.map.name == map.name) {
            let map = map.clone();
            self.relocks.push(Relock { map, locks });
        }
    }

    pub(crate) fn wake(&mut self, at: Option<Timestamp>) {
        self.wake_at = match (self.wake_at, at) {
            (Some(known), Some(at)) => Some(known.min(at)),
            (known, at) => known.or(at),
        };
    }
}

/// Why a zone keeps its replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    pub(crate) unblock: &'static str,
    pub(crate) until: Option<Timestamp>,
}

impl Held {
    pub(crate) fn new(reason: Reason, message: String, unblock: &'static str) -> Self {
        Self {
            reason,
            message,
            unblock,
            until: None,
        }
    }

    pub(crate) fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }

    fn blocker(self, object: ObjectRef, now: Timestamp) -> Blocker {
        let mut made = self.reason.blocker(object, self.message, self.unblock, now);
        made.until = self.until;
        made
    }
}

/// Decides about the replicas of a group. First the followers; mirrors only when nothing is wrong or changed there.
pub fn adjust(settings: &Settings, world: &World, now: Timestamp) -> Adjustment {
    let mut adjustment = Adjustment::default();
    keep::keep(settings, world, &mut adjustment, now);
    let goes_on = followers(world, &mut adjustment, now);
    if goes_on && adjustment.scale.is_none() {
        mirror::mirrors(settings, world, &mut adjustment, now);
    }
    adjustment
}

/// Gives whether to go on: an error ends all adjustment of the group.
fn followers(world: &World, adjustment: &mut Adjustment, now: Timestamp) -> bool {
    for (place, zone) in world.zones.iter().enumerate() {
        let (held, is_error) = match follow::desired(world, zone, now) {
            Ok(to) if to == zone.set.body().desired() => continue,
            Ok(to) => {
                let leader = zone.set.body().scaling.leader.clone();
                let why = format!("as {}", leader.unwrap_or_default());
                match scale(world, place, zone, to, why, now) {
                    Ok(scale) => {
                        adjustment.scale = Some(scale);
                        return true;
                    }
                    Err(refused) => (refused, true),
                }
            }
            Err(follow::Kept::Waits(held)) => (held, false),
            Err(follow::Kept::Error(held)) => (held, true),
        };
        adjustment.wake(held.until);
        let object = world.set_ref(zone);
        adjustment.blockers.push(held.blocker(object, now));
        if is_error {
            return false;
        }
    }
    true
}

/// A change, unless the API refused it a short time ago.
pub(crate) fn scale(
    world: &World,
    place: usize,
    zone: &Zone,
    to: i64,
    why: String,
    now: Timestamp,
) -> Result<Scale, Held> {
    match world.refused(&world.set_ref(zone), now) {
        None => Ok(Scale {
            zone: place,
            to,
            why,
        }),
        Some(refusal) => Err(Held::new(
            Reason::RefusedByApi,
            format!(
                "scaling {} to {to} was refused: {}",
                zone.set.meta().name,
                refusal.message
            ),
            "what the API or a webhook asks for",
        )
        .until(Some(refusal.retry_at))),
    }
}
