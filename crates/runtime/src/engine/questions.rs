//! Asks what plans want to know, and keeps the answers for as long as they are of use.
//!
//! What waits to be asked is what the last plan of a key asked for: a plan that wants less takes the rest back. What was
//! answered is kept while the last plan of the key says that the next one needs it. So both are bound by what there is to
//! be known, and nothing is asked again because something else was answered.

mod turns;

use std::collections::BTreeSet;
use std::sync::Arc;

use slipway_kernel::action::Action;
use slipway_kernel::fact::{Answer, QuestionId};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::plan::Plan;
use tokio::time::Instant;

use super::Engine;
use crate::gather::{self, Gather, Gatherer, NoPods, Nobody};
use crate::message::Message;

pub(super) use turns::Questions;

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
        let mut asked = Vec::new();
        while let Some(next) = self.questions.next(acts) {
            asked.push(next);
        }
        for (key, question) in asked {
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
