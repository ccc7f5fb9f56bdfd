//! Asks what plans want to know, and keeps the answers for as long as they are of use.
//!
//! What waits to be asked is what the last plan of a key asked for: a plan that wants less takes the rest back. What was
//! answered is kept while the last plan of the key says that the next one needs it. So both are bound by what there is to
//! be known, and nothing is asked again because something else was answered. An answer to what its name does not mean any
//! more, or of another history of the cluster, is nobody's.
//!
//! The cluster and the world outside are two lines: however many questions wait for somebody outside, none to the API or to
//! a pod waits for them. How many may be under way outside, and for how long somebody is left alone, is
//! [`crate::outside`]'s part, which knows who is slow. What is asked outside is given up as soon as nobody wants it or this
//! replica does not act any more; what is asked of the cluster ends by itself, because it may have changed something there.

mod line;
mod sure;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::{AbortHandle, abortable};
use slipway_kernel::action::Action;
use slipway_kernel::capability::Controller;
use slipway_kernel::fact::{Answer, Answers, Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::plan::Plan;
use tokio::time::Instant;

use super::Engine;
use crate::gather::{self, Gather, Nobody};
use crate::message::Message;
use crate::outside::Still;
use crate::state::Shared;
use line::{Attempt, Ended, Line, Next};
use sure::Sure;

/// How many of all keys of a cluster: a cluster that does not answer keeps none of another from being asked.
const IN_ALL: usize = 128;

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The API, or a pod.
    Inside,
    /// Anybody else.
    Outside,
}

impl Side {
    fn of(question: &Question) -> Self {
        match question.request {
            Request::Outside(_) => Self::Outside,
            _ => Self::Inside,
        }
    }
}

/// A question that has been asked and not been answered.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    side: Side,
    key: Key,
    id: QuestionId,
    attempt: Attempt,
    /// The history of the cluster in which it was asked.
    history: Option<u64>,
}

/// The questions of all keys.
#[derive(Debug)]
pub(super) struct Questions {
    inside: Line,
    outside: Line,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            inside: Line::new(IN_ALL),
            outside: Line::giving_up(usize::MAX),
        }
    }
}

impl Questions {
    fn want(&mut self, key: &Key, questions: Vec<Question>) {
        let is_outside = |one: &Question| Side::of(one) == Side::Outside;
        let (outside, inside) = questions.into_iter().partition(is_outside);
        self.inside.want(key, inside);
        self.outside.want(key, outside);
    }

    /// Nothing more of a cluster is asked that has not been asked yet. What is under way in it ends by itself.
    pub(super) fn take_back(&mut self, cluster: &ClusterId) {
        self.inside.take_back(cluster);
        self.outside.take_back(cluster);
    }

    /// Nothing more is asked for these controllers that has not been asked yet.
    fn take_back_of(&mut self, controllers: &[&'static str]) {
        self.inside.take_back_of(controllers);
        self.outside.take_back_of(controllers);
    }

    /// Forgets all questions of a cluster. What is under way in it ends by itself.
    pub(super) fn drop_cluster(&mut self, cluster: &ClusterId) {
        self.inside.drop_cluster(cluster);
        self.outside.drop_cluster(cluster);
    }

    /// Nobody outside is asked any more, and nobody there is waited for.
    pub(super) fn leave_the_world(&mut self) {
        self.outside.give_up_all();
    }

    fn next(&mut self, acts: impl Fn(&Key) -> bool) -> Option<Next> {
        let inside = self.inside.next(&acts);
        inside.or_else(|| self.outside.next(&acts))
    }

    fn end(&mut self, asked: &Pending) -> Ended {
        let line = match asked.side {
            Side::Inside => &mut self.inside,
            Side::Outside => &mut self.outside,
        };
        line.end(&asked.key, &asked.id, asked.attempt)
    }

    /// How something that has been asked can be ended. What is asked of the cluster is not: it ends by itself.
    fn may_end(&mut self, asked: &Pending, handle: AbortHandle) {
        if asked.side == Side::Outside {
            self.outside.may_end(&asked.key, &asked.id, handle);
        }
    }

    /// Who has asked something of a cluster or its pods that has not been answered.
    pub(super) fn under_way_inside(&self) -> impl Iterator<Item = &Key> {
        self.inside.under_way()
    }

    /// Whether a key waits for more answers.
    fn is_open(&self, key: &Key) -> bool {
        self.inside.is_open(key) || self.outside.is_open(key)
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

    /// This replica does not act for these any more: what they wait for is not asked.
    pub(super) fn ask_no_more(&mut self, controllers: &[&'static str]) {
        self.questions.take_back_of(controllers);
    }

    /// A key has nothing to ask any more.
    pub(super) fn fall_silent(&mut self, key: &Key) {
        self.questions.want(key, Vec::new());
    }

    /// A plan has been made: what its key was told is the key's alone again.
    pub(super) fn take_answers_back(&self, key: &Key) {
        let mut state = self.shared.lock();
        if let Some(known) = state.of_mut(&key.cluster) {
            known.facts.answers = Answers::default();
        }
    }

    /// Forgets the answers that a key's plan has no use for.
    pub(super) fn forget_answers(&self, key: &Key, keeps: &BTreeSet<QuestionId>) {
        let mut state = self.shared.lock();
        if let Some(known) = state.of_mut(&key.cluster) {
            known.answers.retain(key, keeps);
        }
    }

    /// Asks as many as there is room for, and nothing for whom this replica does not act any more.
    fn ask(&mut self) {
        let (shared, capabilities) = (&self.shared, &self.capabilities);
        let acts = |key: &Key| {
            let capability = capabilities.get(key.controller);
            capability.is_some_and(|one| acts_for(shared, one.as_ref(), key))
        };
        let mut all = Vec::new();
        while let Some(next) = self.questions.next(acts) {
            all.push(next);
        }
        for next in all {
            self.put(next);
        }
    }

    /// Has one asked.
    fn put(&mut self, next: Next) {
        let Next {
            key,
            question,
            attempt,
        } = next;
        let side = Side::of(&question);
        let (shared, gatherer) = (self.shared.clone(), self.gatherer_for(&key.cluster, side));
        let asked = Pending {
            side,
            history: shared.lock().history(&key.cluster),
            key: key.clone(),
            id: question.id.clone(),
            attempt,
        };
        let (still, pending) = (self.still(&key), asked.clone());
        let put = async move {
            let put = gather::put_while(&shared, gatherer.as_ref(), &key, question, still);
            Message::Answered(Box::new(pending), put.await)
        };
        let (put, handle) = abortable(put);
        self.questions.may_end(&asked, handle);
        self.start(async move { put.await.unwrap_or(Message::Ended) });
    }

    /// Whether this replica still acts for a key, when it is looked at.
    fn still(&self, key: &Key) -> Still {
        let (shared, key) = (self.shared.clone(), key.clone());
        let Some(capability) = self.capabilities.get(key.controller).cloned() else {
            return Still::when(|| false);
        };
        Still::when(move || acts_for(&shared, capability.as_ref(), &key))
    }

    /// Who answers questions about a cluster.
    fn gatherer_for(&self, cluster: &ClusterId, side: Side) -> Arc<dyn Gather> {
        if cluster.is_local() {
            return self.gatherer.clone();
        }
        match (self.clusters.get(cluster), side) {
            (Some(reached), Side::Inside) => Arc::new(Sure {
                shared: self.shared.clone(),
                inbox: self.sender.clone(),
                gatherer: self.gatherer.clone(),
                reached,
            }),
            (Some(reached), Side::Outside) => {
                self.gatherer.elsewhere(reached.client.client("default"))
            }
            (None, _) => Arc::new(Nobody),
        }
    }

    pub(super) fn answered(&mut self, asked: Pending, answer: Answer) {
        let now = self.shared.environment.now();
        let ended = self.questions.end(&asked);
        if ended == Ended::Unknown {
            // It was given up.
            return;
        }
        let Pending {
            key, id, history, ..
        } = asked;
        let is_known = {
            let mut state = self.shared.lock();
            state.keep_time(now);
            let is_valid = ended == Ended::Answered && state.history(&key.cluster) == history;
            let known = state.of_mut(&key.cluster);
            known.map(|known| {
                if is_valid {
                    known.answers.put(&key, id, now, answer);
                }
                is_valid
            })
        };
        let Some(is_valid) = is_known else {
            // Its cluster is gone.
            return;
        };
        self.ask();
        if !is_valid && !self.queue.knows(&key) {
            // It was about another cluster in its place, and this one has no such key.
            return;
        }
        // One plan for many answers, and none later than the last one of them.
        if self.questions.is_open(&key) {
            self.queue.changed(&key, Instant::now());
        } else {
            self.queue.at_once(&key, Instant::now());
        }
    }
}

/// Whether this replica acts for a key.
fn acts_for(shared: &Shared, capability: &dyn Controller, key: &Key) -> bool {
    let leads = shared.leads_in(capability.lease(), &key.cluster, key.controller);
    leads.is_some()
}
