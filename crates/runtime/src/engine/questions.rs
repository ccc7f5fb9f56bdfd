//! Asks what plans want to know, and keeps the answers for as long as they are of use.
//!
//! What waits to be asked is what the last plan of a key asked for: a plan that wants less takes the rest back. What was
//! answered is kept while the last plan of the key says that the next one needs it. So both are bound by what there is to
//! be known, and nothing is asked again because something else was answered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use slipway_kernel::action::Action;
use slipway_kernel::fact::{Answer, Question, QuestionId};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::plan::Plan;
use tokio::time::Instant;

use super::Engine;
use crate::gather::{self, Gather, Gatherer, NoPods, Nobody};
use crate::message::Message;
use crate::queue::first_key;

/// How many questions of one key are under way at once.
const AT_ONCE: usize = 32;
/// How many of all keys of a cluster: a cluster that does not answer keeps none of another from being asked.
const IN_ALL: usize = 128;

/// The questions of all keys.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: BTreeMap<Key, VecDeque<Question>>,
    under_way: BTreeMap<Key, BTreeSet<QuestionId>>,
    /// What has been answered and not been forgotten.
    answered: BTreeMap<Key, BTreeSet<QuestionId>>,
    /// How many are under way in each cluster.
    totals: BTreeMap<ClusterId, usize>,
    /// Who was last to have a question asked: keys take turns.
    last: Option<Key>,
}

impl Questions {
    /// What a key's plan wants to know takes the place of what its last one did.
    fn want(&mut self, key: &Key, questions: Vec<Question>) {
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
    }

    /// Nothing more of a cluster is asked that has not been asked yet.
    pub(super) fn take_back(&mut self, cluster: &ClusterId) {
        drop_keys(&mut self.waiting, cluster);
    }

    /// The next question to be asked, if there is room for one.
    fn next(&mut self) -> Option<(Key, Question)> {
        let has_room = |key: &&Key| {
            let busy = self.under_way.get(*key).map_or(0, BTreeSet::len);
            let total = self.totals.get(&key.cluster).copied().unwrap_or_default();
            busy < AT_ONCE && total < IN_ALL
        };
        let mut keys = self.waiting.keys().filter(has_room);
        let later = |key: &&Key| self.last.as_ref().is_none_or(|last| *key > last);
        let after = self.waiting.keys().filter(has_room).find(later);
        let key = after.or_else(|| keys.next())?.clone();
        let waiting = self.waiting.get_mut(&key)?;
        let question = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&key);
        }
        let under_way = self.under_way.entry(key.clone()).or_default();
        if under_way.insert(question.id.clone()) {
            *self.totals.entry(key.cluster.clone()).or_default() += 1;
        }
        self.last = Some(key.clone());
        Some((key, question))
    }

    /// A question has been answered.
    fn ended(&mut self, key: &Key, id: &QuestionId) {
        self.end(key, id);
        let answered = self.answered.entry(key.clone()).or_default();
        answered.insert(id.clone());
    }

    /// A question is not under way any more.
    fn end(&mut self, key: &Key, id: &QuestionId) {
        let Some(under_way) = self.under_way.get_mut(key) else {
            return;
        };
        if under_way.remove(id)
            && let Some(total) = self.totals.get_mut(&key.cluster)
        {
            *total = total.saturating_sub(1);
            if *total == 0 {
                self.totals.remove(&key.cluster);
            }
        }
        if under_way.is_empty() {
            self.under_way.remove(key);
        }
    }

    /// Forgets all questions and answers of a cluster. What is under way ends by itself.
    pub(super) fn drop_cluster(&mut self, cluster: &ClusterId) {
        self.take_back(cluster);
        drop_keys(&mut self.answered, cluster);
    }

    /// Whether anything has been asked and not been answered.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether a key waits for more answers.
    fn is_open(&self, key: &Key) -> bool {
        self.waiting.contains_key(key) || self.under_way.contains_key(key)
    }

    /// Gives the answers of a key that nobody needs any more.
    fn forget(&mut self, key: &Key, keeps: &BTreeSet<QuestionId>) -> Vec<QuestionId> {
        let Some(answered) = self.answered.get_mut(key) else {
            return Vec::new();
        };
        let gone: Vec<QuestionId> = answered.difference(keeps).cloned().collect();
        answered.retain(|id| keeps.contains(id));
        if answered.is_empty() {
            self.answered.remove(key);
        }
        gone
    }
}

/// Takes out all keys of a cluster.
fn drop_keys<T>(of: &mut BTreeMap<Key, T>, cluster: &ClusterId) {
    let keys = of.range(first_key(cluster)..).map(|(key, _)| key);
    let keys = keys.take_while(|key| key.cluster == *cluster);
    for key in keys.cloned().collect::<Vec<Key>>() {
        of.remove(&key);
    }
}

impl Engine {
    /// Takes the questions out of a plan that is to be carried out, and asks them in their turn.
    pub(super) fn inquire(&mut self, key: &Key, plan: &mut Plan) {
        let mut questions = Vec::new();
        plan.steps = std::mem::take(&mut plan.steps)
            .into_iter()
            .filter_map(|mut step| match step.action {
                Action::Ask(question) => {
                    questions.push(question);
                    None
                }
                action => {
                    step.action = action;
                    Some(step)
                }
            })
            .collect();
        self.questions.want(key, questions);
        self.ask();
    }

    /// A key has nothing to ask any more.
    pub(super) fn fall_silent(&mut self, key: &Key) {
        self.questions.want(key, Vec::new());
    }

    /// Forgets the answers that a key's plan has no use for.
    pub(super) fn forget_answers(&mut self, key: &Key, keeps: &BTreeSet<QuestionId>) {
        let gone = self.questions.forget(key, keeps);
        if gone.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        if let Some(known) = state.of_mut(&key.cluster) {
            for id in &gone {
                known.facts.answers.remove(id);
            }
        }
    }

    /// Asks as many as there is room for, and nothing for whom this replica does not act any more.
    fn ask(&mut self) {
        let (shared, capabilities) = (&self.shared, &self.capabilities);
        let acts = |key: &Key| {
            let capability = capabilities.get(key.controller);
            let cluster = &key.cluster;
            capability.is_some_and(|one| shared.leads_in(one.lease(), cluster).is_some())
        };
        self.questions.waiting.retain(|key, _| acts(key));
        while let Some((key, question)) = self.questions.next() {
            let (shared, gatherer) = (self.shared.clone(), self.gatherer_for(&key.cluster));
            self.start(async move {
                let id = question.id.clone();
                let answer = gather::put(&shared, gatherer.as_ref(), question).await;
                Message::Answered(key, id, answer)
            });
        }
    }

    /// Who answers questions about a cluster.
    fn gatherer_for(&self, cluster: &ClusterId) -> Arc<dyn Gather> {
        if cluster.is_local() {
            return self.gatherer.clone();
        }
        match self.clusters.get(cluster) {
            Some(reached) => Arc::new(Gatherer::new(reached.client, Arc::new(NoPods))),
            None => Arc::new(Nobody),
        }
    }

    pub(super) fn answered(&mut self, key: &Key, id: &QuestionId, answer: Answer) {
        let now = self.shared.environment.now();
        let is_known = {
            let mut state = self.shared.lock();
            state.keep_time(now);
            let known = state.of_mut(&key.cluster);
            known.map(|known| known.facts.answers.insert(id.clone(), (now, answer)))
        };
        if is_known.is_none() {
            // Its cluster is gone.
            self.questions.end(key, id);
            return;
        }
        self.questions.ended(key, id);
        self.ask();
        // One plan for many answers, and none later than the last one of them.
        if self.questions.is_open(key) {
            self.queue.changed(key, Instant::now());
        } else {
            self.queue.at_once(key, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use jiff::Timestamp;
    use serde_json::Value;
    use slipway_kernel::Purpose;

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            cluster: ClusterId::local(),
            controller: "toy",
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    fn question(of: &str, attempt: u32) -> Question {
        Question {
            id: QuestionId {
                controller: "toy",
                uid: of.to_owned(),
                purpose: Purpose::new("ask"),
                attempt,
                due: Timestamp::UNIX_EPOCH,
            },
            method: "GET",
            url: String::new(),
            body: Value::Null,
            pause: Duration::ZERO,
            timeout: Duration::ZERO,
            until: None,
        }
    }

    fn asked(of: &str, n: u32) -> Vec<Question> {
        (0..n).map(|attempt| question(of, attempt)).collect()
    }

    fn started(questions: &mut Questions) -> Vec<String> {
        std::iter::from_fn(|| questions.next())
            .map(|(_, question)| question.id.uid)
            .collect()
    }

    #[test]
    fn a_key_asks_32_at_once_and_all_keys_take_turns() {
        let mut questions = Questions::default();
        for name in ["a", "b"] {
            questions.want(&key(name), asked(name, 100));
        }
        let first = started(&mut questions);
        assert_eq!(first.len(), 2 * AT_ONCE);
        assert_eq!(first[..4], ["a", "b", "a", "b"]);
        questions.ended(&key("a"), &question("a", 0).id);
        assert_eq!(started(&mut questions), ["a"]);
        for n in 0..10 {
            let name = format!("k{n}");
            questions.want(&key(&name), asked(&name, 100));
        }
        assert_eq!(started(&mut questions).len(), IN_ALL - 2 * AT_ONCE);
    }

    #[test]
    fn a_new_plan_takes_back_what_is_not_asked_yet_and_asks_nothing_twice() {
        let mut questions = Questions::default();
        let a = key("a");
        questions.want(&a, asked("a", 100));
        assert_eq!(started(&mut questions).len(), AT_ONCE);
        questions.want(&a, asked("a", 33));
        for attempt in 0..32 {
            questions.ended(&a, &question("a", attempt).id);
        }
        assert!(questions.is_open(&a));
        assert_eq!(started(&mut questions).len(), 1);
        questions.ended(&a, &question("a", 32).id);
        assert!(!questions.is_open(&a));
    }

    #[test]
    fn what_was_not_asked_before_a_restore_is_not_asked_after_it() {
        let mut questions = Questions::default();
        let a = key("a");
        questions.want(&a, asked("a", 100));
        assert_eq!(started(&mut questions).len(), AT_ONCE);
        questions.take_back(&ClusterId::local());
        questions.ended(&a, &question("a", 0).id);
        assert!(started(&mut questions).is_empty());
        assert!(questions.is_under_way());
    }

    #[test]
    fn answers_are_kept_for_as_long_as_a_plan_needs_them_however_many_they_are() {
        let mut questions = Questions::default();
        let a = key("a");
        let all: BTreeSet<QuestionId> = asked("a", 10_000).into_iter().map(|q| q.id).collect();
        for id in &all {
            questions.ended(&a, id);
        }
        assert!(questions.forget(&a, &all).is_empty());
        let one: BTreeSet<QuestionId> = all.iter().take(1).cloned().collect();
        assert_eq!(questions.forget(&a, &one).len(), 9_999);
        assert_eq!(questions.forget(&a, &BTreeSet::new()).len(), 1);
        assert!(questions.answered.is_empty());
    }
}
