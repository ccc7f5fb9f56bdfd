//! Whose question is asked next: clusters take turns, and within a cluster its keys do.
//!
//! A value without clock or tasks. Who can be asked for is known beforehand, so that a turn costs no more than the logarithm
//! of how many wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use futures::future::AbortHandle;
use slipway_kernel::fact::{Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key};

use crate::queue::first_key;

/// How many questions of one key are under way at once.
pub(super) const AT_ONCE: usize = 32;

/// How many questions of one key wait in a line whose questions can be given up. Who wants to know more asks for the rest when
/// these are answered.
pub(super) const MOST_WAITING: usize = 1_024;

/// One attempt to have a question answered.
pub(crate) type Attempt = u64;

/// A question that has been asked.
#[derive(Debug)]
struct UnderWay {
    attempt: Attempt,
    /// What was asked: its name alone may mean something else by now.
    request: Request,
    /// Ends it; none where it ends by itself, because what it has begun cannot be taken back.
    given_up: Option<AbortHandle>,
}

/// Something to be asked now.
pub(super) struct Next {
    pub(super) key: Key,
    pub(super) question: Question,
    pub(super) attempt: Attempt,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was answered, and what was asked is still what its name means.
    Answered,
    /// What was asked is not what its name means any more.
    Outdated,
    /// It was given up.
    Unknown,
}

/// The questions of all keys that wait in one line.
#[derive(Debug)]
pub(super) struct Line {
    /// How many of a cluster are under way at once.
    in_all: usize,
    /// Whether what is under way and not wanted any more is given up.
    gives_up: bool,
    attempts: Attempt,
    waiting: BTreeMap<Key, VecDeque<Question>>,
    under_way: BTreeMap<Key, BTreeMap<QuestionId, UnderWay>>,
    /// Of those under way: what was asked under its name meanwhile is something else.
    outdated: BTreeSet<Attempt>,
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
    /// A line in which what has been asked ends by itself.
    pub(super) fn new(in_all: usize) -> Self {
        Self {
            in_all,
            gives_up: false,
            attempts: 0,
            waiting: BTreeMap::new(),
            under_way: BTreeMap::new(),
            outdated: BTreeSet::new(),
            rooms: BTreeMap::new(),
            open: BTreeSet::new(),
            last: None,
        }
    }

    /// A line in which what nobody wants to know any more is given up, also where it has been asked.
    pub(super) fn giving_up(in_all: usize) -> Self {
        Self {
            gives_up: true,
            ..Self::new(in_all)
        }
    }

    /// What a key's plan wants to know takes the place of what its last one did.
    pub(super) fn want(&mut self, key: &Key, questions: Vec<Question>) {
        self.compare(key, &questions);
        let under_way = self.under_way.get(key);
        let is_asked = |id: &QuestionId| under_way.is_some_and(|all| all.contains_key(id));
        let mut seen = BTreeSet::new();
        let waiting = questions
            .into_iter()
            .filter(|question| !is_asked(&question.id) && seen.insert(question.id.clone()));
        let most = if self.gives_up {
            MOST_WAITING
        } else {
            usize::MAX
        };
        let waiting: VecDeque<Question> = waiting.take(most).collect();
        if waiting.is_empty() {
            self.waiting.remove(key);
        } else {
            self.waiting.insert(key.clone(), waiting);
        }
        self.settle(key);
    }

    /// Looks whether what is under way is what is wanted.
    fn compare(&mut self, key: &Key, wanted: &[Question]) {
        let Some(under_way) = self.under_way.get(key) else {
            return;
        };
        let wanted: BTreeMap<&QuestionId, &Request> = wanted
            .iter()
            .map(|question| (&question.id, &question.request))
            .collect();
        let mut unwanted = Vec::new();
        for (id, asked) in under_way {
            let wanted = wanted.get(id);
            if wanted.is_some_and(|request| **request == asked.request) {
                continue;
            }
            if self.gives_up {
                unwanted.push(id.clone());
            } else if wanted.is_some() {
                // What is not wanted at all ends by itself, and whoever asks the same again by then is told.
                self.outdated.insert(asked.attempt);
            }
        }
        for id in unwanted {
            self.give_up(key, &id);
        }
    }

    /// Ends what is under way.
    fn give_up(&mut self, key: &Key, id: &QuestionId) {
        let asked = self.remove(key, id);
        if let Some(handle) = asked.and_then(|asked| asked.given_up) {
            handle.abort();
        }
    }

    /// Ends all that is under way, where it can be given up.
    pub(super) fn give_up_all(&mut self) {
        if !self.gives_up {
            return;
        }
        let keys: Vec<Key> = self.under_way.keys().cloned().collect();
        for key in keys {
            self.want(&key, Vec::new());
        }
    }

    /// Takes something out of what is under way.
    fn remove(&mut self, key: &Key, id: &QuestionId) -> Option<UnderWay> {
        let under_way = self.under_way.get_mut(key)?;
        let asked = under_way.remove(id);
        if under_way.is_empty() {
            self.under_way.remove(key);
        }
        if asked.is_some()
            && let Some(room) = self.rooms.get_mut(&key.cluster)
        {
            room.total = room.total.saturating_sub(1);
        }
        asked
    }

    /// Notes whether something of a key, and of its cluster, can be asked now.
    fn settle(&mut self, key: &Key) {
        let busy = self.under_way.get(key).map_or(0, BTreeMap::len);
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

    /// Nothing more of a cluster is asked that has not been asked yet, and what can be given up is.
    pub(super) fn take_back(&mut self, cluster: &ClusterId) {
        let mut keys = keys_of(&self.waiting, cluster);
        keys.extend(keys_of(&self.under_way, cluster));
        for key in keys {
            self.want(&key, Vec::new());
        }
    }

    /// The same for these controllers.
    pub(super) fn take_back_of(&mut self, controllers: &[&'static str]) {
        let is_meant = |key: &&Key| controllers.contains(&key.controller);
        let all = self.waiting.keys().chain(self.under_way.keys());
        let meant: BTreeSet<Key> = all.filter(is_meant).cloned().collect();
        for key in meant {
            self.want(&key, Vec::new());
        }
    }

    /// The next question to be asked, if there is room for one. Whatever waits for somebody who does not act is taken back.
    pub(super) fn next(&mut self, acts: impl Fn(&Key) -> bool) -> Option<Next> {
        loop {
            let cluster = after(&self.open, self.last.as_ref())?.clone();
            let room = self.rooms.get(&cluster)?;
            let key = after(&room.ready, room.last.as_ref())?.clone();
            if !acts(&key) {
                self.want(&key, Vec::new());
                continue;
            }
            let (question, attempt) = self.take(&key)?;
            self.last = Some(cluster);
            return Some(Next {
                key,
                question,
                attempt,
            });
        }
    }

    /// Takes out what a key waits for, as something that is under way.
    fn take(&mut self, key: &Key) -> Option<(Question, Attempt)> {
        let waiting = self.waiting.get_mut(key)?;
        let question = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(key);
        }
        self.attempts += 1;
        let asked = UnderWay {
            attempt: self.attempts,
            request: question.request.clone(),
            given_up: None,
        };
        let under_way = self.under_way.entry(key.clone()).or_default();
        let is_new = under_way.insert(question.id.clone(), asked).is_none();
        let room = self.rooms.entry(key.cluster.clone()).or_default();
        room.total += usize::from(is_new);
        room.last = Some(key.clone());
        self.settle(key);
        Some((question, self.attempts))
    }

    /// How something that has been asked can be ended.
    pub(super) fn may_end(&mut self, key: &Key, id: &QuestionId, handle: AbortHandle) {
        let under_way = self.under_way.get_mut(key);
        if let Some(asked) = under_way.and_then(|all| all.get_mut(id)) {
            asked.given_up = Some(handle);
        }
    }

    /// An attempt is not under way any more.
    pub(super) fn end(&mut self, key: &Key, id: &QuestionId, attempt: Attempt) -> Ended {
        let under_way = self.under_way.get(key).and_then(|all| all.get(id));
        if under_way.is_none_or(|asked| asked.attempt != attempt) {
            return Ended::Unknown;
        }
        self.remove(key, id);
        self.settle(key);
        if self.outdated.remove(&attempt) {
            return Ended::Outdated;
        }
        Ended::Answered
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

    /// Of which keys anything has been asked and not been answered.
    pub(super) fn under_way(&self) -> impl Iterator<Item = &Key> {
        self.under_way.keys()
    }

    /// Whether a key waits for more answers.
    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.waiting.contains_key(key) || self.under_way.contains_key(key)
    }
}

/// All keys of a cluster.
fn keys_of<T>(of: &BTreeMap<Key, T>, cluster: &ClusterId) -> BTreeSet<Key> {
    let keys = of.range(first_key(cluster)..).map(|(key, _)| key);
    let keys = keys.take_while(|key| key.cluster == *cluster);
    keys.cloned().collect()
}

#[cfg(test)]
mod tests;
