//! Writes as steps of a plan: what the API refused is tried again in its time, and told meanwhile.

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::action::FieldManager;
use slipway_kernel::plan::Status;
use slipway_kernel::{Action, Blocker, Event, Facts, Plan, Purpose, Step, Target};

use crate::reasons::Reason;
use crate::render::Applied;

/// A plan that is made.
pub(crate) struct Steps<'a> {
    pub(crate) plan: Plan,
    facts: &'a Facts,
    now: Timestamp,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(facts: &'a Facts, now: Timestamp) -> Self {
        Self {
            plan: Plan::default(),
            facts,
            now,
        }
    }

    /// Applies an object in the cluster of the plan.
    pub(crate) fn apply(&mut self, applied: Applied, purpose: Purpose, events: Vec<Event>) {
        let by = FieldManager {
            name: applied.manager.into(),
            force: applied.force,
        };
        let action = Action::Apply {
            object: applied.object,
            purpose,
            body: applied.body,
            by,
        };
        self.act(action, events);
    }

    /// Deletes an object, as it was seen.
    pub(crate) fn delete(&mut self, target: Target, purpose: Purpose) {
        self.act(Action::Delete { target, purpose }, Vec::new());
    }

    /// Does something, unless the API has refused that a short while ago.
    pub(crate) fn act(&mut self, action: Action, events: Vec<Event>) {
        let facts = self.facts;
        let refusal = action
            .object()
            .and_then(|object| Some((object, facts.refusals.get(object)?)));
        if let Some((object, refusal)) = refusal {
            let blocker = Blocker {
                reason: Reason::RefusedByApi.as_str(),
                message: format!("the API refused to change {object}: {}", refusal.message),
                object: object.clone(),
                since: refusal.since,
                until: None,
                unblock: "whoever mends what the API refuses; it is tried again by itself"
                    .to_owned(),
            };
            self.plan.blockers.push(blocker);
            if refusal.retry_at > self.now {
                self.plan.wake(refusal.retry_at);
                return;
            }
        }
        self.plan.steps.push(Step { action, events });
    }

    /// Does something that the rest has to wait for.
    pub(crate) fn prepare(&mut self, action: Option<Action>) {
        if let Some(action) = action {
            self.plan.prepares = true;
            self.act(action, Vec::new());
        }
    }

    /// Writes a status, if it is another one than before.
    pub(crate) fn status<T: serde::Serialize + PartialEq>(
        &mut self,
        target: Target,
        (before, stored): (&T, Option<&Value>),
        after: &T,
    ) {
        if before == after && stored.is_some() {
            return;
        }
        let after = serde_json::to_value(after).unwrap_or_default();
        let stored = stored.cloned().unwrap_or_default();
        self.plan
            .statuses
            .push(Status::whole(target, &stored, after));
    }
}
