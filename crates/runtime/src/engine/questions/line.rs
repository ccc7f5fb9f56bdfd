//! Who is asked next: keys take turns, so many at once for each key, and so many for each cluster.
//!
//! A value without clock or tasks. What costs something is the logarithm of how many keys wait, and one step for each
//! cluster of which as much is under way as may be.

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
    /// Keys that wait and have room, by cluster.
    ready: BTreeMap<ClusterId, BTreeSet<Key>>,
    /// How many are under way in each cluster.
    totals: BTreeMap<ClusterId, usize>,
    /// Who was last to have a question asked: keys take turns.
    last: Option<Key>,
}

impl Line {
    pub(super) fn new(in_all: usize) -> Self {
        Self {
            in_all,
            waiting: BTreeMap::new(),
            under_way: BTreeMap::new(),
            ready: BTreeMap::new(),
            totals: BTreeMap::new(),
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

    /// Nothing more of a cluster is asked that has not been asked yet.
    pub(super) fn take_back(&mut self, cluster: &ClusterId) {
        let keys = self.waiting.range(first_key(cluster)..).map(|(key, _)| key);
        let keys = keys.take_while(|key| key.cluster == *cluster);
        for key in keys.cloned().collect::<Vec<Key>>() {
            self.want(&key, Vec::new());
        }
    }

    /// The next question to be asked, if there is room for one.
    pub(super) fn next(&mut self) -> Option<(Key, Question)> {
        let key = self.whose_turn()?;
        let question = self.waiting.get_mut(&key)?.pop_front()?;
        let under_way = self.under_way.entry(key.clone()).or_default();
        if under_way.insert(question.id.clone()) {
            *self.totals.entry(key.cluster.clone()).or_default() += 1;
        }
        self.settle(&key);
        self.last = Some(key.clone());
        Some((key, question))
    }

    /// The first key with room after the one that was last; beyond the end of all, the first of all.
    fn whose_turn(&self) -> Option<Key> {
        let has_room = |cluster: &ClusterId| {
            self.totals.get(cluster).copied().unwrap_or_default() < self.in_all
        };
        let first = |(cluster, keys): (&ClusterId, &BTreeSet<Key>)| {
            let key = has_room(cluster).then(|| keys.first())?;
            key.cloned()
        };
        let Some(last) = &self.last else {
            return self.ready.iter().find_map(first);
        };
        let beside = || {
            let keys = self.ready.get(&last.cluster)?;
            let mut later = keys.range((Bound::Excluded(last), Bound::Unbounded));
            has_room(&last.cluster).then(|| later.next().cloned())?
        };
        let behind = (Bound::Excluded(&last.cluster), Bound::Unbounded);
        let after = || self.ready.range::<ClusterId, _>(behind).find_map(first);
        let around = || self.ready.range(..=&last.cluster).find_map(first);
        beside().or_else(after).or_else(around)
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
        if was_under_way && let Some(total) = self.totals.get_mut(&key.cluster) {
            *total = total.saturating_sub(1);
            if *total == 0 {
                self.totals.remove(&key.cluster);
            }
        }
        self.settle(key);
        was_under_way
    }

    /// Whether anything has been asked and not been answered.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether a key waits for more answers.
    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.waiting.contains_key(key) || self.under_way.contains_key(key)
    }

    /// Notes whether a key is among those whose turn it can be.
    fn settle(&mut self, key: &Key) {
        if self.waiting.get(key).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(key);
        }
        let busy = self.under_way.get(key).map_or(0, BTreeSet::len);
        if self.waiting.contains_key(key) && busy < AT_ONCE {
            let keys = self.ready.entry(key.cluster.clone()).or_default();
            keys.insert(key.clone());
        } else if let Some(keys) = self.ready.get_mut(&key.cluster) {
            keys.remove(key);
            if keys.is_empty() {
                self.ready.remove(&key.cluster);
            }
        }
    }
}

#[cfg(test)]
mod tests;
