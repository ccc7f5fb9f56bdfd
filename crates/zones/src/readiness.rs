//! How the pods of a zone are: what counts as down, and until when.
//!
//! Down is a pod that should be there and is missing, terminating, not ready, or ready for too short a time; and a pod
//! that should not be there any more and is not gone. The `StatefulSet`'s own status may know of more.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::instant::later;
use slipway_kernel::store::Item;

use crate::observe::{Owner, Pod, Set, World, Zone, named_after};

/// How a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Ready, for long enough.
    Available,
    /// Ready, but not for long enough; until when, if that is known.
    Settling(Option<Timestamp>),
    /// Not ready.
    Unready,
    /// Being deleted, or allowed to be evicted.
    Terminating,
}

impl Health {
    /// How a pod is now.
    pub fn of(pod: &Pod, min_ready: Duration, now: Timestamp) -> Self {
        if pod.is_deleting {
            return Self::Terminating;
        }
        if !pod.is_ready {
            return Self::Unready;
        }
        if min_ready.is_zero() {
            return Self::Available;
        }
        match pod.ready_since.and_then(|since| later(since, min_ready)) {
            Some(until) if until <= now => Self::Available,
            until => Self::Settling(until),
        }
    }

    /// Whether it serves.
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Available | Self::Settling(_))
    }
}

/// A pod of a zone.
#[derive(Debug, Clone)]
pub struct Member<'w> {
    /// The pod.
    pub pod: &'w Item<Pod>,
    /// Its ordinal.
    pub ordinal: i64,
    /// Whether it should be there.
    pub is_expected: bool,
    /// Whether its `StatefulSet` controls it.
    pub is_owned: bool,
    /// How it is.
    pub health: Health,
    /// Whether it is of another revision than the zone's.
    pub is_outdated: bool,
}

/// What is seen of a zone.
#[derive(Debug, Clone)]
pub struct Survey<'w> {
    /// The zone.
    pub zone: &'w Zone,
    /// Its pods, by ordinal.
    pub members: Vec<Member<'w>>,
    /// How many pods should be there and are not.
    pub missing: i64,
    /// How many pods are down.
    pub down: i64,
    /// When a pod will have been ready for long enough, or will not have been evicted after all.
    pub settled_at: Option<Timestamp>,
    /// Pods that were let go, and are still there as if nothing had happened.
    pub let_go: Vec<&'w str>,
}

impl World {
    /// What is seen of each zone now.
    pub fn surveys(&self, now: Timestamp) -> Vec<Survey<'_>> {
        let zones = self.zones.iter();
        zones
            .map(|zone| Survey::of(zone, &self.holds, now))
            .collect()
    }
}

impl<'w> Survey<'w> {
    /// Looks at a zone; pods that were let go count as leaving until the moment that is said.
    pub fn of(zone: &'w Zone, holds: &BTreeMap<String, Timestamp>, now: Timestamp) -> Self {
        let set = zone.set.body();
        let expected = set.start..set.start.saturating_add(set.desired());
        let mut members: Vec<Member<'w>> = zone
            .pods
            .iter()
            .filter_map(|pod| member(pod, set, &expected, now))
            .collect();
        members.sort_by_key(|member| member.ordinal);
        let (mut stays_at, mut let_go) = (None, Vec::new());
        for member in &mut members {
            let until = holds.get(&member.pod.meta().uid).filter(|at| now < **at);
            if let Some(until) = until
                && member.health != Health::Terminating
            {
                member.health = Health::Terminating;
                let_go.push(member.pod.meta().name.as_str());
                stays_at = Some(stays_at.map_or(*until, |known: Timestamp| known.min(*until)));
            }
        }
        let is_down = |member: &&Member<'_>| member.health != Health::Available;
        let present = members.iter().filter(|member| member.is_expected).count();
        let missing = (set.desired() - count(present)).max(0);
        let down = missing + count(members.iter().filter(is_down).count());
        let settled_at = members.iter().filter_map(|member| match member.health {
            Health::Settling(until) => until,
            _ => None,
        });
        Self {
            zone,
            missing,
            down,
            settled_at: settled_at.chain(stays_at).min(),
            let_go,
            members,
        }
    }

    /// The `StatefulSet`.
    pub fn set(&self) -> &'w Set {
        self.zone.set.body()
    }

    /// Its name.
    pub fn name(&self) -> &'w str {
        &self.zone.set.meta().name
    }

    /// How many pods are unavailable: as seen, or by the status if that knows of more.
    pub fn unavailable(&self) -> i64 {
        self.down.max(self.set().gap())
    }

    /// How many pods are of another revision.
    pub fn outdated(&self) -> usize {
        self.members.iter().filter(|m| m.is_outdated).count()
    }
}

fn member<'w>(
    pod: &'w Item<Pod>,
    set: &Set,
    expected: &std::ops::Range<i64>,
    now: Timestamp,
) -> Option<Member<'w>> {
    let (_, ordinal) = named_after(&pod.meta().name)?;
    let body = pod.body();
    Some(Member {
        pod,
        ordinal,
        is_expected: expected.contains(&ordinal),
        is_owned: matches!(body.owner, Owner::Set(_)),
        health: Health::of(body, set.min_ready, now),
        is_outdated: body.revision() != Some(set.status.update_revision.as_str()),
    })
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
