//! Zones that follow the replicas of another zone.

use std::time::Duration;

use jiff::Timestamp;
use slipway_api::zones;
use slipway_kernel::instant::{Written, later};

use super::Held;
use crate::group::go_duration;
use crate::observe::{World, Zone};
use crate::reasons::Reason;

/// Why a follower keeps its replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Its turn has not come.
    Waits(Held),
    /// Something is wrong.
    Error(Held),
}

/// The leader of a zone; none if it follows nobody.
pub(crate) fn leader<'w>(world: &'w World, zone: &Zone) -> Result<Option<&'w Zone>, Held> {
    let Some(name) = &zone.set.body().scaling.leader else {
        return Ok(None);
    };
    let found = world.zones.iter().find(|z| z.set.meta().name == *name);
    found.map(Some).ok_or_else(|| {
        let own = &zone.set.meta().name;
        Held::new(
            Reason::LeaderNotFound,
            format!(
                "could not find leader for {own} using {}",
                zones::DOWNSCALE_LEADER
            ),
            "naming a StatefulSet of the group, or removing the annotation",
        )
    })
}

/// How many replicas a zone should have by its leader.
pub(crate) fn desired(world: &World, zone: &Zone, now: Timestamp) -> Result<i64, Kept> {
    let set = zone.set.body();
    let own = set.desired();
    let Some(leader) = leader(world, zone).map_err(Kept::Error)? else {
        return Ok(own);
    };
    if let Some(forced) = set.scaling.force {
        return Ok(forced);
    }
    let wanted = leader.set.body().desired();
    if wanted > own && set.scaling.only_when_leader_ready {
        let ready = leader.set.body().status.ready;
        if ready != wanted {
            return Err(Kept::Waits(Held::new(
                Reason::LeaderNotReady,
                format!(
                    "{} is scaled to {wanted} when {} is ready; {ready} of {wanted} are",
                    zone.set.meta().name,
                    leader.set.meta().name
                ),
                "the leader's pods becoming ready",
            )));
        }
    }
    if wanted < own {
        min_time(world, zone, now)?;
    }
    Ok(wanted)
}

/// The last downscale of any other zone, by its annotation, by the tracker, or by what is yet to be its annotation.
pub(crate) fn last_downscale(world: &World, zone: &Zone) -> Result<Option<Timestamp>, Held> {
    let own = &zone.set.meta().name;
    let mut last = None;
    for other in world.zones.iter().filter(|z| z.set.meta().name != *own) {
        let name = &other.set.meta().name;
        let annotated = Some(&other.set.body().scaling.last_downscale);
        let tracked = world.tracker.last_downscale.get(name);
        let recorded = world.downscales.get(name);
        for written in [annotated, tracked, recorded].into_iter().flatten() {
            match written {
                Written::Missing => {}
                Written::At(at) => last = last.max(Some(*at)),
                Written::Unreadable(text) => {
                    return Err(Held::new(
                        Reason::InvalidAnnotation,
                        format!(
                            "{} of {name} is {text:?}, which is no RFC 3339 time",
                            zones::LAST_DOWNSCALE
                        ),
                        "correcting or removing it",
                    ));
                }
            }
        }
    }
    Ok(last)
}

/// Whether enough time has passed since the last downscale of another zone.
fn min_time(world: &World, zone: &Zone, now: Timestamp) -> Result<(), Kept> {
    let Some(last) = last_downscale(world, zone).map_err(Kept::Error)? else {
        return Ok(());
    };
    let name = &zone.set.meta().name;
    let invalid = |problem: String| {
        Kept::Error(Held::new(
            Reason::InvalidAnnotation,
            format!(
                "label {} of {name}: {problem}",
                zones::MIN_TIME_BETWEEN_DOWNSCALES
            ),
            "setting the label to a Go duration such as 12h",
        ))
    };
    let label = zone.set.body().scaling.min_time.as_deref();
    let label = label.ok_or_else(|| invalid("it is missing".to_owned()))?;
    let min = go_duration(label).map_err(|error| invalid(error.to_string()))?;
    // It is not enough that the moment has come: it must have passed.
    let free = later(last, min).and_then(|end| later(end, Duration::from_millis(1)));
    if free.is_some_and(|free| free <= now) {
        return Ok(());
    }
    Err(Kept::Waits(
        Held::new(
            Reason::MinTimeBetweenDownscales,
            format!("{name} waits {label} after the last downscale of another zone, at {last}"),
            "a shorter min-time-between-zones-downscale",
        )
        .until(free),
    ))
}
