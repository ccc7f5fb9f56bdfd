//! Whose question is asked next: clusters take turns, and within a cluster its keys do.
//!
//! A value without clock or tasks. Who can be asked for is known beforehand, so that a turn costs no more than the logarithm
//! of how many wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use slipway_kernel::fact::{Question, QuestionId};
use slipway_kernel::identity::{ClusterId, Key};

use crate::queue::first_key;

/// How many questions of one key are under way at once.
pub(super) const AT_ONCE: usize = 32;

/// The questions of all keys that wait in one line.
#[derive(Debug)]
pub(super) struct Line {
    /// How many of a cluster are under way at once.
    in_all: usize,
    waiting: BTreeMap<Key, VecDeque<Question>>,
    under_way: BTreeMap<Key, BTreeSet<QuestionId>>,
    rooms: BTreeMap<ClusterId, Room>,
    /// The clusters in which something can be asked now.
    open: BTreeSet<ClusterId>,
    /// Which one was last to have a question asked.
    last: Option<ClusterId>,
}

/// How it is in one cluster.
#[derive(Debug, Default)]
struct Room {
    /// How many are under way.
    total: usize,
    /// Keys that wait, and for each of which another one may be asked.
    ready: BTreeSet<Key>,
    /// Who was last to have a question asked.
    last: Option<Key>,
}

impl Room {
    fn is_open(&self, in_all: usize) -> bool {
        self.total < in_all && !self.ready.is_empty()
    }

    /// Whether there is nothing to remember.
    fn is_idle(&self) -> bool {
        self.total == 0 && self.ready.is_empty() && self.last.is_none()
    }
}

/// The first one after the last, or else the first of all.
fn after<'a, T: Ord>(all: &'a BTreeSet<T>, last: Option<&T>) -> Option<&'a T> {
    let later = last.and_then(|last| all.range((Bound::Excluded(last), Bound::Unbounded)).next());
    later.or_else(|| all.first())
}

impl Line {
    pub(super) fn new(in_all: usize) -> Self {
        Self {
            in_all,
            waiting: BTreeMap::new(),
            under_way: BTreeMap::new(),
            rooms: BTreeMap::new(),
            open: BTreeSet::new(),
            last: None,
        }
    }

    /// What a key's plan wants to know takes the place of what its last one did.
    pub(super) fn want(&mut self, key: &Key, questions: Vec<Question>) {
        let under_way = self.under_way.get(key);
        let is_asked = |id: &QuestionId| under_way.is_some_and(|ids| ids.contains(id));
        let mut seen = BTreeSet::new();
        let waiting: VecDeque<Question> = questions
            .into_iter()
            .filter(|question| !is_asked(&question.id) && seen.insert(question.id.clone()))
            .collect();
        if waiting.is_empty() {
            self.waiting.remove(key);
        } else {
            self.waiting.insert(key.clone(), waiting);
        }
        self.settle(key);
    }

    /// Notes whether something of a key, and of its cluster, can be asked now.
    fn settle(&mut self, key: &Key) {
        let busy = self.under_way.get(key).map_or(0, BTreeSet::len);
        let is_ready = busy < AT_ONCE && self.waiting.contains_key(key);
        let room = self.rooms.entry(key.cluster.clone()).or_default();
        if is_ready {
            room.ready.insert(key.clone());
        } else {
            room.ready.remove(key);
        }
        let (is_open, is_idle) = (room.is_open(self.in_all), room.is_idle());
        if is_open {
            self.open.insert(key.cluster.clone());
        } else {
            self.open.remove(&key.cluster);
        }
        if is_idle {
            self.rooms.remove(&key.cluster);
        }
    }

    /// Nothing more of a cluster is asked that has not been asked yet.
    pub(super) fn take_back(&mut self, cluster: &ClusterId) {
        for key in drop_keys(&mut self.waiting, cluster) {
            self.settle(&key);
        }
    }

    /// Nothing more is asked for these controllers that has not been asked yet.
    pub(super) fn take_back_of(&mut self, controllers: &[&'static str]) {
        let is_meant = |key: &&Key| controllers.contains(&key.controller);
        let meant: Vec<Key> = self.waiting.keys().filter(is_meant).cloned().collect();
        for key in meant {
            self.want(&key, Vec::new());
        }
    }

    /// The next question to be asked, if there is room for one. Whatever waits for somebody who does not act is taken back.
    pub(super) fn next(&mut self, acts: impl Fn(&Key) -> bool) -> Option<(Key, Question)> {
        loop {
            let cluster = after(&self.open, self.last.as_ref())?.clone();
            let room = self.rooms.get(&cluster)?;
            let key = after(&room.ready, room.last.as_ref())?.clone();
            if !acts(&key) {
                self.want(&key, Vec::new());
                continue;
            }
            let question = self.take(&key)?;
            self.last = Some(cluster);
            return Some((key, question));
        }
    }

    /// Takes out what a key waits for, as something that is under way.
    fn take(&mut self, key: &Key) -> Option<Question> {
        let waiting = self.waiting.get_mut(key)?;
        let question = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(key);
        }
        let under_way = self.under_way.entry(key.clone()).or_default();
        let is_new = under_way.insert(question.id.clone());
        let room = self.rooms.entry(key.cluster.clone()).or_default();
        room.total += usize::from(is_new);
        room.last = Some(key.clone());
        self.settle(key);
        Some(question)
    }

    /// A question is not under way any more. False if it was not.
    pub(super) fn end(&mut self, key: &Key, id: &QuestionId) -> bool {
        let Some(under_way) = self.under_way.get_mut(key) else {
            return false;
        };
        let was_under_way = under_way.remove(id);
        if under_way.is_empty() {
            self.under_way.remove(key);
        }
        if was_under_way && let Some(room) = self.rooms.get_mut(&key.cluster) {
            room.total = room.total.saturating_sub(1);
        }
        self.settle(key);
        was_under_way
    }

    /// Forgets all questions of a cluster. What is under way ends by itself.
    pub(super) fn drop_cluster(&mut self, cluster: &ClusterId) {
        if let Some(room) = self.rooms.get_mut(cluster) {
            room.last = None;
        }
        self.take_back(cluster);
        if self.rooms.get(cluster).is_some_and(Room::is_idle) {
            self.rooms.remove(cluster);
        }
    }

    /// Whether anything has been asked and not been answered.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether a key waits for more answers.
    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.waiting.contains_key(key) || self.under_way.contains_key(key)
    }
}

/// Takes out all keys of a cluster, and gives them.
fn drop_keys<T>(of: &mut BTreeMap<Key, T>, cluster: &ClusterId) -> Vec<Key> {
    let keys = of.range(first_key(cluster)..).map(|(key, _)| key);
    let keys = keys.take_while(|key| key.cluster == *cluster);
    let keys: Vec<Key> = keys.cloned().collect();
    for key in &keys {
        of.remove(key);
    }
    keys
}

#[cfg(test)]
mod tests;
