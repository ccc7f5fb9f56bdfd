//! Asks what plans want to know, and keeps the answers for as long as they are of use.
//!
//! What waits to be asked is what the last plan of a key asked for: a plan that wants less takes the rest back. What was
//! answered is kept while the last plan of the key says that the next one needs it. So both are bound by what there is to
//! be known, and nothing is asked again because something else was answered.
//!
//! The cluster and the world outside are two lines: however many questions wait for somebody outside, none to the API or to
//! a pod waits for them. How many may be under way outside, and for how long somebody is left alone, is
//! [`crate::outside`]'s part, which knows who is slow.

mod line;

use std::collections::BTreeSet;
use std::sync::Arc;

use slipway_kernel::action::Action;
use slipway_kernel::fact::{Answer, Answers, Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::plan::Plan;
use tokio::time::Instant;

use super::Engine;
use crate::gather::{self, Gather, Nobody};
use crate::message::Message;
use line::Line;

/// How many of all keys of a cluster: a cluster that does not answer keeps none of another from being asked.
const IN_ALL: usize = 128;

/// The questions of all keys.
#[derive(Debug)]
pub(super) struct Questions {
    /// To the API and to pods.
    inside: Line,
    /// To all others.
    outside: Line,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            inside: Line::new(IN_ALL),
            outside: Line::new(usize::MAX),
        }
    }
}

impl Questions {
    fn want(&mut self, key: &Key, questions: Vec<Question>) {
        let is_outside = |one: &Question| matches!(one.request, Request::Outside(_));
        let (outside, inside) = questions.into_iter().partition(is_outside);
        self.inside.want(key, inside);
        self.outside.want(key, outside);
    }

    /// Nothing more of a cluster is asked that has not been asked yet. What is under way ends by itself.
    pub(super) fn take_back(&mut self, cluster: &ClusterId) {
        self.inside.take_back(cluster);
        self.outside.take_back(cluster);
    }

    /// Nothing more is asked for these controllers that has not been asked yet.
    fn take_back_of(&mut self, controllers: &[&'static str]) {
        self.inside.take_back_of(controllers);
        self.outside.take_back_of(controllers);
    }

    /// Forgets all questions of a cluster. What is under way ends by itself.
    pub(super) fn drop_cluster(&mut self, cluster: &ClusterId) {
        self.inside.drop_cluster(cluster);
        self.outside.drop_cluster(cluster);
    }

    fn next(&mut self, acts: impl Fn(&Key) -> bool) -> Option<(Key, Question)> {
        let inside = self.inside.next(&acts);
        inside.or_else(|| self.outside.next(&acts))
    }

    fn end(&mut self, key: &Key, id: &QuestionId) {
        if !self.inside.end(key, id) {
            self.outside.end(key, id);
        }
    }

    /// Whether anything has been asked and not been answered.
    pub(super) fn is_under_way(&self) -> bool {
        self.inside.is_under_way() || self.outside.is_under_way()
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
            let cluster = &key.cluster;
            capability.is_some_and(|one| shared.leads_in(one.lease(), cluster).is_some())
        };
        let mut asked = Vec::new();
        while let Some(next) = self.questions.next(acts) {
            asked.push(next);
        }
        for (key, question) in asked {
            let (shared, gatherer) = (self.shared.clone(), self.gatherer_for(&key.cluster));
            self.start(async move {
                let id = question.id.clone();
                let answer = gather::put(&shared, gatherer.as_ref(), &key, question).await;
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
            Some(reached) => self.gatherer.elsewhere(reached.client),
            None => Arc::new(Nobody),
        }
    }

    pub(super) fn answered(&mut self, key: &Key, id: &QuestionId, answer: Answer) {
        let now = self.shared.environment.now();
        let is_known = {
            let mut state = self.shared.lock();
            state.keep_time(now);
            let known = state.of_mut(&key.cluster);
            known.map(|known| known.answers.put(key, id.clone(), now, answer))
        };
        self.questions.end(key, id);
        if is_known.is_none() {
            // Its cluster is gone.
            return;
        }
        self.ask();
        // One plan for many answers, and none later than the last one of them.
        if self.questions.is_open(key) {
            self.queue.changed(key, Instant::now());
        } else {
            self.queue.at_once(key, Instant::now());
        }
    }
}
