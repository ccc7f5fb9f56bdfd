//! Which piece of work is next.
//!
//! Ordered and without duplicates: a key that is asked for ten times is taken once. Changes within the debounce time
//! are one; a plan's wake-up replaces the one before; a key that failed is left alone for a while. Clusters take turns,
//! and within one the key that has been due for longest is first.
//!
//! A lane is what one controller does in one cluster. Its keys are taken one at a time, because they may share a
//! budget: the next one is planned when the writes of the one before have been answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use slipway_kernel::identity::{ClusterId, Key};
use tokio::time::Instant;

use crate::environment::after;
use crate::settings::Backoff;

/// What one controller does in one cluster.
pub(crate) type Lane = (ClusterId, &'static str);

/// The lane of a key.
pub(crate) fn lane(key: &Key) -> Lane {
    (key.cluster.clone(), key.controller)
}

/// A change waits at most this long for a key that failed, however often it did.
const CHANGE_WAITS_AT_MOST: Duration = Duration::from_secs(10);

/// How many preparations in a row are followed at once: more than any piece of work has.
const PREPARATIONS: u32 = 4;

/// How the work on a key ended, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Requeue {
    /// All is done for now.
    Done,
    /// What was done was for the sake of what comes next: at once, but not for ever.
    Prepared,
    /// There is more to do at once.
    Again,
    /// It should be tried again, the first time at once.
    Collided,
    /// It should be tried again later.
    Failed,
}

#[derive(Debug, Default, Clone)]
struct Entry {
    /// When a change is due.
    change: Option<Instant>,
    /// When the plan asked to be woken.
    wake: Option<Instant>,
    /// When the last failure was.
    failed: Option<Instant>,
    attempts: u32,
    collisions: u32,
    /// Preparations in a row.
    prepared: u32,
    /// Where it is in its lane's order.
    due: Option<Instant>,
}

#[derive(Debug, Default)]
struct LaneState {
    due: BTreeSet<(Instant, Key)>,
    busy: bool,
    held: bool,
    not_before: Option<Instant>,
}

impl LaneState {
    fn next(&self) -> Option<(Instant, &Key)> {
        if self.busy || self.held {
            return None;
        }
        let (due, key) = self.due.first()?;
        Some((self.not_before.map_or(*due, |at| at.max(*due)), key))
    }
}

/// Keys and when they are due.
#[derive(Debug)]
pub(crate) struct Queue {
    debounce: Duration,
    backoff: Backoff,
    entries: BTreeMap<Key, Entry>,
    lanes: BTreeMap<Lane, LaneState>,
    last: Option<ClusterId>,
}

impl Queue {
    pub(crate) fn new(debounce: Duration, backoff: Backoff) -> Self {
        Self {
            debounce,
            backoff,
            entries: BTreeMap::new(),
            lanes: BTreeMap::new(),
            last: None,
        }
    }

    /// Something that the key's plan depends on has changed.
    pub(crate) fn changed(&mut self, key: &Key, now: Instant) {
        self.change_at(key, after(now, self.debounce));
    }

    /// The key is to be planned at once.
    pub(crate) fn at_once(&mut self, key: &Key, now: Instant) {
        self.change_at(key, now);
    }

    fn change_at(&mut self, key: &Key, at: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.change = Some(entry.change.map_or(at, |known| known.min(at)));
        self.reorder(key);
    }

    /// The key is to be planned at this time even if nothing changes; replaces what was asked for before.
    pub(crate) fn wake(&mut self, key: &Key, at: Instant) {
        self.entries.entry(key.clone()).or_default().wake = Some(at);
        self.reorder(key);
    }

    /// The key is to be planned at this time, or earlier if that was asked for.
    pub(crate) fn wake_by(&mut self, key: &Key, at: Instant) {
        let known = self.entries.get(key).and_then(|entry| entry.wake);
        self.wake(key, known.map_or(at, |known| known.min(at)));
    }

    /// Forgets a key for which there is nothing to do any more, unless it has changed meanwhile.
    pub(crate) fn forget(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.change.is_some() {
            entry.wake = None;
            self.reorder(key);
            return;
        }
        let due = entry.due;
        self.entries.remove(key);
        if let (Some(at), Some(lane)) = (due, self.lanes.get_mut(&lane(key))) {
            lane.due.remove(&(at, key.clone()));
        }
    }

    /// Keeps a lane's keys until released: its stores are not complete yet.
    pub(crate) fn hold(&mut self, lane: &Lane, held: bool) {
        self.lanes.entry(lane.clone()).or_default().held = held;
    }

    /// Takes nothing from a lane before this time: the server is busy.
    pub(crate) fn pause(&mut self, lane: &Lane, until: Instant) {
        let lane = self.lanes.entry(lane.clone()).or_default();
        lane.not_before = Some(lane.not_before.map_or(until, |known| known.max(until)));
    }

    /// All keys of a lane, in order.
    pub(crate) fn keys(&self, lane: &Lane) -> Vec<Key> {
        let of_lane = |key: &&Key| key.controller == lane.1 && key.cluster == lane.0;
        self.entries.keys().filter(of_lane).cloned().collect()
    }

    /// How many keys are due.
    pub(crate) fn depth(&self, now: Instant) -> BTreeMap<&'static str, usize> {
        let mut depths = BTreeMap::new();
        for ((_, controller), lane) in &self.lanes {
            let due = lane.due.iter().take_while(|(at, _)| *at <= now).count();
            *depths.entry(*controller).or_default() += due;
        }
        depths
    }

    /// When there is something to take; none if nothing is waiting.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let next = self.lanes.values().filter_map(LaneState::next);
        next.map(|(due, _)| due).min()
    }

    /// The next key, if one is due. Its lane is busy until [`Queue::finish`].
    pub(crate) fn take(&mut self, now: Instant) -> Option<Key> {
        let mut by_cluster: BTreeMap<&ClusterId, (Instant, &Key)> = BTreeMap::new();
        for ((cluster, _), lane) in &self.lanes {
            let Some(next) = lane.next().filter(|(due, _)| *due <= now) else {
                continue;
            };
            let best = by_cluster.entry(cluster).or_insert(next);
            *best = next.min(*best);
        }
        let after = self
            .last
            .as_ref()
            .and_then(|last| by_cluster.iter().find(|(cluster, _)| **cluster > last));
        let (_, (_, key)) = after.or_else(|| by_cluster.iter().next())?;
        let key = (*key).clone();
        self.last = Some(key.cluster.clone());
        let lane = self.lanes.entry(lane(&key)).or_default();
        lane.busy = true;
        let entry = self.entries.entry(key.clone()).or_default();
        if let Some(at) = entry.due.take() {
            lane.due.remove(&(at, key.clone()));
        }
        entry.change = None;
        entry.wake = None;
        Some(key)
    }

    /// The work on a taken key has ended.
    pub(crate) fn finish(&mut self, key: &Key, verdict: Requeue, now: Instant) {
        self.lanes.entry(lane(key)).or_default().busy = false;
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        match verdict {
            Requeue::Done => {
                entry.attempts = 0;
                entry.collisions = 0;
                entry.prepared = 0;
                entry.failed = None;
            }
            Requeue::Prepared => {
                entry.prepared += 1;
                if entry.prepared > PREPARATIONS {
                    entry.attempts = entry.attempts.saturating_add(1);
                    entry.failed = Some(now);
                }
                entry.change = Some(now);
            }
            Requeue::Again => {
                entry.attempts = 0;
                entry.failed = None;
                entry.change = Some(now);
            }
            Requeue::Collided => {
                entry.collisions += 1;
                if entry.collisions > 1 {
                    entry.attempts = entry.attempts.saturating_add(1);
                    entry.failed = Some(now);
                }
                entry.change = Some(now);
            }
            Requeue::Failed => {
                entry.attempts = entry.attempts.saturating_add(1);
                entry.failed = Some(now);
                // Not a change: it waits for the whole time.
                entry.wake = Some(now);
            }
        }
        self.reorder(key);
    }

    /// Lets all failed keys try again now: what kept them from succeeding is over.
    pub(crate) fn clear_backoff(&mut self) {
        let failed: Vec<Key> = self
            .entries
            .iter_mut()
            .filter_map(|(key, entry)| entry.failed.take().map(|_| key.clone()))
            .collect();
        for key in failed {
            self.reorder(&key);
        }
    }

    /// Puts a key where it belongs in its lane's order.
    fn reorder(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let wait = self.backoff.after(entry.attempts);
        let not_before = |at: Instant, wait: Duration| {
            entry
                .failed
                .map_or(at, |failed| at.max(after(failed, wait)))
        };
        let change = entry
            .change
            .map(|at| not_before(at, wait.min(CHANGE_WAITS_AT_MOST)));
        let wake = entry.wake.map(|at| not_before(at, wait));
        let due = match (change, wake) {
            (Some(change), Some(wake)) => Some(change.min(wake)),
            (change, wake) => change.or(wake),
        };
        let lane = self.lanes.entry(lane(key)).or_default();
        if let Some(before) = entry.due.take() {
            lane.due.remove(&(before, key.clone()));
        }
        if let Some(at) = due {
            lane.due.insert((at, key.clone()));
        }
        entry.due = due;
    }
}

#[cfg(test)]
mod tests;
