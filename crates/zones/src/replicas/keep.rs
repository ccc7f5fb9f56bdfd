//! Pods that a webhook had told that they go, and that stay after all.
//!
//! A webhook that dies in the middle leaves its lock behind. One whose downscale is let through leaves a note, because it
//! does not learn what became of it: another webhook may refuse it, or somebody may take it back. When the time of either
//! is over, the pods that are still wanted are told that they stay. For a note the lock of the group is taken before, so
//! that no webhook tells them otherwise meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use slipway_api::purpose::zones as purpose;
use slipway_kernel::fact::{Answer, Question};
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::later;

use super::Adjustment;
use super::prepare::{Pods, floor, next};
use crate::observe::{Lock, Locked, World};
use crate::settings::Settings;

/// For how long pods that do not answer are told that they stay.
pub(crate) const GIVE_UP: Duration = Duration::from_mins(30);
/// For how long the planner takes a lock.
const HOLD: Duration = Duration::from_secs(30);
/// A lock that is held for less than this is not begun on any more: pods may take that long to answer.
const ENOUGH: Duration = Duration::from_secs(10);

/// Tells pods that stay.
pub(super) fn keep(
    settings: &Settings,
    world: &World,
    adjustment: &mut Adjustment,
    now: Timestamp,
) {
    for locked in &world.locks {
        if now < locked.lock.until {
            adjustment.wake(Some(locked.lock.until));
        }
        if locked.is_lock() {
            abandoned(settings, world, locked, adjustment, now);
        } else {
            taken_back(settings, world, locked, adjustment, now);
        }
    }
}

fn is_over(lock: &Lock, now: Timestamp) -> bool {
    later(lock.until, GIVE_UP).is_none_or(|at| at <= now)
}

/// A lock that was left behind: when it is void it is taken over, the pods that stay are told so, and then it is taken
/// away. Nobody is told anything under a lock that is not ours: a downscale that has begun meanwhile would lose pods
/// that believe that they stay.
fn abandoned(
    settings: &Settings,
    world: &World,
    locked: &Locked,
    adjustment: &mut Adjustment,
    now: Timestamp,
) {
    let lock = &locked.lock;
    let map = world.object(kinds::CONFIG_MAP, &locked.map.name);
    if let Some(refusal) = world.refused(&map, now) {
        adjustment.wake(Some(refusal.retry_at));
        return;
    }
    let is_void = lock.until <= now;
    let mut locks = locked.all.clone();
    let Some(since) = lock.abandoned else {
        if is_void {
            locks.remove(&locked.scope);
            // Our own was for a note, which is seen to by itself.
            if lock.holder != crate::NAME {
                locks.insert(locked.scope.clone(), taken_over(lock, lock.until, now));
            }
            adjustment.relock(&locked.map, locks);
        }
        return;
    };
    let open = open(settings, world, lock, since, now);
    let is_over = later(since, GIVE_UP).is_none_or(|at| at <= now);
    if open.is_none() || is_over {
        locks.remove(&locked.scope);
        adjustment.relock(&locked.map, locks);
        return;
    }
    adjustment.wake(next(now, settings.prepare_every));
    if later(now, ENOUGH).is_none_or(|enough| lock.until < enough) {
        locks.insert(locked.scope.clone(), taken_over(lock, since, now));
        adjustment.relock(&locked.map, locks);
        return;
    }
    adjustment.questions.extend(open.into_iter().flatten());
}

/// The same lock, ours from now on.
fn taken_over(lock: &Lock, since: Timestamp, now: Timestamp) -> Lock {
    Lock {
        holder: crate::NAME.to_owned(),
        until: later(now, Lock::HOLDS).unwrap_or(now),
        abandoned: Some(since),
        ..lock.clone()
    }
}

/// A downscale that was let through, and of which pods are wanted although its time is over.
fn taken_back(
    settings: &Settings,
    world: &World,
    note: &Locked,
    adjustment: &mut Adjustment,
    now: Timestamp,
) {
    if now < note.lock.until || is_over(&note.lock, now) {
        return;
    }
    let group = note.all.get(&world.group);
    let is_ours = |lock: &&Lock| {
        lock.holder == crate::NAME
            && lock.abandoned.is_none()
            && lock.statefulset == note.lock.statefulset
            && now < lock.until
    };
    let ours = group.filter(is_ours);
    let mut locks = note.all.clone();
    let Some(questions) = open(settings, world, &note.lock, note.lock.until, now) else {
        // Nothing is left to be told. Where the note may not be taken away, the next webhook that writes does so.
        let map = world.object(kinds::CONFIG_MAP, &note.map.name);
        if (group.is_none() || ours.is_some()) && world.refused(&map, now).is_none() {
            locks.remove(&note.scope);
            locks.remove(&world.group);
            adjustment.relock(&note.map, locks);
        }
        return;
    };
    adjustment.wake(next(now, settings.prepare_every));
    match (group, ours) {
        // Somebody has not answered well, and is told again later.
        (_, Some(_)) if questions.is_empty() => {
            locks.remove(&world.group);
            adjustment.relock(&note.map, locks);
        }
        (_, Some(lock)) if later(now, ENOUGH).is_some_and(|at| at < lock.until) => {
            adjustment.questions.extend(questions);
        }
        (None, None) if !questions.is_empty() => {
            let lock = Lock {
                holder: crate::NAME.to_owned(),
                until: later(now, HOLD).unwrap_or(now),
                ..note.lock.clone()
            };
            locks.insert(world.group.clone(), lock);
            adjustment.relock(&note.map, locks);
        }
        _ => {}
    }
}

/// What is to be asked of pods that stay; none if there are none, or all have been told.
fn open(
    settings: &Settings,
    world: &World,
    lock: &Lock,
    since: Timestamp,
    now: Timestamp,
) -> Option<Vec<Question>> {
    let mut zones = world.zones.iter();
    let zone = zones.find(|zone| zone.set.meta().name == lock.statefulset)?;
    let url = zone.set.body().scaling.prepare.as_ref()?;
    let pods = Pods::new(settings, world, zone, url, now);
    let due = floor(now, settings.prepare_every);
    let mut questions = Vec::new();
    let mut is_open = false;
    for pod in lock.to.max(0)..lock.from.min(zone.set.body().desired()) {
        let last = pods.last(purpose::KEEP, pod).filter(|(at, _)| *at >= since);
        let is_told = last.is_some_and(
            |(_, answer)| matches!(answer, Answer::Said { code, .. } if (200..=299).contains(code)),
        );
        if is_told {
            continue;
        }
        is_open = true;
        if last.is_none_or(|(at, _)| *at < due) {
            let id = pods.id(purpose::KEEP, pod, due);
            questions.push(pods.question(id, "DELETE", pod));
        }
    }
    is_open.then_some(questions)
}
