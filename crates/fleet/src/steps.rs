//! Writes as steps of a plan: what the API refused is tried again in its time, and told meanwhile.

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::action::FieldManager;
use slipway_kernel::fact::Refusal;
use slipway_kernel::plan::Status;
use slipway_kernel::{Action, Blocker, Event, Facts, ObjectRef, Plan, Purpose, Step, Target};

use crate::assemblage::state::begun;
use crate::kinds;
use crate::reasons::Reason;
use crate::render::Applied;

/// How much of what the API says is repeated, in characters. It names an object up to three times, each with up to 253.
const LONGEST: usize = 1_024;

/// What the API said when it refused a write, as it may be repeated: whoever is against a Secret may quote what is in it. Not too long:
/// as much may be said of each of a thousand clusters.
pub(crate) fn repeated(object: &ObjectRef, refusal: &Refusal) -> String {
    if object.kind == kinds::SECRET {
        return format!(
            "{}; what it says may have secret values in it, and is not repeated",
            refusal.reason
        );
    }
    begun(&refusal.message, LONGEST)
}

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
            .and_then(|object| Some((object, facts.refusal(object, action.manager())?)));
        if let Some((object, refusal)) = refusal {
            let blocker = Blocker {
                reason: Reason::RefusedByApi.as_str(),
                message: format!(
                    "the API refused to change {object}: {}",
                    repeated(object, refusal)
                ),
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use slipway_kernel::ObjectRef;
    use slipway_kernel::fact::{Cause, Refusal};

    use super::repeated;
    use crate::kinds;

    #[test]
    fn what_the_api_says_of_a_secret_is_not_repeated_and_nothing_is_without_end() {
        let refusal = |message: &str| Refusal {
            cause: Cause::Rejected,
            reason: "Forbidden".to_owned(),
            message: message.to_owned(),
            attempts: 1,
            since: Timestamp::UNIX_EPOCH,
            retry_at: Timestamp::UNIX_EPOCH,
        };
        let of = |kind| ObjectRef::local(kind, "fleet", "web");
        let said = repeated(&of(kinds::SECRET), &refusal("policy: hunter2 is too short"));
        assert!(
            said.starts_with("Forbidden") && !said.contains("hunter2"),
            "{said}"
        );
        let said = repeated(&of(kinds::MODULE), &refusal("policy: no"));
        assert_eq!(said, "policy: no");
        let said = repeated(&of(kinds::MODULE), &refusal(&"x".repeat(5_000)));
        assert!(said.chars().count() < 1_100);
    }
}
