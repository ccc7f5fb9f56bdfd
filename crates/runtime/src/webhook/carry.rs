//! Carries out single actions of a webhook: now, once; or later, until they are done.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use slipway_kernel::action::Action;
use slipway_kernel::fact::{Answer, Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::question::{Failure, Reply};
use tokio::time::Instant;

use super::judgement::Told;
use crate::gather::{self, Gather};
use crate::request::{ApiRequest, Outcome};
use crate::settings::Backoff;
use crate::state::Shared;

/// How many questions of one review are under way at once.
pub(super) const AT_ONCE: usize = 32;

/// Between two attempts to undo something. Short: a pod that can be reached again must hear it before it is asked
/// something else.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(5),
};

/// By then whoever could not be told is gone, or somebody else has taken care of it.
const PATIENCE: Duration = Duration::from_mins(30);

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It is, or trying again would not help.
    Done,
    /// Not yet, or nobody knows.
    Open,
}

/// Whoever carries out what webhooks want done.
#[derive(Clone)]
pub(crate) struct Carrier {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: kube::Client,
    pub(crate) gatherer: Arc<dyn Gather>,
}

impl Carrier {
    /// Does something once, and gives the answer if it was a question.
    pub(super) async fn tell(&self, action: Action) -> Told {
        match action {
            Action::Ask(question) => {
                if let Request::Pod { url, .. } = &question.request {
                    // Whatever was to be undone at this pod is overtaken.
                    self.shared.lock().undoing.remove(url);
                }
                let id = question.id.clone();
                Some((id, self.put(question).await))
            }
            action => {
                self.once(action).await;
                None
            }
        }
    }

    async fn put(&self, question: Question) -> Answer {
        let whose = of_review(&question.id);
        gather::put(&self.shared, self.gatherer.as_ref(), &whose, question).await
    }

    /// Does something once.
    pub(super) async fn once(&self, action: Action) -> Ended {
        let purpose = action.purpose();
        let wanted = match action {
            Action::Ask(question) => {
                return ended(&self.put(question).await);
            }
            Action::Patch { target, body, .. } => ApiRequest::patch(&target, "", body),
            Action::Delete { target, .. } => ApiRequest::delete(&target),
            Action::Apply {
                object, body, by, ..
            } => ApiRequest::apply(&object, body, &by),
            // Webhooks decide and record; they copy nothing.
            Action::Copy(_) => return Ended::Done,
        };
        let replica = &self.shared.settings.replica;
        let wanted = wanted.traced(format!("replica={replica};purpose={purpose}"));
        let timeout = self.shared.settings.request_timeout;
        match wanted.send(&self.client, timeout).await {
            Outcome::Busy(_) | Outcome::Unknown(..) => Ended::Open,
            Outcome::Done(_) | Outcome::Absent(_) | Outcome::Conflict | Outcome::Refused(_) => {
                Ended::Done
            }
        }
    }

    /// Does all in this order, each as often as it takes. Pods that follow one another in it are told together.
    pub(crate) async fn until_done(self, actions: Vec<Action>) {
        let mark = self.mark(&actions);
        let began = Instant::now();
        let mut actions: VecDeque<Action> = actions.into();
        while let Some(first) = actions.pop_front() {
            let mut together = vec![first];
            if together.iter().all(is_for_pod) {
                while actions.front().is_some_and(is_for_pod) {
                    together.extend(actions.pop_front());
                }
            }
            self.repeat(together, mark, began).await;
        }
    }

    /// Says at which pods something is being undone.
    fn mark(&self, actions: &[Action]) -> u64 {
        let mark = self.shared.environment.draw();
        let mut state = self.shared.lock();
        for action in actions {
            if let Some(url) = pod(action) {
                state.undoing.insert(url.to_owned(), mark);
            }
        }
        mark
    }

    /// Whether somebody else has asked a pod something since, or may have: then its state is theirs.
    fn is_overtaken(&self, action: &Action, mark: u64) -> bool {
        let now = self.shared.environment.now();
        let is_late = matches!(action, Action::Ask(question) if question.is_too_late(now));
        is_late || pod(action).is_some_and(|url| self.shared.lock().undoing.get(url) != Some(&mark))
    }

    async fn repeat(&self, mut open: Vec<Action>, mark: u64, began: Instant) {
        let mut attempt = 0;
        loop {
            open.retain(|action| !self.is_overtaken(action, mark));
            let done = futures::stream::iter(open)
                .map(|action| async move {
                    let ended = self.once(action.clone()).await;
                    (action, ended)
                })
                .buffered(AT_ONCE);
            open = done
                .filter_map(|(action, ended)| async move {
                    if ended == Ended::Done {
                        self.unmark(&action, mark);
                        return None;
                    }
                    Some(action)
                })
                .collect()
                .await;
            if open.is_empty() {
                return;
            }
            attempt += 1;
            if began.elapsed() > PATIENCE {
                let n = open.len();
                tracing::error!(n, "what a webhook began could not be undone; given up");
                for action in &open {
                    self.unmark(action, mark);
                }
                return;
            }
            self.shared.environment.sleep(BACKOFF.after(attempt)).await;
        }
    }

    fn unmark(&self, action: &Action, mark: u64) {
        if let Some(url) = pod(action) {
            let mut state = self.shared.lock();
            if state.undoing.get(url) == Some(&mark) {
                state.undoing.remove(url);
            }
        }
    }
}

/// On whose behalf a review asks. It is in no namespace: no Secret is read for it.
fn of_review(id: &QuestionId) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: id.controller,
        namespace: String::new(),
        name: id.uid.clone(),
    }
}

/// The address of the pod that an action is about.
fn pod(action: &Action) -> Option<&str> {
    match action {
        Action::Ask(Question {
            request: Request::Pod { url, .. },
            ..
        }) => Some(url),
        _ => None,
    }
}

fn is_for_pod(action: &Action) -> bool {
    pod(action).is_some()
}

/// What an answer means to somebody who wants something undone. A write that finds its object changed or gone is done,
/// and what is refused once would be refused again.
fn ended(answer: &Answer) -> Ended {
    match answer {
        Answer::Said {
            code: 408 | 429 | 500..,
            ..
        }
        | Answer::Read(Reply {
            code: 408 | 429 | 500..,
            ..
        }) => Ended::Open,
        // Who must not be asked will not be asked the next time either.
        Answer::Failed(Failure::NotAllowed(_))
        | Answer::Said { .. }
        | Answer::Read(_)
        | Answer::NoRight(_) => Ended::Done,
        Answer::Failed(_) => Ended::Open,
    }
}
