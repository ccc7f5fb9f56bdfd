//! Which piece of work is next.
//!
//! Ordered and without duplicates: a key that is asked for ten times is taken once. Changes within the debounce time
//! are one; a plan's wake-up replaces the one before; a key that failed is left alone for a while. Clusters take turns,
//! and within one the key that has been due for longest is first.
//!
//! Keys of one lane are taken one at a time, because they may share a budget: the next one is planned when the writes of the
//! one before have been answered. What a lane is, is said by the controller ([`slipway_kernel::Lane`]).
//!
//! Nothing here takes longer than the logarithm of how many keys, lanes and clusters there are, except what is done to all
//! keys of a cluster.

mod lane;
mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use slipway_kernel::identity::{ClusterId, Key};
use tokio::time::Instant;

use crate::environment::after;
use crate::settings::Backoff;
use order::Order;

pub(crate) use lane::{LaneId, Post, Sharing, post};

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

#[derive(Debug, Clone)]
struct Entry {
    lane: LaneId,
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
    /// Whether it is counted as due.
    is_ripe: bool,
}

impl Entry {
    fn new(lane: LaneId) -> Self {
        Self {
            lane,
            change: None,
            wake: None,
            failed: None,
            attempts: 0,
            collisions: 0,
            prepared: 0,
            due: None,
            is_ripe: false,
        }
    }
}

#[derive(Debug, Default)]
struct LaneState {
    due: BTreeSet<(Instant, Key)>,
    busy: bool,
    /// Where it is in the order of all lanes: by its first key.
    place: Option<(Instant, Key)>,
}

/// Keys and when they are due.
#[derive(Debug)]
pub(crate) struct Queue {
    debounce: Duration,
    backoff: Backoff,
    sharing: Sharing,
    entries: BTreeMap<Key, Entry>,
    lanes: BTreeMap<LaneId, LaneState>,
    order: Order,
    /// Whose stores are not complete yet.
    held: BTreeSet<Post>,
    /// Who finds the server busy, and until when.
    paused: BTreeMap<Post, Instant>,
    /// Keys that have failed.
    failed: BTreeSet<Key>,
    /// Keys that are not due yet, and how many are.
    unripe: BTreeSet<(Instant, Key)>,
    ripe: BTreeMap<&'static str, usize>,
    last: Option<ClusterId>,
}

impl Queue {
    pub(crate) fn new(debounce: Duration, backoff: Backoff, sharing: Sharing) -> Self {
        Self {
            debounce,
            backoff,
            sharing,
            entries: BTreeMap::new(),
            lanes: BTreeMap::new(),
            order: Order::default(),
            held: BTreeSet::new(),
            paused: BTreeMap::new(),
            failed: BTreeSet::new(),
            unripe: BTreeSet::new(),
            ripe: BTreeMap::new(),
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
        let entry = self.entry(key);
        entry.change = Some(entry.change.map_or(at, |known| known.min(at)));
        self.reorder(key);
    }

    /// Whether a key waits for anything.
    pub(crate) fn knows(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    fn entry(&mut self, key: &Key) -> &mut Entry {
        let sharing = &self.sharing;
        let entry = self.entries.entry(key.clone());
        entry.or_insert_with(|| Entry::new(sharing.lane(key)))
    }

    /// The key is to be planned at this time even if nothing changes; replaces what was asked for before.
    pub(crate) fn wake(&mut self, key: &Key, at: Instant) {
        self.entry(key).wake = Some(at);
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
        self.remove(key);
    }

    /// Forgets all work in a cluster, also what is under way.
    pub(crate) fn drop_cluster(&mut self, cluster: &ClusterId) {
        let keys: Vec<Key> = self.of_cluster(cluster).cloned().collect();
        for key in &keys {
            self.remove(key);
        }
        let first = LaneId::first(&(cluster.clone(), ""));
        let lanes = self.lanes.range(first..).map(|(lane, _)| lane);
        let lanes = lanes.take_while(|lane| lane.cluster == *cluster);
        for lane in lanes.cloned().collect::<Vec<_>>() {
            self.lanes.remove(&lane);
        }
        let first: Post = (cluster.clone(), "");
        let held = self.held.range(first.clone()..);
        let held = held.take_while(|(of, _)| of == cluster);
        for post in held.cloned().collect::<Vec<_>>() {
            self.held.remove(&post);
        }
        let paused = self.paused.range(first..).map(|(post, _)| post);
        let paused = paused.take_while(|(of, _)| of == cluster);
        for post in paused.cloned().collect::<Vec<_>>() {
            self.paused.remove(&post);
        }
    }

    /// Takes a key out, whatever is to be done about it.
    fn remove(&mut self, key: &Key) {
        self.unplace(key);
        self.failed.remove(key);
        if let Some(entry) = self.entries.remove(key) {
            self.place(&entry.lane);
        }
    }

    /// Keeps the keys of a controller in a cluster until released: its stores are not complete yet.
    pub(crate) fn hold(&mut self, post: &Post, held: bool) {
        if held {
            self.held.insert(post.clone());
        } else {
            self.held.remove(post);
        }
        self.ripe.entry(post.1).or_default();
        self.place_all(post);
    }

    /// Takes nothing of a controller in a cluster before this time: the server is busy.
    pub(crate) fn pause(&mut self, post: &Post, until: Instant) {
        let known = self.paused.entry(post.clone()).or_insert(until);
        *known = until.max(*known);
        self.place_all(post);
    }

    /// All keys of a controller in a cluster, in order.
    pub(crate) fn keys(&self, post: &Post) -> Vec<Key> {
        let first = Key {
            cluster: post.0.clone(),
            controller: post.1,
            namespace: String::new(),
            name: String::new(),
        };
        let keys = self.entries.range(first..).map(|(key, _)| key);
        let keys = keys.take_while(|key| key.cluster == post.0 && key.controller == post.1);
        keys.cloned().collect()
    }

    fn of_cluster<'a>(&'a self, cluster: &'a ClusterId) -> impl Iterator<Item = &'a Key> {
        let keys = self.entries.range(first_key(cluster)..).map(|(key, _)| key);
        keys.take_while(move |key| key.cluster == *cluster)
    }

    /// How many keys are due.
    pub(crate) fn depth(&mut self, now: Instant) -> &BTreeMap<&'static str, usize> {
        while let Some((at, _)) = self.unripe.first()
            && *at <= now
            && let Some((_, key)) = self.unripe.pop_first()
        {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.is_ripe = true;
                *self.ripe.entry(key.controller).or_default() += 1;
            }
        }
        &self.ripe
    }

    /// When there is something to take; none if nothing is waiting.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.order.next()
    }

    /// The next key, if one is due. Its lane is busy until [`Queue::finish`].
    pub(crate) fn take(&mut self, now: Instant) -> Option<Key> {
        let key = self.order.take(now, self.last.as_ref())?;
        self.last = Some(key.cluster.clone());
        self.unplace(&key);
        let entry = self.entries.get_mut(&key)?;
        entry.change = None;
        entry.wake = None;
        let lane = entry.lane.clone();
        self.lanes.entry(lane.clone()).or_default().busy = true;
        self.place(&lane);
        Some(key)
    }

    /// The work on a taken key has ended.
    pub(crate) fn finish(&mut self, key: &Key, verdict: Requeue, now: Instant) {
        let lane = self.sharing.lane(key);
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.busy = false;
        }
        let Some(entry) = self.entries.get_mut(key) else {
            self.place(&lane);
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
        if entry.failed.is_some() {
            self.failed.insert(key.clone());
        } else {
            self.failed.remove(key);
        }
        self.reorder(key);
    }

    /// Lets all failed keys of a cluster try again now: what kept them from succeeding is over.
    pub(crate) fn clear_backoff(&mut self, cluster: &ClusterId) {
        let failed = self.failed.range(first_key(cluster)..);
        let failed = failed.take_while(|key| key.cluster == *cluster);
        for key in failed.cloned().collect::<Vec<Key>>() {
            self.failed.remove(&key);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.failed = None;
            }
            self.reorder(&key);
        }
    }

    /// Puts a key where it belongs in its lane's order.
    fn reorder(&mut self, key: &Key) {
        self.unplace(key);
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
        entry.due = due;
        let lane = entry.lane.clone();
        if let Some(at) = due {
            let state = self.lanes.entry(lane.clone()).or_default();
            state.due.insert((at, key.clone()));
            self.unripe.insert((at, key.clone()));
        }
        self.place(&lane);
    }

    /// Takes a key out of its lane's order.
    fn unplace(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let Some(at) = entry.due.take() else {
            return;
        };
        let slot = (at, key.clone());
        if std::mem::take(&mut entry.is_ripe) {
            let ripe = self.ripe.entry(key.controller).or_default();
            *ripe = ripe.saturating_sub(1);
        } else {
            self.unripe.remove(&slot);
        }
        if let Some(lane) = self.lanes.get_mut(&entry.lane) {
            lane.due.remove(&slot);
        }
    }

    /// Puts all lanes of a controller in a cluster where they belong.
    fn place_all(&mut self, post: &Post) {
        let from = Bound::Included(LaneId::first(post));
        let lanes = self.lanes.range((from, Bound::Unbounded));
        let lanes = lanes.map(|(lane, _)| lane).take_while(|l| l.is_of(post));
        for lane in lanes.cloned().collect::<Vec<_>>() {
            self.place(&lane);
        }
    }

    /// Puts a lane where it belongs in the order of all; one that has nothing to do is none.
    fn place(&mut self, lane: &LaneId) {
        let Some(state) = self.lanes.get_mut(lane) else {
            return;
        };
        if let Some(before) = state.place.take() {
            self.order.remove(&before);
        }
        let post = (lane.cluster.clone(), lane.controller);
        let Some((due, key)) = state.due.first() else {
            if !state.busy {
                self.lanes.remove(lane);
            }
            return;
        };
        if state.busy || self.held.contains(&post) {
            return;
        }
        let pause = self.paused.get(&post);
        let place = (pause.map_or(*due, |at| *due.max(at)), key.clone());
        state.place = Some(place.clone());
        self.order.insert(place);
    }
}

/// What is before all keys of a cluster.
pub(crate) fn first_key(cluster: &ClusterId) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: "",
        namespace: String::new(),
        name: String::new(),
    }
}

#[cfg(test)]
mod tests;
