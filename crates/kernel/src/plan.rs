//! What a planner answers.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::action::{Action, Target};
use crate::basis::Basis;
use crate::blocker::Blocker;
use crate::event::Event;
use crate::fact::QuestionId;

/// An action, and what is told when it has been done.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// What to tell after it succeeded.
    pub events: Vec<Event>,
}

/// A status to be written; planners ask for it only when it differs from what is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Of which object, as seen.
    pub target: Target,
    /// What it is to be, as a merge patch: what is to vanish is null. See [`Status::whole`].
    pub body: Value,
}

impl Status {
    /// Makes the status `after`, where it was `before`: what is only in `before` vanishes.
    pub fn whole(target: Target, before: &Value, mut after: Value) -> Self {
        void(before, &mut after);
        Self {
            target,
            body: after,
        }
    }
}

/// Says of each field that is only in `before` that it is null, at every depth: a merge patch leaves alone what it does not name.
fn void(before: &Value, after: &mut Value) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) else {
        return;
    };
    for (field, value) in before {
        match after.get_mut(field) {
            Some(after) => void(value, after),
            None => {
                after.insert(field.clone(), Value::Null);
            }
        }
    }
}

/// What is to be done now, what is to be said, and when to look again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Started in this order. The process may die after any of them, and steps on different objects may be under way
    /// at once: what must have succeeded before another step belongs into an earlier plan, or into the same write.
    pub steps: Vec<Step>,
    /// Statuses, after the steps.
    pub statuses: Vec<Status>,
    /// Told whether or not anything is done.
    pub events: Vec<Event>,
    /// Why nothing, or not more, is done.
    pub blockers: Vec<Blocker>,
    /// Whether the steps only prepare others: then the next plan is made as soon as they are done. Where there are none, it is
    /// the statuses: what is to be done is remembered there before it is done, and they are written at once.
    pub prepares: bool,
    /// Questions whose answers the next plan needs: other answers are forgotten. So there are never more than this plan
    /// has use for, and none is asked for again because there were too many.
    pub keeps: BTreeSet<QuestionId>,
    /// When to look again although nothing has changed.
    pub wake_at: Option<Timestamp>,
    /// What this was decided on.
    pub basis: Basis,
}

impl Plan {
    /// Asks to be woken at `at`, or earlier if that was asked for already.
    pub fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }

    /// Adds an action that others have to wait for.
    pub fn prepare(&mut self, action: Action) {
        self.prepares = true;
        self.act(action);
    }

    /// Adds an action without events.
    pub fn act(&mut self, action: Action) {
        self.steps.push(Step {
            action,
            events: Vec::new(),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::identity::{ObjectRef, kinds};
    use crate::store::Meta;

    /// A rollout's status once kept for ever who was left for later, because only fields at the top vanished.
    #[test]
    fn what_is_only_in_the_former_status_vanishes_at_every_depth() {
        let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "a");
        let target = Target::seen(object, &Meta::default());
        let before = json!({"run": {"canary": "a", "skipped": ["b"], "at": {"x": 1}}, "old": {"y": 1}, "list": [{"z": 1}]});
        let after = json!({"run": {"canary": "c", "at": {}}, "list": [{}]});
        let mut status = before.clone();
        crate::fields::merge(
            &mut status,
            &Status::whole(target, &before, after.clone()).body,
        );
        assert_eq!(status, after);
    }
}
